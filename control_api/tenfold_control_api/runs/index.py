"""What runs are filtered and sorted by, kept in memory from one list to the next.

A list with a filter looks at every run. Of ten thousand runs nearly all are as they were a second ago, so only the
version of each and the mark of its newest figures are read each time, and in full what has changed, here or at another
service. Owned by service.py; selection.py does the looking.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_control_api.runs import views
from tenfold_control_api.runs.selection import Candidate

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.runs.progress import TaskProgress
    from tenfold_control_api.runs.progress_table import ProgressTable
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.store import RunStore

#: Runs that are kept, a few kilobytes each; of more the rest is read for each list.
_KEPT = 20_000


@dataclass(frozen=True, slots=True)
class _Entry:
    candidate: Candidate
    #: Of the run, and as ProgressTable.marks gives it; None where no program had reported.
    version: int
    mark: tuple[float, int] | None


class RunIndex:
    """All runs as candidates. Used on one event loop."""

    def __init__(self, store: RunStore, progress: ProgressTable) -> None:
        self._store, self._progress = store, progress
        self._entries: dict[str, _Entry] = {}
        #: Lists that come together read what is new once.
        self._reading = asyncio.Lock()

    async def candidates(self) -> list[Candidate]:
        """Every run, in any order, with the newest of what its programs have reported."""
        async with self._reading:
            versions, marks = await self._store.versions(), await self._progress.marks()
            known = {run_id: entry for run_id, entry in self._entries.items() if run_id in versions}
            stale = [run_id for run_id, version in versions.items() if not _is(known.get(run_id), version)]
            runs = {run.id: run for run in await self._store.overview(stale)}
            # what this process hears of has no mark that moves in time
            here = [run_id for run_id in versions if self._progress.here(run_id)]
            moved = [run_id for run_id, entry in known.items() if entry.mark != marks.get(run_id)]
            told = await self._progress.newest_of(list(dict.fromkeys((*here, *moved, *runs))))
            known.update(await asyncio.to_thread(_read, known, runs, told, marks))
            self._entries = dict(list(known.items())[:_KEPT]) if len(known) > _KEPT else known
        return [entry.candidate for entry in known.values()]


def _is(entry: _Entry | None, version: int) -> bool:
    return entry is not None and entry.version == version


def _read(
    known: Mapping[str, _Entry],
    runs: Mapping[str, RunRecord],
    told: Mapping[str, Sequence[TaskProgress]],
    marks: Mapping[str, tuple[float, int]],
) -> dict[str, _Entry]:
    """The entries of the runs of which something was read."""
    found = {}
    for run_id, tasks in told.items():
        run = runs.get(run_id) or (known[run_id].candidate.run if run_id in known else None)
        if run is not None:  # else it was deleted meanwhile
            candidate = Candidate(run, views.summary_of(run, tasks))
            found[run_id] = _Entry(candidate, run.version, marks.get(run_id))
    return found
