"""A placed graph as a message: each node's device and why, and what lies on each task.

Asked for by master/master_session.py when somebody wants to know; nothing is kept for sessions that nobody asks about.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.device import task_of
from tenfold_core.opdefs.runtime_ops import VARIABLE_OPS
from tenfold_protos import placement_pb2

from .placement_reasons import placement_reasons

if TYPE_CHECKING:
    from .device_set import DeviceSet
    from .node import Node
    from .place import DevicesWithKernel
    from .runtime_graph import RuntimeGraph

#: Of nodes that are placed with each step's part of the graph.
_LATER = "placed anew for each step (place_pruned_graph)"


def placement(
    graph: RuntimeGraph, devices: DeviceSet, *, devices_with_kernel: DevicesWithKernel, soft: bool
) -> placement_pb2.GetPlacementResponse:
    """Where the nodes are, in the graph's order, and why. Takes as long as placing the graph."""
    answer = placement_pb2.GetPlacementResponse()
    texts = _Texts(answer)
    tasks = {task: answer.task.add(task=task) for task in devices.tasks}
    is_placed = all(node.device for node in graph.nodes.values())
    reasons = placement_reasons(graph, devices, devices_with_kernel=devices_with_kernel, soft=soft) if is_placed else {}
    for node in graph.nodes.values():
        answer.node.add(
            name=node.name,
            op=texts.number(node.op),
            requested=texts.number(node.requested_device),
            assigned=texts.number(node.device),
            reason=texts.number(reasons.get(node.name, _LATER)),
        )
        task = tasks.get(task_of(node.device)) if node.device else None
        if task is None:
            continue
        task.nodes += 1
        if node.op in VARIABLE_OPS:
            task.variables += 1
            task.variable_bytes += variable_bytes(node) or 0
    return answer


def variable_bytes(node: Node) -> int | None:
    """Bytes of the variable that the node holds; None where the graph does not tell its shape."""
    shape, dtype = node.attrs.get("shape"), node.attrs.get("dtype")
    if shape is None or dtype is None or (count := shape.num_elements()) is None:
        return None
    return int(count * dtype.size)


class _Texts:
    """Numbers for texts that come again and again."""

    def __init__(self, answer: placement_pb2.GetPlacementResponse) -> None:
        self._answer = answer
        self._numbers: dict[str, int] = {}

    def number(self, text: str) -> int:
        found = self._numbers.get(text)
        if found is None:
            found = self._numbers[text] = len(self._answer.text)
            self._answer.text.append(text)
        return found
