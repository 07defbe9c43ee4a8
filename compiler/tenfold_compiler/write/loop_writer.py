"""Loops of scalars for the compiler: the lines of flow_writer.py, with an expression a node in the place of a call.

    v17 = k17(v6, v0)        v17 = v6 * v0
    k57(v50, v7)             q0[p0] = v7; p0 += 1        a stack is a vector and its top

A loop is compiled as a whole, with what branches and which loops it has inside, if all its nodes are elementwise ops on
scalars or use stacks. That they are scalars is seen at each call; `find_loops` looks at ops and types only. Called by
fusion_tiers.py; tenfold_kernels/fusion/loops.py compiles. Decision 0035.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.fuse import Group
from tenfold_compiler.fuse.groups import MAX_ARGUMENTS, MAX_OPS
from tenfold_compiler.fuse.nodes import np_types
from tenfold_compiler.part.guards import TRUTH, source_of
from tenfold_compiler.part.node_facts import is_pure
from tenfold_kernels.fusion import expressions
from tenfold_kernels.fusion.loops import GIVE_UP, MORE_ROOM, NEXT_INNER_TURN, NEXT_TURN, ScalarLoop, StackInput

from .flow_lines import name_of
from .flow_writer import FlowWriter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.guards import Edge
    from tenfold_compiler.part.loop_tree import Loop
    from tenfold_compiler.part.part_graph import PartNode
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
    # without kernels: nothing is called, so no resource is bound before the first turn
    writer = _LoopWriter(replace(program, kernels={}), flow)
    for loop in flow.tree.loops:
        around = loop.parent
        while around is not None and all(group.loop is not around for group in found):
            around = around.parent
        if around is None:
            try:
                run, inputs, outputs = writer.scalar_loop(loop)
            except _Unfit:
                continue
            found.append(Group(len(found), [], run, inputs, outputs, cache, loop))
    return found


class _LoopWriter(FlowWriter):
    """Writes loops for the compiler, one after the other."""

    def scalar_loop(self, loop: Loop) -> tuple[ScalarLoop, list[Edge], list[Edge]]:
        """What is compiled, and the edges of its inputs and of its outputs. Raises _Unfit."""
        nodes = list(loop.nodes())
        if len(nodes) > 4 * MAX_OPS or any(any(node.deref) for node in nodes):
            raise _Unfit
        if any(node.memory is not None or node.copy_of is not None for node in nodes):
            # some of it is a GPU's
            raise _Unfit
        self._loop, self.lines, self.pad = loop, [], " "
        #: Handles of stacks in the order of their numbers, and what is done with each.
        self._stacks: dict[Edge, StackInput] = {}
        self._first_values(loop)
        begin, self.lines = tuple(self.lines), []
        self._turns(loop, self._left(loop))
        inputs, outputs = self.borders(loop)
        scalars = [edge for edge in inputs if edge not in self._stacks]
        if not outputs or len(inputs) + len(outputs) > MAX_ARGUMENTS:
            raise _Unfit
        if not all(self._is_there(loop, edge[0]) for edge in inputs):
            raise _Unfit
        run = ScalarLoop(
            tuple((name_of(edge), None if edge[1] < 0 else self._type(edge)) for edge in scalars),
            tuple(self._stacks.values()),
            tuple((name_of((node.index, 0)), self._type((node.index, 0))) for node in loop.variables),
            tuple((name_of(edge), self._type(edge)) for edge in outputs),
            begin,
            tuple(self.lines),
        )
        return run, [*scalars, *self._stacks], outputs

    def _type(self, edge: Edge) -> np.dtype[Any]:
        if edge[1] < 0:
            if edge[1] > TRUTH or (TRUTH - edge[1]) % 2:
                raise _Unfit
            return np.dtype(bool)
        dtype: np.dtype[Any] = np.dtype(self.part.nodes[edge[0]].output_types[edge[1]].base_dtype.as_numpy_dtype)
        if dtype not in expressions.ELEMENT_TYPES:
            raise _Unfit
        return dtype

    # -- lines of flow_writer.py that are others here ------------------------------------------------------------------

    def _clear(self, names: Sequence[str]) -> None:
        """Numbers need not be."""

    def _look_at_stop(self) -> None:
        """Only where a turn begins."""

    def _begin_turn(self, loop: Loop) -> None:
        self.write("while 1:")

    def _end_loop(self, loop: Loop) -> None:
        """The call counts turns, a slice at a time."""

    def _end_turn(self, loop: Loop) -> None:
        self.write(NEXT_TURN if loop is self._loop else NEXT_INNER_TURN)

    def _operand(self, edge: Edge, node: PartNode, registers: Any) -> str:
        if edge[0] not in self.constants:
            return name_of(edge)
        value = self.constants[edge[0]][edge[1]]
        if type(value) is not np.ndarray or value.ndim or value.dtype not in expressions.ELEMENT_TYPES:
            raise _Unfit
        return expressions.literal(value[()], value.dtype)

    def _condition(self, guard: Any) -> str:
        tested = [literal.edge for literal in guard]
        if any(self._type(edge) != self._type(source_of(edge)) for edge in tested):
            raise _Unfit
        return super()._condition(guard)

    def _merge(self, node: PartNode) -> None:
        if node.index in self.guards.flagged or (node.index, 1) in self._used:
            raise _Unfit
        super()._merge(node)

    def _node(self, node: PartNode, registers: Any) -> None:
        if node.op in _STACK_OPS:
            self._use_stack(node)
            return
        if len(node.output_types) != 1 or not node.inputs or not is_pure(node):
            raise _Unfit
        given, out = np_types(node)
        operands = [self._operand(self._resolve(edge), node, registers) for edge in node.inputs]
        written = expressions.write_scalar(node.op, node.attrs, operands, given, out)
        if written is None:
            raise _Unfit
        condition, text = written
        if condition:
            self.write(f"if {condition}: return {GIVE_UP}")
        self.write(f"{name_of((node.index, 0))} = {text}")

    def _use_stack(self, node: PartNode) -> None:
        handle = self._resolve(node.inputs[0])
        if handle[0] in self.constants or self._is_made_in(self._loop, handle):
            raise _Unfit
        pushes = node.op == "StackPushV2"
        name = name_of((node.index, 0))
        stack = StackInput(self._type((node.index, 0)), pushes)
        if self._stacks.setdefault(handle, stack) != stack:
            raise _Unfit
        number = list(self._stacks).index(handle)
        if pushes:
            self.write(f"{name} = {self._operand(self._resolve(node.inputs[1]), node, None)}")
            self.write(f"if p{number} == q{number}.size: return {MORE_ROOM}")
            self.write(f"q{number}[p{number}] = {name}; p{number} += 1")
        else:
            self.write(f"if p{number} == 0: return {GIVE_UP}")
            self.write(f"p{number} -= 1; {name} = q{number}[p{number}]")
