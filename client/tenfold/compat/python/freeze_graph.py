"""`tensorflow.python.tools`: freeze_graph, strip_unused_lib and optimize_for_inference_lib over tf.graph_util.

Files of graphs may be binary or text. Follows TF 1.15's tools/freeze_graph.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from google.protobuf import text_format

from tenfold import gfile, graph_util
from tenfold.graph import Graph, import_graph_def
from tenfold.saved_model import loader, tag_constants
from tenfold.session.session import Session
from tenfold.train import checkpoint_management, meta_graph
from tenfold.train.saver import Saver, import_meta_graph
from tenfold_protos import graph_pb2, node_def_pb2, saver_pb2

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["freeze_graph", "freeze_graph_with_def_protos", "optimize_for_inference", "strip_unused"]


def _message(path: str, binary: bool, kind: Any) -> Any:
    message = kind()
    with gfile.GFile(path, "rb") as file:
        data = file.read()
    if binary:
        message.ParseFromString(data)
    else:
        text_format.Merge(data.decode(), message)
    return message


def _names(text: Any) -> list[str]:
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def freeze_graph_with_def_protos(
    input_graph_def: Any,
    input_saver_def: Any,
    input_checkpoint: str | None,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str | None,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph_def: Any = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: Any = None,
    checkpoint_version: int = saver_pb2.SaverDef.V2,
) -> Any:
    """The graph with the checkpoint's values in place of its variables, cut to the named outputs.

    It is written to `output_graph` if that is given. Blocks. Raises ValueError for a checkpoint that is not there or
    without outputs.
    """
    if not output_node_names:
        raise ValueError("You need to supply the name of a node to --output_node_names.")
    if input_checkpoint and not checkpoint_management.checkpoint_exists(input_checkpoint):
        raise ValueError(f"Input checkpoint '{input_checkpoint}' doesn't exist!")
    with Graph().as_default() as graph, Session(graph=graph) as session:
        if input_saved_model_dir:
            loader.load(session, saved_model_tags or [tag_constants.SERVING], input_saved_model_dir)
        elif input_meta_graph_def is not None:
            saver = import_meta_graph(input_meta_graph_def, clear_devices=clear_devices)
            if saver is not None:
                saver.restore(session, input_checkpoint)
        else:
            _import(input_graph_def, clear_devices)
            _restore(session, graph, input_checkpoint, input_saver_def, restore_op_name, filename_tensor_name)
        if initializer_nodes:
            session.run(_names(initializer_nodes))
        frozen = graph_util.convert_variables_to_constants(
            session,
            graph.as_graph_def(),
            _names(output_node_names),
            variable_names_whitelist=_names(variable_names_whitelist) or None,
            variable_names_blacklist=_names(variable_names_blacklist) or None,
        )
    if output_graph:
        with gfile.GFile(output_graph, "wb") as file:
            file.write(frozen.SerializeToString())
    return frozen


def _import(graph_def: Any, clear_devices: bool) -> None:
    copy = graph_pb2.GraphDef()
    copy.CopyFrom(graph_def)
    if clear_devices:
        for node in copy.node:
            node.device = ""
    import_graph_def(copy, name="")


def _restore(
    session: Session, graph: Graph, checkpoint: Any, saver_def: Any, restore_op: str | None, filename: str | None
) -> None:
    """Restores by a SaverDef, by the names of its ops, or what the checkpoint has of the graph's variables."""
    if saver_def is not None:
        Saver(saver_def=saver_def).restore(session, checkpoint)
        return
    names = {op.name for op in graph.get_operations()}
    if restore_op and filename and restore_op in names:
        session.run([restore_op], {filename: checkpoint})
        return
    kinds = ("VariableV2", "Variable", "VarHandleOp")
    held = [op for op in graph.get_operations() if op.type in kinds]
    from tenfold.train.checkpoint_utils import NewCheckpointReader

    there = NewCheckpointReader(checkpoint)
    for op in held:
        if there.has_tensor(op.name):
            _assign(session, graph, op, there.get_tensor(op.name))


def _assign(session: Session, graph: Graph, op: Any, value: Any) -> None:
    from tenfold.graph.op_builder import apply_op

    with graph.as_default():
        if op.type == "VarHandleOp":
            run = apply_op("AssignVariableOp", None, resource=op.outputs[0], value=value)
        else:
            run = apply_op("Assign", None, ref=op.outputs[0], value=value)
    session.run(run)


def freeze_graph(
    input_graph: str | None,
    input_saver: str | None,
    input_binary: bool,
    input_checkpoint: str | None,
    output_node_names: str,
    restore_op_name: str | None,
    filename_tensor_name: str | None,
    output_graph: str | None,
    clear_devices: bool,
    initializer_nodes: str | None,
    variable_names_whitelist: str = "",
    variable_names_blacklist: str = "",
    input_meta_graph: str | None = None,
    input_saved_model_dir: str | None = None,
    saved_model_tags: str = tag_constants.SERVING,
    checkpoint_version: int = saver_pb2.SaverDef.V2,
) -> Any:
    """`freeze_graph_with_def_protos`, of files. Raises NotFoundError for one that is not there."""
    return freeze_graph_with_def_protos(
        _message(input_graph, input_binary, graph_pb2.GraphDef) if input_graph else None,
        _message(input_saver, input_binary, saver_pb2.SaverDef) if input_saver else None,
        input_checkpoint,
        output_node_names,
        restore_op_name,
        filename_tensor_name,
        output_graph,
        clear_devices,
        initializer_nodes,
        variable_names_whitelist,
        variable_names_blacklist,
        meta_graph.read_meta_graph_file(input_meta_graph) if input_meta_graph else None,
        input_saved_model_dir,
        _names(saved_model_tags),
        checkpoint_version,
    )


def strip_unused(
    input_graph_def: Any, input_node_names: Sequence[str], output_node_names: Sequence[str], placeholder_type_enum: Any
) -> Any:
    """The part of a graph between these inputs, which become placeholders, and these outputs.

    Raises ValueError for a name that the graph lacks.
    """
    types = (
        list(placeholder_type_enum)
        if isinstance(placeholder_type_enum, (list, tuple))
        else [placeholder_type_enum] * len(input_node_names)
    )
    wanted = dict(zip(input_node_names, types, strict=True))
    absent = set(wanted) - {node.name for node in input_graph_def.node}
    if absent:
        raise ValueError(f"The graph has no nodes {sorted(absent)}")
    cut = graph_pb2.GraphDef()
    for node in input_graph_def.node:
        if node.name not in wanted:
            cut.node.append(node)
            continue
        placeholder = node_def_pb2.NodeDef(name=node.name, op="Placeholder")
        placeholder.attr["dtype"].type = int(wanted[node.name])  # type: ignore[assignment]
        if "_output_shapes" in node.attr:
            placeholder.attr["_output_shapes"].CopyFrom(node.attr["_output_shapes"])
        if "shape" in node.attr:
            placeholder.attr["shape"].CopyFrom(node.attr["shape"])
        cut.node.append(placeholder)
    stripped = graph_util.extract_sub_graph(cut, list(output_node_names))
    stripped.library.CopyFrom(input_graph_def.library)
    stripped.versions.CopyFrom(input_graph_def.versions)
    return stripped


def optimize_for_inference(
    input_graph_def: Any,
    input_node_names: Sequence[str],
    output_node_names: Sequence[str],
    placeholder_type_enum: Any,
    toco_compatible: bool = False,
) -> Any:
    """`strip_unused`, and without the nodes that only training needs. Batch norms are fused when the graph runs."""
    stripped = strip_unused(input_graph_def, input_node_names, output_node_names, placeholder_type_enum)
    return graph_util.remove_training_nodes(stripped, list(output_node_names))
