"""Writes the regions of a part without branches as Python functions. codegen.py shows an example, and compiles it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.fuse import Group

from .registers import Registers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.part_graph import PartNode
    from tenfold_compiler.part.regions import Region
    from tenfold_compiler.program import Program

    from .lines import Heads, Lines
    from .node_lines import NodeLines
    from .slots import Slots

#: A cancelled program in the pool stops within so many nodes.
STOP_EVERY = 64


class RegionWriter:
    """One instance a part."""

    def __init__(self, program: Program, lines: Lines, heads: Heads, slots: Slots, nodes: NodeLines) -> None:
        self._program, self._lines, self._heads, self._slots, self._nodes = program, lines, heads, slots, nodes

    def region(
        self, region: Region, schedule: Sequence[PartNode | Group] | None, name: str | None = None
    ) -> str | None:
        """Writes one function; its name, or None when the region has nothing to do. None: in the nodes' own order."""
        work: list[PartNode | Group] = [
            item
            for item in (region.nodes if schedule is None else schedule)
            if isinstance(item, Group) or not self._slots.is_silent(item)
        ]
        if not work:
            return None
        name = name or f"r{region.index}"
        self._heads.begin(name, region)
        registers = Registers(self._nodes.last_uses(work))
        for count, item in enumerate(work, 1):
            if count % STOP_EVERY == 0:
                self._lines.write("if stop: return")
            self._nodes.all_of([item], registers)
        return name

    def unfused(self, group: Group) -> None:
        """Writes the nodes of a group as a function of the group's inputs."""
        write_unfused(group, self._program, self._lines, self._nodes)


def write_unfused(group: Group, program: Program, lines: Lines, nodes: NodeLines) -> None:
    """Writes the nodes of a group as a function of the group's inputs, which has registers of its own."""
    items = group.items or group.members
    registers = Registers(nodes.last_uses(items))
    last = len(program.part.nodes)
    registers.last_use.update(dict.fromkeys((*group.inputs, *group.outputs), last))
    lines.begin(f"f{group.number}", ", ".join(registers.take(edge) for edge in group.inputs))
    with nodes.without_stores():
        nodes.all_of(items, registers)
    lines.write(f"return {', '.join(str(registers.held(edge)) for edge in group.outputs)}")
