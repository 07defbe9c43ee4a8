"""A placed graph as a message: each node's device and why, and what lies on each task.

Asked for by master/session_graph.py when somebody wants to know; nothing is kept for sessions that nobody asks about.
The reasons come of placing the graph once more (place.py) and looking at what decided: the program's request, a tie of
colocation.py, the kernels, a heuristic, or the order of the devices.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors
from tenfold_core.device import DeviceSpec, task_of
from tenfold_core.opdefs.runtime_ops import METADATA_OPS, VARIABLE_OPS
from tenfold_protos import placement_pb2

from .colocation import class_names
from .node import assigned
from .place import KernelTypes, is_shared, placed_groups, why_not

if TYPE_CHECKING:
    from .colocation import ColocationGroup
    from .device_set import DeviceSet
    from .node import Node
    from .place import DevicesWithKernel
    from .runtime_graph import RuntimeGraph

#: Of nodes that are placed with each step's part of the graph.
_LATER = "placed anew for each step (place_pruned_graph)"
#: Of nodes whose device a later extension of the graph does not explain any more.
_EARLIER = "placed when it was added to the graph"


def placement(
    graph: RuntimeGraph, devices: DeviceSet, *, devices_with_kernel: DevicesWithKernel, soft: bool
) -> placement_pb2.GetPlacementResponse:
    """Where the nodes are, in the graph's order, and why. Takes as long as placing the graph."""
    answer = placement_pb2.GetPlacementResponse()
    numbers: dict[str, int] = {}

    def number(text: str) -> int:
        """Of a text that comes again and again."""
        if text not in numbers:
            numbers[text] = len(numbers)
            answer.text.append(text)
        return numbers[text]

    tasks = {task: answer.task.add(task=task) for task in devices.tasks}
    is_placed = all(node.device for node in graph.nodes.values())
    reasons = placement_reasons(graph, devices, devices_with_kernel=devices_with_kernel, soft=soft) if is_placed else {}
    for node in graph.nodes.values():
        answer.node.add(
            name=node.name,
            op=number(node.op),
            requested=number(node.requested_device),
            assigned=number(node.device),
            reason=number(reasons.get(node.name, _LATER)),
        )
        task = tasks.get(task_of(node.device)) if node.device else None
        if task is None:
            continue
        task.nodes += 1
        if node.op in VARIABLE_OPS:
            task.variables += 1
            task.variable_bytes += _variable_bytes(node)
    return answer


def _variable_bytes(node: Node) -> int:
    """Bytes of the variable that the node holds; 0 where the graph does not tell its shape."""
    shape, dtype = node.attrs.get("shape"), node.attrs.get("dtype")
    return 0 if shape is None or dtype is None else int((shape.num_elements() or 0) * dtype.size)


def placement_reasons(
    graph: RuntimeGraph, devices: DeviceSet, *, devices_with_kernel: DevicesWithKernel, soft: bool
) -> dict[str, str]:
    """Node name → why it is on its device. Takes as long as placing the graph; raises nothing."""
    bare = graph.with_nodes(assigned(node, "") for node in graph.nodes.values())
    kernels = KernelTypes(devices_with_kernel)
    try:
        groups = placed_groups(bare, devices, kernels, soft=soft)
    except errors.OpError:
        # What was added later may contradict what would be chosen now; nodes that have a device keep it.
        return dict.fromkeys(graph.nodes, _EARLIER)
    found: dict[str, str] = {}
    for node in graph.nodes.values():
        group = groups[node.name]
        reason = _reason(node, groups, devices, kernels)
        found[node.name] = reason if group.device == node.device else f"{_EARLIER}, before others joined it"
    return found


def _reason(node: Node, groups: dict[str, ColocationGroup], devices: DeviceSet, kernels: KernelTypes) -> str:
    group = groups[node.name]
    leader = group.asked_by or group.members[0]
    if node.name != leader.name:
        tie = _tie(node, leader, groups)
        wanted = devices.resolve_job(DeviceSpec.from_string(node.requested_device))
        if node.requested_device and not wanted.matches(DeviceSpec.from_string(group.device)):
            return f"{tie}; its own request is given up"
        return tie
    explain = _by_default if group.asked_by is None else _as_requested
    return explain(leader, group, devices, kernels)


def _tie(node: Node, leader: Node, groups: dict[str, ColocationGroup]) -> str:
    """What binds a node to the one that decides for its group."""
    for name in class_names(node):
        # with soft placement a name may be that of a node in another group
        if name != node.name and groups.get(name, groups[node.name]) is groups[node.name]:
            return f"colocated with {name} (loc:@{name})"
    if not node.attrs.get("_lowered"):
        for tensor, dtype in zip(node.inputs, node.input_types, strict=True):
            if dtype.is_ref_dtype:
                return f"reference edge from {tensor.node}"
            if dtype is dtypes.resource:
                return f"resource edge from {tensor.node}"
    return f"colocated with {leader.name}, which is bound to it"


def _as_requested(leader: Node, group: ColocationGroup, devices: DeviceSet, kernels: KernelTypes) -> str:
    candidates = devices.matching(group.spec, kernels.common(group.members))
    if not candidates:
        return f"soft placement: {why_not(group, group.spec, devices, kernels).rstrip('.')}"
    asked = devices.resolve_job(DeviceSpec.from_string(leader.requested_device))
    if not asked.matches(DeviceSpec.from_string(group.device)):
        return "soft placement: nodes that share its device ask for different ones"
    if group.beside:
        return f"as requested; {_beside(group)}"
    if len(devices.matching(group.spec)) == 1:
        return "as requested"
    if len(candidates) == 1:
        return f"as requested; the only device within {group.spec.to_string()} with a kernel"
    order = " by name" if is_shared(group) else ""
    return f"as requested; first of {len(candidates)} devices within {group.spec.to_string()}{order}"


def _by_default(leader: Node, group: ColocationGroup, devices: DeviceSet, kernels: KernelTypes) -> str:
    if group.beside:
        return _beside(group)
    anywhere = devices.matching(group.spec)
    candidates = devices.matching(group.spec, kernels.common(group.members))
    if len(anywhere) == 1:
        return "the only device"
    if len(candidates) == 1:
        return "the only device with a kernel"
    kinds = f" with a kernel for {leader.op}" if len(candidates) < len(anywhere) else ""
    if is_shared(group) and len({DeviceSpec.from_string(name).task_name for name in candidates}) > 1:
        return f"default: first of {len(candidates)} devices{kinds} by name, where every session finds it"
    mine = ", the master's own task" if group.device.startswith(f"{devices.client_task}/") else ""
    return f"default: first of {len(candidates)} devices{kinds}{mine}"


def _beside(group: ColocationGroup) -> str:
    if group.members[0].op in METADATA_OPS:
        return f"beside {group.beside}, of which it reads the shape alone"
    return f"beside {group.beside}: a source is made where it is used"
