"""What a process costs: the whole time of a hello program, and the resident memory of an idle task."""

from __future__ import annotations

import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import remote_null_step
from control_service import not_a_program
from harness import ALONE, REMOTE, Case, Deployment, Effort, Side

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

HELLO = """
import os
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
{imports}
hello = tf.constant("Hello, TensorFlow!")
sess = tf.Session()
print(sess.run(hello))
"""
IMPORTS = {
    "tenfold": "import tenfold as tf",
    "tensorflow": "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()",
}


def hello(python: str, runtime: str) -> tuple[float, float]:
    """One fresh interpreter: (microseconds, peak MiB)."""
    program = HELLO.format(imports=IMPORTS[runtime])
    start = time.perf_counter()
    process = subprocess.Popen([python, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == 0, process.returncode
    assert b"Hello" in said, said
    return (time.perf_counter() - start) * 1e6, usage.ru_maxrss / 1024


def idle_memory(pythons: Mapping[str, str], side: Side, folder: Path) -> tuple[float, float]:
    """Resident MiB of a task that listens, and of the same task after it has served a session some steps."""
    case = remote_null_step.SUBJECT.cases[0]
    deployment = Deployment(side, REMOTE, remote_null_step.SUBJECT.module, pythons, folder)
    try:
        deployment.wait_ready()
        fresh = resident(deployment.servers[0].popen.pid)
        deployment.build(case, folder)
        deployment.run(0.2, 3)
        deployment.close_case()
        return fresh, resident(deployment.servers[0].popen.pid)
    finally:
        deployment.stop()


def resident(pid: int) -> float:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) / 1024 for line in status.splitlines() if line.startswith("VmRSS"))


def run(effort: Effort, pythons: Mapping[str, str], *_: object, say: Callable[[str], None] = print) -> Any:
    started = time.monotonic()
    sides = {side.name: side for side in (harness.TENFOLD, harness.TENSORFLOW) if side.runtime in pythons}
    say("\n+. process")
    times: dict[str, dict[int, dict[str, float]]] = {name: {} for name in sides}
    peaks: dict[str, list[float]] = {name: [] for name in sides}
    for name, side in sides.items():
        hello(pythons[name], side.runtime)  # fills the caches: the demand is for warm ones
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
        for number in range(effort.rounds):
            for name in sides:
                taken, peak = hello(pythons[name], name)
                times[name][number] = {"p50_us": taken, "p99_us": taken}
                peaks[name].append(peak)
        idle = {name: idle_memory(pythons, side, Path(folder)) for name, side in sides.items()}
    case = Case("hello program, whole process", ALONE, not_a_program, limits_us={"tenfold": 500_000.0})
    rows = [harness.row_of(case, times, sides, {}, "equal", 0.0)]
    rows[0]["peak_mib"] = {name: round(statistics.median(values), 1) for name, values in peaks.items()}
    say(harness.row_text(rows[0]) + f"\n    peak MiB: {rows[0]['peak_mib']}")

    for number, what in enumerate(("idle task process", "idle task process that has served steps")):
        figures = {name: round(values[number], 1) for name, values in idle.items()}
        verdict = f"{'met' if figures['tenfold'] <= 120 else 'missed'}: {figures['tenfold']:.0f} MiB of ≤ 120 MiB"
        row = harness.row_of(Case(what, REMOTE, not_a_program, unit="MiB"), {}, sides, {}, "equal", 0.0)
        row["memory_mib"], row["verdicts"] = figures, {"tenfold": verdict}
        rows.append(row)
        say(f"  {what}, resident MiB: {figures}   {verdict}")
    return harness.subject_record("+", "footprint", "process", effort, started, rows)


if __name__ == "__main__":
    harness.main_of("+", "process", run)
