"""One client session at its master: the placed graph, its client graphs, and the steps that run.

Made and owned by master.py. Owns every asyncio task that it starts; `close` ends them all within a bound.
Nouns and error texts follow TensorFlow's master_session.cc.
"""

from __future__ import annotations

import asyncio
import logging
import time
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.master.callables import Callables
from tenfold_services.master.client_graph import run_names
from tenfold_services.master.client_graph_cache import ClientGraphCache
from tenfold_services.master.partial_runs import PartialRuns, PartialStep
from tenfold_services.master.run_options import check_options, exec_options, is_due, run_metadata, step_seconds
from tenfold_services.master.run_table import KnownRun
from tenfold_services.master.session_graph import SessionGraph
from tenfold_services.master.step_runner import StepRunner
from tenfold_services.master.step_state import new_step_id
from tenfold_services.master.worker_sessions import WorkerSessions
from tenfold_services.owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_protos.config_pb2 import CallableOptions, RunMetadata, RunOptions
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.interfaces import TaskName, Value
    from tenfold_services.master.arrangement import Part
    from tenfold_services.master.callables import CallableGraph
    from tenfold_services.master.caller_steps import SessionSteps
    from tenfold_services.master.env import SessionEnv
    from tenfold_services.master.peer_use import PeerUse

    from .client_graph import ClientGraph, RunNames

_log = logging.getLogger("tenfold.master")

#: Seconds over which a session's speed is measured, at least.
_MEASURED_S = 1.0

CLOSED_BY_CLIENT = "Step was cancelled by an explicit call to `Session::Close()`."


class MasterSession:
    """A session. All methods are called from the event loop's thread; steps run concurrently."""

    def __init__(self, env: SessionEnv) -> None:
        self.env, self._env, self._config, self._limits = env, env.master, env.config, env.limits
        self.handle = handle = env.handle
        self._builds_costs = env.config.graph_options.build_cost_model > 0
        #: What `run_step` gives each step; 0 for no limit.
        self.timeout_in_ms = env.config.operation_timeout_in_ms
        self.graph = SessionGraph(env)
        #: Why no step may start any more; set once, by `close`.
        self._closed: errors.OpError | None = None
        self._tasks = OwnedTasks(f"Session {handle}")
        #: Tell tasks to forget steps that are over.
        self._cleaning = OwnedTasks(f"Session {handle}")
        self.worker_sessions = WorkerSessions(env, self._tasks)
        self._client_graphs = ClientGraphCache(env, self.graph, self._tasks)
        self._partial_runs = PartialRuns(env.limits, lambda step: self._cleanup(step.graph.parts, step.step_id))
        #: When the client last asked for something; see `unused_since`.
        self.last_used = time.monotonic()
        self._callables = Callables(handle, env.limits)
        #: Steps, in the order in which they began: in that order they end where the session does.
        self._running: dict[StepRunner, None] = {}
        #: Set while nothing runs.
        self._idle = asyncio.Event()
        self._idle.set()
        #: Steps on threads of callers; None before the first step.
        self._local: SessionSteps | None = None
        #: Who opened it, "ipv4:127.0.0.1:1234"; "" for a client in this process.
        self.client = ""
        #: Whose it is, and what else he has here; None: this process's.
        self.peer: PeerUse | None = None
        #: Opened by a caller that may only compute: the functions of its graph. Its graphs are checked, and its handle
        #: is good for such callers. None: by another one.
        self.untrusted_functions: frozenset[str] | None = None
        #: The principal that opened it.
        self.owner = ""
        self._created = time.monotonic()
        #: Steps on the scheduled path.
        self._steps = 0
        #: When the speed was last measured, and how many steps there were then.
        self._measured = (self._created, 0)
        self._speed: float | None = None
        #: The count when it was last told, and when a step was last seen to run.
        self._seen, self._active = 0, self._created

    def unused_since(self) -> float:
        """When the session was last used (monotonic seconds); now, while steps run or callers run them themselves."""
        by_callers = self._local is not None and any(graph.used for graph in self._local.graphs.values())
        return time.monotonic() if self._running or by_callers else self.last_used

    def as_status(self) -> dict[str, Any]:
        """What its master sees of it, for figures.py. Any thread."""
        now, local = time.monotonic(), self._local
        steps = self._steps + (0 if local is None else local.steps)
        running = len(self._running) + (0 if local is None else len(local.running))
        since, before = self._measured
        if running or steps != self._seen:
            # steps on threads of callers do not say when they were
            self._seen, self._active = steps, now
        if now - since >= _MEASURED_S:
            self._speed, self._measured = (steps - before) / (now - since), (now, steps)
        return {
            "handle": self.handle,
            "client": self.client,
            "age": now - self._created,
            "idle": max(0.0, now - max(self.last_used, self._active)),
            "steps": steps,
            "steps_per_second": self._speed,
            "running": running,
        }

    def parts_waited_for(self) -> list[tuple[int, tuple[TaskName, ...]]]:
        """Of each step on the scheduled path its number, and the tasks whose parts have not ended. Any thread."""
        return [(runner.step_id, runner.pending_tasks) for runner in list(self._running)]

    # -- the graph ---------------------------------------------------------------------------------------------------

    async def extend(self, graph_def: GraphDef, current_version: int) -> int:
        """Adds nodes; the new version. On any error the session's graph is what it was."""
        self._check_open()
        grown = await self.graph.grown(graph_def, current_version)
        self._check_open()
        return self.graph.take(grown, graph_def, current_version)

    # -- steps -------------------------------------------------------------------------------------------------------

    async def run_step(
        self,
        feeds: Mapping[str, Value],
        fetches: Sequence[str],
        targets: Sequence[str],
        options: RunOptions,
        partial_run_handle: str = "",
        prepared: CallableGraph | None = None,
    ) -> tuple[list[Value], RunMetadata]:
        """Runs one step; the values in the order of `fetches`. Raises the step's error.

        With a `partial_run_handle` it is one call of that partial run; a `prepared` graph is run as it is.
        """
        self._check_open()
        self._steps += 1
        seconds = step_seconds(options, self._config)
        if partial_run_handle:
            values = await self._partial_runs.run(partial_run_handle, feeds, fetches, seconds)
            return values, config_pb2.RunMetadata()
        if prepared is None:
            check_options(options, self._config)
        run = prepared or self._client_graphs.runs.find(tuple(feeds), tuple(fetches), tuple(targets))
        # Seconds of the step's time that making its graph has taken.
        waited = 0.0
        if run is None:
            started = asyncio.get_running_loop().time()
            names = run_names(tuple(feeds), tuple(fetches), tuple(targets))
            run = KnownRun(names, await self._build(names, seconds))
            waited = asyncio.get_running_loop().time() - started
        graph = run.graph
        # It must not be dropped for another one before it has run and was offered.
        graph.users += 1
        try:
            answer = await self._run(run, list(feeds.values()), options, seconds, waited)
            if prepared is None and not graph.was_offered:
                self._offer(graph)
        finally:
            graph.users -= 1
        return answer

    async def _build(self, names: RunNames, seconds: float | None) -> ClientGraph:
        """A graph that is not there yet, once it is. Raises as ClientGraphCache.build."""
        graph = await self._client_graphs.build(names.signature, seconds)
        self._check_open()  # the wait may have outlasted the session
        return graph

    def _offer(self, graph: ClientGraph) -> None:
        """Lets callers of this process run the graph by themselves, if it is one that they can."""
        graph.was_offered = True
        if self._env.caller_steps is None or self._closed is not None or self._builds_costs:
            return
        if self._local is None:
            seconds = step_seconds(None, self._config)
            self._local = self._env.caller_steps.open(self.handle, seconds, self._client_graphs.runs)
        self._local.offer(graph, partial(self.worker_sessions.explained, graph.tasks))

    async def _run(
        self,
        run: KnownRun | CallableGraph,
        fed: Sequence[Value],
        options: RunOptions,
        seconds: float | None,
        waited: float = 0.0,
    ) -> tuple[list[Value], RunMetadata]:
        self._check_steps()
        graph, names = run.graph, run.names
        if graph.pushes is not None and not graph.pushes.is_open:
            await self._client_graphs.arrange_pushes(graph)
            self._check_open()
        costs = False
        if self._builds_costs:
            costs = is_due(self._config.graph_options, graph.runs)
            graph.runs += 1
        given = dict(zip(names.feeds, fed, strict=True))
        runner = StepRunner(graph, new_step_id(), self.env, given, exec_options(options, costs))
        self._running[runner] = None
        if self.peer is not None:
            self.peer.steps += 1
        self._idle.clear()
        try:
            values = await runner.run(seconds, waited)
        except errors.OpError as e:
            self._cleanup(graph.parts, runner.step_id)
            if self._closed is not None:
                raise
            raise await self.worker_sessions.explained(graph.tasks, e) from None
        except asyncio.CancelledError:
            self._cleanup(graph.parts, runner.step_id)
            raise
        finally:
            for call in runner.unfinished_calls:
                self._tasks.adopt(call)
            self._running.pop(runner, None)
            if self.peer is not None:
                self.peer.steps -= 1
            if not self._running:
                self._idle.set()
        left = runner.unforgotten
        if left and left[-1].task == self._env.task:
            # Our own worker forgets at once; a call of its own would cost more than the clean-up.
            await left[-1].worker.cleanup_graph(runner.step_id)
            left = left[:-1]
        calls = self._cleanup(left, runner.step_id) if left else []
        if calls and len(self._cleaning) > self._limits.background_calls:
            await asyncio.wait(calls)
        stats = runner.step_stats()
        if stats or options.output_partition_graphs:
            metadata = await self.graph.aside(lambda: run_metadata(options, stats, graph, self.env.devices, costs))
        else:
            metadata = run_metadata(options, stats, graph, self.env.devices, costs)
        return [values[name] for name in names.fetches], metadata

    def _check_steps(self) -> None:
        """Raises ResourceExhaustedError where no step may begin beside those that run."""
        running, peer = len(self._running), self.peer
        if running >= self._limits.running_steps:
            raise self._limits.reached("running_steps", f"Session {self.handle} runs {running} steps at once")
        if peer is not None and peer.steps >= self._limits.running_steps_per_peer:
            text = f"The sessions of {peer.name} run {peer.steps} steps at once"
            raise self._limits.reached("running_steps_per_peer", text)

    def _cleanup(self, parts: Sequence[Part], step_id: int) -> list[asyncio.Task[None]]:
        """Tells the tasks to forget the step, in the background: the client need not wait for that."""

        async def one(part: Part) -> None:
            async with asyncio.timeout(self._limits.cleanup_seconds):
                await part.worker.cleanup_graph(step_id)

        return [self._cleaning.spawn(one(part), f"cleanup_graph:{part.task};{step_id:x}") for part in parts]

    # -- partial runs, callables -------------------------------------------------------------------------------------

    async def partial_run_setup(self, feeds: Sequence[str], fetches: Sequence[str], targets: Sequence[str]) -> str:
        """Registers what the calls of a partial run will feed and fetch together; the run's handle."""
        self._check_open()
        names = run_names(tuple(feeds), tuple(fetches), tuple(targets))
        names = replace(names, signature=replace(names.signature, is_partial=True))
        graph = self._client_graphs.runs.graph_of(names.signature)
        if graph is None:
            graph = await self._build(names, step_seconds(None, self._config))
        step = PartialStep(graph, names, new_step_id(), self.env, self.graph, self._tasks)
        return self._partial_runs.add(step, self.peer)

    async def make_callable(self, options: CallableOptions) -> int:
        """Registers the graph of a callable; its handle."""
        self._check_open()
        signature = self._callables.signature(options)
        building = self._tasks.spawn(self._client_graphs.register(signature), f"callable:{self.handle}")
        try:
            graph = await building
        except asyncio.CancelledError:
            if building.cancelled():
                self._check_open()  # the session's end cancelled it, and not the caller
            raise
        self._check_open()
        try:
            return self._callables.add(graph, options)
        except errors.ResourceExhaustedError:
            self._client_graphs.drop(graph)
            raise

    def callable(self, handle: int, feeds: int) -> CallableGraph:
        """What `run_step` runs for a callable that is called with so many feeds. Raises as Callables.find."""
        self._check_open()
        return self._callables.find(handle, feeds)

    def release_callable(self, handle: int) -> None:
        """Forgets a callable; steps of it under way go on. An unknown handle is no error, as in TensorFlow."""
        found = self._callables.remove(handle)
        if found is not None:
            self._client_graphs.drop(found.graph)

    # -- the end -----------------------------------------------------------------------------------------------------

    async def close(self, reason: str = CLOSED_BY_CLIENT) -> list[TaskName]:
        """Ends the session. Bounded, and raises nothing that a worker answers. Returns the tasks that were out of
        reach, and may still have their half of it.

        1 refuse new steps · 2 interrupt running ones · 3 wait for them · 4 cancel what is being registered · 5 end the
        workers' sessions · 6 let clean-up end · 7 cancel what is left.
        """
        if self._closed is not None:
            return []
        self._closed = errors.failed_precondition("Session is closed.")
        for runner in list(self._running):
            runner.interrupt(errors.cancelled(reason))
        self._partial_runs.close(errors.cancelled(reason))
        if self._local is not None:
            self._local.interrupt(errors.cancelled(reason))
        try:
            async with asyncio.timeout(self._limits.close_seconds):
                await self._idle.wait()
                if self._local is not None:
                    await self._local.idle()
        except TimeoutError:
            _log.warning("Session %s: %d steps did not stop in time", self.handle, len(self._running))
        self._client_graphs.close()
        left = await self.worker_sessions.delete(self._limits.cleanup_seconds)
        # those that are told again, as their connection broke
        await self._cleaning.settled(self._limits.abort_seconds)
        await self._cleaning.cancel_all(self._limits.abort_seconds)
        await self._tasks.cancel_all(self._limits.abort_seconds)
        self._callables.clear()
        if self._env.leave is not None:
            # the cluster goes with the session, and with it the way to its tasks
            await self._env.leave()
            return []
        return left

    def _check_open(self) -> None:
        if self._closed is not None:
            raise self._closed
