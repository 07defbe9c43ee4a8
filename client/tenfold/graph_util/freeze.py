"""`convert_variables_to_constants`: a GraphDef whose variables are constants with their current values.

Exported by graph_util/__init__.py; sub_graph.py cuts the graph first. Follows TF 1.15's framework/graph_util_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.graph_util.sub_graph import extract_sub_graph, node_of
from tenfold_core import tensor_util
from tenfold_protos import attr_value_pb2, graph_pb2, node_def_pb2

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

_VARIABLES = frozenset({"Variable", "VariableV2", "VarHandleOp"})
#: Ops that forward a variable's handle; their type attribute becomes the variable's type.
_PASSING = frozenset({"Switch", "Enter", "Exit", "Identity", "Merge", "NextIteration"})
#: Ops that read a variable by its handle.
_READING = frozenset({"ReadVariableOp", "ResourceGather"})


def convert_variables_to_constants(
    sess: Any,
    input_graph_def: graph_pb2.GraphDef,
    output_node_names: Sequence[str],
    variable_names_whitelist: Collection[str] | None = None,
    variable_names_blacklist: Collection[str] | None = None,
) -> graph_pb2.GraphDef:
    """The subgraph for `output_node_names`, with the values that the variables have in `sess`.

    The lists select the variables to convert: those of the first (default: all) without those of the second. Runs
    one step. Raises ValueError for a handle that comes from no variable.
    """
    graph = extract_sub_graph(input_graph_def, output_node_names)
    nodes = {node.name: node for node in graph.node}
    chosen = [
        node
        for node in graph.node
        if node.op in _VARIABLES
        and (variable_names_whitelist is None or node.name in variable_names_whitelist)
        and (variable_names_blacklist is None or node.name not in variable_names_blacklist)
    ]
    passing, frozen = _handle_paths(nodes, {node.name for node in chosen})
    reads = {node.name: "/Read/ReadVariableOp" if node.op == "VarHandleOp" else "" for node in chosen}
    fetches = [f"{name}{read}:0" for name, read in reads.items()]
    values = sess.run(fetches) if fetches else []
    logging.info("Froze %d variables.", len(values))
    constants = {
        node.name: _constant(node.name, node.attr["dtype"], value) for node, value in zip(chosen, values, strict=True)
    }
    result = graph_pb2.GraphDef()
    for node in graph.node:
        result.node.extend(_converted(node, constants, passing, frozen))
    result.library.CopyFrom(graph.library)
    result.versions.CopyFrom(graph.versions)
    logging.info("Converted %d variables to const ops.", len(constants))
    return result


def _handle_paths(
    nodes: Mapping[str, node_def_pb2.NodeDef], chosen: Collection[str]
) -> tuple[dict[str, attr_value_pb2.AttrValue], set[str]]:
    """(type of what each node between a reader and a converted variable passes on, the readers concerned)."""
    passing: dict[str, attr_value_pb2.AttrValue] = {}
    frozen: set[str] = set()
    for node in nodes.values():
        if node.op not in _READING:
            continue
        left, seen = [node_of(node.input[0])], set[str]()
        while left:
            name = left.pop()
            if name in seen:
                continue
            seen.add(name)
            source = nodes[name]
            if source.op in _PASSING:
                # The second input of a Switch is the predicate; all inputs of a Merge are values.
                inputs = source.input if source.op == "Merge" else source.input[:1]
                left.extend(node_of(each) for each in inputs if not each.startswith("^"))
            elif source.op != "VarHandleOp":
                raise ValueError(
                    f"Cannot find the variable that is an input to the ReadVariableOp: {node.name} reads "
                    f"{source.name}, a {source.op}."
                )
            elif name in chosen:
                frozen.add(node.name)
        if node.name in frozen:
            passing |= {name: node.attr["dtype"] for name in seen if nodes[name].op in _PASSING}
    return passing, frozen


def _converted(
    node: node_def_pb2.NodeDef,
    constants: Mapping[str, node_def_pb2.NodeDef],
    passing: Mapping[str, attr_value_pb2.AttrValue],
    frozen: Collection[str],
) -> list[node_def_pb2.NodeDef]:
    """The node of the frozen graph that replaces `node`."""
    if node.name in constants:
        return [constants[node.name]]
    made = node_def_pb2.NodeDef()
    made.CopyFrom(node)
    if node.name in passing:
        # These static shapes were a handle's.
        made.attr.pop("_output_shapes", None)
        made.attr["T"].CopyFrom(passing[node.name])
        return [made]
    if node.name not in frozen:
        return [made]
    made.attr.clear()
    if "_class" in node.attr:
        made.attr["_class"].CopyFrom(node.attr["_class"])
    if node.op == "ReadVariableOp":
        made.op = "Identity"
        made.attr["T"].CopyFrom(node.attr["dtype"])
        return [made]
    if node.attr["batch_dims"].i:
        raise ValueError(f"{node.name}: batch_dims != 0 is not supported by freeze_graph.")
    axis = _constant(f"{node.name}/axis", node.attr["Tindices"], 0)
    made.op = "GatherV2"
    made.input[:] = [node.input[0], node.input[1], axis.name, *node.input[2:]]
    made.attr["Tparams"].CopyFrom(node.attr["dtype"])
    made.attr["Tindices"].CopyFrom(node.attr["Tindices"])
    made.attr["Taxis"].CopyFrom(node.attr["Tindices"])
    return [axis, made]


def _constant(name: str, dtype: attr_value_pb2.AttrValue, value: Any) -> node_def_pb2.NodeDef:
    node = node_def_pb2.NodeDef(name=name, op="Const")
    node.attr["dtype"].CopyFrom(dtype)
    node.attr["value"].tensor.CopyFrom(tensor_util.make_tensor_proto(value, dtype=dtype.type))
    return node
