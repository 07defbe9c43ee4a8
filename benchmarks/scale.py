"""19. Scale: the synchronous null step of null_replica.py over 1 … 64 workers and 1 … 16 parameter servers.

As TensorFlow's paper has it (OSDI 2016, section 6.2): a scalar, a dense model of 100 MB, and 32 rows of an embedding
table of 1 GB. Here all tasks are processes of one machine with a few cores, so the time of a step grows with the number
of tasks even where each does no more than before; what a step costs is its processor time, over all processes. It is
held against the count: 64 workers take at most four times the processor time of 8 in a null step. docs/scale.md has the
model that the points follow.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import harness
from dense_pull import COLUMNS, rows_of
from harness import Case, Effort, Subject, Wish
from harness.rounds import rows_of_cases
from null_replica import ENTRIES, replica, topology

if TYPE_CHECKING:
    from collections.abc import Iterator

WORKERS = (1, 2, 4, 8, 16, 32, 64)
#: Parameter servers, each with the same number of workers.
SERVERS, SERVERS_WORKERS = (2, 4, 16), 16
#: With more workers than these, sides that give each a copy of the dense model would fill a small machine's memory.
COPIED = 16
#: Numbers in a row of the table, and rows: 1 GB.
WIDTH, ROWS = 256, 983_040
#: The null step's processor time: of so many workers, at most so many times that of so few.
MANY, FEW, AT_MOST = 64, 8, 4.0


def named(kind: str, workers: int, servers: int) -> str:
    """The name of a case, which ends in its number of workers: "null step, 1 ps, 8 workers"."""
    return f"{kind}, {servers} ps, {workers} workers"


def cases(workers: int, servers: int) -> tuple[Case, ...]:
    here, dense = topology(workers, servers), rows_of(100) // servers * servers
    large = workers > COPIED
    return (
        Case(
            named("null step", workers, servers),
            here,
            replica(workers, servers, 1, servers=servers),
            sides=("tenfold", "tensorflow") if large else (),
        ),
        Case(
            named("dense 100 MB", workers, servers),
            here,
            replica(workers, dense, COLUMNS, servers=servers),
            work=dense * COLUMNS * 4 * workers,
            unit="B",
            sides=("tenfold",) if large else (),
        ),
        Case(
            named("32 rows of 1 GB", workers, servers),
            here,
            replica(workers, ROWS, WIDTH, sparse=True, servers=servers),
            work=ENTRIES * 4 * WIDTH * workers,
            unit="B",
            sides=("tenfold", "tensorflow") if large else (),
        ),
    )


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    """Each case's row; that of many workers with the verdict about processor time."""
    found: dict[str, dict[str, Any]] = {}
    for row in rows_of_cases(SUBJECT, effort, wish):
        found[row["case"]] = row
        few = found.get(named("null step", FEW, 1))
        if row["case"] == named("null step", MANY, 1) and few is not None:
            hold_processor_time(row, few)
        yield row


def hold_processor_time(row: dict[str, Any], few: dict[str, Any]) -> None:
    """Adds to `row` the verdict about its processor time beside that of `few`, for the sides of Tenfold."""
    for name in row["ratios"]:
        if name in few["figures"]:
            times = row["figures"][name]["cpu_us"] / few["figures"][name]["cpu_us"]
            kept = "met" if times <= AT_MOST else "missed"
            row["verdicts"][name] = f"{kept}: {times:.2f}x of ≤ {AT_MOST:g}x the processor time of {FEW} workers"


SUBJECT = Subject(
    number="19",
    module="scale",
    title="scale: the synchronous null step over many tasks",
    sides=(harness.TENFOLD, harness.TENFOLD_TCP, harness.TENSORFLOW),
    cases=(
        *(case for workers in WORKERS for case in cases(workers, 1)),
        *(case for servers in SERVERS for case in cases(SERVERS_WORKERS, servers)),
    ),
    rows=rows,
)

if __name__ == "__main__":
    harness.main(SUBJECT)
