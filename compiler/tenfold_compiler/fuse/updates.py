"""Updates of small variables on a GPU that run as one: which nodes, and when.

No way leads from one to another: an update waits until nothing but updates is left to run, and those that are ready
then are launched together. Called by groups.py, before stretches are recorded: such a group may be in one. What
launches them is tenfold_kernels/cuda/fused_updates.py.
"""

from __future__ import annotations

import heapq
from collections import Counter
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_compiler.part.part_graph import Edge, PartNode
from tenfold_compiler.pending import Pending
from tenfold_kernels import optimizer_rules
from tenfold_kernels.cuda.fused_updates import MOST, DeviceUpdates, Member
from tenfold_kernels.cuda.state_apply import update_of
from tenfold_kernels.registry import KernelNode

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from tenfold_compiler.part.loop_tree import Loop
    from tenfold_kernels.resources.state import ResourceManager

    from .fusion import Group
    from .levels import Levels

#: A node, or nodes that run as one.
Item = TypeVar("Item", bound="PartNode | Group | Loop")
#: Elements of a variable up to which its launch costs more than its update. Not measured.
SMALL = 1 << 16
_DENSE = frozenset(op for op in optimizer_rules.OPS if not optimizer_rules.layout_of(op).sparse)


def join_updates(order: Sequence[Item], levels: Levels) -> list[Item | list[PartNode]]:
    """A region's schedule, or the outermost members of a part with loops, with the updates that run as one, two at
    least, as lists; all still runs after what it waits for.
    """
    keys = [_key(item, levels) if isinstance(item, PartNode) else None for item in order]
    many = {key for key, count in Counter(keys).items() if key is not None and count > 1}
    if not many:
        return list(order)
    pending = Pending(range(len(order)), levels.between(order))
    found: list[Item | list[PartNode]] = []
    ready: list[int] = []
    updates: dict[Hashable, list[int]] = {}

    def add(position: int) -> None:
        if keys[position] in many:
            updates.setdefault(keys[position], []).append(position)
        else:
            heapq.heappush(ready, position)

    for position in pending.first():
        add(position)
    while ready or updates:
        now = [heapq.heappop(ready)] if ready else sorted(updates.pop(min(updates, key=lambda key: min(updates[key]))))
        for begin in range(0, len(now), MOST):
            chunk = [order[position] for position in now[begin : begin + MOST]]
            found.append(chunk[0] if len(chunk) == 1 else [node for node in chunk if isinstance(node, PartNode)])
        for position in now:
            for successor in pending.done(position):
                add(successor)
    return found


def _key(node: PartNode, levels: Levels) -> Hashable:
    """What updates of one launch have in common; None for what is launched alone."""
    if node.memory is None or node.op not in _DENSE:
        return None
    layout = optimizer_rules.layout_of(node.op)
    edges = [levels.resolve(edge) for edge in node.inputs]
    shape: Any = levels.part.nodes[edges[layout.variables[0]][0]].attrs.get("shape")
    size = None if shape is None else shape.num_elements()
    if size is None or size > SMALL or node.deref[layout.gradient] or not levels.always_runs(node):
        return None
    scalars = tuple(_origin(edges[place], levels) for _, place in layout.scalars)
    return levels.places[node.index], node.node_def.device, update_of(node, layout), scalars


def _origin(edge: Edge, levels: Levels) -> Edge:
    """What tells a scalar from another one: of one that is read from a resource, the resource."""
    node = levels.part.nodes[edge[0]]
    return levels.resolve(node.inputs[0]) if node.op == "ReadVariableOp" else edge


def updates_of(
    members: Sequence[PartNode], levels: Levels, resources: ResourceManager
) -> tuple[DeviceUpdates, list[Edge], list[Edge]]:
    """(what runs these nodes as one, the edges that it is called with, those that it gives)"""
    inputs: dict[Edge, int] = {}

    def place(node: PartNode, position: int) -> int:
        return inputs.setdefault(levels.resolve(node.inputs[position]), len(inputs))

    made = []
    for node in members:
        layout = optimizer_rules.layout_of(node.op)
        kernel_node = KernelNode(
            node.name, node.op, node.attrs, node.input_types, node.output_types, node.node_def.device, resources
        )
        variables = tuple(place(node, position) for position in layout.variables)
        scalars = tuple((place(node, position), node.deref[position]) for _, position in layout.scalars)
        made.append(Member(kernel_node, variables, place(node, layout.gradient), scalars))
    outputs = levels.edges_read_outside({node.index for node in members})
    number_of = {node.index: number for number, node in enumerate(members)}
    given = tuple(number_of[index] for index, _ in outputs)
    return DeviceUpdates(tuple(made), given), list(inputs), outputs
