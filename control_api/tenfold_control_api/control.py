"""All parts of one control service, put together and started and stopped in order. `async with` it.

Made by app.py in the app's lifespan; the routes reach it as `app.state.control`.
"""

from __future__ import annotations

import asyncio
import logging
import time
from typing import TYPE_CHECKING, Self

from tenfold_control_api.answer_store import AnswerStore
from tenfold_control_api.cluster import Cluster, TaskState
from tenfold_control_api.events import sources
from tenfold_control_api.events.log import EventLog
from tenfold_control_api.events.store import EventStore
from tenfold_control_api.events.webhooks import Webhooks
from tenfold_control_api.loops import end_loop
from tenfold_control_api.masters import Masters
from tenfold_control_api.placements import Placements
from tenfold_control_api.registry import Registry
from tenfold_control_api.replicas import Replicas
from tenfold_control_api.runs.progress_table import ProgressTable
from tenfold_control_api.runs.service import RunService
from tenfold_control_api.runs.store import RunStore
from tenfold_control_api.service_time import ServiceTime, SteadyWall
from tenfold_control_api.serving.figures import watch_followers
from tenfold_control_api.serving.service import ModelService
from tenfold_control_api.session_service import SessionService
from tenfold_control_api.store import ControlStore
from tenfold_control_api.sweeps.service import SweepService
from tenfold_control_api.sweeps.store import SweepStore
from tenfold_control_api.traces.run_traces import RunTraces
from tenfold_control_api.why.gather import Gatherer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_control_api.events.event import Event
    from tenfold_control_api.leases import Clock
    from tenfold_control_api.masters import MasterFactory
    from tenfold_control_api.metrics import Metrics
    from tenfold_control_api.runs.supervisors import SupervisorsFactory
    from tenfold_control_api.service_settings import Settings

log = logging.getLogger(__name__)

#: Seconds between clean-ups of expired rows.
_CLEAR_INTERVAL = 600.0


class Control:
    """One control service. Made inside a running event loop or before it; opened by `async with`."""

    def __init__(
        self,
        settings: Settings,
        master_factory: MasterFactory,
        *,
        supervisors: SupervisorsFactory,
        metrics: Metrics,
        clock: Clock = time.monotonic,
        wall_clock: Clock = time.time,
    ) -> None:
        self.settings = settings
        self.metrics = metrics
        self.store = ControlStore(settings.database, wall_clock=wall_clock)
        self.replicas = Replicas(
            self.store.engine, settings, shared=self.store.shared, clock=clock, wall_clock=wall_clock
        )
        self._time = ServiceTime(self.store.engine, clock)
        self.answers = AnswerStore(self.store.engine, self.replicas.id, self._time.now, settings)
        self.registry = Registry(self.store, settings, clock=clock, wall_clock=wall_clock)
        self.masters = Masters(master_factory, threads=settings.call_threads, backlog=settings.call_backlog)
        self.sessions = SessionService(
            self.store, self.registry, self.masters, settings, clock=clock, wall_clock=wall_clock
        )
        self.placements = Placements(self.sessions, settings.session_timeout)
        self.models = ModelService(self.sessions, settings, clock)
        self.runs = RunService(
            RunStore(self.store.engine),
            ProgressTable(self.store.engine),
            settings,
            supervisors(settings, lambda run_id: self.runs.supervisor_ended(run_id)),
            self.replicas,
            shared=self.store.shared,
            clock=clock,
            wall_clock=wall_clock,
        )
        self.sweeps = SweepService(
            SweepStore(self.store.engine),
            self.runs,
            settings,
            self.replicas,
            shared=self.store.shared,
            clock=clock,
            wall_clock=wall_clock,
        )
        self.run_traces = RunTraces(self.runs, settings, clock)
        self.why = Gatherer(master_factory, self.runs.progress, wall_clock)
        self.events = EventLog(EventStore(self.store.engine), settings, shared=self.store.shared)
        self.webhooks = Webhooks(settings.webhooks)
        self.wall_clock, self._steady = wall_clock, SteadyWall(wall_clock, clock)
        self._clearer: asyncio.Task[None] | None = None
        self.registry.lost_listeners.append(lambda cluster: metrics.leases_lost.labels(cluster).inc())
        # a series begins at 0, else its first increase is not seen
        self.registry.listeners.append(lambda cluster: metrics.leases_lost.labels(cluster.name).inc(0))
        self._watch_state()

    async def __aenter__(self) -> Self:
        await self.store.open()
        await self._time.keep()
        await self.answers.start()
        await self.replicas.start()
        await self.events.start()
        await self.registry.start()
        await self.sessions.start()
        self.models.start()
        self.webhooks.start()
        self._note_events()
        await self.runs.start()
        await self.sweeps.start()
        self._clearer = asyncio.create_task(self._clear_for_ever(), name="control:clearer")
        return self

    def serve_at(self, address: str) -> None:
        """Others reach this service at `address`; from now on runs can be started. Never blocks."""
        self.replicas.serve_at(address)
        self.runs.serve_at(address)
        self.sweeps.serve_at()

    def begin_stop(self) -> None:
        """1 · ends every wait, so that open requests end. Never blocks; `async with` does the rest."""
        self.registry.begin_stop()
        self.runs.begin_stop()
        self.sweeps.begin_stop()
        self.run_traces.begin_stop()
        self.events.begin_stop()

    async def __aexit__(self, *_: object) -> None:
        """2 models · 3 calls to masters · 4 sweepers · 5 the database. Bounded by thrice `settings.grace`."""
        self.begin_stop()
        await self.models.stop()
        await self.sessions.stop()
        await self.why.stop()
        await self.sweeps.stop()
        await self.runs.stop()
        await self.events.stop()
        await self.webhooks.stop()
        await end_loop(self._clearer)
        await self.registry.stop()
        await self.replicas.stop()
        await self.store.close()

    async def end_runs(self) -> None:
        """Stops the runs that end with the service, and waits for their ends. Bounded."""
        await self.sweeps.end_sweeps()
        await self.runs.end_runs()

    def trouble(self) -> str:
        """What does not do its work though the process and its database answer; "" where all does."""
        clearing = self._clearer is not None and not self._clearer.done()
        return self.registry.trouble() or self.sessions.trouble() or ("" if clearing else "the clearer does not run")

    async def clear(self) -> None:
        """Clears away what has been kept long enough. Called periodically, and by tests."""
        now = self._steady.now()
        await self.registry.forget_old(now)
        await self.events.forget_old(now)
        await self.runs.submissions.forget_packages(now)
        await self._time.keep()
        await self.answers.forget(self.settings.idempotency_memory, await self.replicas.living())

    async def _clear_for_ever(self) -> None:
        while True:
            try:
                await self.clear()
            except Exception:
                log.exception("clearing away old rows failed; it is tried again")
            await asyncio.sleep(_CLEAR_INTERVAL)

    def _note_events(self) -> None:
        """From now on what changes is an event."""
        now = self.wall_clock

        def note(events: list[Event]) -> None:
            self.events.note(events)
            self.webhooks.note(events)

        self.registry.change_listeners.append(lambda old, new: note(sources.cluster_changed(old, new, now())))
        self.registry.deletion_listeners.append(lambda cluster: note(sources.cluster_deleted(cluster, now())))
        self.runs.listeners.append(lambda old, new: note(sources.run_changed(old, new, now())))
        self.runs.report_listeners.append(lambda run, report: note(sources.checkpoints(run, report, now())))
        self.sessions.listeners.append(
            lambda record, action, why: note(sources.session_changed(record, action, why, now()))
        )

    def _watch_state(self) -> None:
        def tasks() -> Iterator[tuple[tuple[str, ...], float]]:
            for cluster in self.registry.clusters():
                for state, count in _count(cluster).items():
                    yield (cluster.name, state), count

        metrics, registry = self.metrics, self.registry
        metrics.watch("tenfold_control_tasks", "Declared tasks by state.", ("cluster", "state"), tasks)
        metrics.watch("tenfold_control_leases", "Live leases.", (), lambda: iter([((), len(registry.leases))]))
        metrics.watch("tenfold_control_watchers", "Waiting long-polls.", (), lambda: iter([((), registry.watchers())]))
        metrics.watch("tenfold_control_sessions", "Open sessions.", (), lambda: iter([((), len(self.sessions.table))]))
        metrics.watch("tenfold_control_events", "Events so far.", (), lambda: iter([((), self.events.last)]))
        metrics.watch(
            "tenfold_control_active_runs", "Runs that have not ended.", (), lambda: iter([((), self.runs.active())])
        )
        watch_followers(metrics, self.models)
        metrics.watch(
            "tenfold_control_master_calls",
            "Calls to masters in progress.",
            (),
            lambda: iter([((), self.masters.running)]),
        )


def _count(cluster: Cluster) -> dict[str, int]:
    found = {state.value: 0 for state in TaskState}
    for task in cluster.tasks.values():
        found[task.state.value] += 1
    return found
