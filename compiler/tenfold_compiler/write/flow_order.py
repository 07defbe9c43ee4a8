"""In which order the members of a frame are written: after what they wait for, those of one guard together.

A group of fused nodes is one member; then pure nodes wait for their data only, as fuse/levels.py has it. Used by
flow_writer.py.
"""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING, Any

from tenfold_compiler.fuse import Fusion, Group
from tenfold_compiler.part.guards import ALWAYS
from tenfold_compiler.part.loop_tree import Loop, is_back_edge, member_at

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_compiler.part.guards import Guard
    from tenfold_compiler.part.part_graph import PartGraph

    from .flow_reads import FlowReads


class MemberOrder:
    """Of one part."""

    def __init__(self, part: PartGraph, reads: FlowReads, fusion: Fusion | None) -> None:
        self.part, self.flow, self._reads = part, reads.flow, reads
        groups: Sequence[Group] = () if fusion is None else fusion.groups
        #: The group of each node that is fused.
        self.group_of: Mapping[int, Group] = {node.index: group for group in groups for node in group.members}
        self.group_of_loop = {group.loop: group for group in groups if group.loop is not None}
        self._before = None if fusion is None else fusion.before

    def with_groups(self, members: Sequence[Any]) -> Sequence[Any]:
        """The members, groups in the place of their nodes."""
        if not self.group_of:
            return members
        grouped = (m if isinstance(m, (Loop, Group)) else self.group_of.get(m.index, m) for m in members)
        return list(dict.fromkeys(grouped))

    def grouped(self, members: Sequence[Any], loop: Loop | None) -> list[Any]:
        """An order that keeps all waits and changes from one guard to another seldom."""
        inside = set(members)
        pending: dict[Any, int] = {}
        successors: dict[Any, list[Any]] = {member: [] for member in members}
        for member in members:
            sources = [source for source in self._waits(member, loop) if source in inside and source is not member]
            pending[member] = len(sources)
            for source in sources:
                successors[source].append(member)
        ready: dict[Guard, list[tuple[int, int, Any]]] = {}
        everything: list[tuple[int, int, Guard]] = []
        order: list[Any] = []
        guard = ALWAYS

        def add(member: Any) -> None:
            alone = not isinstance(member, (Loop, Group)) and self._reads.has_else(member)
            its = ALWAYS if alone else self._reads.guard(member)
            entry = _place(member), len(order) + len(pending)
            heapq.heappush(ready.setdefault(its, []), (*entry, _Item(member)))
            heapq.heappush(everything, (*entry, its))

        for member in members:
            if not pending[member]:
                add(member)
        while len(order) < len(members):
            if not ready.get(guard):
                guard = ALWAYS
                while not ready.get(guard):
                    assert everything, "members of a frame wait for each other"
                    guard = heapq.heappop(everything)[2]
            member = heapq.heappop(ready[guard])[2].member
            order.append(member)
            for successor in successors[member]:
                pending[successor] -= 1
                if not pending[successor]:
                    add(successor)
        return order

    def _waits(self, member: Any, loop: Loop | None) -> dict[Any, None]:
        """The members of the same frame that must have run before."""
        found: dict[Any, None] = {}
        tree = self.flow.tree
        if self._before is not None:
            inner = member.nodes() if isinstance(member, Loop) else getattr(member, "members", [member])
            for node in inner:
                for source in self._before[node.index]:
                    before = self._standing_in(loop, source)
                    if before is not None:
                        found[before] = None
            return found
        nodes = member.enters if isinstance(member, Loop) else member.members if isinstance(member, Group) else [member]
        for node in nodes:
            for source in (*(source for source, _ in node.inputs), *node.controls):
                if not is_back_edge(self.part, node, source):
                    before = member_at(self.part, tree, loop, source)
                    if before is not None:
                        found[before if isinstance(before, Loop) else self.group_of.get(before.index, before)] = None
        return found

    def _standing_in(self, loop: Loop | None, index: int) -> Any:
        """The member of a frame that a node belongs to; None for one from outside of it."""
        tree = self.flow.tree
        inner: Any = tree.entered.get(index)
        frame = tree.frame_of[index]
        if inner is None and frame is loop:
            return self.group_of.get(index, self.part.nodes[index])
        inner = inner or frame
        while inner is not None and inner.parent is not loop:
            inner = inner.parent
        return inner


class _Item:
    """A member in a heap; never compared with another one, for their places differ or their numbers do."""

    __slots__ = ("member",)

    def __init__(self, member: Any) -> None:
        self.member = member

    def __lt__(self, other: object) -> bool:
        return False


def _place(member: Any) -> int:
    return member.members[-1].index if isinstance(member, Group) else int(member.index)
