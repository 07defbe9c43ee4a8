"""The devices of imported nodes that are colocated with others: each gets the device of a node that it shares one with.

Used by importer.py. A graph that was written for one machine is moved to a cluster by a device function that knows
variables; what is colocated with a variable has to follow it. Follows TensorFlow 1.15's importer.py, which looks one
node far; here a node that is colocated with a colocated one finds its device, too.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from tenfold.graph.operation import LOCATION_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tenfold.graph.operation import Operation
    from tenfold_protos import attr_value_pb2


def colocated_with(value: attr_value_pb2.AttrValue) -> list[str]:
    """The nodes that an attribute `_class` names, maybe among them the node that has it."""
    groups = (group for group in value.list.s if group.startswith(LOCATION_PREFIX))
    return [group.removeprefix(LOCATION_PREFIX).decode(errors="replace") for group in groups]


def settle_colocated(ops: Iterable[Operation], by_name: Mapping[str, Operation]) -> None:
    """Sets the devices of those of `ops` that are colocated with others; `by_name` has the whole graph."""
    #: The devices of colocated operations that were looked at, by name; "" for a circle without one that has a device.
    settled: dict[str, str] = {}
    for op in ops:
        if _others(op):
            op._set_device(_device_of(op, by_name, settled))


def _device_of(op: Operation, by_name: Mapping[str, Operation], settled: dict[str, str]) -> str:
    """The device of the nearest operation that `op` shares one with and that has one by itself."""
    seen = {op.name}
    waiting = deque([op])
    device = settled.get(op.name, "")
    while waiting and not device:
        each = waiting.popleft()
        for name in _others(each):
            other = by_name.get(name)
            if other is None or name in seen:
                continue
            if not _others(other):
                device = other.device
            elif name in settled:
                device = settled[name]
            else:
                seen.add(name)
                waiting.append(other)
            if device:
                break
    # all of them share one device
    settled.update(dict.fromkeys(seen, device))
    return device


def _others(op: Operation) -> list[str]:
    """The other operations that this one is colocated with."""
    if "_class" not in op.node_def.attr:
        return []
    return [name for name in colocated_with(op.node_def.attr["_class"]) if name != op.name]
