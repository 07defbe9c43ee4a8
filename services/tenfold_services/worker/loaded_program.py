"""A program on its task: what runs now, and what is learnt of its runs. Made by program_loader.py.

`LoadedProgram.start` is called once per step, by part_run.py, which drives what it returns. A program that has become
hot is replaced as a whole; a step that is under way ends as it began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.build import with_fusion
from tenfold_compiler.part.edges import Edges, edges_of
from tenfold_kernels import contexts

from .dynamic_executor import DynamicExecution
from .run_policy import RunPolicy
from .split_executor import SplitExecution
from .static_executor import StaticExecution

if TYPE_CHECKING:
    from tenfold_compiler.fuse.fusion import Fusion
    from tenfold_compiler.program import Program

    from .execution import Execution, StepIO


class LoadedProgram:
    """A program and its state on this task. Thread-safe: a step takes `compiled` once."""

    def __init__(self, compiled: Program, short_nanoseconds: int) -> None:
        """`short_nanoseconds`: as RunPolicy has it."""
        #: What steps that begin now run.
        self.compiled = compiled
        self.policy = RunPolicy(short_nanoseconds, compiled.sized_by_values, compiled.has_loops)
        #: Of a program in halves.
        self.halves = [LoadedProgram(half, short_nanoseconds) for half in compiled.halves]
        #: For executors that go node by node; made when one does.
        self._edges: Edges | None = None

    def start(self, io: StepIO) -> Execution:
        """A new step. Raises InvalidArgumentError for a feed that is missing or of the wrong type."""
        compiled = self.compiled
        if compiled.generated is not None:
            return StaticExecution(compiled, compiled.generated, io)
        if self.halves:
            return SplitExecution([half.start for half in self.halves], compiled.cut_keys, io)
        return DynamicExecution(compiled, self.node_edges(), io)

    def node_edges(self) -> Edges:
        """The part's edges as propagator.py walks them, also for a part without control flow."""
        if self._edges is None:
            self._edges = edges_of(self.compiled.part)
        return self._edges

    def swap(self, fusion: Fusion) -> None:
        """Steps from now on run the groups of `fusion` as one; those under way end as they began. Blocks: compiles."""
        self.compiled = with_fusion(self.compiled, fusion)
        contexts.watch_next_calls()
