"""The operations on sweeps, and one asyncio task, `control:sweeps`, that looks after those that have not ended.

Called by routes/sweeps.py. record.py decides, store.py commits, who waits is told. A sweep is the work of one service
at a time; where that is dead, another one that may start runs goes on with it, as with the start of a run.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING

from tenfold_control_api.attempts import attempts
from tenfold_control_api.loops import end_loop
from tenfold_control_api.problems import ApiError
from tenfold_control_api.sweeps.driver import SweepDriver
from tenfold_control_api.watch import Watches
from tenfold_core.run_states import WITH_SERVICE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.replicas import Replicas
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.service import RunService
    from tenfold_control_api.service_settings import Settings
    from tenfold_control_api.sweeps.record import SweepRecord
    from tenfold_control_api.sweeps.store import SweepStore
    from tenfold_core.run_states import RunState

log = logging.getLogger(__name__)

#: Seconds between looks at the curves of runs that go on; the end of a run is seen at once.
_LOOK_S = 1.0


class SweepService:
    """All sweeps, between `start` and `stop`. On one event loop."""

    def __init__(
        self,
        store: SweepStore,
        runs: RunService,
        settings: Settings,
        replicas: Replicas,
        *,
        shared: bool,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self._store, self._runs, self._settings, self._replicas = store, runs, settings, replicas
        self._wall = wall_clock
        self._watches = Watches("a sweep", settings, shared=shared, clock=clock)
        #: The sweeps that this service drives.
        self._drivers: dict[str, SweepDriver] = {}
        self._due = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        #: Whether the supervisors of runs know where to report.
        self._serving = False
        self._stopping = False
        runs.listeners.append(self._note)

    # -- life

    async def start(self) -> None:
        """Finds the sweeps again that have not ended."""
        if self._settings.runs_end_with_service:
            await self.end_sweeps()
        self._looking = asyncio.create_task(self._look_for_ever(), name="control:sweeps")

    def serve_at(self) -> None:
        """From now on runs can be started. Never blocks."""
        self._serving = True
        self._due.set()

    def begin_stop(self) -> None:
        """Ends every wait, and starts nothing more. Never blocks."""
        self._stopping = True
        self._due.set()
        self._watches.close()

    async def stop(self) -> None:
        """Ends between two looks, if one does not take longer than `settings.grace`."""
        self.begin_stop()
        if self._looking is not None:
            await asyncio.wait((self._looking,), timeout=self._settings.grace)
        await end_loop(self._looking)

    async def end_sweeps(self) -> None:
        """Cancels the sweeps whose runs end with the service."""
        if self._settings.runs_end_with_service:
            for sweep in await self._store.active():
                await self.cancel(sweep.name, WITH_SERVICE)

    async def look(self) -> None:
        """Looks after all sweeps once. Called periodically, and by tests."""
        active = await self._store.active()
        for name in self._drivers.keys() - {sweep.name for sweep in active}:
            del self._drivers[name]
        for sweep in active:
            if self._stopping:
                return
            try:
                await self._attend(sweep)
            except Exception:
                log.exception("sweep %s could not be looked after; it is tried again", sweep.name)

    async def _look_for_ever(self) -> None:
        while not self._stopping:
            # Not wait_for: before Python 3.12 it loses a cancellation that comes together with the event.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._due.wait()
            self._due.clear()
            if self._stopping:
                return
            try:
                if self._serving and self._settings.allow_runs:
                    await self.look()
            except Exception:
                log.exception("the sweeps could not be looked after; it is tried again")
                await asyncio.sleep(_LOOK_S)

    async def _attend(self, sweep: SweepRecord) -> None:
        mine = self._replicas.id
        if sweep.owner != mine:
            self._drivers.pop(sweep.name, None)
            if sweep.owner is not None and await self._replicas.alive(sweep.owner):
                return
            sweep = await self._change(sweep.name, lambda now: now.claim(mine, sweep.owner))
            if sweep.owner != mine:
                return
        driver = self._drivers.get(sweep.name)
        if driver is None:
            driver = self._drivers[sweep.name] = SweepDriver(sweep, self._runs)
        try:
            await driver.look(sweep)
        finally:
            # also what was started before something failed
            machine = driver.machine
            now = await self._change(
                sweep.name, lambda each: each.progressed(machine, self._wall()) if each.owner == mine else each
            )
        if now.state.final:
            del self._drivers[sweep.name]
        elif now.stop != sweep.stop:
            self._due.set()

    def _note(self, _: RunRecord | None, run: RunRecord) -> None:
        if self._drivers and run.state.final:
            self._due.set()

    # -- looking

    async def get(self, name: str) -> SweepRecord:
        """Raises NOT_FOUND."""
        sweep = await self._store.get(name)
        if sweep is None:
            raise ApiError(
                "no-such-sweep",
                f"there is no sweep {name!r}: it was never created, or was deleted. GET /v1/sweeps lists them.",
            )
        return sweep

    async def page(
        self, states: Sequence[RunState], limit: int, after: tuple[str | float, ...] | None
    ) -> list[SweepRecord]:
        """The newest sweeps first."""
        return await self._store.page(states, limit, after)

    async def wait(self, name: str, satisfied: Callable[[SweepRecord], bool], limit: float) -> SweepRecord:
        """The sweep as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        return await self._watches.wait(name, self.get, satisfied, limit)

    # -- acting

    async def create(self, sweep: SweepRecord) -> tuple[SweepRecord, bool]:
        """Keeps a sweep and has its runs started; tells whether it is new. Raises PERMISSION_DENIED and
        INVALID_ARGUMENT as a submission of its runs does, ALREADY_EXISTS for another sweep, or another caller's, of
        that name, and RESOURCE_EXHAUSTED."""
        await self._runs.submissions.check(sweep.definition["program"], sweep.definition["launcher"])
        known = await self._store.get(sweep.name)
        if known is None:
            await self._admit()
            if await self._store.add(sweep):
                self._due.set()
                return sweep, True
            known = await self.get(sweep.name)
        if known.submitter not in (None, sweep.submitter) or known.fingerprint != sweep.fingerprint:
            mine = known.submitter in (None, sweep.submitter)
            whose = "with another definition" if mine else "by another caller"
            text = f"sweep {sweep.name!r} was created {whose}. Choose another name."
            raise ApiError("sweep-differs", text, at=("name",))
        return known, False

    async def cancel(self, name: str, reason: str) -> SweepRecord:
        """Starts nothing more, and stops the runs. Raises NOT_FOUND."""
        return await self._change(name, lambda now: now.cancel(reason))

    async def resume(self, name: str) -> SweepRecord:
        """Starts what was not started. Raises NOT_FOUND, FAILED_PRECONDITION for one that is stopping,
        RESOURCE_EXHAUSTED, and PERMISSION_DENIED where runs are not allowed."""
        self._runs.submissions.require_allowed()
        if (await self.get(name)).state.final:
            await self._admit()
        return await self._change(name, lambda now: now.resume(self._replicas.id))

    async def delete(self, name: str) -> SweepRecord:
        """Forgets a sweep that has ended; its runs stay. Raises FAILED_PRECONDITION for one that has not."""
        sweep = await self.get(name)
        if not sweep.state.final:
            text = f"sweep {name} goes on: cancel it first, with POST /v1/sweeps/{name}:cancel."
            raise ApiError("sweep-active", text)
        await self._store.remove(name)
        self._watches.notify(name, gone=True)
        return sweep

    async def _admit(self) -> None:
        active, limit = len(await self._store.active()), self._settings.max_active_sweeps
        if active >= limit:
            raise ApiError("too-many-sweeps", f"{active} sweeps have not ended yet: the limit is {limit}.")

    async def _change(self, name: str, decide: Callable[[SweepRecord], SweepRecord]) -> SweepRecord:
        """Decides on the newest value, commits, tells. `decide` may run several times, so it must be pure."""
        tries = attempts(f"sweep {name!r}")
        while True:
            next(tries)
            old = await self.get(name)
            new = decide(old)
            if new is old:
                return old
            if await self._store.save(old, new):
                self._watches.notify(name)
                self._due.set()
                return new
