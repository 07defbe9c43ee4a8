"""Writes the text of regions as Python functions, a line a node. codegen.py shows an example, and compiles it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from tenfold_compiler.fuse import Group
from tenfold_compiler.part.regions import MOST_NODES, Region
from tenfold_core.opdefs.runtime_ops import ALIAS_OPS, ORDER_OPS, RECV_OPS, SEND_OPS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.program import Program

#: One output of one node.
Edge: TypeAlias = tuple[int, int]

#: A cancelled program in the pool stops within so many nodes.
STOP_EVERY = 64
#: A longer part does not get its regions written twice.
_REST_NODES = MOST_NODES


class RegionWriter:
    """Writes the text of all regions. One instance a part."""

    def __init__(self, program: Program) -> None:
        self.part, self.region_of = program.part, program.region_of
        self.kernels, self.constants = program.kernels, program.constants
        self.sends, self.fetches = program.transfers.send_of, program.transfers.fetch_of
        #: Nodes that may have to wait → the region in which they are run.
        self.starts = {node.index: region.index for region in program.regions for node in region.starts}
        self.lines: list[str] = []
        #: Where in them the functions begin.
        self.defs: list[int] = []
        self.node_at_line: dict[int, int] = {}
        #: Edges that cross a region's border, and their place in the step's list of values.
        self.slots: dict[Edge, int] = {}
        #: The producer of each edge once aliases are looked through.
        self.origin: dict[Edge, Edge] = {}
        self.crossing: set[Edge] = set()
        #: Whether the next function written begins with a tick.
        self.tick = False
        #: Whether `rest` stands for the region that ticks.
        self._rest_ticks = False
        #: False inside a group's own function, where no slot is in sight.
        self._stores = True
        #: What a line begins with.
        self.pad = " "
        self._find_crossings()

    def write(self, line: str, node: PartNode | None = None) -> None:
        """Adds a line to the function; an error in it is that of `node`."""
        if node is not None:
            self.node_at_line[len(self.lines) + 1] = node.index
        self.lines.append(self.pad + line)

    def comes_from_outside(self, node: PartNode) -> bool:
        """True for Recv and feed nodes and for those that may have to wait: the execution fills their slots."""
        return node.op in RECV_OPS or node.index in self.starts

    def awaited_slots(self, node: PartNode) -> tuple[int, tuple[int, ...]]:
        """(the slot of the kernel's result, the slots of the outputs) of a node that may have to wait."""
        outputs = range(len(node.output_types))
        return self._slot((node.index, -1)), tuple(self._slot((node.index, port)) for port in outputs)

    def _find_crossings(self) -> None:
        for node in self.part.nodes:
            if self._is_alias(node):
                self.origin[node.index, 0] = self._resolve(node.inputs[0])
            self._note_reads(node.index, map(self._resolve, node.inputs))
        self._note_slots()

    def _note_reads(self, reader: int, edges: Iterable[Edge]) -> None:
        here = self.starts.get(reader, self.region_of[reader])
        for edge in edges:
            is_set = self.comes_from_outside(self.part.nodes[edge[0]])
            if not is_set and edge[0] not in self.constants and self.region_of[edge[0]] != here:
                self._slot(edge)
                self.crossing.add(edge)

    def _note_slots(self) -> None:
        for node in self.part.nodes:
            if node.index in self.starts:
                self.awaited_slots(node)
            elif self.comes_from_outside(node):
                self._slot((node.index, 0))

    def _is_alias(self, node: PartNode) -> bool:
        # a folded one has no inputs any more
        return node.op in ALIAS_OPS and bool(node.inputs) and not node.deref[0] and node.index not in self.kernels

    def _resolve(self, edge: Edge) -> Edge:
        return self.origin.get(edge, edge)

    def _slot(self, edge: Edge) -> int:
        return self.slots.setdefault(edge, len(self.slots))

    def region(
        self, region: Region, schedule: Sequence[PartNode | Group] | None, name: str | None = None
    ) -> str | None:
        """Writes one function; its name, or None when the region has nothing to do. None: in the nodes' own order."""
        work: list[PartNode | Group] = [
            n for n in (region.nodes if schedule is None else schedule) if isinstance(n, Group) or not self.is_silent(n)
        ]
        if not work:
            return None
        name = name or f"r{region.index}"
        self.defs.append(len(self.lines))
        self.lines.append(f"def {name}(s, send, fetch, stop):")
        if self.tick:
            self.lines.append(" tick()")
            self.tick = False
            self._rest_ticks = bool(region.after or region.recvs)
        registers = Registers(self._last_uses(work))
        for count, item in enumerate(work, 1):
            if count % STOP_EVERY == 0:
                self.write("if stop: return")
            if isinstance(item, Group):
                self._group(item, registers)
            else:
                self._node(item, registers)
        return name

    def rest(self, regions: list[Region], schedules: Sequence[Sequence[PartNode | Group]] | None) -> str | None:
        """Writes these regions, each after those that it waits for, as one function; its name, or None for too few."""
        if len(regions) < 2 or sum(len(region.nodes) for region in regions) > _REST_NODES:
            return None
        self.tick = self._rest_ticks
        work: list[PartNode | Group] = []
        for region in regions:
            work.extend(region.nodes if schedules is None else schedules[region.index])
        whole = Region(-1, nodes=[node for region in regions for node in region.nodes])
        self._stores = False
        name = self.region(whole, work, "rest")
        self._stores = True
        return name

    def unfused(self, group: Group) -> None:
        """Writes the nodes of a group as a function of the group's inputs."""
        items = group.items or group.members
        registers = Registers(self._last_uses(items))
        last = len(self.part.nodes)
        registers.last_use.update(dict.fromkeys((*group.inputs, *group.outputs), last))
        arguments = ", ".join(registers.take(edge) for edge in group.inputs)
        self.defs.append(len(self.lines))
        self.lines.append(f"def f{group.number}({arguments}):")
        self._stores = False
        for item in items:
            if isinstance(item, Group):
                self._group(item, registers)
            else:
                self._node(item, registers)
        self._stores = True
        self.lines.append(f" return {', '.join(registers.holder[edge] for edge in group.outputs)}")

    def _group(self, group: Group, registers: Registers) -> None:
        first = group.members[0]
        arguments = [self._operand(edge, first, registers) for edge in group.inputs]
        freed = registers.free_after(group.key, group.inputs)
        targets = self._targets(group.outputs, registers)
        call = f"g{group.number}({', '.join(arguments)})"
        self.node_at_line[len(self.lines) + 1] = first.index
        self._assign(group.outputs, targets, call, freed)

    def is_silent(self, node: PartNode) -> bool:
        """Whether there is nothing to run for the node."""
        return node.op in ORDER_OPS or node.index in self.constants or node.op in RECV_OPS or self._is_alias(node)

    def _last_uses(self, work: Sequence[PartNode | Group]) -> dict[Edge, int]:
        last: dict[Edge, int] = {}
        for item in work:
            for source in item.inputs:
                last[self._resolve(source)] = item.key if isinstance(item, Group) else item.index
        return last

    def _node(self, node: PartNode, registers: Registers) -> None:
        arguments = []
        edges = [self._resolve(source) for source in node.inputs]
        # a reference stays one on its way to another task, which reads it
        leaves = node.op in SEND_OPS and not node.client_terminated
        for edge, deref in zip(edges, node.deref, strict=True):
            text = self._operand(edge, node, registers)
            arguments.append(f"{text}.value" if deref and not leaves else text)
        freed = registers.free_after(node.index, edges)
        if node.op in SEND_OPS:
            verb, number = ("fetch", self.fetches.get(node.index)), self.sends.get(node.index)
            call = f"{verb[0]}({verb[1]}, {arguments[0]})" if number is None else f"send({number}, {arguments[0]})"
            outputs: list[Edge] = []
        else:
            call = (
                arguments[0]
                if node.op in ALIAS_OPS and node.index not in self.kernels
                else (f"k{node.index}({', '.join(arguments)})")
            )
            outputs = [(node.index, port) for port in range(len(node.output_types))]
        if node.index in self.starts:
            call, outputs = f"s[{self.slots[node.index, -1]}] = {call}", []
        targets = self._targets(outputs, registers)
        self.node_at_line[len(self.lines) + 1] = node.index
        self._assign(outputs, targets, call, freed)

    def _assign(self, outputs: Sequence[Edge], targets: list[str], call: str, freed: list[str]) -> None:
        stores = "".join(
            f"; s[{self.slots[edge]}] = {target}"
            for edge, target in zip(outputs, targets, strict=False)
            if edge in self.crossing and self._stores
        )
        self.write(f"{', '.join(targets)} = {call}{stores}" if targets else call)
        clear = [name for name in freed if name not in targets]
        if clear:
            self.write(f"{' = '.join(clear)} = None")

    def _operand(self, edge: Edge, node: PartNode, registers: Registers) -> str:
        if edge[0] in self.constants:
            return f"c{edge[0]}_{edge[1]}"
        name = registers.holder.get(edge)
        if name is None:
            # the value comes from another region: fetched into a register at its first use
            name = registers.take(edge)
            self.node_at_line[len(self.lines) + 1] = node.index
            self.write(f"{name} = s[{self.slots[edge]}]")
        return name

    def _targets(self, outputs: Sequence[Edge], registers: Registers) -> list[str]:
        """The left-hand sides of a line: a register for each output that is read, "_" for the others."""
        targets = []
        for edge in outputs:
            needed = edge in registers.last_use or edge in self.crossing
            targets.append(registers.take(edge) if needed else "_")
        for edge, target in zip(outputs, targets, strict=True):
            if target != "_" and edge not in registers.last_use:
                registers.give_back(*edge)
        return [] if targets == ["_"] else targets


class Registers:
    """Local variables, reused last in first out so that a new value pushes an old one out as soon as it can."""

    def __init__(self, last_use: dict[Edge, int]) -> None:
        self.last_use = last_use
        #: Which variable holds which live edge.
        self.holder: dict[Edge, str] = {}
        self._free: list[str] = []
        self._made = 0

    def take(self, edge: Edge) -> str:
        if self._free:
            name = self._free.pop()
        else:
            name = f"v{self._made}"
            self._made += 1
        self.holder[edge] = name
        return name

    def give_back(self, node: int, port: int) -> None:
        self._free.append(self.holder.pop((node, port)))

    def free_after(self, node: int, edges: list[Edge]) -> list[str]:
        """Frees what `node` reads last; returns the variables."""
        freed = []
        for edge in dict.fromkeys(edges):
            if self.last_use.get(edge) == node and edge in self.holder:
                freed.append(self.holder.pop(edge))
        self._free.extend(freed)
        return freed
