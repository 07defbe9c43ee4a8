"""A session's client graphs by run signature: built at the first run, shared by runs that come meanwhile, bounded.

Used by master_session.py. TensorFlow's session keeps every client graph until it closes; here the one that was
unused for longest is deregistered when there are too many.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_services.master.arrangement import able_to_bundle, arrange
from tenfold_services.master.client_graph import ClientGraph, cut_graph, step_graph
from tenfold_services.master.run_table import RunTable
from tenfold_services.master.step_state import from_task

if TYPE_CHECKING:
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.master.arrangement import Part
    from tenfold_services.master.client_graph import RunSignature, StepGraph
    from tenfold_services.master.env import SessionEnv
    from tenfold_services.master.session_graph import SessionGraph
    from tenfold_services.owned_tasks import OwnedTasks


class ClientGraphCache:
    """Called from the event loop's thread only."""

    def __init__(self, env: SessionEnv, graph: SessionGraph, tasks: OwnedTasks) -> None:
        self._env, self._graph, self._tasks, self._limits = env, graph, tasks, env.limits
        self._devices, self._workers = env.devices, env.master.workers
        #: Registered graphs, and what names they are run by.
        self.runs = RunTable()
        #: Signatures that are being registered. Disjoint from those of `runs`.
        self._building: dict[RunSignature, asyncio.Task[ClientGraph]] = {}
        #: Cut, and on their way to the workers; the parts that have no handle yet are waited for.
        self._registering: dict[RunSignature, ClientGraph] = {}
        #: Numbers in the names of _Send and _Recv; never used twice in a session, so …
        self._next_node_id = 0
        #: … one graph is cut after the other.
        self._cutting = asyncio.Lock()

    async def build(self, signature: RunSignature, seconds: float | None) -> ClientGraph:
        """The graph of a signature that `runs` does not know. Callers with the same signature share the work.

        Raises what prune, partition and the workers raise; DeadlineExceededError after `seconds`, while
        the work goes on.
        """
        building = self._building.get(signature)
        if building is None:
            building = self._tasks.spawn(self._build(signature), f"client_graph:{self._env.handle}")
            self._building[signature] = building
            building.add_done_callback(lambda _: self._building.pop(signature, None))
        # Shielded: a caller that gives up must not take the graph from the others.
        try:
            async with asyncio.timeout(seconds):
                return await asyncio.shield(building)
        except TimeoutError:
            raise errors.deadline_exceeded(
                f"The step did not finish within {(seconds or 0) * 1000:.0f} ms; {self._progress(signature)}."
            ) from None
        except asyncio.CancelledError:
            if building.cancelled():
                raise errors.failed_precondition("Session is closed.") from None
            raise

    def _progress(self, signature: RunSignature) -> str:
        """What a graph that is being built waits for."""
        graph = self._registering.get(signature)
        if graph is None:
            return f"its graph is still being cut on {self._devices.client_task}"
        late = [part.task for part in graph.parts if not part.handle]
        if late:
            return f"its graph is still being registered with {', '.join(late)}"
        return f"links between its tasks are still being opened: {', '.join(graph.tasks)}"

    async def _build(self, signature: RunSignature) -> ClientGraph:
        graph = await self.register(signature)
        self.runs.put(graph)
        excess = len(self.runs.graphs) - self._limits.client_graphs
        if excess > 0:
            # Graphs that run now stay, even above the limit, and so does the one that is about to run.
            for oldest in [other for other in self.runs.unused() if other is not graph][:excess]:
                self.drop(oldest)
        return graph

    async def register(self, signature: RunSignature) -> ClientGraph:
        """Builds and registers a graph that the cache does not keep, e.g. a callable's."""
        whole = self._graph.graph
        placed = self._graph.placed if self._graph.places_pruned else None
        step = await self._graph.aside(lambda: step_graph(whole, signature, self._devices, placed))
        able = await self._able_to_bundle(step)
        async with self._cutting:
            first_id = self._next_node_id
            graph, graph_defs = await self._graph.aside(
                lambda: cut_graph(step, signature, self._devices, first_id, able)
            )
            self._next_node_id = graph.next_id
        for part in graph.parts:
            part.worker = self._workers.worker(part.task)
        self._registering[signature] = graph
        try:
            await self._register(graph, graph_defs)
            await self.arrange_pushes(graph)
        finally:
            self._registering.pop(signature, None)
        return graph

    async def _register(self, graph: ClientGraph, graph_defs: dict[str, GraphDef]) -> None:
        """Registers every part with its worker, all at once.

        Raises the first error, with the task that it came from, after deregistering what had succeeded;
        UnavailableError naming the tasks that did not answer.
        """
        handle, config, limits = self._env.handle, self._env.config, self._limits

        async def one(part: Part) -> None:
            try:
                part.handle = await part.worker.register_graph(handle, graph_defs[part.task], config)
            except errors.OpError as e:
                # no step was late: the task is out of reach, which monitored sessions wait for before they try again
                late = isinstance(e, errors.DeadlineExceededError)
                raise from_task(errors.unavailable(e.message) if late else e, part.task) from None

        seconds = limits.register_seconds + limits.register_node_seconds * sum(len(g.node) for g in graph_defs.values())
        try:
            late = await self._tasks.all_of({part.task: one(part) for part in graph.parts}, "register", seconds)
            if late:
                tasks = ", ".join(late)
                raise errors.unavailable(f"The graph could not be registered within {seconds:g} s with {tasks}.")
        except BaseException:
            await self._deregister(graph)
            raise

    async def _deregister(self, graph: ClientGraph) -> None:
        """Drops the parts at their workers; bounded, and a worker that is gone is no error."""

        async def one(part: Part) -> None:
            handle, part.handle = part.handle, ""
            async with asyncio.timeout(self._limits.cleanup_seconds):
                await part.worker.deregister_graph(self._env.handle, handle)

        await asyncio.gather(*(one(part) for part in graph.parts if part.handle), return_exceptions=True)

    async def _able_to_bundle(self, step: StepGraph) -> set[str]:
        """The tasks between which the step's tensors may cross together; bounded, no error."""
        if not step.bundles:
            return set()
        workers = {task: self._workers.worker(task) for task in step.tasks_of_bundles}
        return await able_to_bundle(workers, self._devices.client_task, self._limits.cleanup_seconds)

    async def arrange_pushes(self, graph: ClientGraph) -> None:
        """Decides anew which tensors of the graph are pushed; bounded, no error."""
        own = self._devices.client_task
        local, seconds = self._workers.worker(own), self._limits.cleanup_seconds
        graph.pushes = await arrange(self._env.handle, graph.parts, own, local, seconds)

    def drop(self, graph: ClientGraph) -> None:
        """Deregisters in the background; steps under way go on."""
        self.runs.forget(graph)
        if graph.local is not None:
            graph.local.end()
        self._tasks.spawn(self._deregister(graph), f"deregister:{self._env.handle}")

    def close(self) -> None:
        """Gives up what is being registered and forgets the rest: the workers drop it with their session."""
        for building in list(self._building.values()):
            building.cancel()
        self.runs.clear()
