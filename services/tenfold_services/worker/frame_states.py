"""Frames and iterations of loops as propagator.py keeps them.

The root frame has one iteration, 0. Enter nodes make a child frame, NextIteration a new iteration, Exit leads back.
Follows propagator_state.cc's FrameState and IterationState.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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
