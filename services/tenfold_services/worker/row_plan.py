"""Runs the program of a function for many elements at once, kernel after kernel: bodies that are not written anew.

A value is the same for all elements, or there is one for each (row_values.py). Elementwise ops take stacks; random ops
draw for all elements what they would draw one after the other; others are called for each element. A branch sees
the elements that take it, and a Merge puts them in order again. What fails is done anew by calls for each element: the
generators are put back. Used by functions.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_compiler.graph.rows import ELEMENTWISE
from tenfold_compiler.part.guards import ALWAYS, ANY, source_of
from tenfold_compiler.values import read_only
from tenfold_core import opdefs
from tenfold_core.opdefs import runtime_ops as ops
from tenfold_kernels import contexts

from .dynamic_executor import outputs_of
from .row_values import ON_AXES, Each, Stack, of_rank, stack

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_compiler.part.guards import Guard
    from tenfold_compiler.part.part_graph import Edge, PartNode
    from tenfold_compiler.program import Program
    from tenfold_kernels.arrays import Array

    from .row_values import Value

#: Ops that take stacks of elements as they take one; those of rows.py never fail, these may.
_WITH_STACKS = ELEMENTWISE | frozenset(
    ("Cast", "Div", "FloorDiv", "FloorMod", "Mod", "Pow", "TruncateDiv", "TruncateMod")
)
#: Ops that go through the elements of their first input, whatever its shape; the other inputs say how. They may fail.
_BY_ELEMENT = frozenset(("DecodeCSV", "StringToHashBucket", "StringToHashBucketFast", "StringToNumber"))
#: Stateful ops whose kernels say which generator they draw from, and can draw for many elements.
_RANDOM = frozenset(("RandomStandardNormal", "RandomUniform", "RandomUniformInt", "TruncatedNormal"))
#: Stateful ops that only look.
_CHECKS = frozenset(("Assert", "CheckNumerics"))


class RowPlan:
    """Of one program, which is only read. Any number of threads may call it at once."""

    is_sure = False

    def __init__(
        self, program: Program, feeds: Sequence[str | None], fetches: Sequence[str], has_rows: Sequence[bool]
    ) -> None:
        """`has_rows`: which parameters have a row for each element.

        Raises ValueError for a program that cannot be run so: one with loops, or with a state but random numbers.
        """
        self._program, self._has_rows = program, has_rows
        self._origin: dict[Edge, Edge] = {} if program.flow is None else program.flow.origin
        self._guards = None if program.flow is None else program.flow.guards
        numbers = {feed.key: feed.node.index for feed in program.transfers.feeds}
        self._feeds = [None if key is None else numbers[key] for key in feeds]
        self._nodes: list[PartNode] = []
        sent: dict[str, Edge] = {}
        for node in program.part.nodes:
            self._read(node, sent)
        self._fetches = [sent[key] for key in fetches]
        #: What the function's random ops draw from.
        self._generators = [program.kernels[node.index].generator for node in self._nodes if node.op in _RANDOM]

    def _read(self, node: PartNode, sent: dict[str, Edge]) -> None:
        if any(node.deref) or any(dtype.is_ref_dtype for dtype in (*node.input_types, *node.output_types)):
            raise ValueError(f"{node.name} writes through an edge")
        if node.op in ops.SEND_OPS:
            if self._guard(node) != ALWAYS:
                raise ValueError(f"{node.name} may be dead")
            sent[node.rendezvous_key()] = node.inputs[0]
        elif node.op in ops.MERGE_OPS:
            self._nodes.append(node)
        elif node.op in ops.ALIAS_OPS and node.inputs and self._program.flow is None:
            self._origin[node.index, 0] = self._of(node.inputs[0])
        elif node.op in ops.SWITCH_OPS | ops.ALIAS_OPS | ops.ORDER_OPS | ops.RECV_OPS:
            return  # names of what is elsewhere
        elif node.index not in self._program.constants:
            if node.index not in self._program.kernels:
                raise ValueError(f"{node.op} is the executor's own")
            self._check(node)
            self._nodes.append(node)

    def _check(self, node: PartNode) -> None:
        if node.memory is not None or node.copy_of is not None:
            raise ValueError(f"{node.name} is a GPU's")
        if opdefs.get(node.op).is_stateful and node.op not in _RANDOM | _CHECKS:
            raise ValueError(f"{node.op} has a state")
        if any(dtype.name in ("variant", "resource") for dtype in (*node.input_types, *node.output_types)):
            raise ValueError(f"{node.op} works on what is no array")
        if self._guards is not None and any(literal.edge[1] == ANY for literal in self._guards.of[node.index]):
            raise ValueError(f"it is not one condition on which {node.name} runs")

    def _guard(self, node: PartNode) -> Guard:
        return ALWAYS if self._guards is None else self._guards.of[node.index]

    def _of(self, edge: Edge) -> Edge:
        return self._origin.get(edge, edge)

    def __call__(self, values: Sequence[Array]) -> list[Array]:
        """The outputs, each with a row for each element.

        Raises whatever a kernel raises for some element, or NotOneShape, having drawn nothing.
        """
        places = [generator.place for generator in self._generators]
        try:
            found: list[Array] = contexts.run(_Run(self, values).outputs)
        except Exception:
            for generator, place in zip(self._generators, places, strict=True):
                generator.place = place
            raise
        return found


class _Run:
    """One call."""

    def __init__(self, plan: RowPlan, values: Sequence[Array]) -> None:
        self._plan, self._program, has_rows = plan, plan._program, plan._has_rows
        self._count = next(len(value) for value, rows in zip(values, has_rows, strict=True) if rows)
        #: Output → its value for the elements for which its node runs.
        self._values: dict[Edge, Value] = {
            (node, port): array
            for node, outputs in self._program.constants.items()
            for port, array in enumerate(outputs)
        }
        for node, value, rows in zip(plan._feeds, values, has_rows, strict=True):
            if node is not None:
                self._values[node, 0] = Stack(read_only(value)) if rows else read_only(value)
        #: The numbers of the elements for which a guard holds; None for all of them.
        self._chosen: dict[Guard, Array | None] = {ALWAYS: None}
        #: The guard of each value that is not there for all elements.
        self._guard_of: dict[int, Guard] = {}

    def outputs(self) -> list[Array]:
        for node in self._plan._nodes:
            guard = self._plan._guard(node)
            chosen = self._elements(guard)
            if chosen is not None:
                if not chosen.size:
                    continue
                self._guard_of[node.index] = guard
            if node.op in ops.MERGE_OPS:
                self._values[node.index, 0] = self._merged(node, guard)
            else:
                self._compute(node, guard, self._count if chosen is None else chosen.size)
        out = []
        for edge in self._plan._fetches:
            value = self._values[self._plan._of(edge)]
            if isinstance(value, Stack | Each):
                out.append(stack(value))
            else:
                out.append(np.broadcast_to(value, (self._count, *value.shape)))
        return out

    def _elements(self, guard: Guard) -> Array | None:
        if guard in self._chosen:
            return self._chosen[guard]
        holds = np.ones(self._count, np.bool_)
        for literal in guard:
            edge = source_of(literal.edge)
            value = self._values.get(edge)
            if value is None:
                holds[:] = False  # what is asked for is in a branch that no element takes
                break
            truth = stack(value) if isinstance(value, Stack | Each) else value
            among = self._elements(self._guard_of.get(edge[0], ALWAYS))
            here = np.zeros(self._count, np.bool_)
            here[slice(None) if among is None else among] = truth.astype(np.int64).reshape(truth.shape) == literal.value
            holds &= here
        found = self._chosen[guard] = None if holds.all() else np.flatnonzero(holds)
        return found

    def _value(self, edge: Edge, guard: Guard) -> Value:
        """The output for the elements for which `guard` holds."""
        edge = self._plan._of(edge)
        value = self._values[edge]
        if not isinstance(value, Stack | Each):
            return value
        had, wanted = self._elements(self._guard_of.get(edge[0], ALWAYS)), self._elements(guard)
        if wanted is None or (had is not None and len(had) == len(wanted)):
            return value
        places = wanted if had is None else np.searchsorted(had, wanted)
        if isinstance(value, Stack) and not value.is_large:
            return Stack(value.array[places])
        each = value.each()
        return Each([each[place] for place in places.tolist()])

    def _merged(self, node: PartNode, guard: Guard) -> Value:
        guards = self._plan._guards
        assert guards is not None
        elements = self._elements(guard)
        count = self._count if elements is None else elements.size
        out: list[Any] = [None] * count
        for source, port in node.inputs:
            alive = guards.of_edge(source, port)
            among = self._elements(alive)
            if among is not None and not among.size:
                continue
            value = self._value((source, port), alive)
            places = np.arange(count) if among is None else among
            if among is not None and elements is not None:
                places = np.searchsorted(elements, among)
            each = value.each() if isinstance(value, Stack | Each) else [value] * len(places)
            if len(places) == count:
                return value
            for place, array in zip(places.tolist(), each, strict=True):
                out[place] = array
        return Each(out)

    def _compute(self, node: PartNode, guard: Guard, count: int) -> None:
        inputs = [self._value(edge, guard) for edge in node.inputs]
        outputs = self._at_once(node, inputs, count)
        if outputs is None:
            outputs = _one_by_one(self._program.kernels[node.index], inputs, count, len(node.output_types))
        for port, value in enumerate(outputs):
            self._values[node.index, port] = value

    def _at_once(self, node: PartNode, inputs: list[Value], count: int) -> Sequence[Value] | None:
        """The outputs by one call; None where each element needs its own."""
        kernel = self._program.kernels[node.index]
        with_rows = [value for value in inputs if isinstance(value, Stack | Each)]
        if not with_rows and node.op not in _RANDOM:
            return outputs_of(node, kernel(*inputs))
        if node.op == "IdentityN":
            return inputs
        many = getattr(kernel, "rows", None)
        if many is not None:
            arrays = [stack(value) if isinstance(value, Stack | Each) else value for value in inputs]
            found = many(count, arrays, [isinstance(value, Stack | Each) for value in inputs])
            return None if found is None else [Stack(array) for array in found]
        if node.op == "Shape" and isinstance(inputs[0], Stack):
            return [np.array(inputs[0].array.shape[1:], node.output_types[0].as_numpy_dtype)]
        if node.op in _BY_ELEMENT and isinstance(inputs[0], Stack) and len(with_rows) == 1:
            return [Stack(array) for array in outputs_of(node, kernel(inputs[0].array, *inputs[1:]))]
        change = ON_AXES.get(node.op)
        if change is not None and isinstance(inputs[0], Stack) and not isinstance(inputs[1], Stack | Each):
            axes = change(inputs[1], inputs[0].array)
            return None if inputs[0].is_large else [Stack(kernel(inputs[0].array, axes))]
        if node.op not in _WITH_STACKS or any(value.is_large for value in with_rows):
            return None
        rank = max(value.rank for value in with_rows)
        if any(value.ndim > rank for value in inputs if not isinstance(value, Stack | Each)):
            return None
        return [Stack(kernel(*(of_rank(value, rank) for value in inputs)))]


def _one_by_one(kernel: Callable[..., Any], inputs: list[Value], count: int, outputs: int) -> Sequence[Value]:
    columns = [value.each() if isinstance(value, Stack | Each) else [value] * count for value in inputs]
    results = [kernel(*row) for row in zip(*columns, strict=True)] if columns else [kernel() for _ in range(count)]
    if outputs == 1:
        return [Each([np.asarray(result) for result in results])]
    return [Each([result[port] for result in results]) for port in range(outputs)]
