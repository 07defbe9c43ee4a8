"""Straight code: a line for a node or a group, `v0, v1 = k7(v2, c3)`, and what is stored for other regions or cleared.

Writes whole regions of a part without branches, and the nodes of a group; codegen.py shows an example. Where there are
branches, flow_writer.py says where the lines stand.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from tenfold_compiler.fuse.fusion import Group
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, CUT_OPS, SEND_OPS

from .registers import Registers

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_compiler.part.part_graph import Edge, PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_compiler.program import Program

    from .lines import Lines
    from .slots import Slots

#: A cancelled program in the pool stops within so many nodes.
STOP_EVERY = 64


class RegionWriter:
    """One instance a part."""

    def __init__(self, program: Program, lines: Lines, slots: Slots) -> None:
        self.program, self.lines, self.slots = program, lines, slots
        #: False inside a function where no slot is in sight.
        self._stores = True

    @contextlib.contextmanager
    def without_stores(self) -> Iterator[None]:
        """What is written within stores nothing for other regions."""
        self._stores = False
        yield
        self._stores = True

    # -- functions ---------------------------------------------------------------------------------------------------

    def region(self, region: Region, schedule: Sequence[PartNode | Group], name: str | None = None) -> str | None:
        """Writes one function; its name, or None when the region has nothing to do."""
        work = [item for item in schedule if isinstance(item, Group) or not self.slots.is_silent(item)]
        if not work:
            return None
        name = name or f"r{region.index}"
        self.lines.begin_region(name, region)
        registers = Registers(self._last_uses(work))
        for count, item in enumerate(work, 1):
            if count % STOP_EVERY == 0:
                self.lines.write("if stop: return")
            self._item(item, registers)
        return name

    def unfused(self, group: Group) -> None:
        """Writes the nodes of a group as a function of the group's inputs, which has registers of its own."""
        items = group.items or group.members
        last = dict.fromkeys((*group.inputs, *group.outputs), len(self.program.part.nodes))
        registers = Registers(self._last_uses(items) | last)
        self.lines.begin(f"f{group.number}", ", ".join(registers.take(edge) for edge in group.inputs))
        with self.without_stores():
            for item in items:
                self._item(item, registers)
        self.lines.write(f"return {', '.join(str(registers.held(edge)) for edge in group.outputs)}")

    # -- lines -------------------------------------------------------------------------------------------------------

    def node(self, node: PartNode, registers: Registers) -> None:
        transfers, slots = self.program.transfers, self.slots
        arguments = []
        edges = [slots.resolve(source) for source in node.inputs]
        # a reference stays one on its way to another task, which reads it, and to a save, which reads all at one moment
        leaves = node.op in CUT_OPS or (node.op in SEND_OPS and not node.client_terminated)
        for edge, deref in zip(edges, node.deref, strict=True):
            text = self.operand(edge, node, registers)
            arguments.append(f"{text}.value" if deref and not leaves else text)
        freed = registers.free_after(node.index, edges)
        outputs: list[Edge] = []
        if node.index in transfers.send_of:
            call = f"send({transfers.send_of[node.index]}, {arguments[0]})"
        elif node.op in SEND_OPS:
            call = f"fetch({transfers.fetch_of[node.index]}, {arguments[0]})"
        else:
            call = arguments[0] if node.op in ALIAS_OPS else f"k{node.index}({', '.join(arguments)})"
            outputs = [(node.index, port) for port in range(len(node.output_types))]
        if node.index in slots.starts:
            call, outputs = f"s[{slots.numbers[node.index, -1]}] = {call}", []
        self._assign(outputs, call, freed, node, registers)

    def group(self, group: Group, registers: Registers) -> None:
        first = group.members[0]
        arguments = [self.operand(edge, first, registers) for edge in group.inputs]
        freed = registers.free_after(group.key, group.inputs)
        self._assign(group.outputs, f"g{group.number}({', '.join(arguments)})", freed, first, registers)

    def operand(self, edge: Edge, node: PartNode, registers: Registers) -> str:
        """What a line of `node` calls the edge; fetches it into a register where it is in none."""
        if edge[0] in self.program.constants:
            return f"c{edge[0]}_{edge[1]}"
        name = registers.held(edge)
        if name is None:
            # the value comes from another region
            name = registers.take(edge)
            self.lines.write(f"{name} = s[{self.slots.numbers[edge]}]", node)
        return name

    def store(self, edge: Edge, name: str) -> str:
        """What follows a value's line where other regions read it."""
        return f"; s[{self.slots.numbers[edge]}] = {name}" if self._stores and edge in self.slots.crossing else ""

    def _item(self, item: PartNode | Group, registers: Registers) -> None:
        self.group(item, registers) if isinstance(item, Group) else self.node(item, registers)

    def _last_uses(self, work: Sequence[PartNode | Group]) -> dict[Edge, int]:
        """Edge → the node or group that reads it last."""
        last: dict[Edge, int] = {}
        for item in work:
            key = item.key if isinstance(item, Group) else item.index
            last.update((self.slots.resolve(edge), key) for edge in item.inputs)
        return last

    def _assign(
        self, outputs: Sequence[Edge], call: str, freed: list[str], node: PartNode, registers: Registers
    ) -> None:
        targets = self._targets(outputs, registers)
        stores = "".join(self.store(edge, target) for edge, target in zip(outputs, targets, strict=False))
        self.lines.write(f"{', '.join(targets)} = {call}{stores}" if targets else call, node)
        clear = [name for name in freed if name not in targets]
        if clear:
            self.lines.write(f"{' = '.join(clear)} = None")

    def _targets(self, outputs: Sequence[Edge], registers: Registers) -> list[str]:
        """The left-hand sides of a line: a register for each output that is read, "_" for the others."""
        needed = [edge in registers.last_use or edge in self.slots.crossing for edge in outputs]
        targets = [registers.take(edge) if is_needed else "_" for edge, is_needed in zip(outputs, needed, strict=True)]
        for edge, target in zip(outputs, targets, strict=True):
            if target != "_" and edge not in registers.last_use:
                registers.give_back(edge)
        return [] if targets == ["_"] else targets
