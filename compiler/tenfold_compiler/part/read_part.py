"""Reads a partition: GraphDef in, `PartGraph` out, with every edge checked.

Nothing is executed and no kernel looked up here. The checks are those of TensorFlow's graph_constructor.cc, because a
partition may come from any master.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_compiler.pending import Pending
from tenfold_core import errors, opdefs
from tenfold_core.attr_value import refuse_placeholders
from tenfold_core.env_settings import limit_reached
from tenfold_core.node_names import parse_tensor_name
from tenfold_core.opdefs.runtime_ops import BUNDLE_OPS, DYNAMIC_OPS, SEND_OPS
from tenfold_core.resolver import Resolver

from .creation_order import creation_order, pairs
from .frame_numbers import has_old_numbers
from .graph_sizes import SMALL_BYTES, constant_size
from .part_graph import PartGraph, PartNode, node_error, renumber, sources_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_protos.node_def_pb2 import NodeDef

#: What sets the largest number of nodes of a part: a task's `Limits.nodes_per_graph`.
NODES_VARIABLE = "TENFOLD_TASK_NODES_PER_GRAPH"
#: Ops of which a value leaves; other tasks wait for it.
_LEAVING = SEND_OPS | BUNDLE_OPS
#: Bytes that a node of a compiled program takes, and each of its inputs, besides twice the length of its NodeDef.
_NODE_BYTES, _INPUT_BYTES = 1280, 56


def read_part(graph_def: GraphDef, task: str, max_nodes: int) -> PartGraph:
    """Reads a partition. Raises InvalidArgumentError, NotFoundError or ResourceExhaustedError, naming the node."""
    if len(graph_def.node) > max_nodes:
        raise limit_reached(f"A graph of {len(graph_def.node)} nodes at {task}", max_nodes, NODES_VARIABLE)
    nodes: list[PartNode] = []
    by_name: dict[str, PartNode] = {}
    resolver = Resolver()
    for node_def in graph_def.node:
        node = _read_node(node_def, len(nodes), resolver)
        if node.name in by_name:
            raise _bad(node_def, f"Node '{node.name}' is there twice.")
        nodes.append(node)
        by_name[node.name] = node
    for node in nodes:
        _connect(node, by_name)
    order = _topological(nodes)
    if order != list(range(len(nodes))):
        nodes = [nodes[index] for index in order]
        renumber(nodes)
    return PartGraph(
        nodes,
        is_dynamic=any(node.op in DYNAMIC_OPS for node in nodes),
        old_frames=has_old_numbers(graph_def),
        size=_size(nodes, graph_def),
    )


def _read_node(node_def: NodeDef, index: int, resolver: Resolver) -> PartNode:
    op = node_def.op
    try:
        attrs, signature = resolver.resolve(opdefs.get(op), node_def)
        refuse_placeholders(attrs)
    except errors.OpError as error:
        raise node_error(node_def, error) from error
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise _bad(node_def, f"The attributes of node '{node_def.name}' ({node_def.op}) are wrong: {error}") from error
    return PartNode(index, node_def.name, op, node_def, attrs, signature.input_types, signature.output_types)


def _connect(node: PartNode, by_name: Mapping[str, PartNode]) -> None:
    for text in node.node_def.input:
        control = text.startswith("^")
        name, port = parse_tensor_name(text[1:] if control else text)
        source = by_name.get(name)
        if source is None:
            raise _bad(node, f"Node '{node.name}': there is no node '{name}' for its input '{text}' in this partition.")
        if control:
            node.controls.append(source.index)
            continue
        position = len(node.inputs)
        if port >= len(source.output_types):
            raise _bad(
                node,
                f"Node '{node.name}': input {position} is '{text}', but '{name}' ({source.op}) has "
                f"{len(source.output_types)} outputs.",
            )
        if node.controls:
            raise _bad(node, f"Node '{node.name}': data input '{text}' stands after a control input.")
        if position < len(node.input_types):
            node.deref.append(_check_types(node, position, source, port))
        node.inputs.append((source.index, port))
    if len(node.controls) > 1:
        node.controls = list(dict.fromkeys(node.controls))
    if len(node.inputs) != len(node.input_types):
        raise _bad(
            node,
            f"Node '{node.name}' ({node.op}) has {len(node.inputs)} inputs; its attributes ask for "
            f"{len(node.input_types)}.",
        )


def _check_types(node: PartNode, position: int, source: PartNode, port: int) -> bool:
    """Whether the edge goes from a reference to a value. Raises InvalidArgumentError for types that do not fit."""
    wanted, given = node.input_types[position], source.output_types[port]
    if wanted.base_dtype is not given.base_dtype or (wanted.is_ref_dtype and not given.is_ref_dtype):
        raise _bad(
            node,
            f"Input {position} of node {node.name} was passed {given.op_name} from {source.name}:{port} "
            f"incompatible with expected {wanted.op_name}.",
        )
    return given.is_ref_dtype and not wanted.is_ref_dtype


def _topological(nodes: list[PartNode]) -> list[int]:
    """Indices in topological order, depth first so that values die young; sends come as early as they can.

    Nodes that see each other's effects stay in the order of their creation (creation_order.py). A loop's back edge
    (NextIteration → Merge) does not count. Raises InvalidArgumentError naming a node on a cycle.
    """
    created = creation_order(nodes)
    if len(created) < len(nodes):
        stuck = nodes[min(set(range(len(nodes))).difference(created))]
        raise _bad(
            stuck, f"The partition has a cycle through node '{stuck.name}' that is no loop of Enter and NextIteration."
        )
    before = [set(sources_of(nodes, node)) for node in nodes]
    for earlier, later in pairs(nodes, created):
        before[later].add(earlier)
    pending = Pending(range(len(nodes)), before.__getitem__)
    ready = pending.first()[::-1]
    order: list[int] = []
    while ready:
        order.append(ready.pop())
        # the one created first is taken first, from the end of the list
        ready += sorted(reversed(pending.done(order[-1])), key=lambda index: nodes[index].op in _LEAVING)
    return order


def _size(nodes: list[PartNode], graph_def: GraphDef) -> int:
    """Bytes that a part and the program made of it take, about: measured with chains of NoOps and with many inputs."""
    inputs = sum(len(node.node_def.input) for node in nodes)
    return _NODE_BYTES * len(nodes) + _INPUT_BYTES * inputs + 2 * _length(graph_def)


def _length(graph_def: GraphDef) -> int:
    """Bytes of the message, about: large constants are not gone through."""
    large = {node.name: size for node in graph_def.node if (size := constant_size(node)) >= SMALL_BYTES}
    if not large:
        return graph_def.ByteSize()
    return sum(large.get(node.name) or node.ByteSize() for node in graph_def.node)


def _bad(node: PartNode | NodeDef, text: str) -> errors.OpError:
    return node_error(node, errors.invalid_argument(text))
