"""Loops of scalars for the compiler: the lines of flow_text.py, with an expression a node in the place of a call.

    v17 = k17(v6, v0)        v17 = v6 * v0
    k57(v50, v7)             q0[p0] = v7; p0 += 1        a stack is a vector and its top

A loop is compiled as a whole, with what branches and which loops it has inside, if all its nodes are elementwise ops on
scalars or use stacks. That they are scalars is seen at each call; `find_loops` looks at ops and types only. Called by
build.py; tenfold_kernels/fusion/loops.py compiles. Decision 0035.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.fuse.fusion import Group
from tenfold_compiler.fuse.groups import MAX_ARGUMENTS, MAX_OPS
from tenfold_compiler.fuse.nodes import np_types
from tenfold_compiler.part.guards import TRUTH, Guard, Literal, source_of
from tenfold_compiler.part.node_facts import is_pure
from tenfold_kernels.fusion import expressions
from tenfold_kernels.fusion.loops import GIVE_UP, MORE_ROOM, NEXT_INNER_TURN, NEXT_TURN, ScalarLoop, StackInput

from .flow_reads import FlowReads
from .flow_text import FlowText
from .frame_writer import FrameWriter
from .lines import Lines
from .region_writer import RegionWriter
from .registers import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.loop_tree import Loop
    from tenfold_compiler.part.part_graph import Edge, PartNode
    from tenfold_compiler.program import Program
    from tenfold_kernels.fusion.cache import FusionCache

_STACK_OPS = frozenset(("StackPushV2", "StackPopV2"))


class _Unfit(Exception):
    """The loop cannot be compiled as a whole."""


def find_loops(program: Program, cache: FusionCache) -> list[Group]:
    """The loops of a part that can be compiled, outer ones rather than those inside of them, numbered from 0."""
    found: list[Group] = []
    flow = program.flow
    if flow is None or not flow.tree.loops:
        return found
    reads = FlowReads(program, flow)
    for loop in flow.tree.loops:
        if any(group.loop in loop.around for group in found):
            continue
        try:
            run, inputs, outputs = _scalar_loop(loop, reads)
        except _Unfit:
            continue
        found.append(Group(len(found), [], run, inputs, outputs, cache, loop))
    return found


def _scalar_loop(loop: Loop, reads: FlowReads) -> tuple[ScalarLoop, list[Edge], list[Edge]]:
    """What is compiled, and the edges of its inputs and of its outputs. Raises _Unfit."""
    nodes = list(loop.nodes())
    # what has memory, or is a copy, is a GPU's
    if len(nodes) > 4 * MAX_OPS or any(any(node.deref) or node.memory or node.copy_of is not None for node in nodes):
        raise _Unfit
    lines = Lines()
    straight = RegionWriter(reads.program, lines, reads.slots)
    text = _LoopText(loop, reads, straight)
    frames = FrameWriter(text)
    with straight.without_stores():
        frames.first_values(loop)
        begin, lines.text = tuple(lines.text), []
        frames.turns(loop, reads.left(loop))
    inputs, outputs = reads.borders(loop)
    scalars = [edge for edge in inputs if edge not in text.stacks]
    too_many = len(inputs) + len(outputs) > MAX_ARGUMENTS
    if not outputs or too_many or not all(reads.is_there(loop, edge[0]) for edge in inputs):
        raise _Unfit
    run = ScalarLoop(
        tuple((name_of(edge), None if edge[1] < 0 else text.type_of(edge)) for edge in scalars),
        tuple(text.stacks.values()),
        tuple((name_of((node.index, 0)), text.type_of((node.index, 0))) for node in loop.variables),
        tuple((name_of(edge), text.type_of(edge)) for edge in outputs),
        begin,
        tuple(lines.text),
    )
    return run, [*scalars, *text.stacks], outputs


class _LoopText(FlowText):
    """Lines of one loop for the compiler: every member is an expression."""

    def __init__(self, loop: Loop, reads: FlowReads, straight: RegionWriter) -> None:
        super().__init__(reads, straight)
        self._loop = loop
        #: Handles of stacks in the order of their numbers, and what is done with each.
        self.stacks: dict[Edge, StackInput] = {}

    def type_of(self, edge: Edge) -> np.dtype[Any]:
        """The type of a scalar. Raises _Unfit for an edge without a scalar type."""
        if edge[1] < 0:
            if edge[1] > TRUTH or (TRUTH - edge[1]) % 2:
                raise _Unfit
            return np.dtype(bool)
        output = self.program.part.nodes[edge[0]].output_types[edge[1]]
        dtype: np.dtype[Any] = np.dtype(output.base_dtype.as_numpy_dtype)
        if dtype not in expressions.ELEMENT_TYPES:
            raise _Unfit
        return dtype

    # -- members -----------------------------------------------------------------------------------------------------

    def call(self, node: PartNode) -> None:
        if node.op in _STACK_OPS:
            self._use_stack(node)
            return
        if len(node.output_types) != 1 or not node.inputs or not is_pure(node):
            raise _Unfit
        given, out = np_types(node)
        operands = [self.input(node, position) for position in range(len(node.inputs))]
        written = expressions.write_scalar(node.op, node.attrs, operands, given, out)
        if written is None:
            raise _Unfit
        condition, text = written
        if condition:
            self.lines.write(f"if {condition}: return {GIVE_UP}")
        self.lines.write(f"{name_of((node.index, 0))} = {text}")

    def _use_stack(self, node: PartNode) -> None:
        handle = self.reads.resolve(node.inputs[0])
        if handle[0] in self.program.constants or self.reads.is_made_in(self._loop, handle):
            raise _Unfit
        pushes = node.op == "StackPushV2"
        name = name_of((node.index, 0))
        stack = StackInput(self.type_of((node.index, 0)), pushes)
        if self.stacks.setdefault(handle, stack) != stack:
            raise _Unfit
        number, write = list(self.stacks).index(handle), self.lines.write
        if pushes:
            write(f"{name} = {self.input(node, 1)}")
            write(f"if p{number} == q{number}.size: return {MORE_ROOM}")
            write(f"q{number}[p{number}] = {name}; p{number} += 1")
        else:
            write(f"if p{number} == 0: return {GIVE_UP}")
            write(f"p{number} -= 1; {name} = q{number}[p{number}]")

    def merge(self, node: PartNode) -> None:
        if node.index in self.reads.guards.flagged or (node.index, 1) in self.reads.used:
            raise _Unfit
        super().merge(node)

    def tested(self, known: Edge, value: str, node: PartNode) -> None:
        """A bool; a number of a case is tested behind the loop alone, or the loop is unfit."""
        if (TRUTH - known[1]) % 2 == 0:
            super().tested(known, value, node)

    # -- values ------------------------------------------------------------------------------------------------------

    def operand(self, edge: Edge, node: PartNode) -> str:
        if edge[0] not in self.program.constants:
            return name_of(edge)
        value = self.program.constants[edge[0]][edge[1]]
        if type(value) is not np.ndarray or value.ndim or value.dtype not in expressions.ELEMENT_TYPES:
            raise _Unfit
        return expressions.literal(value[()], value.dtype)

    def condition(self, guard: Guard) -> str:
        if any(self.type_of(literal.edge) != self.type_of(source_of(literal.edge)) for literal in guard):
            raise _Unfit
        return super().condition(guard)

    def clear(self, names: Sequence[str]) -> None:
        """Numbers need not be."""

    # -- turns -------------------------------------------------------------------------------------------------------

    def look_at_stop(self) -> None:
        """Only where a turn begins."""

    def begin_turns(self, loop: Loop) -> None:
        self.lines.write("while 1:")

    def leave(self, goes_on: Literal) -> None:
        self.type_of(goes_on.edge)
        super().leave(goes_on)

    def end_turn(self, loop: Loop) -> None:
        self.lines.write(NEXT_TURN if loop is self._loop else NEXT_INNER_TURN)

    def end_turns(self, loop: Loop) -> None:
        """The call counts turns, a slice at a time."""
