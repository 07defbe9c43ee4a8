"""The memory of a task's process: resident when it listens, and after some steps.

The hello program, as a whole process, is in hello.py.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import harness
import remote_null_step
from harness import REMOTE, Case, Deployment, Effort, Side, Subject, Wish

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIDES = (harness.TENFOLD, harness.TENSORFLOW)
#: MiB that an idle task of Tenfold may hold.
LIMIT_MIB = 120


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


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    sides = {side.name: side for side in SIDES if wish.takes(side)}
    titles = ("idle task process", "idle task process that has served steps")
    if not any(wish.only in title for title in titles):
        return
    with tempfile.TemporaryDirectory(prefix="tenfold-bench-", ignore_cleanup_errors=True) as folder:
        idle = {name: idle_memory(wish.pythons, side, Path(folder)) for name, side in sides.items()}
    for number, what in enumerate(titles):
        case = Case(what, REMOTE, harness.not_a_program, unit="MiB")
        row = harness.row_of(case, {}, sides, {}, "equal", 0.0)
        row["memory_mib"] = {name: round(values[number], 1) for name, values in idle.items()}
        if (ours := row["memory_mib"].get("tenfold")) is not None:
            verdict = "met" if ours <= LIMIT_MIB else "missed"
            row["verdicts"]["tenfold"] = f"{verdict}: {ours:.0f} MiB of ≤ {LIMIT_MIB} MiB"
        yield row


SUBJECT = Subject("+", "footprint", "idle task process", rows=rows)

if __name__ == "__main__":
    harness.main(SUBJECT)
