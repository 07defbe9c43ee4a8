"""A program on its task: what runs now, and what is learnt of its runs. Made by program_loader.py.

`LoadedProgram.start` is called once per step, by part_run.py, which drives what it returns. A program that has become
hot is replaced as a whole; a step that is under way ends as it began.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

from tenfold_compiler.build import with_fusion
from tenfold_compiler.part.edges import Edges, edges_of
from tenfold_compiler.write.region_schedule import Wanted
from tenfold_kernels import contexts

from .dynamic_executor import DynamicExecution
from .execution import StepIO
from .run_policy import RunPolicy
from .static_executor import StaticExecution

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence

    from tenfold_compiler.fuse.fusion import Fusion
    from tenfold_compiler.program import Program
    from tenfold_kernels.resources.unfinished_steps import UnfinishedSteps

    from ..interfaces import Value
    from .execution import Execution


class LoadedProgram:
    """A program and its state on this task. Thread-safe: a step takes `compiled` once."""

    def __init__(self, compiled: Program, short_nanoseconds: int, unfinished: UnfinishedSteps | None = None) -> None:
        """`short_nanoseconds`: as RunPolicy has it. `unfinished`: of the task."""
        #: What steps that begin now run.
        self.compiled = compiled
        self.policy = RunPolicy(short_nanoseconds, compiled.sized_by_values, compiled.has_loops)
        #: Of the task, for steps with several updates.
        self.unfinished = unfinished if compiled.schedule is not None and compiled.schedule.updates else None
        #: Of a program in halves.
        self.halves = [LoadedProgram(half, short_nanoseconds, unfinished) for half in compiled.halves]

    def start(self, io: StepIO) -> Execution:
        """A new step. Raises InvalidArgumentError for a feed that is missing or of the wrong type."""
        compiled = self.compiled
        if compiled.generated is not None:
            return StaticExecution(compiled, compiled.generated, io, self.policy.usual, self.unfinished)
        if self.halves:
            return SplitExecution([half.start for half in self.halves], compiled.cut_keys, io)
        return DynamicExecution(compiled, self.node_edges, io)

    @cached_property
    def node_edges(self) -> Edges:
        """The part's edges as propagator.py walks them, also for a part without control flow; made when one does."""
        return edges_of(self.compiled.part)

    def swap(self, fusion: Fusion) -> None:
        """Steps from now on run the groups of `fusion` as one; those under way end as they began. Blocks: compiles."""
        self.compiled = with_fusion(self.compiled, fusion)
        contexts.watch_next_calls()


class SplitExecution:
    """One step of a program in halves (compiler: part/split_part.py), side by side, as one execution.

    What one half sends over a cut edge arrives at the other at once; what comes from elsewhere goes to the half that
    wants it.
    """

    def __init__(self, halves: Sequence[Callable[[StepIO], Execution]], keys: Collection[str], io: StepIO) -> None:
        """`halves` start a step of each half; `keys` are those of the cut edges."""
        self.io = io
        self._keys = keys
        #: Over a cut edge and not yet wanted: (value, is_dead) by key.
        self._sent: dict[str, tuple[Value, bool]] = {}
        #: Wanted over a cut edge and not yet sent: (half, its token) by key.
        self._tokens: dict[str, tuple[Execution, Any]] = {}
        self._wanted: list[Wanted] = []
        self.pairs = self.usual = None
        inner = StepIO(io.feeds, self._send, io.stop)
        self._halves = [start(inner) for start in halves]
        self._collect()

    @property
    def ready(self) -> bool:
        return any(half.ready for half in self._halves)

    @property
    def done(self) -> bool:
        return all(half.done for half in self._halves)

    @property
    def shapes(self) -> int:
        return hash(tuple([half.shapes for half in self._halves]))

    def take_wanted(self) -> Sequence[Wanted]:
        wanted, self._wanted = self._wanted, []
        return wanted

    def arrived(self, token: Any, value: Value, is_dead: bool) -> None:
        """`token` is the half that wanted it, and its token."""
        half, its = token
        half.arrived(its, value, is_dead)
        self._collect()

    def advance(self, careful: bool = False) -> None:
        try:
            # twice: each goes on with what the other has given
            for half in self._halves * 2:
                if half.ready:
                    half.advance(careful)
                    self._collect()
        except BaseException:
            # a kernel may have begun to wait: it is for who ends the step
            self._collect()
            raise

    def fetched(self) -> dict[str, Value]:
        return {key: value for half in self._halves for key, value in half.fetched().items()}

    def _send(self, key: str, value: Any, is_dead: bool) -> None:
        if key not in self._keys:
            self.io.send(key, value, is_dead)
            return
        waiting = self._tokens.pop(key, None)
        if waiting is None:
            self._sent[key] = value, is_dead
        else:
            waiting[0].arrived(waiting[1], value, is_dead)

    def _collect(self) -> None:
        """Takes what the halves want: from each other now, from elsewhere for `take_wanted`."""
        for half in self._halves:
            for wanted in half.take_wanted():
                if wanted.waiting is not None or wanted.key not in self._keys:
                    token = half, wanted.token
                    self._wanted.append(Wanted(token, wanted.key, wanted.waiting, wanted.node))
                elif wanted.key in self._sent:
                    half.arrived(wanted.token, *self._sent.pop(wanted.key))
                else:
                    self._tokens[wanted.key] = half, wanted.token
        for ended in self._halves:
            if ended.done and self._tokens:
                # what it did not send is dead: a loop of which one input is dead gives no result at all
                for key, (half, token) in [item for item in self._tokens.items() if item[1][0] is not ended]:
                    del self._tokens[key]
                    half.arrived(token, None, True)
