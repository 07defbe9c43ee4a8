"""15. What reporting costs: a program by hand that a control service lists (TENFOLD_CONTROL), and the same one untold.

Throughput, so that the report that a thread sends once a second counts, too. The verdict is about processor time a step
of the program's own process: a busy machine blurs that less than the clock, and the other side, which goes on reporting
while it stands idle, has no part in it. Both ratios are told. The control service has a process of its own.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import harness
from harness import ALONE, Case, Effort, Side, Subject, Wish
from harness.rounds import rows_of_cases
from null_step import feed_and_fetch
from programs import PROGRAMS, measured

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A side whose programs report; the address is known once the service runs.
REPORTING = Side("tenfold reporting", "tenfold")
#: Times as long as without that a small step may take.
LIMIT = 1.01
#: Seconds for the control service to listen.
_START_S = 60.0

SMALL = "small"


SUBJECT = Subject(
    number="15",
    module="reporting",
    title="a program that reports to a control service",
    sides=(harness.TENFOLD, REPORTING),
    cases=(
        Case(SMALL, ALONE, measured(PROGRAMS["small"]), metric="throughput", warm_up_s=1.0),
        Case(
            "small, monitored session",
            ALONE,
            measured(PROGRAMS["small_monitored"], "stop"),
            metric="throughput",
            warm_up_s=1.0,
        ),
        Case("null step", ALONE, feed_and_fetch, metric="throughput", note="no limit: it is no training step"),
    ),
)


def rows(effort: Effort, wish: Wish) -> Iterator[dict[str, Any]]:
    """The cases with and without, in turn."""
    from tenfold.cli.children import Children

    with tempfile.TemporaryDirectory(prefix="tenfold-bench-") as folder, Children() as children:
        control = ["-m", "tenfold.cli", "control", "--port", "0", "--database", f"{folder}/c.db"]
        children.start("control", control)
        url = children.wait_for_line("control", r"listening on (http://\S+)", _START_S)[1]
        told = replace(REPORTING, env={"TENFOLD_CONTROL": url})
        for row in rows_of_cases(replace(SUBJECT, sides=(harness.TENFOLD, told)), effort, wish):
            hold_times(row)
            yield row


def hold_times(row: dict[str, Any]) -> None:
    """Adds how the two sides compare, by processor time and round by round by the clock; for a training step as a
    verdict."""
    quiet, loud = (row["figures"].get(name) for name in (harness.TENFOLD.name, REPORTING.name))
    if quiet is None or loud is None:
        return
    spent = loud["cpu_us"] / quiet["cpu_us"]
    passed = statistics.median(b / a for a, b in zip(quiet["rounds_us"], loud["rounds_us"], strict=False))
    row["times"] = {"processor": round(spent, 4), "clock": round(passed, 4)}
    text = f"{spent:.3f}x of the processor time without, {passed:.3f}x by the clock"
    if row["case"].startswith(SMALL):
        text = f"{'met' if spent <= LIMIT else 'missed'}: {text}, of ≤ {LIMIT:g}x"
    row["verdicts"][REPORTING.name] = text


SUBJECT = replace(SUBJECT, rows=rows)

if __name__ == "__main__":
    sys.exit(harness.main(SUBJECT))
