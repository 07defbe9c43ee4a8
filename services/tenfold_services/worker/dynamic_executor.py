"""Runs a part with branches or loops node by node, with dead tensors and frames.

A pure machine (program.Execution). A node is ready when all its inputs have arrived, a Merge at its first live one; a
node with a dead input does not run and its outputs are dead; Send and Recv carry deadness to other tasks. Theory and
counting follow TensorFlow's executor.cc and propagator_state.cc.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.framework import errors
from tenfold_kernels.registry import quiet
from tenfold_kernels.waiting import Waiting

from .execution import Wanted, cancelled, dead_fetch, extent, kept, read_only
from .frames import NUMBERS_SINCE, Frame, Iteration, NodeState, frame_id, old_frame_id, root_frame
from .links import Kind, frame_name
from .part import node_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..interfaces import Value
    from .execution import StepIO
    from .part import PartNode
    from .program import Program


class _Dead:
    """The one value of a dead edge."""

    def __repr__(self) -> str:
        return "DEAD"


DEAD = _Dead()
# Plain globals: an Enum's attribute costs ten times as much to look up, several times a node.
_KERNEL = Kind.KERNEL
_SWITCH = Kind.SWITCH
_MERGE = Kind.MERGE
_ENTER = Kind.ENTER
_EXIT = Kind.EXIT
_NEXT_ITERATION = Kind.NEXT_ITERATION
_RECV = Kind.RECV
_SEND = Kind.SEND
_ORDER = Kind.ORDER
_BLOCKING = Kind.BLOCKING
_SWITCH_N = Kind.SWITCH_N
_TRIGGER = Kind.TRIGGER
_NONE: tuple[Any, ...] = ()
#: A cancelled step stops within so many nodes, and one that takes long is noticed.
_STOP_EVERY = 64
#: Nodes of one `advance`, nanoseconds of a careful one. A loop may go on for ever; the event loop must not wait for it.
_SLICE, _SLICE_NANOSECONDS = 4096, 4_000_000


@dataclass(slots=True)
class _Token:
    """A node that is ready in one iteration of one frame, with its inputs."""

    node: PartNode
    frame: Frame
    iteration: Iteration
    is_dead: bool
    values: Sequence[Any]
    #: Merge: which input was the live one.
    live_index: int = 0
    #: Recv: `values` is the tensor that came. A blocking node: `values` are its outputs.
    received: bool = False


class DynamicExecution:
    """One step of a program with control flow."""

    def __init__(self, program: Program, io: StepIO) -> None:
        self.io = io
        self._program = program
        self._nodes = program.part.nodes
        self._links = program.node_links()
        #: Of what came from outside; see Execution.
        self.shapes = 0
        #: What `shapes` counts: a loop may bring the same again and again.
        self._seen: set[Any] = set()
        #: A kernel has given what it took from elsewhere since `advance` was called: its size may be any.
        self._fresh = False
        self._feeds = self._read_feeds()
        for index, value in self._feeds.items():
            self._note(index, value)
        self._fetched: dict[str, Value] = {}
        #: Ready and not run. FIFO, so that the iterations of a loop advance side by side.
        self._queue: deque[_Token] = deque()
        #: Recv nodes that wait for their tensor, and nodes that wait for their kernel's result.
        self._receiving = 0
        self._wanted: list[Wanted] = []
        self._frames: dict[tuple[int, int, str], Frame] = {}
        root = root_frame()
        for index in self._links.roots:
            self._enqueue(index, root, root.iterations[0], False, _NONE)

    def _read_feeds(self) -> dict[int, Value]:
        """What the client feeds, by node."""
        return {feed.node.index: self._program.feed_value(feed, self.io.feeds) for feed in self._program.feeds}

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
            token.values, token.received = _outputs(token.node, value), True
            self._take(token.node, token.values)
            self._queue.append(token)
            return
        self._note(token.node.index, value)
        token.values, token.received = (DEAD if is_dead else read_only(value),), True
        token.is_dead = token.is_dead or is_dead
        self._queue.append(token)

    def advance(self, careful: bool = False) -> None:
        with quiet():
            self._advance(careful)

    def _note(self, index: int, value: Value) -> None:
        """Something of this node has come from outside."""
        seen = (index, extent(value))
        if seen not in self._seen:
            self._seen.add(seen)
            self.shapes += hash(seen)

    def _take(self, node: PartNode, outputs: Sequence[Any]) -> None:
        """A blocking kernel has given its outputs."""
        self._fresh = True
        for value in outputs:
            self._note(node.index, value)

    def _advance(self, careful: bool) -> None:
        self._fresh = False
        begin = perf_counter_ns()
        for count in range(1, _SLICE):
            if not self._queue or (careful and self._fresh):
                return
            if count % _STOP_EVERY == 0:
                if self.io.stop:
                    raise cancelled()
                if careful and perf_counter_ns() - begin > _SLICE_NANOSECONDS:
                    return
            token = self._queue.popleft()
            try:
                outputs = self._run(token)
            except Exception as error:
                raise node_error(token.node, error) from error
            if outputs is not None:
                self._propagate(token, outputs)

    def fetched(self) -> dict[str, Value]:
        for key in self._program.fetch_keys:
            if key not in self._fetched:
                raise dead_fetch(key)
        return self._fetched

    # -- running one node --------------------------------------------------------------------------------------------

    def _run(self, token: _Token) -> Sequence[Any] | None:
        """The outputs of the node (DEAD where there is none); None when it waits for a tensor."""
        node = token.node
        kind = self._links.kinds[node.index]
        if kind is _RECV:
            return self._recv(token)
        if kind is _SEND:
            self._send(token)
            return _NONE
        if token.is_dead:
            return (DEAD,) * len(node.output_types)
        values = token.values
        if kind is _MERGE:
            value = values[0].value if node.deref[token.live_index] else values[0]
            return value, np.array(token.live_index, dtype=np.int32)
        if self._links.derefs[node.index]:
            values = [value.value if deref else value for value, deref in zip(values, node.deref, strict=True)]
        if kind is _SWITCH:
            return (DEAD, values[0]) if bool(values[1]) else (values[0], DEAD)
        if kind is _ORDER or kind is _TRIGGER:
            return _NONE
        if kind is _BLOCKING:
            return self._start(token, values)
        if kind is _SWITCH_N:
            return _switch(values[0], int(values[1]), len(node.output_types))
        if kind is not _KERNEL:
            return (values[0],)
        constant = self._program.constants.get(node.index)
        if constant is not None:
            return constant
        return _outputs(node, self._program.kernels[node.index](*values))

    def _start(self, token: _Token, values: Sequence[Any]) -> Sequence[Any] | None:
        """Runs a kernel that may have to wait, unless its result is there."""
        if token.received:
            return token.values
        result = self._program.kernels[token.node.index](*values)
        if type(result) is not Waiting:
            outputs = _outputs(token.node, result)
            self._take(token.node, outputs)
            return outputs
        self._receiving += 1
        self._wanted.append(Wanted(token, "", result, token.node))
        return None

    def _recv(self, token: _Token) -> Sequence[Any] | None:
        node = token.node
        if token.received:
            return token.values
        if node.index in self._feeds:
            return (self._feeds[node.index],)
        self._receiving += 1
        self._wanted.append(Wanted(token, self._key(token)))
        return None

    def _send(self, token: _Token) -> None:
        node = token.node
        value: Any = None if token.is_dead else token.values[0]
        if node.deref[0] and not token.is_dead:
            value = value.value
        key = self._key(token)
        if not node.client_terminated:
            if type(value) is np.ndarray:
                value.flags.writeable = False
            self.io.send(key, value, token.is_dead)
        else:
            self._fetch(key, value, token.is_dead)

    def _fetch(self, key: str, value: Value, is_dead: bool) -> None:
        """A value for the client."""
        if is_dead:
            raise dead_fetch(key)
        self._fetched[key] = kept(value)

    def _key(self, token: _Token) -> str:
        if token.frame.parent is None:
            return self._program.keys[token.node.index]
        return token.node.rendezvous_key(f"{token.frame.id}:{token.iteration.number}")

    # -- handing outputs on ------------------------------------------------------------------------------------------

    def _propagate(self, token: _Token, outputs: Sequence[Any]) -> None:
        node, frame, iteration = token.node, token.frame, token.iteration
        kind = self._links.kinds[node.index]
        if kind is _ENTER:
            self._enter(token, outputs[0])
        elif kind is _EXIT:
            if not token.is_dead:
                parent = frame.parent
                assert parent is not None
                self._activate(node, parent, parent.iterations[frame.parent_iteration], outputs, False)
            elif iteration.number == frame.last:
                frame.dead_exits.append(node.index)
        elif kind is _NEXT_ITERATION:
            if not token.is_dead:
                self._next_iteration(node, frame, iteration, outputs[0])
        else:
            self._activate(node, frame, iteration, outputs, token.is_dead)
        iteration.outstanding -= 1
        if not iteration.outstanding:
            self._clean_up(frame, iteration.number)

    def _enter(self, token: _Token, value: Any) -> None:
        node = token.node
        child = self._child_frame(token)
        if node.attrs.get("is_constant"):
            child.invariants.append((node.index, value))
            for iteration in list(child.iterations.values()):
                self._activate(node, child, iteration, (value,), value is DEAD)
        else:
            self._activate(node, child, child.iterations[0], (value,), value is DEAD)
        child.pending_enters -= 1
        if not child.pending_enters:
            self._clean_up(child, 0)

    def _child_frame(self, token: _Token) -> Frame:
        name = frame_name(token.node)
        key = (id(token.frame), token.iteration.number, name)
        child = self._frames.get(key)
        if child is None:
            token.iteration.child_frames += 1
            path = f"{token.frame.path};{token.iteration.number};{name}"
            child = self._frames[key] = Frame(
                name=name,
                id=(
                    old_frame_id(path)
                    if 0 < self._program.part.producer < NUMBERS_SINCE
                    else frame_id(token.frame.id, token.iteration.number, name)
                ),
                path=path,
                parent=token.frame,
                parent_iteration=token.iteration.number,
                parallel_iterations=max(1, int(token.node.attrs.get("parallel_iterations", 10))),
                pending_enters=self._links.enters[name],
            )
        return child

    def _next_iteration(self, node: PartNode, frame: Frame, iteration: Iteration, value: Any) -> None:
        if frame.parent is None:
            raise node_error(node, errors.InvalidArgumentError(None, None, "NextIteration outside of a loop."))
        if iteration.number == frame.last:
            if len(frame.iterations) >= frame.parallel_iterations:
                frame.held_back.append((node.index, value))
                return
            self._add_iteration(frame)
        self._activate(node, frame, frame.iterations[iteration.number + 1], (value,), False)

    def _add_iteration(self, frame: Frame) -> None:
        frame.last += 1
        iteration = frame.iterations[frame.last] = Iteration(frame.last)
        frame.dead_exits.clear()
        held_back, frame.held_back = frame.held_back, []
        for index, value in held_back:
            self._activate(self._nodes[index], frame, iteration, (value,), False)
        for index, value in frame.invariants:
            self._activate(self._nodes[index], frame, iteration, (value,), value is DEAD)

    def _clean_up(self, frame: Frame, number: int) -> None:
        """Forgets iterations that are done, then the frame, then perhaps its parent's iteration."""
        while frame.parent is not None and frame.is_iteration_done(number):
            del frame.iterations[number]
            if frame.held_back:
                self._add_iteration(frame)
            number += 1
        if frame.parent is not None and frame.is_done:
            self._end_frame(frame, frame.parent)

    def _end_frame(self, frame: Frame, parent: Frame) -> None:
        iteration = parent.iterations[frame.parent_iteration]
        for index in frame.dead_exits:
            self._activate(self._nodes[index], parent, iteration, (DEAD,), True)
        del self._frames[id(parent), frame.parent_iteration, frame.name]
        iteration.child_frames -= 1
        self._clean_up(parent, frame.parent_iteration)

    def _activate(
        self, node: PartNode, frame: Frame, iteration: Iteration, outputs: Sequence[Any], is_dead: bool
    ) -> None:
        """Gives outputs to their consumers and queues those that became ready."""
        links, states = self._links, iteration.states
        for port, index, position in links.outputs[node.index]:
            state = states.get(index)
            if state is None:
                inputs = len(self._nodes[index].inputs)
                state = states[index] = NodeState(links.pending[index], 0, [None] * inputs)
            value = DEAD if port < 0 else outputs[port]
            if links.kinds[index] is _MERGE:
                from_enter = links.kinds[node.index] is _ENTER
                self._activate_merge(self._nodes[index], state, frame, iteration, position, value, from_enter)
                continue
            state.pending -= 1
            if is_dead or (port >= 0 and value is DEAD):
                state.dead += 1
            elif port >= 0:
                state.values[position] = value
            if not state.pending:
                del states[index]
                will_be_dead = state.dead > 0 and links.kinds[index] is not _TRIGGER
                self._enqueue(index, frame, iteration, will_be_dead, state.values)

    def _activate_merge(
        self,
        merge: PartNode,
        state: NodeState,
        frame: Frame,
        iteration: Iteration,
        position: int,
        value: Any,
        from_enter: bool,
    ) -> None:
        all_dead = state.dead == len(merge.inputs)
        if position < 0:
            state.pending -= 2
            ready, is_dead = state.pending == 0 or (state.pending == 1 and all_dead), all_dead
        elif value is not DEAD:
            first = bool(state.pending & 1)
            state.pending &= ~1
            if first:
                state.values, state.live_index = [value], position
            ready, is_dead = first and not state.pending, False
        else:
            state.dead += 1
            # a dead Enter is enough: the loop is in a branch that was not taken, no NextIteration will come
            is_dead = state.dead == len(merge.inputs) or from_enter
            ready = state.pending == 1 and is_dead
            if is_dead:
                state.dead = len(merge.inputs)
        if ready:
            self._enqueue(merge.index, frame, iteration, is_dead, state.values, state.live_index)

    def _enqueue(
        self,
        index: int,
        frame: Frame,
        iteration: Iteration,
        is_dead: bool,
        values: Sequence[Any],
        live_index: int = 0,
    ) -> None:
        iteration.outstanding += 1
        self._queue.append(_Token(self._nodes[index], frame, iteration, is_dead, values, live_index))


def _switch(value: Any, index: int, count: int) -> Sequence[Any]:
    """The outputs of a _SwitchN; an index that there is not means the last, the default case."""
    if not 0 <= index < count:
        index = count - 1
    return tuple(value if port == index else DEAD for port in range(count))


def _outputs(node: PartNode, result: Any) -> Sequence[Any]:
    """What a kernel returned, as a tuple of the node's outputs."""
    count = len(node.output_types)
    return (result,) if count == 1 else (result if count else _NONE)
