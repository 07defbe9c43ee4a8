"""Puts every node of a graph on a device of the cluster.

What decides, in this order: the device that the program asked for, nodes that must share a device (colocation.py), for
which device types there are kernels, and the order of device_set.py: its own task comes first, but not for state that
sessions of other masters are to find as well. Called by master/session_graph.py. Follows TensorFlow's placer.cc with
its two heuristics: a source without inputs goes to its only consumer's device, a node that reads metadata to its
input's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tenfold_core import dtypes
from tenfold_core.dtypes import DType
from tenfold_core.node_names import at_node
from tenfold_core.opdefs.runtime_ops import METADATA_OPS, NAMED_STATE_OPS, VARIABLE_OPS

from .colocation import ColocationGroup, colocation_groups
from .device_set import of_task
from .node import assigned

if TYPE_CHECKING:
    from tenfold_core.device import DeviceSpec

    from .device_set import DeviceSet
    from .node import Node
    from .runtime_graph import RuntimeGraph

#: (op, attributes) → device types with a kernel, best first. Nothing means: not known here, any CPU may have one.
DevicesWithKernel: TypeAlias = Callable[[str, Mapping[str, Any]], tuple[str, ...]]


def place(
    graph: RuntimeGraph,
    devices: DeviceSet,
    *,
    devices_with_kernel: DevicesWithKernel,
    soft: bool = False,
    log: Callable[[str], None] | None = None,
) -> RuntimeGraph:
    """The same graph with a device on every node; nodes that have one keep it.

    With `soft`, a device type or index that cannot be had is given up, a job or task never. `log` gets a line
    "name: (Op): device" for each node that was placed now. Raises InvalidArgumentError naming the node, what it asked
    for, what there is, and why not.
    """
    groups = placed_groups(graph, devices, KernelTypes(devices_with_kernel), soft=soft)
    placed = [assigned(node, groups[node.name].device) for node in graph.nodes.values()]
    if log is not None:
        for before, after in zip(graph.nodes.values(), placed, strict=True):
            if not before.device:
                log(f"{after.name}: ({after.op}): {after.device}")
    return graph.with_nodes(placed)


def placed_groups(
    graph: RuntimeGraph, devices: DeviceSet, kernels: KernelTypes, *, soft: bool
) -> dict[str, ColocationGroup]:
    """Node name → its group, each with a device. Raises as `place`."""
    groups = colocation_groups(graph, devices, soft=soft)
    consumers = graph.consumers()
    later: list[Node] = []
    for node in graph.nodes.values():
        group = groups[node.name]
        if group.device:
            continue
        candidates = candidate_devices(group, devices, kernels, soft=soft)
        if len(candidates) > 1 and is_shared(group):
            group.device = devices.first_for_all(candidates)
            continue
        if len(candidates) > 1 and len(group.members) == 1 and _is_generator(node):
            later.append(node)
            continue
        group.device = candidates[0]
        if node.op in METADATA_OPS and node.inputs:
            beside = groups[node.inputs[0].node].device
            if beside in candidates:
                group.device, group.beside = beside, node.inputs[0].node
    for node in later:
        group = groups[node.name]
        candidates = candidate_devices(group, devices, kernels, soft=soft)
        group.device = candidates[0]
        places = {groups[consumer.name].device for consumer in consumers[node.name]}
        if len(places) == 1 and (only := places.pop()) in candidates:
            group.device, group.beside = only, consumers[node.name][0].name
    return groups


def is_shared(group: ColocationGroup) -> bool:
    """The group has a variable, or a table or queue with a name, that all workers find in one place, as in TensorFlow.

    Not so where a dataset captures it: it and its iterator are the session's own, and no variant leaves its task.
    """
    if not any(_has_shared_name(node) for node in group.members):
        return False
    return not any(dtypes.variant in node.output_types and "Dataset" in node.op for node in group.members)


def _has_shared_name(node: Node) -> bool:
    if node.op in NAMED_STATE_OPS:
        return bool(node.attrs.get("shared_name") or node.attrs.get("use_node_name_sharing"))
    return node.op in VARIABLE_OPS


def _is_generator(node: Node) -> bool:
    """A source of one value, which is cheaper made where it is used than sent there."""
    return not node.inputs and len(node.output_types) == 1 and not node.output_types[0].is_ref_dtype


def candidate_devices(group: ColocationGroup, devices: DeviceSet, kernels: KernelTypes, *, soft: bool) -> list[str]:
    """Devices for the group, best first; never empty. Raises InvalidArgumentError saying why there is none."""
    types = kernels.common(group.members)
    found = devices.matching(group.spec, types)
    if found:
        return found
    spec = group.spec
    if soft:
        softened = of_task(spec)
        found = devices.matching(softened, types)
        if found:
            return found
        if not devices.matching(spec):
            spec = softened
    node = group.asked_by or group.members[0]
    wanted = group.spec.to_string() or "any device"
    raise at_node(node, f"Cannot place '{node.name}' on {wanted}: {why_not(group, spec, devices, kernels)}")


def why_not(group: ColocationGroup, spec: DeviceSpec, devices: DeviceSet, kernels: KernelTypes) -> str:
    """Why no device within `spec` can have the group. Ends with a full stop."""
    if devices.matching(spec):
        return kernels.explain(group.members, spec, kernels.common(group.members))
    return devices.explain_no_match(spec)


def _types_in(value: Any) -> tuple[DType, ...]:
    """What an attribute says of types."""
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple(values) if values and isinstance(values[0], DType) else ()


class KernelTypes:
    """The device types that have kernels for a node, asked once for each op and choice of types."""

    def __init__(self, devices_with_kernel: DevicesWithKernel) -> None:
        self._ask = devices_with_kernel
        self._cache: dict[tuple[str, tuple[tuple[DType, ...], ...]], frozenset[str]] = {}
        #: By op and the identity of its attributes, which nodes that are alike share (core/resolver.py).
        self._known: dict[tuple[str, int], frozenset[str]] = {}

    def of(self, node: Node) -> frozenset[str]:
        """Empty where nothing is known of the op: another task, e.g. TensorFlow's own server, may have its kernel."""
        known = node.op, id(node.attrs)
        types = self._known.get(known)
        if types is None:
            key = (node.op, tuple([found for value in node.attrs.values() if (found := _types_in(value))]))
            types = self._cache.get(key)
            if types is None:
                types = self._cache[key] = frozenset(self._ask(node.op, node.attrs))
            self._known[known] = types
        return types

    def common(self, members: list[Node]) -> frozenset[str]:
        """The types on which every member can run."""
        result: frozenset[str] | None = None
        for node in members:
            types = self.of(node)
            if types:
                result = types if result is None else result & types
        return frozenset(("CPU",)) if result is None else result

    def explain(self, members: list[Node], spec: DeviceSpec, types: frozenset[str]) -> str:
        """Why no device within the spec has all the kernels, though it names devices that exist."""
        for node in members:
            known = self.of(node)
            if known and spec.device_type is not None and spec.device_type not in known:
                return f"{node.op} ('{node.name}') has kernels for {', '.join(sorted(known))} only."
        if not types:
            each = ", ".join(f"{n.op} ('{n.name}') {sorted(self.of(n))}" for n in members[:5])
            return f"its colocation group has no device type in common: {each}."
        return f"there are kernels for {', '.join(sorted(types))} only, and no such device there."
