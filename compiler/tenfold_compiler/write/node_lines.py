"""A line for a node or a group: `v0, v1 = k7(v2, c3)`, with what is stored for other regions and what is cleared."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tenfold_compiler.fuse import Group
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, SEND_OPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program

    from .lines import Lines
    from .registers import Registers
    from .slots import Edge, Slots


class NodeLines:
    """Of one part."""

    def __init__(self, program: Program, lines: Lines, slots: Slots) -> None:
        self._program, self._lines, self._slots = program, lines, slots
        #: False inside a function where no slot is in sight.
        self.stores = True

    @contextlib.contextmanager
    def without_stores(self) -> Iterator[None]:
        """What is written within stores nothing for other regions."""
        self.stores = False
        yield
        self.stores = True

    def node(self, node: PartNode, registers: Registers) -> None:
        program, slots = self._program, self._slots
        arguments = []
        edges = [slots.resolve(source) for source in node.inputs]
        # a reference stays one on its way to another task, which reads it
        leaves = node.op in SEND_OPS and not node.client_terminated
        for edge, deref in zip(edges, node.deref, strict=True):
            text = self.operand(edge, node, registers)
            arguments.append(f"{text}.value" if deref and not leaves else text)
        freed = registers.free_after(node.index, edges)
        outputs: list[Edge] = []
        if node.op in SEND_OPS:
            number = program.transfers.send_of.get(node.index)
            fetched = program.transfers.fetch_of.get(node.index)
            call = f"fetch({fetched}, {arguments[0]})" if number is None else f"send({number}, {arguments[0]})"
        else:
            is_name = node.op in ALIAS_OPS and node.index not in program.kernels
            call = arguments[0] if is_name else f"k{node.index}({', '.join(arguments)})"
            outputs = [(node.index, port) for port in range(len(node.output_types))]
        if node.index in slots.starts:
            call, outputs = f"s[{slots.numbers[node.index, -1]}] = {call}", []
        self._assign(outputs, call, freed, node, registers)

    def group(self, group: Group, registers: Registers) -> None:
        first = group.members[0]
        arguments = [self.operand(edge, first, registers) for edge in group.inputs]
        freed = registers.free_after(group.key, group.inputs)
        self._assign(group.outputs, f"g{group.number}({', '.join(arguments)})", freed, first, registers)

    def all_of(self, items: Sequence[PartNode | Group], registers: Registers) -> None:
        """A line for each."""
        for item in items:
            self.group(item, registers) if isinstance(item, Group) else self.node(item, registers)

    def operand(self, edge: Edge, node: PartNode, registers: Registers) -> str:
        """What a line of `node` calls the edge; fetches it into a register where it is in none."""
        if edge[0] in self._program.constants:
            return f"c{edge[0]}_{edge[1]}"
        name = registers.held(edge)
        if name is None:
            # the value comes from another region
            name = registers.take(edge)
            self._lines.write(f"{name} = s[{self._slots.numbers[edge]}]", node)
        return name

    def last_uses(self, work: Sequence[PartNode | Group]) -> dict[Edge, int]:
        """Edge → the node or group that reads it last."""
        last: dict[Edge, int] = {}
        for item in work:
            for source in item.inputs:
                last[self._slots.resolve(source)] = item.key if isinstance(item, Group) else item.index
        return last

    def store(self, edge: Edge, name: str) -> str:
        """What follows a value's line where other regions read it."""
        return f"; s[{self._slots.numbers[edge]}] = {name}" if self.stores and edge in self._slots.crossing else ""

    def _assign(
        self, outputs: Sequence[Edge], call: str, freed: list[str], node: PartNode, registers: Registers
    ) -> None:
        targets = self._targets(outputs, registers)
        stores = "".join(self.store(edge, target) for edge, target in zip(outputs, targets, strict=False))
        self._lines.write(f"{', '.join(targets)} = {call}{stores}" if targets else call, node)
        clear = [name for name in freed if name not in targets]
        if clear:
            self._lines.write(f"{' = '.join(clear)} = None")

    def _targets(self, outputs: Sequence[Edge], registers: Registers) -> list[str]:
        """The left-hand sides of a line: a register for each output that is read, "_" for the others."""
        targets = []
        for edge in outputs:
            needed = edge in registers.last_use or edge in self._slots.crossing
            targets.append(registers.take(edge) if needed else "_")
        for edge, target in zip(outputs, targets, strict=True):
            if target != "_" and edge not in registers.last_use:
                registers.give_back(edge)
        return [] if targets == ["_"] else targets
