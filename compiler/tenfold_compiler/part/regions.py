"""Cuts a static part into regions: the nodes that wait for the same set of received tensors.

    recv a ──► f ──► h ──► send        regions: {} = {const}, {a} = {f}, {b} = {g}, {a, b} = {h, send}
    recv b ──► g ──┘

A region runs as soon as its tensors have arrived, so no order can deadlock across tasks (decision 0005). An edge leads
from a set to a superset, so regions form no cycle. A node that may have to wait (a dequeue) is run in the region of its
inputs and is like a Recv from there on; so is a Recv that waits for other nodes. Used by build.py.
"""

from __future__ import annotations

import functools
import operator
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import TYPE_CHECKING

from tenfold_core.opdefs.runtime_ops import RECV_OPS

from .part_graph import PartGraph, PartNode

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .loop_tree import Member

#: Nodes of one region: it becomes a function, and Python's compiler lets no other thread run meanwhile.
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
    """The regions that wait, each after those that it waits for; none where something is asked for on the way."""
    if any(region.starts or region.asks for region in regions):
        return []
    order = TopologicalSorter({region.index: region.after for region in regions}).static_order()
    return [regions[index] for index in order if regions[index].after or regions[index].recvs]


def cut_regions(part: PartGraph, members: Sequence[Member] | None = None) -> tuple[list[Region], list[int]]:
    """(regions in the order of their first nodes, the region of each node's outputs). `members`: the root frame's of a
    part with control flow, in an order that keeps all waits; a Merge waits for all its inputs, dead ones too.
    """
    masks, region_of = [0] * len(part.nodes), [0] * len(part.nodes)
    regions: list[Region] = []
    #: The last region of each set.
    by_mask: dict[int, Region] = {}
    bits = 0

    def region_for(mask: int, sources: Iterable[int] = ()) -> Region:
        region = by_mask.get(mask)
        if region is None or len(region.nodes) >= MOST_NODES:
            after = set() if region is None else {region.index}
            region = by_mask[mask] = Region(len(regions), after=after)
            regions.append(region)
        region.after.update(region_of[source] for source in sources)
        region.after.discard(region.index)
        return region

    for member in part.nodes if members is None else members:
        # a loop is like one node: it runs when all that enters it is there
        entries = [member] if isinstance(member, PartNode) else member.enters
        sources = [source for node in entries for source in node.sources]
        mask = functools.reduce(operator.or_, (masks[source] for source in sources), 0)
        if not isinstance(member, PartNode):
            region = region_for(mask, sources)
            region.nodes += (nodes := list(member.nodes()))
            for node in nodes:
                masks[node.index], region_of[node.index] = mask, region.index
            continue
        is_recv = member.op in RECV_OPS and not member.client_terminated
        if member.blocking:
            start = region_for(mask, sources)
            start.nodes.append(member)
            start.starts.append(member)
        elif is_recv and sources:
            region_for(mask, sources).asks.append(member)
        if is_recv or member.blocking:
            mask |= 1 << bits
            bits += 1
        region = region_for(mask, () if member.blocking else sources)
        masks[member.index], region_of[member.index] = mask, region.index
        if member.blocking:
            region.awaited.append(member)
            region.after.add(start.index)
        else:
            (region.recvs if is_recv else region.nodes).append(member)
    return regions, region_of
