"""The hello program as a whole process, with warm caches: interpreter, import, session, one step, end of the process.

Twice: with a plain `tf.Session()`, and with a server in the process and a session on it, as in TensorFlow's guide to
distributed programs. For comparison the part that is not Tenfold's: the interpreter, with NumPy and gRPC. Every program
is run once before, so that its bytecode caches are written and its files are in memory.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from typing import TYPE_CHECKING, Any

import harness
from harness import ALONE, Case, Effort, Subject, Wish

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIDES = (harness.TENFOLD, harness.TENSORFLOW)
IMPORTS = {
    "tenfold": "import tenfold as tf",
    "tensorflow": "import tensorflow.compat.v1 as tf; tf.disable_v2_behavior()",
}
DIRECT = """
{imports}
hello = tf.constant("Hello, TensorFlow!")
sess = tf.Session()
print(sess.run(hello))
"""
ON_A_SERVER = """
{imports}
c = tf.constant("Hello, distributed TensorFlow!")
server = tf.train.Server.create_local_server()
sess = tf.Session(server.target)
print(sess.run(c))
"""
#: Neither runtime; both import at least this.
NOT_OURS = "import numpy, grpc.aio; print('Hello')"
#: Name, program, and how long it may take on Tenfold.
CASES: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("hello program, whole process", DIRECT, {"tenfold": 500_000.0}),
    ("hello program with a server, whole process", ON_A_SERVER, {"tenfold": 500_000.0}),
    ("import of NumPy and grpc.aio, whole process", NOT_OURS, {}),
)


def whole_process(python: str, program: str) -> tuple[float, float]:
    """One fresh interpreter: (microseconds, peak MiB)."""
    start = time.perf_counter()
    # without the runtimes' switches in this program's environment
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("TENFOLD_", "TF_"))}
    process = subprocess.Popen(
        [python, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**clean, "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""},
    )
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    process.stdout.close()
    assert process.returncode == 0, process.returncode
    assert b"Hello" in said, said
    return (time.perf_counter() - start) * 1e6, usage.ru_maxrss / 1024


def measure(case: Case, programs: Mapping[str, tuple[str, str]], rounds: int) -> dict[str, Any]:
    """One row; `programs` are interpreter and program by side, which take turns."""
    times: dict[str, dict[int, dict[str, float]]] = {name: {} for name in programs}
    peaks: dict[str, list[float]] = {name: [] for name in programs}
    for python, program in programs.values():
        whole_process(python, program)  # fills the caches: the demand is for warm ones
    for number in range(rounds):
        for name, (python, program) in programs.items():
            taken, peak = whole_process(python, program)
            times[name][number] = {"p50_us": taken, "p99_us": taken}
            peaks[name].append(peak)
    row = harness.row_of(case, times, {side.name: side for side in SIDES}, {}, "equal", 0.0)
    row["peak_mib"] = {name: round(statistics.median(values), 1) for name, values in peaks.items()}
    return row


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    for title, program, limit in CASES:
        sides = [side for side in SIDES if wish.takes(side) and (program is not NOT_OURS or side is harness.TENFOLD)]
        if wish.only in title and sides:
            case = Case(title, ALONE, harness.not_a_program, limits_us=limit)
            told = {side.name: (wish.pythons[side.name], program.format(imports=IMPORTS[side.name])) for side in sides}
            yield measure(case, told, effort.rounds)


SUBJECT = Subject("+", "hello", "hello program", rows=rows)

if __name__ == "__main__":
    harness.main(SUBJECT)
