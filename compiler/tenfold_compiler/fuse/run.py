"""A group's nodes as a FusedRun: operands numbered, constants written in, long sums spread over the run.

Called by groups.py; the run is compiled by tenfold_kernels/fusion/runs.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.fusion.expressions import SUMS_OF_MANY
from tenfold_kernels.fusion.runs import REDUCTIONS, FusedInput, FusedOp, FusedRun, Source

from .nodes import Shape, np_types, reduction_of, role_of, sums_to_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tenfold_compiler.part.part_graph import Edge, PartNode

    from .levels import Levels

#: A member's index, or what the run has for an operand from elsewhere.
_Operand: TypeAlias = int | Source


class RunWriter:
    """Turns the members of a group into a FusedRun."""

    def __init__(self, members: list[PartNode], space: Shape, levels: Levels) -> None:
        self.space, self.levels = space, levels
        self.inside = {node.index for node in members}
        #: Edge, and whether it is there as a shape → what the run gets for it, in the order of the call's arguments.
        self.inputs: dict[tuple[Edge, bool], FusedInput] = {}
        self.constants: dict[tuple[str, bytes], tuple[Any, np.dtype[Any]]] = {}
        self.ops: list[FusedOp] = []
        #: Node → its op, once written.
        self.place: dict[int, int] = {}
        #: Sums of many, by node: operands that wait to be added, and the sum so far.
        self.sums: dict[int, tuple[list[_Operand], Source | None]] = {}
        self._members = members

    def run(self, outputs: Sequence[int]) -> FusedRun:
        for node in self._members:
            if node.op in SUMS_OF_MANY:
                # Added up as the operands come, so that few values are alive at a time.
                self.sums[node.index] = [self._source(node, i) for i in range(len(node.inputs))], None
        self._add_up()
        for node in self._members:
            if node.op not in SUMS_OF_MANY:
                self._write(node)
                self._add_up()
        return FusedRun(
            len(self.space),
            tuple(self.inputs.values()),
            tuple(self.ops),
            tuple(self.constants.values()),
            tuple(self.place[index] for index in outputs),
        )

    def _write(self, node: PartNode) -> None:
        reduce = reduction_of(node, self.space, self.levels.constants) or "" if node.op in REDUCTIONS else ""
        whole = sums_to_shape(node)
        count = 1 if reduce or whole else len(node.inputs)
        sources = tuple(self._placed(self._source(node, position)) for position in range(count))
        attrs = tuple((name, node.attrs[name]) for name in ("alpha",) if name in node.attrs)
        self.place[node.index] = len(self.ops)
        if whole:
            # the shape that a gradient is summed to is looked at; the other's only where the nodes run by themselves
            types = np_types(node)[0]
            own, other = map(self.levels.resolve, node.inputs[1:])
            self.inputs[own, True] = FusedInput(types[1], "shape")
            self.inputs.setdefault((other, True), FusedInput(types[2], "aside"))
        self.ops.append(FusedOp("Cast" if whole else node.op, attrs, sources, np_types(node)[1], reduce))

    def _add_up(self) -> None:
        """Adds what is there to the sums that wait for it, operands in order."""
        progress = True
        while progress:
            progress = False
            for index, (waiting, total) in list(self.sums.items()):
                while waiting and (not isinstance(waiting[0], int) or waiting[0] in self.place):
                    operand = self._placed(waiting.pop(0))
                    if total is not None:
                        self.ops.append(
                            FusedOp("Add", (), (total, operand), np_types(self.levels.part.nodes[index])[1])
                        )
                        operand = "op", len(self.ops) - 1
                    total = operand
                    self.sums[index] = waiting, total
                    progress = True
                if not waiting:
                    assert total is not None
                    self.place[index] = total[1]
                    del self.sums[index]

    def _placed(self, operand: _Operand) -> Source:
        return ("op", self.place[operand]) if isinstance(operand, int) else operand

    def _source(self, node: PartNode, position: int) -> _Operand:
        edge = self.levels.resolve(node.inputs[position])
        if edge[0] in self.inside:
            return edge[0]
        shape = self.levels.shapes[node.index][0][position]
        dtype = np_types(node)[0][position]
        value = self.levels.constants[edge[0]][edge[1]] if edge[0] in self.levels.constants else None
        if value is not None and not shape:
            if isinstance(value, DeviceArray):
                value = value.to_host()
            key = dtype.str, value.tobytes()
            self.constants.setdefault(key, (value[()], dtype))
            return "constant", list(self.constants).index(key)
        role = role_of(shape, self.space) if self.space else "scalar"
        assert role is not None, f"{node.name} does not fit in a loop of {self.space}"
        self.inputs.setdefault((edge, False), FusedInput(dtype, role))
        return "input", list(self.inputs).index((edge, False))
