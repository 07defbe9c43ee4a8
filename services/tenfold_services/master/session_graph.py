"""The graph of a session, placed, and its version: how the client's nodes are added to it.

Used by master_session.py; client graphs are cut from what is here. Pure but for the pool that does what takes long.
In TensorFlow: Extend in master_session.cc and graph_execution_state.cc.
"""

from __future__ import annotations

import logging
import sys
from typing import TYPE_CHECKING, TypeVar

from tenfold_compiler.graph.lower import lower
from tenfold_compiler.graph.place import place
from tenfold_compiler.graph.placement import placement
from tenfold_compiler.graph.runtime_graph import RuntimeGraph
from tenfold_compiler.part.graph_sizes import SMALL_BYTES, SMALL_NODES, is_small, small_size
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.placement_pb2 import GetPlacementResponse
    from tenfold_services.master.env import SessionEnv

_placement_log = logging.getLogger("tenfold.placement")

T = TypeVar("T")


class SessionGraph:
    """Called from the event loop's thread only."""

    def __init__(self, env: SessionEnv) -> None:
        self._env, self._config = env, env.config
        #: Nodes are placed when a step needs them: beside them, a shell's graph may hold what cannot be placed.
        self.places_pruned = env.config.graph_options.place_pruned_graph
        #: Placed as a whole, or not at all. Replaced by `take`, never changed: client graphs share its nodes.
        self.graph = RuntimeGraph()
        self.version = 0
        #: Of all that the client has sent; what is not small counts as if it just were not.
        self._bytes = 0

    async def load(self, graph_def: GraphDef) -> None:
        """The first graph, of version 0: built and placed. Raises what is wrong with it, naming the node."""
        if self._config.log_device_placement:
            described = [(each.name, each.physical_device_desc) for each in self._env.devices.attributes]
            lines = [f"{name} -> {text}" for name, text in described if text]
            for line in ("Device mapping:", *lines) if lines else ():
                _log_placement(line)
        self.graph = await self.grown(graph_def, self.version)
        self._count(graph_def)

    async def grown(self, graph_def: GraphDef, current_version: int) -> RuntimeGraph:
        """The graph with new nodes, for `take`; made in the pool where it is large or has functions. Neither graph
        changes meanwhile. Raises AbortedError where the client knows another version."""
        self._check(current_version)
        graph = self.graph
        return await self.aside(lambda: self._grown(graph, graph_def), is_small(graph_def))

    def take(self, grown: RuntimeGraph, graph_def: GraphDef, current_version: int) -> int:
        """Goes on with what `grown` made of `graph_def`; the new version. AbortedError if another one was faster."""
        self._check(current_version)
        self._count(graph_def)
        self.graph = grown
        self.version += 1
        return self.version

    def _count(self, graph_def: GraphDef) -> None:
        size = small_size(graph_def)
        self._bytes += SMALL_BYTES if size is None else size

    def _check(self, current_version: int) -> None:
        if current_version != self.version:
            raise errors.aborted(f"Current version is {self.version} but caller expected {current_version}.")

    @property
    def is_small(self) -> bool:
        """Whether going through the graph takes little time."""
        return len(self.graph.nodes) < SMALL_NODES and self._bytes < SMALL_BYTES and not self.graph.library

    async def aside(self, work: Callable[[], T], and_small: bool = True) -> T:
        """The result of `work`, which goes through the graph or a part of it: at once if that is short, else in the
        pool, on a thread. Graphs do not change, so it may see this one after the session has got another or has ended.
        `and_small` says the same of what else it goes through.
        """
        pool = self._env.master.graph_pool
        return work() if pool is None or (self.is_small and and_small) else await pool.run(self._env.handle, work)

    def _grown(self, graph: RuntimeGraph, graph_def: GraphDef) -> RuntimeGraph:
        """The graph and new nodes, without functions and placed, unless each step's part is placed by itself."""
        limit = self._env.limits.nodes
        keep = self._config.experimental.executor_type == "SINGLE_THREADED_EXECUTOR"
        extended = graph.extend(graph_def, max_nodes=limit)
        lowered = lower(extended, max_nodes=limit, control_flow=not keep, gradients=self._env.master.gradients)
        return lowered if self.places_pruned else self.placed(lowered)

    def placed(self, graph: RuntimeGraph) -> RuntimeGraph:
        """The graph with every node on a device. Raises what cannot be placed, naming the node."""
        return place(
            graph,
            self._env.devices,
            devices_with_kernel=self._env.devices_with_kernel,
            soft=self._config.allow_soft_placement,
            log=_log_placement if self._config.log_device_placement else None,
        )

    async def placement(self) -> GetPlacementResponse:
        """Where the nodes are, and why: worked out now."""
        graph, version, env = self.graph, self.version, self._env
        soft = self._config.allow_soft_placement
        found = await self.aside(
            lambda: placement(graph, env.devices, devices_with_kernel=env.devices_with_kernel, soft=soft)
        )
        found.graph_version = version
        return found


def _log_placement(line: str) -> None:
    _placement_log.info(line)
    print(line, file=sys.stderr)
