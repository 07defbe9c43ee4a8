"""Copies small constants to the tasks that use them, instead of sending them there in every step.

Called by master/client_graph.py between prune and partition; see docs/decisions/0003-small-constants-are-copied.md. An
update whose constant came from another task ran after the reads of its variable on every worker, since a message takes
longer; one whose constant is copied waits for them (0135).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_core import dtypes
from tenfold_core.device import DeviceSpec, task_of
from tenfold_core.node_names import TensorName
from tenfold_core.opdefs.runtime_ops import DYNAMIC_OPS, SEND_OPS, STATE_READING_OPS, TRANSFER_OPS, VARIABLE_OPS

if TYPE_CHECKING:
    from .node import Node
    from .runtime_graph import RuntimeGraph

#: A constant whose attributes take more bytes than this crosses as any tensor does.
MAX_BYTES = 4096


def copy_constants(graph: RuntimeGraph) -> RuntimeGraph:
    """The graph with a copy of each small constant on every task that takes it, and no original without consumers. What
    the client fetches is still computed where the program put it.
    """
    #: (constant, task of a consumer) → the copy there.
    copies: dict[tuple[str, str], Node] = {}
    #: Constants that some node still takes from where they are, or that have no consumer: targets.
    still_used = set(graph.nodes) - {source for node in graph.nodes.values() for source in node.sources}
    small = {name for name, node in graph.nodes.items() if _is_small_constant(node)}
    if not small:
        return graph
    result: list[Node] = []
    #: Variable → the reads of it on its task that wait for nothing else, of those created so far.
    reads: dict[str, list[str]] = {}
    for node in graph.nodes.values():
        moved: dict[str, str] = {}
        only_reads = _only_reads(node, graph)
        for source in dict.fromkeys(node.sources):
            if source in small and _may_be_copied(graph.nodes[source], node):
                copy = _copy_for(graph, graph.nodes[source], node, copies)
                moved[source] = copy.name
            else:
                still_used.add(source)
        if moved:
            inputs = tuple(TensorName(moved.get(t.node, t.node), t.output) for t in node.inputs)
            control = tuple(moved.get(name, name) for name in node.control_inputs)
            earlier = (read for t in node.inputs if _writes_to(node, t, graph) for read in reads.get(t.node, ()))
            control = tuple(dict.fromkeys((*control, *earlier)))
            node = replace(node, inputs=inputs, control_inputs=control)
        result.append(node)
        if only_reads:
            reads.setdefault(node.inputs[0].node, []).append(node.name)
    if not copies:
        return graph
    kept = [node for node in result if node.name in still_used or node.name not in small]
    return graph.with_nodes([*copies.values(), *kept])


def _writes_to(node: Node, tensor: TensorName, graph: RuntimeGraph) -> bool | None:
    """Whether the node changes the variable that `tensor` stands for, on the variable's own task; None for no such."""
    variable = graph.nodes[tensor.node]
    if variable.op not in VARIABLE_OPS or task_of(variable.device) != task_of(node.device):
        return None
    kind = node.input_types[node.inputs.index(tensor)]
    return kind.is_ref_dtype or (kind.base_dtype is dtypes.resource and node.op not in STATE_READING_OPS)


def _only_reads(node: Node, graph: RuntimeGraph) -> bool:
    if len(node.inputs) != 1 or node.control_inputs or node.op in TRANSFER_OPS | DYNAMIC_OPS:
        return False
    return _writes_to(node, node.inputs[0], graph) is False


def _is_small_constant(node: Node) -> bool:
    """A constant with control inputs may belong to a branch or a loop, and stays."""
    return node.op == "Const" and not node.control_inputs and node.node_def.ByteSize() <= MAX_BYTES


def _may_be_copied(constant: Node, consumer: Node) -> bool:
    here, there = DeviceSpec.from_string(constant.device), DeviceSpec.from_string(consumer.device)
    elsewhere = here.task_name != there.task_name and here.device_type == there.device_type
    return elsewhere and consumer.op not in SEND_OPS


def _copy_for(graph: RuntimeGraph, constant: Node, consumer: Node, copies: dict[tuple[str, str], Node]) -> Node:
    key = (constant.name, task_of(consumer.device))
    if key not in copies:
        number = len(copies)
        while f"{constant.name}/copy_{number}" in graph.nodes:
            number += len(graph.nodes)
        copies[key] = replace(constant, name=f"{constant.name}/copy_{number}", device=consumer.device)
    return copies[key]
