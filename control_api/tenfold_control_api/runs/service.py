"""The operations on runs: reports, joining, stopping, deleting, logs; and the parts that do the rest, put together.

Called by routes/runs.py. record.py decides, table.py commits and tells; submissions.py takes runs in, run_sweeper.py
has them started and sees who is gone, joining.py has the programs that nobody started.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import arriving
from tenfold_control_api.runs.details import recorded
from tenfold_control_api.runs.filter import FilterError, parse
from tenfold_control_api.runs.index import RunIndex
from tenfold_control_api.runs.joining import JoinedRuns
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_control_api.runs.run_sweeper import RunSweeper
from tenfold_control_api.runs.selection import select
from tenfold_control_api.runs.submissions import Submissions
from tenfold_control_api.runs.table import RunTable
from tenfold_core.run_states import WITH_SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.runs.joined import Newcomer
    from tenfold_control_api.runs.progress_table import ProgressTable
    from tenfold_control_api.runs.selection import Key
    from tenfold_control_api.runs.store import RunStore
    from tenfold_control_api.runs.supervisors import Supervisors
    from tenfold_control_api.service_settings import Settings
    from tenfold_core.run_states import RunState

#: Seconds that runs which end with the service get for that, beyond their own grace.
_END_S = 20.0


class RunService:
    """All runs of the service, between `start` and `stop`."""

    def __init__(
        self,
        store: RunStore,
        progress: ProgressTable,
        settings: Settings,
        supervisors: Supervisors,
        replicas: Replicas,
        *,
        shared: bool,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        #: What the programs of runs report.
        self.progress = progress
        self._store, self._settings, self._supervisors, self._shared = store, settings, supervisors, shared
        self._wall = wall_clock
        self._table = RunTable(store, settings, shared=shared, clock=clock)
        #: What runs are filtered and sorted by.
        self._index = RunIndex(store, progress)
        #: The runs that no supervisor has.
        self._joined = JoinedRuns(
            store,
            progress,
            settings,
            publish=self._table.publish,
            change=self._table.change,
            clock=clock,
            wall_clock=wall_clock,
            replicas=replicas,
        )
        self._table.listeners.append(lambda _, run: self._joined.note(run))
        self._sweeper = RunSweeper(
            self._table,
            store,
            progress,
            self._joined,
            supervisors,
            replicas,
            settings,
            clock=clock,
            wall_clock=wall_clock,
        )
        #: Submissions and their packages.
        self.submissions = Submissions(self._table, store, supervisors, settings, replicas, wall_clock)
        #: Requests that follow logs, by principal.
        self.followers: Counter[str] = Counter()
        #: How many runs there were at the start.
        self.found = 0
        #: Set when the service ends: streams end, too.
        self.stopping = False
        #: Runs whose programs report, so that a report needs no look into the database.
        self._reporting: dict[str, RunRecord] = {}
        self._table.end_listeners.append(self._forget)
        #: Bytes that the tasks of a run have sent of what they left.
        self._sent: dict[str, int] = {}
        #: As the table's; and those called with each report of a program. They must not block.
        self.listeners = self._table.listeners
        self.report_listeners: list[Callable[[str, Mapping[str, Any]], None]] = []

    # -- life

    async def start(self) -> None:
        """Finds the runs again that have not ended."""
        self.found = await self._store.count()
        await self._sweeper.start()

    def serve_at(self, address: str) -> None:
        """From now on runs can be started: their supervisors report to `address`."""
        self._sweeper.serve_at(address)

    def begin_stop(self) -> None:
        """Ends every wait. Never blocks."""
        self.stopping = True
        self._sweeper.begin_stop()
        self._table.watches.close()

    async def stop(self) -> None:
        """Ends the sweeper, and writes what it has of progress. Bounded."""
        self.begin_stop()
        await self._sweeper.stop()

    async def end_runs(self) -> None:
        """Stops the runs that end with the service, and waits for their ends. Bounded."""
        if not self._settings.runs_end_with_service:
            return
        mine = [run for run, _ in await self._store.active() if run.is_supervised]
        for run in mine:
            with contextlib.suppress(ApiError):
                await self.ask_to_stop(run.id, WITH_SERVICE)
        grace = max((float(run.submission["stop_grace"]) for run in mine), default=0.0)
        with contextlib.suppress(ApiError):
            await asyncio.gather(*(self.wait(run.id, lambda now: now.state.final, grace + _END_S) for run in mine))

    def supervisor_ended(self, run_id: str) -> None:
        """A supervisor that was started here has ended. From any thread."""
        self._sweeper.supervisor_ended(run_id)

    async def sweep(self) -> None:
        """Looks after all runs once."""
        await self._sweeper.sweep()

    # -- looking

    def active(self) -> int:
        """Runs that have not ended, as this process knows."""
        return len(self._table.heard)

    async def get(self, run_id: str) -> RunRecord:
        """Raises NOT_FOUND."""
        return await self._table.get(run_id)

    async def page(
        self, states: Sequence[RunState], limit: int, after: tuple[str | float, ...] | None
    ) -> list[RunRecord]:
        """The newest runs first."""
        return await self._store.page(states, limit, after)

    async def select(
        self,
        states: Sequence[RunState],
        wanted: str | None,
        sort: str,
        limit: int,
        after: tuple[str | float, ...] | None,
    ) -> list[tuple[Key, RunRecord]]:
        """The runs that the filter wants, in the order of `sort`, each with its place. Looks at every run. Raises
        INVALID_ARGUMENT for a filter that is malformed."""
        try:
            parsed = None if wanted is None else parse(wanted)
        except FilterError as error:
            extra = {"filter": wanted, "position": error.position}
            raise ApiError("invalid-filter", f"the filter is malformed: {error}.", extra=extra) from None
        every = await self._index.candidates()
        candidates = [each for each in every if each.run.state in states] if states else every
        keys = await asyncio.to_thread(select, candidates, parsed, sort, limit, after)
        found = {run.id: run for run in await self._store.several([key.run for key in keys])}
        return [(key, found[key.run]) for key in keys if key.run in found]

    async def wait(self, run_id: str, satisfied: Callable[[RunRecord], bool], limit: float) -> RunRecord:
        """The run as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        return await self._table.wait(run_id, satisfied, limit)

    def log_folder(self, run: RunRecord) -> Path | None:
        """The folder with what the run's tasks wrote; None where there is none yet, or not here."""
        return self._supervisors.logs(run)

    def logs(self, run: RunRecord) -> Path:
        """The same; raises NOT_FOUND where there is none."""
        folder = self.log_folder(run)
        if folder is None:
            raise ApiError(
                "no-logs",
                f"run {run.id} has no logs here: {_where_logs_are(run)}.",
            )
        return folder

    def output(self, run: RunRecord) -> Path:
        """The folder for what the run's programs leave; raises NOT_FOUND where there is none here."""
        folder = self._supervisors.output(run)
        if folder is None:
            text = "its tasks have not started yet, or run where this service cannot read what they write"
            raise ApiError("no-artifacts", f"run {run.id} has no output folder here: {text}.")
        return folder

    async def take_output(
        self, run_id: str, job: str, index: int, path: str, piece: bytes, offset: int, size: int
    ) -> None:
        """Keeps a piece of a file that a task on another machine has left. Raises NOT_FOUND, 410 for a run that has
        ended, INVALID_ARGUMENT, RESOURCE_EXHAUSTED, and UNAVAILABLE that says what the disk said."""
        run = await self.get(run_id)
        run.require_active()
        if not 0 <= index < run.submission["jobs"].get(job, 0):
            raise ApiError("no-such-task", f"run {run_id} has no task {job}/{index}.")
        folder = await asyncio.to_thread(self._supervisors.arriving, run)
        if folder is None:
            text = "its tasks share a folder with it, or another service has started it"
            raise ApiError("no-artifacts", f"run {run_id} is sent no files here: {text}.")
        counted = self._sent.get(run_id, 0) + len(piece) + (0 if offset else arriving.FILE_BYTES)
        if counted > self._settings.max_run_output:
            limit = self._settings.max_run_output
            raise ApiError("output-too-large", f"the tasks of run {run_id} have sent the {limit} bytes that they may.")
        self._sent[run_id] = counted
        try:
            await asyncio.to_thread(arriving.keep, folder, f"{job}/{index}", path, piece, offset, size)
        except OSError as error:
            raise ApiError("disk-unavailable", f"the file cannot be kept: {error.strerror or error}.") from error

    @contextlib.contextmanager
    def follower(self, caller: str) -> Iterator[None]:
        """The principal `caller` follows logs. Raises RESOURCE_EXHAUSTED."""
        for held, limit, whose in (
            (self.followers[caller], self._settings.max_followers_per_caller, " of this caller"),
            (self.followers.total(), self._settings.max_followers, ""),
        ):
            if held >= limit:
                raise ApiError(
                    "too-many-followers",
                    f"{held} requests{whose} follow logs; that is the limit. Ask again later, or without follow.",
                )
        self.followers[caller] += 1
        try:
            yield
        finally:
            self.followers[caller] -= 1
            if not self.followers[caller]:
                del self.followers[caller]

    # -- acting

    async def submit(
        self,
        submission: Mapping[str, Any],
        submission_id: str | None,
        launcher: str = LOCAL,
        submitter: str | None = None,
        details: Mapping[str, Any] | None = None,
    ) -> tuple[RunRecord, bool]:
        """Keeps a submission and has it started, as `Submissions.submit` says."""
        run, created = await self.submissions.submit(submission, submission_id, launcher, submitter, details)
        if created:
            self._sweeper.look_soon()
        return run, created

    async def report(self, run_id: str, report: Mapping[str, Any]) -> RunRecord:
        """News from the run's supervisor. Raises NOT_FOUND, and 410 for a run that has ended in another way."""
        old = await self.get(run_id)
        if old.joined:
            text = f"run {run_id} has no supervisor: its programs joined it, and report as its tasks."
            raise ApiError("run-joined", text)
        _, reports = self._table.heard.get(run_id, (0.0, 0))
        run = await self._table.change(run_id, lambda now: now.report(report, self._wall()), old)
        if not run.state.final:
            if self._shared and run is old:
                await self._store.count_report(run_id)
                reports += 1
            self._table.hear(run_id, reports)
        return run

    async def join(
        self, newcomer: Newcomer, submission: Mapping[str, Any] | None, submitter: str | None = None
    ) -> tuple[RunRecord, int]:
        """A program's run and its index in it: that of its key which goes on, else a new one from `submission`, which
        is the `submitter`'s. Raises NOT_FOUND without either, RESOURCE_EXHAUSTED, INVALID_ARGUMENT for a task that the
        run does not have."""
        if submission is not None:
            self.submissions.check_size(submission)
        run, index = await self._joined.join(newcomer, submission, self._table.admit, submitter)
        self._table.expect(run.id)
        return run, index

    async def report_task(self, run_id: str, job: str, index: int, report: Mapping[str, Any]) -> str | None:
        """News from inside a program of the run; why it is to stop, if nobody else sees to that. Raises NOT_FOUND, and
        410 for a run that has ended."""
        run = self._reporting.get(run_id)
        if run is None:
            run = await self.get(run_id)
            run.require_active()
            self._reporting[run_id] = run
            self._table.expect(run_id)
        if not run.joined and not 0 <= index < run.submission["jobs"].get(job, 0):
            raise ApiError("no-such-task", f"run {run_id} has no task {job}/{index}.")
        if run.joined:
            run = await self._joined.hear(run_id, job, index, report["process"])
        if (told := report["recorded"]) is not None:
            await self._record(run_id, job, index, told)
        await self.progress.add(run_id, job, index, report, self._wall())
        for listener in self.report_listeners:
            listener(run_id, report)
        if run.joined and report["ending"] is not None:
            await self._joined.end(run_id, job, index, report["ending"])
        return run.stop if run.joined else None

    async def _record(self, run_id: str, job: str, index: int, told: Mapping[str, Any]) -> None:
        """Keeps what a program recorded of itself: it is on the disk before the report is answered."""
        run = await self._table.change(run_id, lambda now: now.record(job, index, told))
        details, diff = recorded(run.details, job, index, told)
        if details is run.details and diff is not None and not run.details.get("source"):
            await self._store.keep_diff(run_id, diff)

    async def edit(self, run_id: str, edit: Mapping[str, Any]) -> RunRecord:
        """Changes what the run is called. Raises NOT_FOUND."""
        return await self._table.change(run_id, lambda now: now.edit(edit))

    async def diff(self, run: RunRecord) -> str:
        """How the files of its working directory differed from their commit; empty where they did not, or where
        nothing is known."""
        return await self._store.diff(run.id)

    async def ask_to_stop(self, run_id: str, reason: str) -> RunRecord:
        """The run is to stop; its supervisor is told at once where it can be reached, else by its next report."""
        run = await self._table.change(run_id, lambda now: now.ask_to_stop(reason, self._wall()))
        if not run.state.final:
            await asyncio.to_thread(self._supervisors.nudge, run)
        return run

    async def delete(self, run_id: str) -> RunRecord:
        """Forgets a run that has ended, and its logs. Raises FAILED_PRECONDITION for one that has not."""
        run = await self.get(run_id)
        if not run.state.final:
            raise ApiError(
                "run-active", f"run {run_id} is {run.state}: stop it first, with POST /v1/runs/{run_id}:stop."
            )
        await self._store.remove(run_id)
        await self.progress.forget(run_id)
        await asyncio.to_thread(self._supervisors.clear, run)
        self._table.deleted(run_id)
        return run

    def _forget(self, run_id: str) -> None:
        self._reporting.pop(run_id, None)
        self._sent.pop(run_id, None)


def _where_logs_are(run: RunRecord) -> str:
    if run.is_supervised:
        return "its tasks have not started yet, or run where this service cannot read them"
    host = "its machine" if run.supervisor is None else run.supervisor["host"]
    return (
        f"it was started by hand, and `tenfold run` keeps them on {host}, with the state of its user, where this "
        "service cannot read them; a program without `tenfold run` keeps none"
    )
