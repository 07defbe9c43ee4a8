"""Every run as the database has it, and the one way in which a run changes. As cluster_table.py is for clusters.

Owned by service.py; submissions.py, run_sweeper.py and joining.py change runs by it. A change runs in this order:
record.py decides, store.py commits, who waits is told.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from tenfold_control_api.attempts import attempts
from tenfold_control_api.problems import ApiError
from tenfold_control_api.watch import Watches

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.runs.record import RunRecord
    from tenfold_control_api.runs.store import RunStore
    from tenfold_control_api.service_settings import Settings


class RunTable:
    """All runs. Used on one event loop."""

    def __init__(self, store: RunStore, settings: Settings, *, shared: bool, clock: Clock = time.monotonic) -> None:
        self._store, self._settings, self._clock = store, settings, clock
        #: The runs that have not ended: when their supervisor was last heard of, and how many reports had come then.
        self.heard: dict[str, tuple[float, int]] = {}
        self.watches = Watches("a run", settings, shared=shared, clock=clock)
        #: Called with each change made here, the value before (if any) and the new one; must not block.
        self.listeners: list[Callable[[RunRecord | None, RunRecord], None]] = []
        #: Called with the id of each run that has ended, here or at another service.
        self.end_listeners: list[Callable[[str], None]] = []

    async def get(self, run_id: str) -> RunRecord:
        """Raises NOT_FOUND."""
        run = await self._store.get(run_id)
        if run is None:
            raise ApiError(
                "no-such-run",
                f"there is no run {run_id!r}: it was never submitted, or was deleted. GET /v1/runs lists them.",
            )
        return run

    async def wait(self, run_id: str, satisfied: Callable[[RunRecord], bool], limit: float) -> RunRecord:
        """The run as soon as it is `satisfied`, or after `limit` seconds as it is then."""
        return await self.watches.wait(run_id, self.get, satisfied, limit)

    def admit(self) -> None:
        """Raises RESOURCE_EXHAUSTED where there may be no further run."""
        if len(self.heard) >= self._settings.max_active_runs:
            raise ApiError(
                "too-many-runs",
                f"{len(self.heard)} runs have not ended yet: the limit is {self._settings.max_active_runs}.",
            )

    def hear(self, run_id: str, reports: int = 0) -> None:
        """The run's supervisor is there."""
        self.heard[run_id] = (self._clock(), reports)

    def expect(self, run_id: str) -> None:
        """The run has not ended; nothing need have been heard of its supervisor yet."""
        self.heard.setdefault(run_id, (self._clock(), 0))

    async def change(
        self, run_id: str, decide: Callable[[RunRecord], RunRecord], known: RunRecord | None = None
    ) -> RunRecord:
        """Decides on the newest value, commits, publishes. `decide` may run several times, so it must be pure; `known`
        saves the first look."""
        tries = attempts(f"run {run_id!r}")
        while True:
            next(tries)
            old = known or await self.get(run_id)
            known = None
            new = decide(old)
            if new is old:
                return old
            if await self._store.save(old, new):
                self.publish(new, old)
                return new

    def publish(self, run: RunRecord, old: RunRecord | None = None) -> None:
        """A change that was made here has been committed."""
        if run.state.final:
            self.forget(run.id)
        self.watches.notify(run.id)
        for listener in self.listeners:
            listener(old, run)

    def forget(self, run_id: str) -> None:
        """The run has ended."""
        self.heard.pop(run_id, None)
        for listener in self.end_listeners:
            listener(run_id)

    def deleted(self, run_id: str) -> None:
        """Who waits for it is told that it is gone."""
        self.watches.notify(run_id, gone=True)
