"""The callables of a session: each is a client graph with the order of its feeds and fetches. Pure, and bounded.

Used by master_session.py, which builds the graphs and runs the steps. In TensorFlow: MakeCallable and RunCallable in
master_session.cc and direct_session.cc.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_services.master.client_graph import check_counts, run_names

if TYPE_CHECKING:
    from tenfold_protos.config_pb2 import CallableOptions
    from tenfold_services.master.client_graph import ClientGraph, RunNames, RunSignature
    from tenfold_services.master.limits import MasterLimits


@dataclass(frozen=True, slots=True)
class CallableGraph:
    """What a handle stands for."""

    graph: ClientGraph
    names: RunNames
    options: CallableOptions


class Callables:
    """By handle. Handles count from 1 and are never used twice."""

    def __init__(self, session_handle: str, limits: MasterLimits) -> None:
        self._session_handle, self._limits = session_handle, limits
        self._callables: dict[int, CallableGraph] = {}
        self._next = 1

    def signature(self, options: CallableOptions) -> RunSignature:
        """Of the graph that a new callable needs. Raises InvalidArgumentError for bad options.

        ResourceExhaustedError for too many names, and at the limit of callables.
        """
        connections = tuple((each.from_tensor, each.to_tensor) for each in options.tensor_connection)
        check_counts(len(options.feed) + 2 * len(connections), len(options.fetch), len(options.target))
        named = {*options.feed, *options.fetch}
        for name in (*options.feed_devices, *options.fetch_devices):
            if name not in named:
                raise errors.invalid_argument(
                    f"Tensor {name}, specified in either feed_devices or fetch_devices was not found in the feeds "
                    "and fetches."
                )
        self._check_room()
        return replace(_names(options).signature, connections=connections)

    def add(self, graph: ClientGraph, options: CallableOptions) -> int:
        """The handle of a new callable. Raises ResourceExhaustedError if others have come to the limit meanwhile."""
        self._check_room()
        handle = self._next
        self._next += 1
        self._callables[handle] = CallableGraph(graph, _names(options), options)
        return handle

    def find(self, handle: int, feeds: int) -> CallableGraph:
        """The callable, for a run with so many feeds. Raises InvalidArgumentError if it takes another number."""
        found = self._callables.get(handle)
        if found is None:
            known = 0 < handle < self._next
            text = "Attempted to run callable after handle was released" if known else "No such callable handle"
            raise errors.invalid_argument(f"{text}: {handle}")
        wanted = found.options.feed
        if feeds != len(wanted):
            raise errors.invalid_argument(f"Expected {len(wanted)} feed tensors, but got {feeds}: {', '.join(wanted)}.")
        return found

    def remove(self, handle: int) -> CallableGraph | None:
        """Forgets a callable; None for an unknown one."""
        return self._callables.pop(handle, None)

    def clear(self) -> None:
        self._callables.clear()

    def _check_room(self) -> None:
        if len(self._callables) >= self._limits.callables:
            text = f"Session {self._session_handle} has {len(self._callables)} callables, and releases none"
            raise self._limits.reached("callables", text)


def _names(options: CallableOptions) -> RunNames:
    return run_names(tuple(options.feed), tuple(options.fetch), tuple(options.target))
