"""Writes regions with branches and loops: nodes of one guard in one `if`, a loop as a `for` over its turns.

    b1 = not not v1                    what Switches look at, as bool
    if b1:
     v4 = k4(v0, c3)
    v6 = v4 if b1 else v5              a Merge
    v9 = v6                            a loop's variable
    for turn in turns:                 new_turns() says how many may follow, in all loops of the function
     v10 = k10(v9, c8)
     if not v10: break
     v11 = k11(v9, v4)                 what comes from outside has its name everywhere
     q12(v11)                          a stack's push, bound before the first turn: q12 = b12(v3)
     v9 = v11
     if stop: return
    else: no_more_turns()

A loop that was compiled as a whole (loop_writer.py) is one line, `v9, = g0(stop, v0, v4)`. Lines are flow_text.py's,
their places frame_writer.py's; what they read and test, flow_reads.py's. Used by codegen.py. Decision 0035.
"""

from __future__ import annotations

from functools import partial
from itertools import islice, repeat
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tenfold_compiler.part.guards import source_of
from tenfold_compiler.part.loop_tree import Loop
from tenfold_compiler.values import DEAD, dead_fetch, read_only
from tenfold_core.opdefs.runtime_ops import MERGE_OPS
from tenfold_kernels import loop_turns
from tenfold_kernels.resources.tensor_arrays import MAX_ELEMENTS, check_count

from .flow_text import FlowText
from .frame_writer import FrameWriter
from .registers import known_as, name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from tenfold_compiler.fuse.fusion import Fusion, Group
    from tenfold_compiler.part.part_graph import Edge, PartGraph
    from tenfold_compiler.part.regions import Region

    from .flow_reads import FlowReads
    from .region_writer import RegionWriter


class FlowWriter:
    """Writes the regions of a part with control flow. One instance a part."""

    def __init__(self, reads: FlowReads, fusion: Fusion | None, straight: RegionWriter) -> None:
        self._reads, self._straight, self._lines = reads, straight, straight.lines
        self._text = FlowText(reads, straight)
        self._frames = FrameWriter(self._text, fusion)

    def region(self, region: Region, schedule: Sequence[Any], name: str | None = None) -> str | None:
        """Writes one function; its name, or None when the region has nothing to do."""
        tree = self._reads.flow.tree
        standing = (tree.standing_in(None, node) for node in region.nodes)
        members = list(dict.fromkeys(map(self._frames.as_member, standing)))
        if all(map(self._reads.is_silent, members)):
            # what is only tested elsewhere has its line there
            return None
        name = name or f"r{region.index}"
        self._lines.begin_region(name, region)
        self._load(region, members)
        if any(isinstance(member, Loop) and member not in self._frames.group_of_loop for member in members):
            self._text.count_turns()
        self._frames.sequence(members, None, set())
        return name

    def unfused(self, group: Group) -> None:
        """Writes the nodes of a group as a function of its inputs; of a compiled loop, its turns."""
        loop = group.loop
        if loop is None:
            self._straight.unfused(group)
            return
        self._lines.begin(f"f{group.number}", ", ".join(["stop", *map(name_of, group.inputs)]))
        self._text.stopped = f"return {'None, ' * len(group.outputs)}"
        with self._straight.without_stores():
            self._text.count_turns()
            self._frames.first_values(loop)
            self._frames.turns(loop, self._reads.left(loop))
        self._text.stopped = "return"
        self._lines.write(f"return {', '.join(map(name_of, group.outputs))},")

    def _load(self, region: Region, members: Iterable[Any]) -> None:
        """Gives names to what comes from outside of the function."""
        reads, program, slots = self._reads, self._reads.program, self._reads.slots
        here = {node.index for node in region.nodes} - {node.index for node in region.starts}
        edges = sorted({edge for member in members for edge in reads.reads(member)})
        # a test may look at one that got no value before it looks at the one that says so
        unset = [edge for edge in edges if edge[1] < 0 and edge[0] in here and reads.guards.of[edge[0]]]
        if unset and reads.guards.flagged:
            self._lines.write(f"{' = '.join(map(name_of, unset))} = 0")
        for edge in edges:
            index = edge[0]
            node = program.part.nodes[index]
            given = index in program.constants or slots.comes_from_outside(node)
            if (index in here and not given) or (edge[1] >= 0 and index in program.constants):
                continue
            if given and edge[1] < 0:
                value = known_as(edge, self._held(source_of(edge)), reads.tested[edge])
            else:
                value = self._held(edge)
            self._lines.write(f"{name_of(edge)} = {value}", node)

    def _held(self, edge: Edge) -> str:
        is_constant = edge[0] in self._reads.program.constants
        return f"c{edge[0]}_{edge[1]}" if is_constant else f"s[{self._reads.slots.numbers[edge]}]"


def names_of_branches(part: PartGraph, fetch_keys: Sequence[str], most_turns: int) -> dict[str, Any]:
    """What lines with branches call by name, besides kernels, for the code of one part.

    D       the value of a dead tensor, in slots and for `send`
    case    the number of the branch that a _SwitchN takes
    dead    raises the error of a fetch from a branch that was not taken
    i0, i1  what a Merge says of which input it took
    new_turns, no_more_turns
            the turns that loops may take in one call of a function; raises the error of one that goes on
    some_of, no_more_of
            the same for a loop that pushes on stacks, which takes no more of them than a stack may have elements
    """

    def dead(number: int) -> NoReturn:
        raise dead_fetch(fetch_keys[number])

    most = max((len(node.inputs) for node in part.nodes if node.op in MERGE_OPS), default=0)
    names: dict[str, Any] = {f"i{number}": read_only(np.array(number, dtype=np.int32)) for number in range(most)}

    def no_more_of(turns: Iterator[None]) -> NoReturn:
        if next(turns, names) is None:
            check_count(MAX_ELEMENTS + 1, "A stack of a loop")
        loop_turns.end(most_turns)

    names.update(D=DEAD, case=_case, dead=dead, no_more_of=no_more_of)
    names.update(some_of=lambda turns: islice(turns, MAX_ELEMENTS))
    names.update(new_turns=partial(repeat, None, most_turns), no_more_turns=partial(loop_turns.end, most_turns))
    return names


def _case(value: Any, count: int) -> int:
    """Which of `count` branches a value takes: a number that there is not means the last. 0 for none that came."""
    if value is None or value is DEAD:
        return 0
    number = int(value)
    return number if 0 <= number < count else count - 1
