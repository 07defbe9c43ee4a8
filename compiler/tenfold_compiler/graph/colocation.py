"""Which nodes must share a device, and the one (partial) device that such a group asks for.

Three things tie nodes together: the attribute `_class` ("loc:@name"), a reference that is written through, and a
resource handle. Used by place.py. Follows TensorFlow's colocation_graph.cc; where a consumer of a reference or resource
asks for another device than the producer, the producer wins and the consumer's request is dropped. With soft placement
`_class` is a wish: a node that asks for another task than the group that it names does not join it.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tenfold_core import dtypes, errors
from tenfold_core.device import DeviceSpec
from tenfold_core.node_names import at_node

from .device_set import of_task

if TYPE_CHECKING:
    from .device_set import DeviceSet
    from .node import Node
    from .runtime_graph import RuntimeGraph

_CLASS_PREFIX = b"loc:@"
_ANYWHERE = DeviceSpec()


@dataclass(slots=True)
class ColocationGroup:
    """Nodes that share a device."""

    #: In graph order; never empty.
    members: list[Node] = field(default_factory=list)
    #: What all members together ask for.
    spec: DeviceSpec = _ANYWHERE
    #: The member that asked for `spec`, or for the last part of it; None while none asked.
    asked_by: Node | None = None
    #: The full name of the device, once known. Set first by a member that an earlier `place` put there.
    device: str = ""
    #: The node that it was put beside by a heuristic of place.py; "" where the order of the devices decided.
    beside: str = ""


def colocation_groups(graph: RuntimeGraph, devices: DeviceSet, *, soft: bool) -> dict[str, ColocationGroup]:
    """Node name → its group, every node in exactly one.

    Raises InvalidArgumentError naming two members and their devices where a group cannot be satisfied. With `soft`,
    members that differ in device type or index are no conflict: the group then asks for the task only; and `_class`
    joins no nodes that ask for different tasks.
    """
    sets = _UnionFind()
    followers: set[str] = set()
    for node in graph.nodes.values():
        for name in class_names(node) if not soft else ():
            sets.join(name, node.name)
        if node.attrs.get("_lowered"):
            # What stands for a call's outputs may gather resources of several tasks; it only hands them on.
            continue
        for tensor, dtype in zip(node.inputs, node.input_types, strict=True):
            if dtype.is_ref_dtype or dtype is dtypes.resource:
                sets.join(tensor.node, node.name)
                followers.add(node.name)
    if soft:
        _join_where_tasks_agree(graph, sets, followers, devices)

    by_root: defaultdict[str, ColocationGroup] = defaultdict(ColocationGroup)
    result: dict[str, ColocationGroup] = {}
    for node in graph.nodes.values():
        group = result[node.name] = by_root[sets.find(node.name)]
        group.members.append(node)
    for group in by_root.values():
        _merge_requests(group, followers, devices, soft=soft)
    return result


def _join_where_tasks_agree(graph: RuntimeGraph, sets: _UnionFind, followers: set[str], devices: DeviceSet) -> None:
    """Joins each node with the groups of its `_class`, in order, but for one whose members ask for another task."""
    #: Root of a set → the task that its members ask for.
    tasks: dict[str, DeviceSpec] = {}
    for node in graph.nodes.values():
        wanted = node.device or ("" if node.name in followers else node.requested_device)
        if wanted:
            spec = devices.resolve_job(DeviceSpec.from_string(wanted))
            root = sets.find(node.name)
            merged = _merge(tasks.get(root, _ANYWHERE), of_task(spec))
            if merged is not None:
                # of two that are tied and contradict each other, _merge_requests tells
                tasks[root] = merged
    for node in graph.nodes.values():
        for name in class_names(node):
            own, other = sets.find(node.name), sets.find(name)
            merged = _merge(tasks.get(other, _ANYWHERE), tasks.get(own, _ANYWHERE))
            if merged is not None:
                sets.join(name, node.name)
                tasks[sets.find(name)] = merged


def class_names(node: Node) -> list[str]:
    """The groups named in `_class`, maybe by the node's own name. One that is not in the graph still names a group."""
    values = node.attrs.get("_class")
    if not isinstance(values, list):
        return []
    groups = [value for value in values if isinstance(value, bytes)]
    return [g.removeprefix(_CLASS_PREFIX).decode(errors="replace") for g in groups if g.startswith(_CLASS_PREFIX)]


def _merge_requests(group: ColocationGroup, followers: set[str], devices: DeviceSet, *, soft: bool) -> None:
    placed = [node for node in group.members if node.device]
    if placed:
        other = next((node for node in placed if node.device != placed[0].device), None)
        if other is not None:
            raise _conflict(placed[0], placed[0].device, other, other.device)
        group.device, group.asked_by = placed[0].device, placed[0]
    asking = [node for node in group.members if node.requested_device]
    if len(asking) > 1:
        asking.sort(key=lambda node: node.name in followers)
    for node in asking:
        wanted = devices.resolve_job(DeviceSpec.from_string(node.requested_device))
        if group.device:
            # a node that came later with a request of its own must fit where its group already is
            wanted = of_task(wanted) if soft else wanted
            fits = bool(node.device) or wanted.matches(DeviceSpec.from_string(group.device))
        else:
            merged = _merge(group.spec, wanted)
            if merged is None and soft:
                merged = _merge(of_task(group.spec), of_task(wanted))
            fits = merged is not None
            if merged is not None:
                group.spec, group.asked_by = merged, group.asked_by or node
        if not fits and node.name not in followers and group.asked_by is not None:
            raise _conflict(group.asked_by, group.device or group.spec.to_string(), node, wanted.to_string())


def _merge(a: DeviceSpec, b: DeviceSpec) -> DeviceSpec | None:
    """Both requests in one, or None where they contradict."""
    if a is _ANYWHERE:
        return b
    merged = a.make_merged_spec(b)
    return merged if a.matches(merged) else None


def _conflict(first: Node, first_device: str, second: Node, second_device: str) -> errors.OpError:
    return at_node(
        second,
        f"Cannot colocate nodes '{second.name}' and '{first.name}': '{second.name}' asks for {second_device} and "
        f"'{first.name}' is on or asks for {first_device}.",
    )


class _UnionFind:
    """Disjoint sets of names, with path halving; a name that was never joined is a set of its own."""

    def __init__(self) -> None:
        self._parent: dict[str, str] = {}

    def find(self, name: str) -> str:
        parent = self._parent
        above = parent.setdefault(name, name)
        while above != name:
            parent[name] = parent[above]
            name = parent[name]
            above = parent[name]
        return name

    def join(self, a: str, b: str) -> None:
        """Joins two sets; the root of the first stays the root."""
        self._parent[self.find(b)] = self.find(a)
