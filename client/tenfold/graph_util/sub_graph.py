"""Cuts GraphDefs: the nodes that others need, and a graph without nodes that only training needs.

Exported by graph_util/__init__.py; freeze.py builds on it. Follows TF 1.15's framework/graph_util_impl.py; unlike
there, a CheckNumerics that is removed is replaced by its input and leaves no node without one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.operation import Operation
from tenfold_protos import graph_pb2, node_def_pb2, types_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.graph import Graph
    from tenfold_core.tensor_shape import TensorShape

#: Ops that `pin_variables_on_cpu` concerns.
_VARIABLE_OPS = frozenset(
    (
        *("Assign", "AssignAdd", "AssignSub", "ScatterAdd", "ScatterSub", "ScatterUpdate"),
        *("Queue", "TruncatedNormal", "Variable", "VariableV2"),
    )
)
#: Op → its type attribute, and the types for which only the CPU has a kernel.
_CPU_TYPES = {
    "Const": ("dtype", (types_pb2.DT_STRING, types_pb2.DT_INT32)),
    "DynamicStitch": ("T", (types_pb2.DT_INT32,)),
    "ParallelDynamicStitch": ("T", (types_pb2.DT_INT32,)),
    "Cast": ("SrcT", (types_pb2.DT_INT32,)),
}


def node_of(reference: str) -> str:
    """The node name in an input: without `^` and the output index."""
    return reference.removeprefix("^").partition(":")[0]


def must_run_on_cpu(node: Any, pin_variables_on_cpu: bool = False) -> bool:
    """Whether a node, given as an Operation or a NodeDef, has a CPU kernel only. Raises TypeError for others."""
    node_def = node.node_def if isinstance(node, Operation) else node
    if not isinstance(node_def, node_def_pb2.NodeDef):
        raise TypeError(f"must_run_on_cpu needs an Operation or a NodeDef, got {type(node)}")
    if pin_variables_on_cpu and node_def.op in _VARIABLE_OPS:
        return True
    attr, types = _CPU_TYPES.get(node_def.op, ("", ()))
    return bool(attr) and node_def.attr[attr].type in types


def tensor_shape_from_node_def_name(graph: Graph, input_name: str) -> TensorShape:
    """The static shape of a tensor named as in a NodeDef's input: `:0` may be left out."""
    tensor: Any = graph.get_tensor_by_name(input_name if ":" in input_name else f"{input_name}:0")
    shape: TensorShape = tensor.get_shape()
    return shape


def extract_sub_graph(graph_def: graph_pb2.GraphDef, dest_nodes: Sequence[str]) -> graph_pb2.GraphDef:
    """The nodes that `dest_nodes` need, themselves included, in their order; library and versions are kept.

    A node needs its inputs and the nodes that it is colocated with. Raises TypeError for wrong types, AssertionError
    for a name that is not in the graph.
    """
    if not isinstance(graph_def, graph_pb2.GraphDef):
        raise TypeError("graph_def must be a graph_pb2.GraphDef proto.")
    if isinstance(dest_nodes, str):
        raise TypeError("dest_nodes must be a list.")
    needs = {node.name: _needs(node) for node in graph_def.node}
    for name in dest_nodes:
        if name not in needs:
            raise AssertionError(f"{name} is not in graph")
    kept: set[str] = set()
    left = list(dest_nodes)
    while left:
        name = left.pop()
        if name in kept:
            continue
        kept.add(name)
        left.extend(needs.get(name, ()))
    found = graph_pb2.GraphDef(node=[node for node in graph_def.node if node.name in kept])
    found.library.CopyFrom(graph_def.library)
    found.versions.CopyFrom(graph_def.versions)
    return found


def _needs(node: node_def_pb2.NodeDef) -> list[str]:
    needed = [node_of(each) for each in node.input]
    if "_class" in node.attr:
        colocated = [text.decode() for text in node.attr["_class"].list.s]
        needed += [text.removeprefix("loc:@") for text in colocated if text.startswith("loc:@")]
    return needed


def remove_training_nodes(
    input_graph: graph_pb2.GraphDef, protected_nodes: Sequence[str] | None = None
) -> graph_pb2.GraphDef:
    """The graph without CheckNumerics, and without Identities but those of control edges and `protected_nodes`.

    Consumers of a removed node read its input instead.
    """
    protected = frozenset(protected_nodes or ())
    checks = {node.name: node.input[0] for node in input_graph.node if node.op == "CheckNumerics" and node.input}
    unchecked = _without(input_graph, {name: source for name, source in checks.items() if name not in protected})
    controls = {each[1:] for node in unchecked.node for each in node.input if each.startswith("^")}
    identities = {
        node.name: node.input[0]
        for node in unchecked.node
        if node.op == "Identity"
        and node.name not in (controls | protected)
        and not any(each.startswith("^") for each in node.input)
    }
    return _without(unchecked, identities)


def _without(graph: graph_pb2.GraphDef, gone: dict[str, str]) -> graph_pb2.GraphDef:
    """The graph without the nodes `gone`, each replaced by its input; control edges to them are removed too."""
    result = graph_pb2.GraphDef()
    for node in graph.node:
        if node.name in gone:
            continue
        kept = result.node.add()
        kept.CopyFrom(node)
        del kept.input[:]
        kept.input.extend(
            _resolved(each, gone) for each in node.input if not (each.startswith("^") and each[1:] in gone)
        )
    return result


def _resolved(reference: str, gone: dict[str, str]) -> str:
    """The input to read in place of `reference`."""
    while (source := gone.get(node_of(reference))) is not None:
        reference = source
    return reference
