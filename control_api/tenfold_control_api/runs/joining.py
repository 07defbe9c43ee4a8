"""Programs that join a run by themselves: finding or beginning their run, their reports, and noticing their silence.

Used by service.py, which owns the runs and calls `attend` for each one that has not ended. joined.py decides, store.py
commits. A report that is no end costs no look into the database: what a program may still say is known from the runs
that this process has seen.
"""

from __future__ import annotations

import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tenfold_control_api.attempts import attempts
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import joined

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.runs.joined import Newcomer
    from tenfold_control_api.runs.progress_table import ProgressTable
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.store import RunStore
    from tenfold_control_api.service_settings import Settings

Key = tuple[str, str, int]


class JoinedRuns:
    """The programs of all joined runs. Used on one event loop."""

    def __init__(
        self,
        store: RunStore,
        progress: ProgressTable,
        settings: Settings,
        *,
        publish: Callable[[RunRecord], None],
        change: Callable[[str, Callable[[RunRecord], RunRecord]], Awaitable[RunRecord]],
        replicas: Replicas,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        """`publish` tells of a run's new value, `change` applies a verb of record.py or joined.py until it holds."""
        self._store, self._progress, self._settings = store, progress, settings
        self._publish, self._change = publish, change
        self._clock, self._wall, self._replicas = clock, wall_clock, replicas
        #: The runs that have not ended, as this process last saw them.
        self._runs: dict[str, RunRecord] = {}
        #: When each program was last heard of, here or through another replica.
        self._heard: dict[Key, float] = {}
        #: The newest report of each that the database had.
        self._stored: dict[Key, float] = {}
        self._looked = clock()

    def note(self, run: RunRecord) -> None:
        """A run's new value, whichever replica changed it."""
        if run.state.final:
            self._forget(run.id)
        elif run.joined:
            self._runs[run.id] = run

    async def join(
        self,
        newcomer: Newcomer,
        submission: Mapping[str, Any] | None,
        admit: Callable[[], None],
        submitter: str | None = None,
    ) -> tuple[RunRecord, int]:
        """The run of which the newcomer is a task from now on, and its index. Begins one from `submission` where none
        goes on, after `admit`, which raises if there may be no further run; without one raises NOT_FOUND."""
        tries = attempts("this run")
        while True:
            next(tries)
            last = await self._store.newest(joined.prefix(newcomer.key))
            now = self._wall()
            if last is not None and not last.state.final:
                run, index = joined.join(last, newcomer, now)
                if run is not last and not await self._store.save(last, run):
                    continue
            elif submission is None:
                raise ApiError("no-run-to-join", "these programs have no active run, and this one does not start one.")
            else:
                admit()
                name = joined.following(newcomer.key, last)
                begun = joined.begun(f"run-{uuid.uuid4().hex[:12]}", name, submission, now)
                begun = replace(begun, submitter=submitter)
                run, index = joined.join(begun, newcomer, now)
                if not await self._store.add(run):
                    continue
            self._heard[run.id, newcomer.job, index] = self._clock()
            if run is not last:
                self._publish(run)
            self.note(run)
            return run, index

    async def hear(self, run_id: str, job: str, index: int, process: Mapping[str, Any] | None) -> RunRecord:
        """A program of the run is there. Returns the run; raises NOT_FOUND, and 410 for a program that does not belong
        to it any more."""
        run = self._runs.get(run_id) or await self._store.get(run_id)
        if run is None:
            raise ApiError("no-such-run", f"the run {run_id!r} has been deleted.")
        if process is None:
            text = f"run {run.id} was joined by its programs: a report says which `process` it comes from."
            raise ApiError("run-without-process", text)
        joined.require_here(run, job, index, process)
        self._heard[run.id, job, index] = self._clock()
        return run

    async def end(self, run_id: str, job: str, index: int, ending: Mapping[str, Any]) -> None:
        """A program of the run has ended."""
        await self._change(run_id, lambda now: joined.ended(now, job, index, ending, self._wall()))

    def begin_round(self, active: Collection[str]) -> None:
        """Before the `active` runs are looked after: time in which this service stood still counts against nobody, and
        other runs have ended through a replica."""
        for run_id in [run_id for run_id in self._runs if run_id not in active]:
            self._forget(run_id)
        now = self._clock()
        gap, self._looked = now - self._looked, now
        if gap > self._settings.lease_ttl / 2:
            self._heard = {key: heard + gap for key, heard in self._heard.items()}

    async def attend(self, run: RunRecord) -> None:
        """Ends the tasks of the run of which nothing was heard for too long, and the run once nobody is waited for."""
        self.note(run)
        now = self._clock()
        late = [
            (job, index)
            for job, index in joined.running(run)
            if now - self._heard.setdefault((run.id, job, index), now) >= self._settings.lease_ttl
        ]
        if late and self._replicas.shared:
            await self._hear_through_others(run.id, now)
        for job, index in late:
            seconds = now - self._heard[run.id, job, index]
            if seconds < self._settings.lease_ttl:
                continue
            run = await self._change(
                run.id,
                lambda before, job=job, index=index, seconds=seconds: joined.silent(  # type: ignore[misc]
                    before, job, index, seconds, self._wall()
                ),
            )
            if run.state.final:
                return
        if not joined.running(run):
            await self._change(run.id, lambda now: joined.settled(now, self._settings.lease_ttl, self._wall()))

    def _forget(self, run_id: str) -> None:
        self._runs.pop(run_id, None)
        for known in (self._heard, self._stored):
            for key in [key for key in known if key[0] == run_id]:
                del known[key]

    async def _hear_through_others(self, run_id: str, now: float) -> None:
        """Reports that came to other replicas are seen by what they wrote."""
        for task in await self._progress.stored(run_id):
            key = (run_id, task.job, task.index)
            if self._stored.get(key) != task.updated:
                self._stored[key] = task.updated
                self._heard[key] = now
