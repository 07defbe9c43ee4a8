"""What one session remembers of its runs: names as a client gives them → what they mean → the client graph.

The only memory of run signatures on a server. A training loop asks for the same names in every step, so one look-up
with these names gives all that a step needs. client_graph_cache.py puts graphs in and takes them out; master_session.py
and caller_steps.py look runs up. A link's numbers (rpc/link_master_service.py) stand for names that are looked up here.
"""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from tenfold_services.master.client_graph import RunNames, run_names

if TYPE_CHECKING:
    from tenfold_services.master.client_graph import ClientGraph, RunSignature

    Given: TypeAlias = tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]

#: Ways to name runs that one session remembers; and how many, how long the names of one may be.
_RUNS, _FEW_NAMES, _SHORT_NAMES = 1024, 512, 65_536


class KnownRun(NamedTuple):
    """What names stand for. A graph stays valid when the session's graph grows."""

    names: RunNames
    graph: ClientGraph


class RunTable:
    """`find` is for any thread, the rest for the event loop's."""

    def __init__(self) -> None:
        #: By feeds, fetches and targets as given. Read without the lock.
        self._runs: dict[Given, KnownRun] = {}
        #: Registered graphs. Read without the lock.
        self._graphs: dict[RunSignature, ClientGraph] = {}
        self._clock = itertools.count(1)
        #: Held by what changes the two tables.
        self._lock = threading.Lock()

    @property
    def graphs(self) -> list[ClientGraph]:
        return list(self._graphs.values())

    def find(self, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]) -> KnownRun | None:
        """The run of these names, if its graph is there; that counts as used now. Raises as run_names."""
        found = self._runs.get((feeds, fetches, targets))
        if found is None:
            found = self._look_up(feeds, fetches, targets)
        if found is not None:
            self.touch(found.graph)
        return found

    def graph_of(self, signature: RunSignature) -> ClientGraph | None:
        """The graph of a signature, if it is there; that counts as used now."""
        found = self._graphs.get(signature)
        if found is not None:
            self.touch(found)
        return found

    def _look_up(self, feeds: tuple[str, ...], fetches: tuple[str, ...], targets: tuple[str, ...]) -> KnownRun | None:
        names = run_names(feeds, fetches, targets)
        graph = self._graphs.get(names.signature)
        if graph is None:
            return None
        run = KnownRun(names, graph)
        short = sum(len(name) for given in (feeds, fetches, targets) for name in given) <= _SHORT_NAMES
        if short and len(feeds) + len(fetches) + len(targets) <= _FEW_NAMES:
            with self._lock:
                # another thread may have given the graph up meanwhile
                if self._graphs.get(names.signature) is graph:
                    if len(self._runs) >= _RUNS:
                        del self._runs[next(iter(self._runs))]
                    self._runs[feeds, fetches, targets] = run
        return run

    def touch(self, graph: ClientGraph) -> None:
        """The graph is used now."""
        graph.last_used = next(self._clock)

    def put(self, graph: ClientGraph) -> None:
        """The graph was registered."""
        with self._lock:
            self._graphs[graph.signature] = graph
        self.touch(graph)

    def forget(self, graph: ClientGraph) -> None:
        """The graph is given up. No error if it is not here."""
        with self._lock:
            if self._graphs.get(graph.signature) is graph:
                del self._graphs[graph.signature]
                self._runs = {given: run for given, run in self._runs.items() if run.graph is not graph}

    def unused(self) -> list[ClientGraph]:
        """The graphs that no step runs now, the one unused for longest first.

        Graphs that callers ran by themselves since the last look count as used now.
        """
        for graph in self.graphs:
            if graph.local is not None and graph.local.used:
                graph.local.used = False
                self.touch(graph)
        return sorted((graph for graph in self.graphs if graph.users == 0), key=lambda graph: graph.last_used)

    def clear(self) -> None:
        with self._lock:
            self._runs, self._graphs = {}, {}
