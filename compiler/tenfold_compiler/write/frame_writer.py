"""Where the members of a frame stand: blocks of one guard, the turns of a loop, what is cleared when.

A group of fused nodes is one member; then pure nodes wait for their data only, as fuse/levels.py has it. The lines are
flow_text.py's. Used by flow_writer.py and loop_writer.py.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from tenfold_compiler.fuse.fusion import Fusion, Group
from tenfold_compiler.part.guards import ALWAYS, Guard, source_of
from tenfold_compiler.part.loop_tree import Loop, waits
from tenfold_compiler.part.part_graph import PartNode
from tenfold_compiler.pending import Pending
from tenfold_core.opdefs import runtime_ops as ops

from .flow_reads import NAMES_ONLY
from .region_writer import STOP_EVERY
from .registers import name_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold_compiler.part.part_graph import Edge

    from .flow_text import FlowText


class FrameWriter:
    """One instance a part, for one function after the other."""

    def __init__(self, text: FlowText, fusion: Fusion | None = None) -> None:
        self._reads, self._lines, self._text, self._tree = text.reads, text.lines, text, text.reads.flow.tree
        groups: Sequence[Group] = () if fusion is None else fusion.groups
        #: The group of each node that is fused.
        self.group_of: Mapping[int, Group] = {node.index: group for group in groups for node in group.members}
        self.group_of_loop = {group.loop: group for group in groups if group.loop is not None}
        self._before = None if fusion is None else fusion.before
        #: The guard of the block that is open, and what to clear when it ends.
        self._open: Guard = ALWAYS
        self._late: list[str] = []
        self._block = self._blocks = 0
        #: Lines when the open block began.
        self._began = 0

    # -- sequences ---------------------------------------------------------------------------------------------------

    def sequence(
        self, members: Sequence[Any], loop: Loop | None, kept: set[Edge], made: Iterable[Edge] = ()
    ) -> set[Edge]:
        """Writes members of one frame, blocks of one guard together. Clears what they make, and what was `made` before,
        after its last use, but for `kept`. Returns what they make.
        """
        reads, text = self._reads, self._text
        order = self._ordered(members, loop)
        last: dict[Edge, int] = {}
        for position, member in enumerate(order):
            last.update(dict.fromkeys(reads.reads(member), position))
        #: In which block each output got its value.
        made_in: dict[Edge, int] = dict.fromkeys(made, -1)
        written = 0
        for position, member in enumerate(order):
            if not reads.is_silent(member):
                conditional = reads.has_else(member)
                written += 1
                if written % STOP_EVERY == 0:
                    self._enter(ALWAYS)
                    text.look_at_stop()
                self._enter(ALWAYS if conditional else reads.guard(member))
                self._write_member(member, conditional)
                made_in.update(dict.fromkeys(self._makes(member), self._block))
            freed = [
                edge
                for edge in reads.reads(member)
                if last[edge] == position and edge in made_in and edge not in kept and edge[1] >= 0
            ]
            now = [name_of(edge) for edge in freed if not self._open or made_in[edge] == self._block]
            text.clear(now)
            self._late += [name_of(edge) for edge in freed if name_of(edge) not in now]
        self._enter(ALWAYS)
        return set(made_in)

    # -- order -------------------------------------------------------------------------------------------------------

    def _ordered(self, members: Sequence[Any], loop: Loop | None) -> list[Any]:
        """The members, groups in the place of their nodes, in an order that keeps all waits and changes from one guard
        to another seldom.
        """
        if self.group_of:
            members = list(dict.fromkeys(map(self.as_member, members)))
        pending = Pending(members, lambda member: self._waits(member, loop).keys() - {member})
        ready: dict[Guard, list[int]] = {}
        everything: list[tuple[int, Guard]] = []
        #: No two members have one place.
        at = {member.members[-1].index if isinstance(member, Group) else member.index: member for member in members}
        place_of = {member: place for place, member in at.items()}
        order: list[Any] = []
        guard = ALWAYS

        def add(member: Any) -> None:
            its = ALWAYS if self._reads.has_else(member) else self._reads.guard(member)
            heapq.heappush(ready.setdefault(its, []), place_of[member])
            heapq.heappush(everything, (place_of[member], its))

        for member in pending.first():
            add(member)
        while len(order) < len(members):
            if not ready.get(guard):
                guard = ALWAYS
                while not ready.get(guard):
                    assert everything, "members of a frame wait for each other"
                    guard = heapq.heappop(everything)[1]
            member = at[heapq.heappop(ready[guard])]
            order.append(member)
            for successor in pending.done(member):
                add(successor)
        return order

    def as_member(self, member: Any) -> Any:
        """The member, or the group that it is fused in."""
        return self.group_of.get(member.index, member) if isinstance(member, PartNode) else member

    def _waits(self, member: Any, loop: Loop | None) -> dict[Any, None]:
        """The members of the same frame that must have run before, among others."""
        if self._before is None:
            return waits(self._reads.program.part, self._tree, loop, member)
        inner = member.nodes() if isinstance(member, Loop) else getattr(member, "members", [member])
        before = (self._reads.program.part.nodes[source] for node in inner for source in self._before[node.index])
        return dict.fromkeys(self.as_member(self._tree.standing_in(loop, node)) for node in before)

    # -- blocks ------------------------------------------------------------------------------------------------------

    def _enter(self, guard: Guard) -> None:
        """Ends the open block unless it is that of the guard, and begins one."""
        if guard == self._open:
            return
        lines = self._lines
        if self._open:
            lines.dedent()
            self._open = ALWAYS
            if len(lines.text) == self._began:
                # its nodes had nothing to write
                lines.text.pop()
            self._text.clear(self._late)
            self._late = []
        self._blocks += 1
        self._block = self._blocks
        if guard:
            lines.write(f"if {self._text.condition(guard)}:")
            lines.indent()
            self._open = guard
            self._began = len(lines.text)

    def _makes(self, member: Any) -> list[Edge]:
        """The outputs that the member gives a variable, for those that follow it."""
        if isinstance(member, Loop):
            return [self._reads.resolve(node.inputs[0]) for node in member.exits]
        if isinstance(member, Group):
            return member.outputs
        return [(member.index, port) for port in range(len(member.output_types))]

    def _write_member(self, member: Any, conditional: bool) -> None:
        if isinstance(member, Loop):
            self._loop(member)
        elif isinstance(member, Group):
            self._text.group(member)
        elif conditional:
            self._text.node_or_else(member, self._reads.guard(member))
        elif member.op in ops.MERGE_OPS:
            self._text.merge(member)
        elif member.op in NAMES_ONLY:
            self._text.reference(member)
        else:
            self._text.node(member)

    # -- loops -------------------------------------------------------------------------------------------------------

    def _loop(self, loop: Loop) -> None:
        outer = self._open, self._late, self._block, self._began
        left = self._reads.left(loop)
        group = self.group_of_loop.get(loop)
        if group is None:
            self.first_values(loop)
            self.turns(loop, left)
        else:
            self._text.loop(group)
        self._open, self._late = ALWAYS, []
        self.sequence(self._reads.flow.sections[loop].tail, loop, left)
        self._open, self._late, self._block, self._began = outer
        for edge in {self._reads.resolve(node.inputs[0]) for node in loop.exits}:
            self._text.store(edge)

    def first_values(self, loop: Loop) -> None:
        """What the loop's variables are before its first turn."""
        for enter in loop.enters:
            if enter.deref[0]:
                self._text.reference(enter)
        for node in loop.variables:
            self._lines.write(f"{name_of((node.index, 0))} = {self._text.input(node, 0)}", node)

    def turns(self, loop: Loop, left: set[Edge]) -> None:
        """The loop's turns; `left` has to be there after them."""
        reads, text, lines = self._reads, self._text, self._lines
        turns = reads.flow.sections[loop]
        variables = [(node.index, 0) for node in loop.variables]
        self._open, self._late = ALWAYS, []
        text.begin_turns(loop)
        lines.indent()
        for node in loop.variables:
            text.known((node.index, 0), node)
        nexts = {reads.resolve(node.inputs[1]) for node in loop.variables}
        in_body = {edge for member in turns.body for edge in reads.reads(member)}
        made = self.sequence(turns.head, loop, left | nexts | in_body | {source_of(turns.goes_on.edge)})
        text.leave(turns.goes_on)
        # a turn that goes on gives the variables other values
        kept = (left - set(variables)) | nexts
        made = self.sequence(turns.body, loop, kept, {*made, *variables})
        moved = [node for node in loop.variables if reads.resolve(node.inputs[1]) != (node.index, 0)]
        if moved:
            targets, texts = [name_of((node.index, 0)) for node in moved], [text.input(node, 1) for node in moved]
            lines.write(f"{', '.join(targets)} = {', '.join(texts)}", moved[0])
            text.clear([name_of(edge) for edge in nexts & made - left - set(variables)])
        text.end_turn(loop)
        lines.dedent()
        text.end_turns(loop)
