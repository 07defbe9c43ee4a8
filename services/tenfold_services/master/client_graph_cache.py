"""A session's client graphs by run signature: built at the first run, shared by runs that come meanwhile, bounded.

Used by master_session.py. TensorFlow's session keeps every client graph until it closes; here the one that was
unused for longest is deregistered when there are too many.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_services.master.arrangement import arrange
from tenfold_services.master.client_graph import ClientGraph, cut_graph
from tenfold_services.master.run_table import RunTable

if TYPE_CHECKING:
    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_protos.config_pb2 import ConfigProto
    from tenfold_services.cluster import ClusterWorkers
    from tenfold_services.master.client_graph import RunSignature
    from tenfold_services.master.limits import MasterLimits
    from tenfold_services.master.session_graph import SessionGraph
    from tenfold_services.owned_tasks import OwnedTasks


class ClientGraphCache:
    """Called from the event loop's thread only."""

    def __init__(
        self,
        session_handle: str,
        graph: SessionGraph,
        devices: DeviceSet,
        workers: ClusterWorkers,
        config: ConfigProto,
        limits: MasterLimits,
        tasks: OwnedTasks,
    ) -> None:
        self._session_handle = session_handle
        self._graph = graph
        self._devices = devices
        self._workers = workers
        self._config = config
        self._limits = limits
        self._tasks = tasks
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

    def __len__(self) -> int:
        return len(self.runs)

    async def build(self, signature: RunSignature, seconds: float | None) -> ClientGraph:
        """The graph of a signature that `runs` does not know. Callers with the same signature share the work.

        Raises what prune, partition and the workers raise; DeadlineExceededError after `seconds`, while
        the work goes on.
        """
        building = self._building.get(signature)
        if building is None:
            building = self._tasks.spawn(self._build(signature), f"client_graph:{self._session_handle}")
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
        excess = len(self.runs) - self._limits.client_graphs
        if excess > 0:
            # Graphs that run now stay, even above the limit, and so does the one that is about to run.
            for oldest in [other for other in self.runs.unused() if other is not graph][:excess]:
                self.drop(oldest)
        return graph

    async def register(self, signature: RunSignature) -> ClientGraph:
        """Builds and registers a graph that the cache does not keep, e.g. a callable's."""
        async with self._cutting:
            whole, first_id = self._graph.graph, self._next_node_id
            placed = self._graph.placed if self._graph.places_pruned else None
            cut = await self._graph.aside(lambda: cut_graph(whole, signature, self._devices, first_id, placed))
            self._next_node_id = cut.next_id
        graph, graph_defs = ClientGraph.of(cut, self._workers)
        self._registering[signature] = graph
        try:
            await graph.register(self._session_handle, graph_defs, self._config, self._limits)
            await self.arrange_pushes(graph)
        finally:
            self._registering.pop(signature, None)
        return graph

    async def arrange_pushes(self, graph: ClientGraph) -> None:
        """Decides anew which tensors of the graph are pushed; bounded, no error."""
        own = self._devices.client_task
        graph.pushes = await arrange(
            self._session_handle, graph.parts, own, self._workers.worker(own), self._limits.cleanup_seconds
        )

    def drop(self, graph: ClientGraph) -> None:
        """Deregisters in the background; steps under way go on."""
        self.runs.forget(graph)
        if graph.local is not None:
            graph.local.end()
        self._tasks.spawn(graph.deregister(self._session_handle, self._limits), f"deregister:{self._session_handle}")

    def close(self) -> None:
        """Gives up what is being registered and forgets the rest: the workers drop it with their session."""
        for building in list(self._building.values()):
            building.cancel()
        self.runs.clear()
