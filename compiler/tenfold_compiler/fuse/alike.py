"""Nodes on the processor that do the same to many tables: gathers, distinct ids, sums by id, updates by rows. Those of
one level become one call.

A level grows by one along every way out of such a node. Nodes of one level do not wait for each other, and what they
lead to is on higher ones, so that they can be made one without closing a cycle, whatever other groups there are. What
does their work is cpu/_many_rows.py and cpu/_many_updates.py. Called by groups.py, when all other groups are known.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from tenfold_compiler.part.part_graph import PartNode
from tenfold_core import dtypes
from tenfold_kernels.cpu._many_rows import ManyRows, Member
from tenfold_kernels.cpu._many_updates import RATES, UPDATES, ManyUpdates
from tenfold_kernels.optimizer_rules import layout_of
from tenfold_kernels.registry import KernelNode
from tenfold_kernels.typesets import COMPILED, INDEX

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tenfold_compiler.part.node_facts import Constants
    from tenfold_compiler.part.part_graph import Edge, PartGraph
    from tenfold_kernels.resources.state import ResourceManager

    from .fusion import Group
    from .levels import Levels

#: Fewer are not worth a call.
FEWEST = 4
_LOOPS = {
    "Gather": "gather",
    "GatherV2": "gather",
    "ResourceGather": "gather",
    "Unique": "distinct",
    "UnsortedSegmentSum": "add_up",
}


def are_alike(part: PartGraph, constants: Constants) -> bool:
    """Whether some nodes could become one call."""
    counts: dict[Hashable, int] = defaultdict(int)
    for node in part.nodes:
        if (key := _kind(node, constants)) is not None:
            counts[key] += 1
    return any(count >= FEWEST for count in counts.values())


def _kind(node: PartNode, constants: Constants) -> Hashable:
    """What nodes of one call have in common, but for their scalars; None for a node that is called alone."""
    if node.memory is not None or node.index in constants or node.blocking:
        return None
    loop = _LOOPS.get(node.op)
    if loop is not None and any(node.deref):
        return None
    types = node.input_types
    match loop:
        case "gather":
            rows = node.attrs["dtype"] if node.op == "ResourceGather" else types[0].base_dtype
            is_plain = rows in COMPILED | INDEX and types[1] in INDEX and not node.attrs.get("batch_dims", 0)
            if node.op == "GatherV2":
                source, port = node.inputs[2]
                is_plain = is_plain and source in constants and not constants[source][port].any()
                is_plain = is_plain and not constants[source][port].ndim
            return (loop, types[0] is dtypes.resource, rows, types[1]) if is_plain else None
        case "distinct":
            return (loop, types[0], node.output_types[1]) if types[0] in INDEX else None
        case "add_up":
            return (loop, types[1]) if types[0] is dtypes.float32 and types[1] in INDEX else None
    if node.op in UPDATES:
        layout = layout_of(node.op)
        if node.deref[layout.gradient] or node.deref[layout.indices]:
            return None
        flags = (
            value for name, value in sorted(node.attrs.items()) if isinstance(value, bool) and name != "use_locking"
        )
        return (node.op, types[layout.indices], *flags) if node.attrs["T"] is dtypes.float32 else None
    if node.op in RATES:
        element = node.attrs["dtype"] if types[0] is dtypes.resource else node.attrs["T"]
        return (
            (node.op, types[1]) if element is dtypes.float32 and not any(node.deref[1:]) and types[1] in INDEX else None
        )
    return None


def alike(order: Sequence[PartNode | Group], levels: Levels) -> list[list[PartNode]]:
    """Of a region's nodes and groups, which keep all waits in this order, the nodes that become one call each."""
    waits = levels.between(order)
    level = [0] * len(order)
    keys = [_key(item, levels) if isinstance(item, PartNode) else None for item in order]
    found: dict[Hashable, list[PartNode]] = defaultdict(list)
    for place, item in enumerate(order):
        level[place] = max((level[before] + (keys[before] is not None) for before in waits(place)), default=0)
        if isinstance(item, PartNode) and keys[place] is not None:
            found[level[place], keys[place]].append(item)
    return [nodes for nodes in found.values() if len(nodes) >= FEWEST]


def _key(node: PartNode, levels: Levels) -> Hashable:
    kind = _kind(node, levels.constants)
    if kind is None or node.op not in UPDATES:
        return kind
    scalars = layout_of(node.op).scalars
    return kind, tuple((levels.resolve(node.inputs[place]), node.deref[place]) for _, place in scalars)


def together(
    nodes: Sequence[PartNode], levels: Levels, resources: ResourceManager
) -> tuple[Any, list[Edge], list[Edge]]:
    """(what runs these nodes as one, the edges that it is called with, those that it gives)"""
    inputs: dict[Edge, int] = {}
    members = []
    for node in nodes:
        places = tuple(inputs.setdefault(levels.resolve(edge), len(inputs)) for edge in node.inputs)
        kernel_node = KernelNode(
            node.name, node.op, node.attrs, node.input_types, node.output_types, node.node_def.device, resources
        )
        members.append(Member(kernel_node, places))
    outputs = levels.edges_read_outside({node.index for node in nodes})
    number_of = {node.index: number for number, node in enumerate(nodes)}
    given = tuple((number_of[index], port) for index, port in outputs)
    loop = _LOOPS.get(nodes[0].op)
    if loop is not None:
        return ManyRows(loop, tuple(members), given), list(inputs), outputs
    updates = ManyUpdates(tuple(members), tuple(number for number, _ in given), tuple(nodes[0].deref))
    return updates, list(inputs), outputs
