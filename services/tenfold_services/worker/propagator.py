"""Which node of a part is ready when: counts what has arrived, opens and ends frames, hands deadness on.

A pure machine, used by dynamic_executor.py, which runs the nodes. A node is ready when all its inputs have arrived, a
Merge at its first live one; a node with a dead input is dead itself, but for a Merge with a live one. The root frame
has one iteration, 0; an Enter makes a child frame, NextIteration a new iteration, Exit leads back. Follows TensorFlow's
propagator_state.cc.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.edges import ENTER, EXIT, MERGE, NEXT_ITERATION, TRIGGER, frame_name
from tenfold_compiler.part.frame_numbers import frame_id, old_frame_id
from tenfold_compiler.part.part_graph import node_error
from tenfold_compiler.values import DEAD
from tenfold_core import errors
from tenfold_kernels.loop_turns import MOST_TURNS, too_many_turns

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.edges import Edges
    from tenfold_compiler.part.part_graph import PartGraph, PartNode


@dataclass(slots=True)
class NodeState:
    """What has arrived for one node in one iteration."""

    #: Inputs that are still to come. Merge: bit 0 is set until a live input came, each control input counts 2.
    pending: int
    dead: int
    values: list[Any]
    #: Merge: which input was the live one.
    live_index: int = 0


@dataclass(slots=True)
class Iteration:
    """One pass through a frame."""

    number: int
    states: dict[int, NodeState] = field(default_factory=dict)
    #: Nodes that are ready, running or waiting for a tensor.
    outstanding: int = 0
    #: Child frames that were entered from here and have not ended.
    child_frames: int = 0


@dataclass(slots=True, eq=False)
class FrameState:
    """One activation of a loop (or the root)."""

    name: str
    id: int
    parent: FrameState | None
    parent_iteration: int
    parallel_iterations: int
    #: Enter nodes that have not run.
    pending_enters: int
    #: What TensorFlow before 2.3 calls it: the names and iterations from the root to here.
    path: str = ""
    #: Iterations that are not done, oldest first; numbers without gaps up to `last`.
    iterations: dict[int, Iteration] = field(default_factory=lambda: {0: Iteration(0)})
    last: int = 0
    #: (Enter node, value or DEAD): loop invariants, handed to every iteration.
    invariants: list[tuple[int, Any]] = field(default_factory=list)
    #: NextIteration nodes held back because enough iterations are under way: (node, value).
    held_back: list[tuple[int, Any]] = field(default_factory=list)
    #: Exit nodes that were dead in the newest iteration.
    dead_exits: list[int] = field(default_factory=list)

    @property
    def is_done(self) -> bool:
        return not self.pending_enters and not self.iterations

    def is_iteration_done(self, number: int) -> bool:
        """True when nothing can happen in this iteration any more."""
        iteration = self.iterations.get(number)
        if iteration is None or iteration.outstanding or iteration.child_frames:
            return False
        return not self.pending_enters if number == 0 else number - 1 not in self.iterations


@dataclass(slots=True)
class Token:
    """A node that is ready in one iteration of one frame, with its inputs."""

    node: PartNode
    frame: FrameState
    iteration: Iteration
    is_dead: bool
    values: Sequence[Any]
    #: Merge: which input was the live one.
    live_index: int = 0
    #: Recv: `values` is the tensor that came. A blocking node: `values` are its outputs.
    received: bool = False


class Propagator:
    """Of one step. Starts with the nodes that have no inputs in `queue`."""

    def __init__(self, part: PartGraph, links: Edges, most_turns: int = MOST_TURNS) -> None:
        """Its loops take `most_turns` together."""
        self._turns_left, self._most_turns = most_turns, most_turns
        self._nodes, self._edges = part.nodes, links
        self._old_frames = part.old_frames
        #: Ready and not run. FIFO, so that the iterations of a loop advance side by side. The executor takes from it,
        #: and puts back what had to wait.
        self.queue: deque[Token] = deque()
        self._frames: dict[tuple[int, int, str], FrameState] = {}
        root = FrameState("", 0, None, 0, 1, 0)
        for index in links.roots:
            self._enqueue(Token(part.nodes[index], root, root.iterations[0], False, ()))

    def propagate(self, token: Token, outputs: Sequence[Any]) -> None:
        """The node of `token` has run: its outputs, or DEAD where there is none, go to their consumers."""
        node, frame, iteration = token.node, token.frame, token.iteration
        kind = self._edges.kinds[node.index]
        if kind == ENTER:
            self._enter(token, outputs[0])
        elif kind == EXIT:
            if not token.is_dead:
                parent = frame.parent
                assert parent is not None
                self._activate(node, parent, parent.iterations[frame.parent_iteration], outputs, False)
            elif iteration.number == frame.last:
                frame.dead_exits.append(node.index)
        elif kind == NEXT_ITERATION:
            if not token.is_dead:
                self._next_iteration(node, frame, iteration, outputs[0])
        else:
            self._activate(node, frame, iteration, outputs, token.is_dead)
        iteration.outstanding -= 1
        if not iteration.outstanding:
            self._clean_up(frame, iteration.number)

    def _enter(self, token: Token, value: Any) -> None:
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

    def _child_frame(self, token: Token) -> FrameState:
        name = frame_name(token.node)
        key = (id(token.frame), token.iteration.number, name)
        child = self._frames.get(key)
        if child is None:
            token.iteration.child_frames += 1
            path = f"{token.frame.path};{token.iteration.number};{name}"
            child = self._frames[key] = FrameState(
                name=name,
                id=(old_frame_id(path) if self._old_frames else frame_id(token.frame.id, token.iteration.number, name)),
                path=path,
                parent=token.frame,
                parent_iteration=token.iteration.number,
                parallel_iterations=max(1, int(token.node.attrs.get("parallel_iterations", 10))),
                pending_enters=self._edges.enters[name],
            )
        return child

    def _next_iteration(self, node: PartNode, frame: FrameState, iteration: Iteration, value: Any) -> None:
        if frame.parent is None:
            raise node_error(node, errors.invalid_argument("NextIteration outside of a loop."))
        if self._turns_left <= 0:
            raise node_error(node, too_many_turns(self._most_turns))
        if iteration.number == frame.last:
            if len(frame.iterations) >= frame.parallel_iterations:
                frame.held_back.append((node.index, value))
                return
            self._add_iteration(frame)
        self._activate(node, frame, frame.iterations[iteration.number + 1], (value,), False)

    def _add_iteration(self, frame: FrameState) -> None:
        frame.last += 1
        self._turns_left -= 1
        iteration = frame.iterations[frame.last] = Iteration(frame.last)
        frame.dead_exits.clear()
        held_back, frame.held_back = frame.held_back, []
        for index, value in held_back:
            self._activate(self._nodes[index], frame, iteration, (value,), False)
        for index, value in frame.invariants:
            self._activate(self._nodes[index], frame, iteration, (value,), value is DEAD)

    def _clean_up(self, frame: FrameState, number: int) -> None:
        """Forgets iterations that are done, then the frame, then perhaps its parent's iteration."""
        while frame.parent is not None and frame.is_iteration_done(number):
            del frame.iterations[number]
            if frame.held_back:
                self._add_iteration(frame)
            number += 1
        if frame.parent is not None and frame.is_done:
            self._end_frame(frame, frame.parent)

    def _end_frame(self, frame: FrameState, parent: FrameState) -> None:
        iteration = parent.iterations[frame.parent_iteration]
        for index in frame.dead_exits:
            self._activate(self._nodes[index], parent, iteration, (DEAD,), True)
        del self._frames[id(parent), frame.parent_iteration, frame.name]
        iteration.child_frames -= 1
        self._clean_up(parent, frame.parent_iteration)

    def _activate(
        self, node: PartNode, frame: FrameState, iteration: Iteration, outputs: Sequence[Any], is_dead: bool
    ) -> None:
        """Gives outputs to their consumers and queues those that became ready."""
        links, states = self._edges, iteration.states
        for port, index, position in links.outputs[node.index]:
            state = states.get(index)
            if state is None:
                inputs = len(self._nodes[index].inputs)
                state = states[index] = NodeState(links.pending[index], 0, [None] * inputs)
            value = DEAD if port < 0 else outputs[port]
            if links.kinds[index] == MERGE:
                merge = self._nodes[index]
                from_enter = links.kinds[node.index] == ENTER
                merges_dead = _merged(state, len(merge.inputs), position, value, from_enter)
                if merges_dead is not None:
                    self._enqueue(Token(merge, frame, iteration, merges_dead, state.values, state.live_index))
                continue
            state.pending -= 1
            if is_dead or (port >= 0 and value is DEAD):
                state.dead += 1
            elif port >= 0:
                state.values[position] = value
            if not state.pending:
                del states[index]
                will_be_dead = state.dead > 0 and links.kinds[index] != TRIGGER
                self._enqueue(Token(self._nodes[index], frame, iteration, will_be_dead, state.values))

    def _enqueue(self, token: Token) -> None:
        token.iteration.outstanding += 1
        self.queue.append(token)


def _merged(state: NodeState, inputs: int, position: int, value: Any, from_enter: bool) -> bool | None:
    """Something has arrived for a Merge of so many inputs: whether it is dead, if that makes it ready; else None."""
    all_dead = state.dead == inputs
    if position < 0:
        state.pending -= 2
        return all_dead if state.pending == 0 or (state.pending == 1 and all_dead) else None
    if value is not DEAD:
        first = bool(state.pending & 1)
        state.pending &= ~1
        if first:
            state.values, state.live_index = [value], position
        return False if first and not state.pending else None
    state.dead += 1
    # a dead Enter is enough: the loop is in a branch that was not taken, no NextIteration will come
    if state.dead != inputs and not from_enter:
        return None
    state.dead = inputs
    return True if state.pending == 1 else None
