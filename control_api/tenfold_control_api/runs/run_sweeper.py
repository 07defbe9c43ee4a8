"""Looks after the runs that have not ended: one asyncio task, `control:run-sweeper`. Beside service.py as
lease_sweeper.py is beside registry.py.

It starts runs that this service is to start, or one that is dead was to; and ends those whose supervisor is gone. A run
outlives the service, so what it does may have been done before: its folder's lock keeps a second supervisor off.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from pydantic import ValidationError

from tenfold_control_api.loops import end_loop
from tenfold_control_api.runs.models import RunReport
from tenfold_core.errors import OpError

if TYPE_CHECKING:
    from tenfold_control_api.leases import Clock
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.runs.joining import JoinedRuns
    from tenfold_control_api.runs.progress_table import ProgressTable
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.store import RunStore
    from tenfold_control_api.runs.supervisors import Found, Supervisors
    from tenfold_control_api.runs.table import RunTable
    from tenfold_control_api.service_settings import Settings

log = logging.getLogger(__name__)

#: The supervisor of a run of which none has reported.
_NOBODY = {"host": "", "pid": 0}


class RunSweeper:
    """Works between `start` and `stop`, on one event loop."""

    def __init__(
        self,
        table: RunTable,
        store: RunStore,
        progress: ProgressTable,
        joined: JoinedRuns,
        supervisors: Supervisors,
        replicas: Replicas,
        settings: Settings,
        *,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._table, self._store, self._progress, self._joined = table, store, progress, joined
        self._supervisors, self._replicas, self._settings = supervisors, replicas, settings
        self._clock, self._wall = clock, wall_clock
        #: Where the supervisors find this service; runs are started once it is known.
        self._address = ""
        #: Runs that this process has started.
        self._launched: set[str] = set()
        #: Runs whose supervisor, started here, has ended.
        self._ended: set[str] = set()
        #: Runs that an earlier service has left, and at which nobody has looked since: it may have ended with them.
        self._found: set[str] = set()
        #: Runs that have ended, whose progress leaves the memory once it is written.
        self._over: list[str] = []
        self._look = asyncio.Event()
        self._stopping = False
        self._sweeping: asyncio.Task[None] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        table.end_listeners.append(self._forget)

    async def start(self) -> None:
        """Finds the runs again that have not ended."""
        self._loop = asyncio.get_running_loop()
        for run, reports in await self._store.active():
            self._table.hear(run.id, reports)
            self._found.add(run.id)
        self._sweeping = asyncio.create_task(self._sweep_for_ever(), name="control:run-sweeper")

    def serve_at(self, address: str) -> None:
        """From now on runs can be started: their supervisors report to `address`."""
        self._address = address
        self.look_soon()

    def look_soon(self) -> None:
        """There may be something to do. Never blocks."""
        self._look.set()

    def begin_stop(self) -> None:
        """Never blocks."""
        self._stopping = True
        self.look_soon()

    async def stop(self) -> None:
        """Ends between two looks, if one does not take longer than `settings.grace`."""
        self.begin_stop()
        if self._sweeping is not None:
            await asyncio.wait((self._sweeping,), timeout=self._settings.grace)
        await end_loop(self._sweeping)
        await self._progress.flush()
        self._loop = None

    def supervisor_ended(self, run_id: str) -> None:
        """A supervisor that was started here has ended. From any thread."""
        loop = self._loop
        if loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop has closed
                loop.call_soon_threadsafe(self._note_end, run_id)

    def _note_end(self, run_id: str) -> None:
        self._ended.add(run_id)
        self._look.set()

    async def sweep(self) -> None:
        """Looks after all runs once. Called periodically, and by tests."""
        known = list(self._table.heard)
        active = await self._store.active()
        ids = {run.id for run, _ in active}
        for run_id in known:
            if run_id not in ids:
                self._table.forget(run_id)  # it ended at another service
        self._joined.begin_round(ids)
        for run, reports in active:
            await self._attend(run, reports)
        over, self._over = self._over, []
        await self._progress.flush()
        for run_id in over:
            self._progress.release(run_id)

    async def _sweep_for_ever(self) -> None:
        while not self._stopping:
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._settings.heartbeat):
                    await self._look.wait()
            if self._stopping:
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
        heard, known = self._table.heard.setdefault(run.id, (now, reports))
        if run.joined:
            await self._joined.attend(run)
            return
        if reports > known:  # through another replica
            heard = now
            self._table.hear(run.id, reports)
        silent = now - heard
        ended = run.id in self._ended
        to_start = run.supervisor is None and run.is_supervised and self._settings.allow_runs
        if to_start and self._address and run.id not in self._launched:
            await self._take(run)
            return
        found_now = run.id in self._found
        self._found.discard(run.id)
        patience = self._settings.lease_ttl if run.supervisor is not None else self._settings.run_start_timeout
        if not (ended or found_now) and silent < min(patience, 2.5 * self._settings.heartbeat):
            return
        found = await asyncio.to_thread(self._supervisors.look, run) if run.is_supervised else None
        if found is not None and found.alive:
            return
        if found is not None and (found.last is not None or run.supervisor is not None or ended):
            await self._end(run, found)
        elif silent >= patience:
            who = _supervisor(run)
            text = f"nothing was heard of {who} for {silent:.0f} s"
            await self._table.change(run.id, lambda now: now.fail(text, self._wall()))

    async def _take(self, run: RunRecord) -> None:
        """Starts a run that this service is to start, or the one that was to and is dead."""
        mine = self._replicas.id
        if run.owner != mine and (run.owner is None or not await self._replicas.alive(run.owner)):
            run = await self._table.change(run.id, lambda now: now.claim(mine, run.owner), run)
        if run.owner == mine and not run.state.final:
            await self._launch(run)

    async def _launch(self, run: RunRecord) -> None:
        self._launched.add(run.id)
        self._table.hear(run.id)
        try:
            await self._replicas.observe()
            services = ",".join([self._address, *self._replicas.addresses()])
            await asyncio.to_thread(self._supervisors.launch, run, services)
        except (OSError, ValueError, OpError) as error:
            text = f"its supervisor cannot be started: {error}"
            await self._table.change(run.id, lambda now: now.fail(text, self._wall()))

    async def _end(self, run: RunRecord, found: Found) -> None:
        """Nobody runs it any more: what its supervisor left counts, or that it left nothing."""
        if found.last is not None:
            try:
                last = RunReport.model_validate({**found.last, "supervisor": run.supervisor or _NOBODY})
            except ValidationError as error:
                text = f"{_supervisor(run)} left a report that cannot be read: {error.errors()[0]['msg']}"
                await self._table.change(run.id, lambda now: now.fail(text, self._wall()))
            else:
                content = last.model_dump(mode="json")
                await self._table.change(run.id, lambda now: now.report(content, self._wall()))
            return
        text = f"{_supervisor(run)} ended without a word"
        if found.words:
            text = f"{_supervisor(run)} ended: {found.words}"
        await self._table.change(run.id, lambda now: now.fail(text, self._wall()))

    def _forget(self, run_id: str) -> None:
        self._over.append(run_id)
        for kept in (self._ended, self._launched, self._found):
            kept.discard(run_id)


def _supervisor(run: RunRecord) -> str:
    if run.supervisor is None:
        return "its supervisor"
    return f"its supervisor (process {run.supervisor['pid']} on {run.supervisor['host']})"
