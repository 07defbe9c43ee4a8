"""Why each node of a placed graph is where it is, in a few words.

Worked out when somebody asks, by placing the graph once more (place.py) and looking at what decided: the program's
request, a tie of colocation.py, the kernels, a heuristic, or the order of the devices. Used by placement.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors
from tenfold_core.device import DeviceSpec
from tenfold_core.opdefs.runtime_ops import METADATA_OPS

from .colocation import class_names
from .node import assigned
from .place import KernelTypes, is_shared, placed_groups, why_not

if TYPE_CHECKING:
    from .colocation import ColocationGroup
    from .device_set import DeviceSet
    from .node import Node
    from .place import DevicesWithKernel
    from .runtime_graph import RuntimeGraph

#: Of nodes whose device a later extension of the graph does not explain any more.
_EARLIER = "placed when it was added to the graph"


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
    if group.asked_by is not None:
        return _as_requested(group, devices, kernels)
    return _by_default(leader, group, devices, kernels)


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


def _as_requested(group: ColocationGroup, devices: DeviceSet, kernels: KernelTypes) -> str:
    candidates = devices.matching(group.spec, kernels.common(group.members))
    if not candidates:
        return f"soft placement: {why_not(group, group.spec, devices, kernels).rstrip('.')}"
    within = devices.matching(group.spec)
    asked = group.asked_by
    if asked is not None and not devices.resolve_job(DeviceSpec.from_string(asked.requested_device)).matches(
        DeviceSpec.from_string(group.device)
    ):
        return "soft placement: nodes that share its device ask for different ones"
    if group.beside:
        return f"as requested; {_beside(group)}"
    if len(within) == 1:
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
