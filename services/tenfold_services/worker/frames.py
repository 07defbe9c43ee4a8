"""Frames and iterations of loops as propagator.py keeps them, and the numbers that name them in keys.

The root frame has one iteration, 0. Enter nodes make a child frame, NextIteration a new iteration, Exit leads back.
Follows propagator_state.cc's FrameState and IterationState; the frame's number follows MakeFrameId and hash.cc, so that
a Send in a loop meets the Recv of a TensorFlow task.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold_core.opdefs.runtime_ops import ENTER_OPS
from tenfold_kernels.hashes import hash64

if TYPE_CHECKING:
    from tenfold_protos.graph_pb2 import GraphDef

_MASK = 0xFFFFFFFFFFFFFFFF


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


def root_frame() -> FrameState:
    return FrameState("", 0, None, 0, 1, 0)


#: What our master says on every Enter of a loop over tasks: whether its frames are numbered as TensorFlow 1.x does.
OLD_NUMBERS = "_old_frame_numbers"
#: In a graph of another master: GraphDef producers of TensorFlow 2.3 and later number frames as `frame_id` does,
#: earlier ones as `old_frame_id`. Clients and servers are mostly of one release, and nothing else there tells what the
#: others are.
NUMBERS_SINCE = 430


def has_old_numbers(graph_def: GraphDef) -> bool:
    """Whether the frames of a part are numbered by `old_frame_id`."""
    for node in graph_def.node:
        if node.op in ENTER_OPS and OLD_NUMBERS in node.attr:
            return node.attr[OLD_NUMBERS].b
    return 0 < graph_def.versions.producer < NUMBERS_SINCE


def set_numbers(graph_def: GraphDef, old: bool) -> None:
    """Writes that into a part that is not registered yet."""
    for node in graph_def.node:
        if node.op in ENTER_OPS:
            node.attr[OLD_NUMBERS].b = old


def old_frame_id(path: str) -> int:
    """The number of a frame for TensorFlow 1.x: of its path, "PARENT'S PATH;ITERATION;NAME"."""
    return hash64(path.encode())


def frame_id(parent: int, parent_iteration: int, name: str) -> int:
    """The number of a frame: the same in every task that takes part in the loop."""
    return hash64_combine(parent, hash64_combine(parent_iteration, hash64(name.encode())))


def hash64_combine(a: int, b: int) -> int:
    return (a ^ (b + 0x9E3779B97F4A7800 + (a << 10) + (a >> 4))) & _MASK
