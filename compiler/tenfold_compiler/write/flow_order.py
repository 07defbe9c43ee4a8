"""In which order the members of a frame are written: after what they wait for, those of one guard together.

A group of fused nodes is one member; then pure nodes wait for their data only, as fuse/levels.py has it. Used by
frame_writer.py.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from tenfold_compiler.fuse import Fusion, Group
from tenfold_compiler.part.guards import ALWAYS
from tenfold_compiler.part.loop_tree import Loop, waits
from tenfold_compiler.part.pending import Pending

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_compiler.part.guards import Guard

    from .flow_reads import FlowReads


class MemberOrder:
    """Of one part."""

    def __init__(self, reads: FlowReads, fusion: Fusion | None) -> None:
        self.reads, self._part, self._tree = reads, reads.program.part, reads.flow.tree
        groups: Sequence[Group] = () if fusion is None else fusion.groups
        #: The group of each node that is fused.
        self.group_of: Mapping[int, Group] = {node.index: group for group in groups for node in group.members}
        self.group_of_loop = {group.loop: group for group in groups if group.loop is not None}
        self._before = None if fusion is None else fusion.before

    def grouped(self, members: Sequence[Any], loop: Loop | None) -> list[Any]:
        """The members, groups in the place of their nodes, in an order that keeps all waits and changes from one guard
        to another seldom.
        """
        if self.group_of:
            members = list(dict.fromkeys(map(self._as_member, members)))
        pending = Pending(members, lambda member: self._waits(member, loop))
        ready: dict[Guard, list[int]] = {}
        everything: list[tuple[int, Guard]] = []
        #: No two members have one place.
        at = {member.members[-1].index if isinstance(member, Group) else member.index: member for member in members}
        place_of = {member: place for place, member in at.items()}
        order: list[Any] = []
        guard = ALWAYS

        def add(member: Any) -> None:
            its = ALWAYS if self.reads.has_else(member) else self.reads.guard(member)
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

    def _as_member(self, member: Any) -> Any:
        return member if isinstance(member, (Loop, Group)) else self.group_of.get(member.index, member)

    def _waits(self, member: Any, loop: Loop | None) -> dict[Any, None]:
        """The members of the same frame that must have run before, among others."""
        if self._before is None:
            return waits(self._part, self._tree, loop, member)
        inner = member.nodes() if isinstance(member, Loop) else getattr(member, "members", [member])
        return dict.fromkeys(self._standing_in(loop, source) for node in inner for source in self._before[node.index])

    def _standing_in(self, loop: Loop | None, index: int) -> Any:
        """The member of a frame that a node belongs to; None for one from outside of it."""
        inner: Any = self._tree.entered.get(index)
        frame = self._tree.frame_of[index]
        if inner is None and frame is loop:
            return self.group_of.get(index, self._part.nodes[index])
        inner = inner or frame
        while inner is not None and inner.parent is not loop:
            inner = inner.parent
        return inner
