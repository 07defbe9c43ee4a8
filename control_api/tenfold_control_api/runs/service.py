"""The operations on runs: submitting, reporting, stopping, deleting; and noticing that a supervisor is gone.

Called by routes/runs.py. record.py decides, store.py commits, launcher.py starts processes. One asyncio task,
`control:run-sweeper`, looks after the runs that have not ended: it starts those that nobody has started yet, and ends
those whose supervisor is gone. A run outlives the service: `start` finds it again, and its folder's lock keeps a second
supervisor off.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import logging
import os
import time
import uuid
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from tenfold_control_api.loops import end_loop
from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs.joining import JoinedRuns
from tenfold_control_api.runs.models import RunReport
from tenfold_control_api.runs.record import LOCAL, RunRecord
from tenfold_control_api.watch import Watch
from tenfold_core.errors import OpError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.runs.joined import Newcomer
    from tenfold_control_api.runs.launcher import Found, Launcher
    from tenfold_control_api.runs.progress_table import ProgressTable
    from tenfold_control_api.runs.store import RunStore
    from tenfold_control_api.settings import Settings
    from tenfold_core.run_states import RunState

log = logging.getLogger(__name__)

#: Attempts of a compare-and-set.
_ATTEMPTS = 20
#: Seconds that runs which end with the service get for that, beyond their own grace.
_END_S = 20.0
#: The supervisor of a run of which none has reported.
_NOBODY = {"host": "", "pid": 0}


class RunService:
    """All runs of the service, between `start` and `stop`."""

    def __init__(
        self,
        store: RunStore,
        progress: ProgressTable,
        settings: Settings,
        launcher: Launcher,
        replicas: Replicas,
        *,
        shared: bool,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        #: What the programs of runs report.
        self.progress = progress
        self._store, self._settings, self._launcher, self._shared = store, settings, launcher, shared
        self._clock, self._wall, self._replicas = clock, wall_clock, replicas
        #: The runs that no supervisor has.
        self._joined = JoinedRuns(
            store,
            progress,
            settings,
            publish=self._publish,
            change=self._change,
            clock=clock,
            wall_clock=wall_clock,
            replicas=replicas,
        )
        #: Where the supervisors find this service; runs are started once it is known.
        self._address = ""
        #: The runs that have not ended: when their supervisor was last heard of, and how many reports had come then.
        self._heard: dict[str, tuple[float, int]] = {}
        #: Runs that this process has started.
        self._launched: set[str] = set()
        #: Runs whose supervisor, started here, has ended.
        self._ended: set[str] = set()
        #: Requests that follow logs.
        self.followers = 0
        #: Set when the service ends: streams end, too.
        self.stopping = False
        #: Runs whose programs report, so that a report needs no look into the database.
        self._reporting: dict[str, RunRecord] = {}
        #: Runs that have ended, whose progress leaves the memory once it is written.
        self._over: list[str] = []
        self._look = asyncio.Event()
        self._watches: dict[str, Watch] = {}
        #: Called with each change made here, the value before (if any) and the new one, and with each report of a
        #: program; must not block.
        self.listeners: list[Callable[[RunRecord | None, RunRecord], None]] = []
        self.report_listeners: list[Callable[[str, Mapping[str, Any]], None]] = []
        self._sweeping: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    # -- life

    async def start(self) -> None:
        """Finds the runs again that have not ended."""
        self._loop = asyncio.get_running_loop()
        for run, reports in await self._store.active():
            self._heard[run.id] = (self._clock(), reports)
        self._sweeping = asyncio.create_task(self._sweep_for_ever(), name="control:run-sweeper")

    def serve_at(self, address: str) -> None:
        """From now on runs can be started: their supervisors report to `address`."""
        self._address = address
        self._look.set()

    def begin_stop(self) -> None:
        """Ends every wait. Never blocks."""
        self.stopping = True
        self._look.set()
        for watch in self._watches.values():
            watch.close()

    async def stop(self) -> None:
        """Ends the sweeper between two of its looks, if those do not take longer than `settings.grace`."""
        self.begin_stop()
        if self._sweeping is not None:
            await asyncio.wait((self._sweeping,), timeout=self._settings.grace)
        await end_loop(self._sweeping)
        await self.progress.flush()
        self._loop = None

    async def end_runs(self) -> None:
        """Stops the runs that end with the service, and waits for their ends. Bounded."""
        if not self._settings.runs_end_with_service:
            return
        mine = [run for run, _ in await self._store.active() if run.launcher == LOCAL]
        for run in mine:
            with contextlib.suppress(ApiError):
                await self.ask_to_stop(run.id, "the control service ended")
        grace = max((float(run.submission["stop_grace"]) for run in mine), default=0.0)
        with contextlib.suppress(ApiError):
            await asyncio.gather(*(self.wait(run.id, lambda now: now.state.final, grace + _END_S) for run in mine))

    def supervisor_ended(self, run_id: str) -> None:
        """A supervisor that was started here has ended. From any thread."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(self._note_end, run_id)

    def _note_end(self, run_id: str) -> None:
        self._ended.add(run_id)
        self._look.set()

    # -- looking

    def active(self) -> int:
        """Runs that have not ended, as this process knows."""
        return len(self._heard)

    async def get(self, run_id: str) -> RunRecord:
        """Raises NOT_FOUND."""
        run = await self._store.get(run_id)
        if run is None:
            raise ApiError(
                "no-such-run",
                f"there is no run {run_id!r}: it was never submitted, or was deleted. GET /v1/runs lists them.",
            )
        return run

    async def page(
        self, states: Sequence[RunState], limit: int, after: tuple[str | float, ...] | None
    ) -> list[RunRecord]:
        """The newest runs first."""
        return await self._store.page(states, limit, after)

    async def wait(self, run_id: str, satisfied: Callable[[RunRecord], bool], limit: float) -> RunRecord:
        """The run as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        deadline = self._clock() + limit
        if limit > 0 and sum(watch.waiting for watch in self._watches.values()) >= self._settings.max_watchers:
            raise ApiError(
                "too-many-watchers",
                f"{self._settings.max_watchers} requests already wait for a run; that is the limit. Ask again later.",
            )
        while True:
            watch = self._watches.setdefault(run_id, Watch())
            seen = watch.count
            run = await self.get(run_id)
            left = deadline - self._clock()
            if satisfied(run) or left <= 0:
                return run
            # a replica's changes are not told of: look again
            pause = min(left, self._settings.refresh_interval) if self._shared else left
            await watch.after(seen, pause)

    def log_folder(self, run: RunRecord) -> Path | None:
        """The folder with what the run's tasks wrote; None where there is none yet, or not here."""
        return self._launcher.logs(run)

    def logs(self, run: RunRecord) -> Path:
        """The same; raises NOT_FOUND where there is none."""
        folder = self.log_folder(run)
        if folder is None:
            raise ApiError(
                "no-logs",
                f"run {run.id} has no logs here: {_where_logs_are(run)}.",
            )
        return folder

    def take_follower(self) -> None:
        """Somebody follows logs, until `leave_follower`. Raises RESOURCE_EXHAUSTED."""
        if self.followers >= self._settings.max_followers:
            raise ApiError(
                "too-many-followers",
                f"{self.followers} requests follow logs; that is the limit. Ask again later, or without follow.",
            )
        self.followers += 1

    def leave_follower(self) -> None:
        self.followers -= 1

    # -- acting

    async def add_package(self, name: str, content: bytes) -> bool:
        """Keeps an uploaded working directory; False if it was there. Raises what `Packages.add` raises, and
        PERMISSION_DENIED where runs are not allowed."""
        self._require_allowed()
        return await asyncio.to_thread(self._launcher.packages.add, name, content)

    async def has_package(self, name: str) -> bool:
        return await asyncio.to_thread(self._launcher.packages.has, name)

    async def forget_packages(self) -> None:
        """Removes the packages that nobody has asked for lately."""
        await asyncio.to_thread(self._launcher.packages.forget, self._settings.package_memory)

    async def submit(
        self, submission: Mapping[str, Any], submission_id: str | None, launcher: str = LOCAL
    ) -> tuple[RunRecord, bool]:
        """Keeps a submission and has it started, unless its launcher is EXTERNAL; tells whether it is new. Raises
        PERMISSION_DENIED where runs are not allowed, ALREADY_EXISTS for another submission under the same id,
        RESOURCE_EXHAUSTED, INVALID_ARGUMENT."""
        if launcher == LOCAL:
            self._require_allowed()
        self._check(submission, launcher)
        package = submission.get("package")
        if package is not None and not await asyncio.to_thread(self._launcher.packages.has, package):
            raise ApiError(
                "no-such-package", f"there is no package {package}. Upload it first: PUT /v1/packages/{package}."
            )
        fingerprint = hashlib.sha256(json.dumps(submission, sort_keys=True).encode()).hexdigest()
        run_id = f"run-{uuid.uuid4().hex[:12]}"
        now, owner = self._wall(), self._replicas.id if launcher == LOCAL else None
        run = RunRecord(run_id, submission_id or run_id, fingerprint, launcher, submission, now, owner=owner)
        if submission_id is not None and (known := await self._store.by_submission(submission_id)) is not None:
            return self._same(known, fingerprint), False
        self._admit()
        if not await self._store.add(run):
            known = await self._store.by_submission(run.submission_id)
            if known is None:
                raise ApiError("run-deleted", "the run of this submission id was just deleted; send the request again.")
            return self._same(known, fingerprint), False
        self._heard[run.id] = (self._clock(), 0)
        self._publish(run)
        self._look.set()
        return run, True

    async def report(self, run_id: str, report: Mapping[str, Any]) -> RunRecord:
        """News from the run's supervisor. Raises NOT_FOUND, and 410 for a run that has ended in another way."""
        old = await self.get(run_id)
        if old.joined:
            text = f"run {run_id} has no supervisor: its programs joined it, and report as its tasks."
            raise ApiError("run-joined", text)
        _, reports = self._heard.get(run_id, (0.0, 0))
        run = await self._change(run_id, lambda now: now.report(report, self._wall()), old)
        if not run.state.final:
            if self._shared and run is old:
                await self._store.count_report(run_id)
                reports += 1
            self._heard[run_id] = (self._clock(), reports)
        return run

    async def join(self, newcomer: Newcomer, submission: Mapping[str, Any] | None) -> tuple[RunRecord, int]:
        """A program's run and its index in it: that of its key which goes on, else a new one from `submission`. Raises
        NOT_FOUND without either, RESOURCE_EXHAUSTED, INVALID_ARGUMENT for a task that the run does not have."""
        if submission is not None:
            self._check_size(submission)
        run, index = await self._joined.join(newcomer, submission, self._admit)
        self._heard.setdefault(run.id, (self._clock(), 0))
        return run, index

    async def report_task(self, run_id: str, job: str, index: int, report: Mapping[str, Any]) -> str | None:
        """News from inside a program of the run; why it is to stop, if nobody else sees to that. Raises NOT_FOUND, and
        410 for a run that has ended."""
        run = self._reporting.get(run_id)
        if run is None:
            run = await self.get(run_id)
            run.require_active()
            self._reporting[run_id] = run
        if not run.joined and not 0 <= index < run.submission["jobs"].get(job, 0):
            raise ApiError("no-such-task", f"run {run_id} has no task {job}/{index}.")
        if run.joined:
            run = await self._joined.hear(run_id, job, index, report["process"])
        await self.progress.add(run_id, job, index, report, self._wall())
        for listener in self.report_listeners:
            listener(run_id, report)
        if run.joined and report["ending"] is not None:
            await self._joined.end(run_id, job, index, report["ending"])
        return run.stop if run.joined else None

    async def ask_to_stop(self, run_id: str, reason: str) -> RunRecord:
        """The run is to stop; its supervisor is told at once where it can be reached, else by its next report."""
        run = await self._change(run_id, lambda now: now.ask_to_stop(reason, self._wall()))
        if not run.state.final:
            await asyncio.to_thread(self._launcher.nudge, run)
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
        await asyncio.to_thread(self._launcher.clear, run)
        if (watch := self._watches.pop(run_id, None)) is not None:
            watch.notify()
        return run

    # -- inside

    def _require_allowed(self) -> None:
        if not self._settings.allow_runs:
            raise ApiError(
                "runs-not-allowed", "this control service starts no programs: it was started without --allow-runs."
            )

    def _admit(self) -> None:
        """Raises RESOURCE_EXHAUSTED where there may be no further run."""
        if len(self._heard) >= self._settings.max_active_runs:
            raise ApiError(
                "too-many-runs",
                f"{len(self._heard)} runs have not ended yet: the limit is {self._settings.max_active_runs}.",
            )

    def _check_size(self, submission: Mapping[str, Any]) -> None:
        tasks = sum(submission["jobs"].values())
        if tasks > self._settings.max_tasks:
            raise ApiError("run-too-large", f"{tasks} tasks are too many: the limit is {self._settings.max_tasks}.")

    def _check(self, submission: Mapping[str, Any], launcher: str) -> None:
        self._check_size(submission)
        if not any(job != "ps" for job in submission["jobs"]):
            raise ApiError(
                "run-without-worker",
                "there is nobody to end the run: jobs needs a worker or a chief besides parameter servers.",
            )
        if not submission["entrypoint"][0]:
            raise ApiError(
                "empty-entrypoint", 'the entrypoint is empty; give a command, as in ["python", "trainer.py"].'
            )
        folder = submission["working_dir"]
        if folder is not None and submission.get("package") is not None:
            raise ApiError(
                "working-dir-and-package",
                "working_dir and package exclude each other: the run starts in the unpacked package.",
            )
        if launcher == LOCAL and folder is not None and not (os.path.isabs(folder) and os.path.isdir(folder)):
            raise ApiError(
                "no-such-working-dir",
                f"working_dir {folder!r} is no absolute path of a folder on the control service's machine.",
            )

    @staticmethod
    def _same(known: RunRecord, fingerprint: str) -> RunRecord:
        if known.fingerprint != fingerprint:
            raise ApiError(
                "submission-differs",
                f"submission id {known.submission_id!r} is that of run {known.id}, which was submitted with another "
                "program or other options. Choose another one.",
            )
        return known

    async def _change(
        self, run_id: str, decide: Callable[[RunRecord], RunRecord], known: RunRecord | None = None
    ) -> RunRecord:
        for _ in range(_ATTEMPTS):
            old = known or await self.get(run_id)
            known = None
            new = decide(old)
            if new is old:
                return old
            if await self._store.save(old, new):
                self._publish(new, old)
                return new
        raise ApiError("too-many-changes", f"run {run_id!r} is being changed by many at once; send the request again.")

    def _publish(self, run: RunRecord, old: RunRecord | None = None) -> None:
        self._joined.note(run)
        if run.state.final:
            self._forget(run.id)
        if (watch := self._watches.get(run.id)) is not None:
            watch.notify()
            if not watch.waiting:
                del self._watches[run.id]
        for listener in self.listeners:
            listener(old, run)

    def _forget(self, run_id: str) -> None:
        """The run has ended."""
        self._heard.pop(run_id, None)
        self._reporting.pop(run_id, None)
        self._over.append(run_id)
        for kept in (self._ended, self._launched):
            kept.discard(run_id)

    # -- the sweeper

    async def sweep(self) -> None:
        """Looks after all runs once. Called periodically, and by tests."""
        known = self._heard.keys() | self._reporting.keys()
        active = await self._store.active()
        for run_id in known - {run.id for run, _ in active}:
            self._forget(run_id)  # it ended at another service
        self._joined.begin_round({run.id for run, _ in active})
        for run, reports in active:
            await self._attend(run, reports)
        over, self._over = self._over, []
        await self.progress.flush()
        for run_id in over:
            self.progress.release(run_id)

    async def _sweep_for_ever(self) -> None:
        while not self.stopping:
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat):
                    await self._look.wait()
            if self.stopping:
                return
            self._look.clear()
            try:
                await self.sweep()
            except Exception:
                log.exception("the run sweeper could not do its work; it tries again")
                await asyncio.sleep(self._settings.heartbeat)

    async def _attend(self, run: RunRecord, reports: int) -> None:
        """Starts the run if nobody has, and ends it if its supervisor is gone."""
        now = self._clock()
        heard, known = self._heard.setdefault(run.id, (now, reports))
        if run.joined:
            await self._joined.attend(run)
            return
        if reports > known:  # through another replica
            heard = now
            self._heard[run.id] = (now, reports)
        silent = now - heard
        ended = run.id in self._ended
        to_start = run.supervisor is None and run.launcher == LOCAL and self._settings.allow_runs
        if to_start and self._address and run.id not in self._launched:
            await self._take(run)
            return
        patience = self._settings.lease_ttl if run.supervisor is not None else self._settings.run_start_timeout
        if not ended and silent < min(patience, 2.5 * self._settings.heartbeat):
            return
        found = await asyncio.to_thread(self._launcher.look, run) if run.launcher == LOCAL else None
        if found is not None and found.alive:
            return
        if found is not None and (found.last is not None or run.supervisor is not None or ended):
            await self._end(run, found)
        elif silent >= patience:
            who = _supervisor(run)
            text = f"nothing was heard of {who} for {silent:.0f} s"
            await self._change(run.id, lambda now: now.fail(text, self._wall()))

    async def _take(self, run: RunRecord) -> None:
        """Starts a run that this service is to start, or the one that was to and is dead."""
        mine = self._replicas.id
        if run.owner != mine and (run.owner is None or not await self._replicas.alive(run.owner)):
            run = await self._change(run.id, lambda now: now.claim(mine, run.owner), run)
        if run.owner == mine and not run.state.final:
            await self._launch(run)

    async def _launch(self, run: RunRecord) -> None:
        self._launched.add(run.id)
        self._heard[run.id] = (self._clock(), 0)
        try:
            services = ",".join([self._address, *self._replicas.addresses()])
            await asyncio.to_thread(self._launcher.launch, run, services)
        except (OSError, ValueError, OpError) as error:
            text = f"its supervisor cannot be started: {error}"
            await self._change(run.id, lambda now: now.fail(text, self._wall()))

    async def _end(self, run: RunRecord, found: Found) -> None:
        """Nobody runs it any more: what its supervisor left counts, or that it left nothing."""
        if found.last is not None:
            try:
                last = RunReport.model_validate({**found.last, "supervisor": run.supervisor or _NOBODY})
            except ValidationError as error:
                text = f"{_supervisor(run)} left a report that cannot be read: {error.errors()[0]['msg']}"
                await self._change(run.id, lambda now: now.fail(text, self._wall()))
            else:
                content = last.model_dump(mode="json")
                await self._change(run.id, lambda now: now.report(content, self._wall()))
            return
        text = f"{_supervisor(run)} ended without a word"
        if found.words:
            text = f"{_supervisor(run)} ended: {found.words}"
        await self._change(run.id, lambda now: now.fail(text, self._wall()))


def _where_logs_are(run: RunRecord) -> str:
    if run.launcher == LOCAL:
        return "its tasks have not started yet, or run where this service cannot read them"
    host = "its machine" if run.supervisor is None else run.supervisor["host"]
    return (
        f"it was started by hand, and `tenfold run` keeps them on {host}, with the state of its user, where this "
        "service cannot read them; a program without `tenfold run` keeps none"
    )


def _supervisor(run: RunRecord) -> str:
    if run.supervisor is None:
        return "its supervisor"
    return f"its supervisor (process {run.supervisor['pid']} on {run.supervisor['host']})"
