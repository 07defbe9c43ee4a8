"""Runs a part with branches or loops node by node, with dead tensors and frames.

A pure machine (execution.Execution). propagator.py says which node is ready; here nodes run. A dead one does not, and
its outputs are dead, which Send and Recv carry to other tasks. Follows TensorFlow's executor.cc.
"""

from __future__ import annotations

from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.part.edges import BLOCKING, KERNEL, MERGE, ORDER, RECV, SEND, SWITCH, SWITCH_N, TRIGGER
from tenfold_compiler.part.part_graph import node_error
from tenfold_compiler.values import DEAD, dead_fetch, read_only
from tenfold_compiler.write.region_schedule import Wanted
from tenfold_kernels import contexts
from tenfold_kernels.resources.waiting import Waiting

from .execution import OBJECTS, cancelled, check_leaves, extent, feed_value, kept
from .propagator import Propagator

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.edges import Edges
    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program

    from ..interfaces import Value
    from .execution import StepIO
    from .propagator import Token

_NONE: tuple[Any, ...] = ()
_NO_OUTPUTS = frozenset((ORDER, TRIGGER))
#: A cancelled step stops within so many nodes, and one that takes long is noticed.
_STOP_EVERY = 64
#: Nodes of one `advance`, nanoseconds of a careful one. A loop may go on for ever; the event loop must not wait for it.
_SLICE, _SLICE_NANOSECONDS = 4096, 4_000_000


class DynamicExecution:
    """One step of a program with control flow."""

    def __init__(self, program: Program, edges: Edges, io: StepIO) -> None:
        self.io = io
        self._program, self._edges = program, edges
        #: Of what came from outside; see Execution.
        self.shapes = 0
        self.pairs = self.usual = None
        #: What `shapes` counts: a loop may bring the same again and again.
        self._seen: set[Any] = set()
        #: A kernel has given what it took from elsewhere since `advance` was called: its size may be any.
        self._fresh = False
        self._feeds = self._read_feeds()
        for index, value in self._feeds.items():
            self._note(index, value)
        self._fetched: dict[str, Value] = {}
        self._propagator = Propagator(program.part, self._edges, program.most_turns)
        #: The propagator's own.
        self._queue = self._propagator.queue
        #: Recv nodes that wait for their tensor, and nodes that wait for their kernel's result.
        self._receiving = 0
        self._wanted: list[Wanted] = []

    def _read_feeds(self) -> dict[int, Value]:
        """What the client feeds, by node."""
        return {feed.node.index: feed_value(feed, self.io.feeds) for feed in self._program.transfers.feeds}

    @property
    def ready(self) -> bool:
        return bool(self._queue)

    @property
    def done(self) -> bool:
        return not self._queue and not self._receiving

    def take_wanted(self) -> Sequence[Wanted]:
        wanted, self._wanted = self._wanted, []
        return wanted

    def arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        """`token` is that of the Recv node, or of the blocking one."""
        self._receiving -= 1
        if token.node.blocking:
            token.values = outputs_of(token.node, value)
            self._take(token.node, token.values)
        else:
            self._note(token.node.index, value)
            token.values = (DEAD if is_dead else read_only(value),)
            token.is_dead = token.is_dead or is_dead
        token.received = True
        self._queue.append(token)

    def advance(self, careful: bool = False) -> None:
        contexts.run(self._advance, careful)

    def _note(self, index: int, value: Value) -> None:
        """Something of this node has come from outside."""
        seen = (index, extent(value))
        if seen not in self._seen:
            self._seen.add(seen)
            self.shapes ^= hash(seen)

    def _take(self, node: PartNode, outputs: Sequence[Any]) -> None:
        """A blocking kernel has given its outputs."""
        self._fresh = True
        for value in outputs:
            self._note(node.index, value)

    def _advance(self, careful: bool) -> None:
        self._fresh = False
        queue, run, propagate = self._queue, self._run, self._propagator.propagate
        begin = perf_counter_ns()
        for count in range(1, _SLICE):
            if not queue or (careful and self._fresh):
                return
            if count % _STOP_EVERY == 0:
                if self.io.stop:
                    raise cancelled()
                if careful and perf_counter_ns() - begin > _SLICE_NANOSECONDS:
                    return
            token = queue.popleft()
            try:
                outputs = run(token)
            except Exception as error:
                raise node_error(token.node, error) from error
            if outputs is not None:
                propagate(token, outputs)

    def fetched(self) -> dict[str, Value]:
        for key in self._program.transfers.fetch_keys:
            if key not in self._fetched:
                raise dead_fetch(key)
        return self._fetched

    # -- running one node --------------------------------------------------------------------------------------------

    def _run(self, token: Token) -> Sequence[Any] | None:
        """The outputs of the node (DEAD where there is none); None when it waits for a tensor."""
        node = token.node
        kind = self._edges.kinds[node.index]
        if kind == RECV:
            return self._recv(token)
        if kind == SEND:
            self._send(token)
            return _NONE
        if token.is_dead:
            return (DEAD,) * len(node.output_types)
        values = token.values
        if kind == MERGE:
            value = values[0].value if node.deref[token.live_index] else values[0]
            return value, np.array(token.live_index, dtype=np.int32)
        if self._edges.derefs[node.index]:
            values = [value.value if deref else value for value, deref in zip(values, node.deref, strict=True)]
        if kind == SWITCH:
            return (DEAD, values[0]) if bool(values[1]) else (values[0], DEAD)
        if kind in _NO_OUTPUTS:
            return _NONE
        if kind == BLOCKING:
            return self._start(token, values)
        if kind == SWITCH_N:
            return _switch(values[0], int(values[1]), len(node.output_types))
        if kind != KERNEL:
            return (values[0],)
        constant = self._program.constants.get(node.index)
        if constant is not None:
            return constant
        return outputs_of(node, self._program.kernels[node.index](*values))

    def _start(self, token: Token, values: Sequence[Any]) -> Sequence[Any] | None:
        """Runs a kernel that may have to wait, unless its result is there."""
        if token.received:
            return token.values
        result = self._program.kernels[token.node.index](*values)
        if type(result) is not Waiting:
            outputs = outputs_of(token.node, result)
            self._take(token.node, outputs)
            return outputs
        self._receiving += 1
        self._wanted.append(Wanted(token, "", result, token.node))
        return None

    def _recv(self, token: Token) -> Sequence[Any] | None:
        node = token.node
        if token.received:
            return token.values
        if node.index in self._feeds:
            return (self._feeds[node.index],)
        self._receiving += 1
        self._wanted.append(Wanted(token, self._key(token)))
        return None

    def _send(self, token: Token) -> None:
        node = token.node
        value: Any = None if token.is_dead else token.values[0]
        reference = node.deref[0] and not token.is_dead
        key = self._key(token)
        if not node.client_terminated:
            if type(value) is np.ndarray:
                value.flags.writeable = False
                if value.dtype is OBJECTS:
                    check_leaves(value, key)
            elif reference:
                value.check_initialized()
            self.io.send(key, value, token.is_dead)
        else:
            self._fetch(key, value.value if reference else value, token.is_dead)

    def _fetch(self, key: str, value: Value, is_dead: bool) -> None:
        """A value for the client."""
        if is_dead:
            raise dead_fetch(key)
        self._fetched[key] = kept(value)

    def _key(self, token: Token) -> str:
        if token.frame.parent is None:
            return self._program.transfers.keys[token.node.index]
        return token.node.rendezvous_key(f"{token.frame.id}:{token.iteration.number}")


def _switch(value: Any, index: int, count: int) -> Sequence[Any]:
    """The outputs of a _SwitchN; an index that there is not means the last, the default case."""
    if not 0 <= index < count:
        index = count - 1
    return tuple(value if port == index else DEAD for port in range(count))


def outputs_of(node: PartNode, result: Any) -> Sequence[Any]:
    """What a kernel returned, as a tuple of the node's outputs."""
    count = len(node.output_types)
    return (result,) if count == 1 else (result if count else _NONE)
