"""Cuts a static part into regions: the nodes that wait for the same set of received tensors.

    recv a ──► f ──► h ──► send        regions: {} = {const}, {a} = {f}, {b} = {g}, {a, b} = {h, send}
    recv b ──► g ──┘

A node can run as soon as all tensors it depends on have arrived, and so can its region, all of it at once: nothing is
gained by looking at single nodes, and no order can deadlock across tasks. An edge leads from a set to a superset, so
regions form no cycle. Used by build.py. A part without Recv is one region.

A node that may have to wait (a dequeue) is run in the region of its inputs and is like a Recv from there on: what needs
it waits for one tensor more. So is a Recv that waits for other nodes, because it reads a variable: its tensor is asked
for once the region of its inputs has run.

A region of very many nodes is cut once more, into regions that run one after the other: each becomes one function, and
Python's compiler lets no other thread run while it works on one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from tenfold_compiler.part.part_graph import PartNode
from tenfold_core.opdefs.runtime_ops import RECV_OPS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.part.loop_tree import Loop, Member
    from tenfold_compiler.part.part_graph import PartGraph

#: Nodes of one region.
MOST_NODES = 4_000


@dataclass(slots=True)
class Region:
    """Some nodes of a part, in topological order, and what they wait for."""

    index: int
    nodes: list[PartNode] = field(default_factory=list)
    #: Recv nodes that belong here. They are not among `nodes`: their values come from outside.
    recvs: list[PartNode] = field(default_factory=list)
    #: Those of `nodes` that may have to wait: run here, their results belong to another region.
    starts: list[PartNode] = field(default_factory=list)
    #: Nodes started in another region whose results belong here. They are not among `nodes`.
    awaited: list[PartNode] = field(default_factory=list)
    #: Recv nodes of other regions whose tensors are asked for when this one has run.
    asks: list[PartNode] = field(default_factory=list)
    #: Regions whose end this one waits for.
    after: set[int] = field(default_factory=set)


def rest_of(regions: Sequence[Region]) -> list[Region]:
    """The regions that wait for something, each after those that it waits for; none where something is asked for on the
    way."""
    if any(region.starts or region.asks for region in regions):
        return []
    order = TopologicalSorter({region.index: region.after for region in regions}).static_order()
    return [regions[index] for index in order if regions[index].after or regions[index].recvs]


def cut_regions(part: PartGraph, members: Sequence[Member] | None = None) -> tuple[list[Region], list[int]]:
    """(regions in the order of their first nodes, the region of each node's outputs). `members`: the root frame's of a
    part with control flow, in an order that keeps all waits; a Merge waits for all its inputs, dead ones too.
    """
    masks = [0] * len(part.nodes)
    regions: list[Region] = []
    #: The last region of each set.
    by_mask: dict[int, Region] = {}
    region_of = [0] * len(part.nodes)
    bits = 0

    def region_for(mask: int) -> Region:
        region = by_mask.get(mask)
        if region is None or len(region.nodes) >= MOST_NODES:
            after = set() if region is None else {region.index}
            region = by_mask[mask] = Region(len(regions), after=after)
            regions.append(region)
        return region

    def add_loop(loop: Loop) -> None:
        """A loop is like one node: it runs when all that enters it is there."""
        mask = 0
        for enter in loop.enters:
            for source in (*(source for source, _ in enter.inputs), *enter.controls):
                mask |= masks[source]
        region = region_for(mask)
        for node in loop.nodes():
            masks[node.index], region_of[node.index] = mask, region.index
            region.nodes.append(node)
        for enter in loop.enters:
            region.after.update(region_of[s] for s in (*(source for source, _ in enter.inputs), *enter.controls))
        region.after.discard(region.index)

    for node in part.nodes if members is None else members:
        if not isinstance(node, PartNode):
            add_loop(node)
            continue
        sources = [source for source, _ in node.inputs] + node.controls
        mask = 0
        for source in sources:
            mask |= masks[source]
        is_recv = node.op in RECV_OPS and not node.client_terminated
        start = None
        if node.blocking:
            start = region_for(mask)
            start.nodes.append(node)
            start.starts.append(node)
            start.after.update(region_of[source] for source in sources)
            start.after.discard(start.index)
        elif is_recv and sources:
            asked = region_for(mask)
            asked.asks.append(node)
            asked.after.update(region_of[source] for source in sources)
            asked.after.discard(asked.index)
        if is_recv or node.blocking:
            mask |= 1 << bits
            bits += 1
        masks[node.index] = mask
        region = region_for(mask)
        region_of[node.index] = region.index
        if start is not None:
            region.awaited.append(node)
            region.after.add(start.index)
            continue
        (region.recvs if is_recv else region.nodes).append(node)
        region.after.update(region_of[source] for source in sources)
        region.after.discard(region.index)
    return regions, region_of
