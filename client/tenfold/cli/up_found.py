"""What `tenfold up` found from last time, in a line or two: how many runs, and what became of those that were running.

`found` asks the control service; the rest is pure. Used by up.py.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from tenfold_core.run_states import WITH_SERVICE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold.cli.held_database import Holder
    from tenfold.control import ControlClient
    from tenfold.control.run_answers import Run

#: Runs that ended last, among which those are that were running.
_LOOKED_AT = 100
#: Runs that are named.
_NAMED = 5


def found(client: ControlClient, folder: str, former: Holder | None, began: float) -> list[str]:
    """The lines. `folder`: where the runs are kept; `began`: when this `tenfold up` did, in wall-clock seconds. Blocks;
    raises OpError."""
    total = client.service().runs_found
    if not total:
        return [f"Runs are kept in {folder}."]
    ended = client.runs(states=["SUCCEEDED", "FAILED", "STOPPED"], sort="-ended", limit=_LOOKED_AT)
    since = began if former is None else former.since
    cut = were_running([*client.runs(states=["PENDING", "RUNNING"]), *ended], since, began)
    return told(folder, total, cut, killed=former is not None and not former.ended)


def were_running(runs: Iterable[Run], since: float, began: float) -> list[Run]:
    """Those of the runs that were running when the last `tenfold up` ended, which had begun at `since`: that ended
    with it, that have been found dead or have gone on since this one `began`."""

    def was_running(run: Run) -> bool:
        if _seconds(run.created) >= began:
            return False
        if run.ended is None or _seconds(run.ended) >= began:
            return True
        return WITH_SERVICE in (run.stop, run.reason) and _seconds(run.ended) >= since

    return [run for run in runs if was_running(run)]


def told(folder: str, total: int, cut: Sequence[Run], *, killed: bool) -> list[str]:
    """ "Found 3 runs in /home/me/…; 1 was running when the last `tenfold up` ended: run-1 is STOPPED."."""
    runs = "1 run" if total == 1 else f"{total:,} runs"
    end = "was killed" if killed else "ended"
    if not cut:
        return [f"Found {runs} in {folder}; none was running when the last `tenfold up` {end}."]
    were = "1 was" if len(cut) == 1 else f"{len(cut)} were"
    named = [f"{run.name} {_became(run)}" for run in cut[:_NAMED]]
    if more := len(cut) - _NAMED:
        named += [f"and {more} more"] if more > 0 else []
    return [f"Found {runs} in {folder}; {were} running when the last `tenfold up` {end}:", f"  {', '.join(named)}."]


def _became(run: Run) -> str:
    """What became of it. A program started manually continues without a service; a submitted one ends with it."""
    if run.final:
        return f"is {run.state}"
    return "goes on" if run.launcher == "external" else "is still ending" if run.state == "RUNNING" else "starts again"


def _seconds(moment: str) -> float:
    return datetime.fromisoformat(moment).timestamp()
