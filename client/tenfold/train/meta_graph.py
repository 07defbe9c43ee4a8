"""Meta graphs: a GraphDef with the collections and the saver that belong to it, as a message or a file.

`COLLECTIONS` says how the items of each known collection become messages and come back; others are kept by name, as
bytes or as numbers. Used by saver.py. Follows TF 1.15's framework/meta_graph.py.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

from google.protobuf import any_pb2, text_format
from google.protobuf.message import DecodeError

from tenfold import logging
from tenfold.graph import get_default_graph, import_graph_def
from tenfold.graph.collections import GraphKeys
from tenfold_core import opdefs, packed
from tenfold_core.checkpoint.files import AtomicFile
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE
from tenfold_protos import (
    control_flow_pb2,
    graph_pb2,
    meta_graph_pb2,
    op_def_pb2,
    queue_runner_pb2,
    saver_pb2,
    variable_pb2,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from google.protobuf.message import Message

    from tenfold.graph.graph import Graph
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef


@dataclass(frozen=True, slots=True)
class _Codec:
    """How a collection's items are serialized: the message, and the class (module:name) with to_proto/from_proto."""

    message: Callable[[], Message]
    home: str

    def decode(self, data: bytes, import_scope: str) -> Any:
        message = self.message()
        message.ParseFromString(data)
        module, _, name = self.home.partition(":")
        return getattr(import_module(module), name).from_proto(message, import_scope=import_scope)


_VARIABLE = _Codec(variable_pb2.VariableDef, "tenfold.ops.variables:Variable")
_VARIABLES = (
    GraphKeys.GLOBAL_VARIABLES,
    GraphKeys.TRAINABLE_VARIABLES,
    GraphKeys.MOVING_AVERAGE_VARIABLES,
    GraphKeys.LOCAL_VARIABLES,
    GraphKeys.MODEL_VARIABLES,
    GraphKeys.GLOBAL_STEP,
    GraphKeys.METRIC_VARIABLES,
    GraphKeys.EMBEDDING_VARIABLES,
)
#: Collections whose items are objects.
COLLECTIONS: dict[str, _Codec] = {
    **dict.fromkeys(_VARIABLES, _VARIABLE),
    GraphKeys.SAVERS: _Codec(saver_pb2.SaverDef, "tenfold.train.saver:Saver"),
    GraphKeys.QUEUE_RUNNERS: _Codec(queue_runner_pb2.QueueRunnerDef, "tenfold.train.queue_runner:QueueRunner"),
    GraphKeys.COND_CONTEXT: _Codec(control_flow_pb2.CondContextDef, "tenfold.ops.control_flow_cond:CondContext"),
    GraphKeys.WHILE_CONTEXT: _Codec(control_flow_pb2.WhileContextDef, "tenfold.ops.while_context:WhileContext"),
}

#: Collection of the inputs that an exported scope takes from outside of it.
_UNBOUND = "unbound_inputs"


def create_meta_graph_def(
    meta_info_def: Any = None,
    graph_def: graph_pb2.GraphDef | None = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    graph: Graph | None = None,
    export_scope: str | None = None,
    strip_default_attrs: bool = False,
) -> MetaGraphDef:
    """The graph (default: the default one), its collections (default: all) and the saver as one message."""
    graph = get_default_graph() if graph is None else graph
    definition = meta_graph_pb2.MetaGraphDef()
    if meta_info_def is not None:
        definition.meta_info_def.CopyFrom(meta_info_def)
    # readers check this version
    definition.meta_info_def.tensorflow_version = "1.15.0"
    definition.meta_info_def.tensorflow_git_version = "tenfold"
    definition.graph_def.CopyFrom(graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def)
    if not definition.meta_info_def.stripped_op_list.op:
        definition.meta_info_def.stripped_op_list.CopyFrom(stripped_op_list_for_graph(definition.graph_def))
    if strip_default_attrs:
        _strip_default_attrs(definition)
    if saver_def is not None:
        definition.saver_def.CopyFrom(saver_def)
    for key in graph.get_all_collection_keys() if collection_list is None else collection_list:
        if isinstance(key, (str, bytes)):
            _add_collection(definition, key if isinstance(key, str) else key.decode(), graph, export_scope)
        else:
            logging.warning("Only collections with string type keys will be serialized. This key has %s", type(key))
    return definition


def ops_used_by_graph_def(graph_def: graph_pb2.GraphDef) -> list[str]:
    """The types of its nodes and of its functions' nodes; a function that is called is not a type of node."""
    functions = {function.signature.name: function.node_def for function in graph_def.library.function}
    nodes = [*graph_def.node, *(node for body in functions.values() for node in body)]
    return sorted({node.op for node in nodes} - functions.keys())


def stripped_op_list_for_graph(graph_def: graph_pb2.GraphDef) -> op_def_pb2.OpList:
    """The definitions of the ops that the graph uses, without their descriptions. Unknown ones are left out."""
    used = ops_used_by_graph_def(graph_def)
    return op_def_pb2.OpList(op=[opdefs.get(op).to_proto() for op in used if opdefs.has(op)])


def _add_collection(definition: MetaGraphDef, key: str, graph: Graph, export_scope: str | None) -> None:
    """Adds a collection; one whose items have no form in a message is left out with a warning, as TensorFlow does."""
    collection = meta_graph_pb2.CollectionDef()
    items = graph.get_collection(key)
    try:
        if key in COLLECTIONS:
            messages = [item.to_proto(export_scope=export_scope) for item in items]
            collection.bytes_list.value.extend(each.SerializeToString() for each in messages if each is not None)
        elif all(isinstance(item, (str, bytes)) for item in items):
            collection.bytes_list.value.extend(item.encode() if isinstance(item, str) else item for item in items)
        elif all(isinstance(item, int) for item in items):
            collection.int64_list.value.extend(items)
        elif all(isinstance(item, float) for item in items):
            collection.float_list.value.extend(items)
        elif all(isinstance(item, any_pb2.Any) for item in items):
            collection.any_list.value.extend(items)
        else:
            names = [item.name for item in items]
            prefix = f"{export_scope}/" if export_scope else ""
            collection.node_list.value.extend(name[len(prefix) :] for name in names if name.startswith(prefix))
    except (AttributeError, NotImplementedError, TypeError) as error:
        logging.warning("Collection %s is not in the meta graph, its items have no form there: %s", key, error)
        return
    if collection.WhichOneof("kind") is not None:
        definition.collection_def[key].CopyFrom(collection)


def _strip_default_attrs(definition: MetaGraphDef) -> None:
    """Removes attributes that have their op's default value, so that a reader of an older version accepts the graph."""
    graph = definition.graph_def
    for node in [*graph.node, *(node for function in graph.library.function for node in function.node_def)]:
        if not opdefs.has(node.op):
            continue
        defaults = {each.name: each.default_value for each in opdefs.get(node.op).to_proto().attr}
        for name in [name for name, value in node.attr.items() if defaults.get(name) == value]:
            del node.attr[name]
    definition.meta_info_def.stripped_default_attrs = True


def export_meta_graph(
    filename: str | None = None,
    meta_info_def: Any = None,
    graph_def: graph_pb2.GraphDef | None = None,
    saver_def: Any = None,
    collection_list: Sequence[str] | None = None,
    as_text: bool = False,
    graph: Graph | None = None,
    export_scope: str | None = None,
    clear_devices: bool = False,
    clear_extraneous_savers: bool = False,
    strip_default_attrs: bool = False,
    save_debug_info: bool = False,
) -> MetaGraphDef:
    """`create_meta_graph_def`, also written to `filename` if given.

    `export_scope` keeps the nodes under that scope, without its name; what they take from outside is listed as unbound
    inputs. `clear_extraneous_savers` keeps no saver but `saver_def`'s.
    """
    graph = get_default_graph() if graph is None else graph
    graph_def = graph.as_graph_def(add_shapes=True) if graph_def is None else graph_def
    unbound: list[str] = []
    if export_scope or clear_devices or clear_extraneous_savers:
        foreign = _extraneous_saver_nodes(graph_def, saver_def) if clear_extraneous_savers else frozenset()
        graph_def = _part(graph_def, export_scope, clear_devices, foreign, unbound)
    keys = list(graph.get_all_collection_keys() if collection_list is None else collection_list)
    if clear_extraneous_savers:
        keys = [key for key in keys if key != GraphKeys.SAVERS]
    definition = create_meta_graph_def(
        meta_info_def, graph_def, saver_def, keys, graph, export_scope, strip_default_attrs
    )
    if unbound:
        definition.collection_def[_UNBOUND].bytes_list.value.extend(name.encode() for name in unbound)
    if clear_extraneous_savers and saver_def is not None:
        definition.collection_def[GraphKeys.SAVERS].bytes_list.value.append(saver_def.SerializeToString())
    if filename:
        named = packed.named_as_tensorflows(definition)
        data = (
            text_format.MessageToString(named, descriptor_pool=packed.Names()).encode()  # type: ignore[arg-type]
            if as_text
            else named.SerializeToString()
        )
        with AtomicFile(file_path(filename)) as out:
            out.write(data)
    return definition


def _part(
    whole: graph_pb2.GraphDef,
    scope: str | None,
    clear_devices: bool,
    left_out: frozenset[str],
    unbound: list[str],
) -> graph_pb2.GraphDef:
    """The nodes of `scope`, without its name; adds to `unbound` what they take from elsewhere."""
    prefix = f"{scope.rstrip('/')}/" if scope else ""
    part = graph_pb2.GraphDef(versions=whole.versions, library=whole.library)
    for node in whole.node:
        if not node.name.startswith(prefix) or node.name in left_out:
            continue
        copy = part.node.add()
        copy.CopyFrom(node)
        copy.name = node.name[len(prefix) :]
        if clear_devices:
            copy.device = ""
        for position, name in enumerate(node.input):
            control, plain = ("^", name[1:]) if name.startswith("^") else ("", name)
            if plain.startswith(prefix):
                copy.input[position] = control + plain[len(prefix) :]
            else:
                copy.input[position] = f"{control}$unbound_inputs_{plain}"
                unbound.append(copy.input[position])
        if "_class" in copy.attr:
            classes = copy.attr["_class"].list.s
            old = f"loc:@{prefix}".encode()
            classes[:] = [b"loc:@" + each[len(old) :] if each.startswith(old) else each for each in classes]
    return part


def _extraneous_saver_nodes(graph_def: graph_pb2.GraphDef, saver_def: Any) -> frozenset[str]:
    """The nodes of savers other than the given one: those that lie under a scope with a save op of their own."""
    own = saver_def.restore_op_name.rpartition("/")[0] if saver_def is not None else None
    scopes = {
        node.name.rpartition("/")[0]
        for node in graph_def.node
        if node.op in ("SaveV2", "SaveSlices", "RestoreV2", "RestoreSlice") and "/" in node.name
    }
    foreign = tuple(f"{scope}/" for scope in scopes if scope != own and not (own or "").startswith(f"{scope}/"))
    return frozenset(node.name for node in graph_def.node if foreign and node.name.startswith(foreign))


def read_meta_graph_file(filename: str) -> MetaGraphDef:
    """The meta graph in a file, binary or text.

    Raises OSError if it is not there or is neither, the step's error for what the disk says (FailedPreconditionError
    for a folder).
    """
    path = file_path(filename)
    if not EVERYWHERE.exists(path):
        raise OSError(f"File {filename} does not exist.")
    with os_errors(filename):
        data = EVERYWHERE.read_whole(path)
    definition = meta_graph_pb2.MetaGraphDef()
    try:
        definition.ParseFromString(data)
    except DecodeError:
        definition.Clear()
        try:
            text_format.Merge(data.decode(), definition, descriptor_pool=packed.Names())  # type: ignore[arg-type]
        except (text_format.ParseError, UnicodeDecodeError) as error:
            raise OSError(f"Cannot parse file {filename}: {error}.") from None
    packed.name_as_ours(definition)
    return definition


def import_scoped_meta_graph(
    meta_graph_or_file: Any, clear_devices: bool = False, graph: Graph | None = None, **kwargs: Any
) -> tuple[MetaGraphDef, dict[str, Any]]:
    """`import_with_elements` without elements: the message, and its variables by name."""
    return import_with_elements(meta_graph_or_file, clear_devices, graph, **kwargs)[:2]


def import_with_elements(
    meta_graph_or_file: Any,
    clear_devices: bool = False,
    graph: Graph | None = None,
    import_scope: str | None = None,
    input_map: Mapping[str, Any] | None = None,
    unbound_inputs_col_name: str = _UNBOUND,
    restore_collections_predicate: Callable[[str], bool] = lambda key: True,
    return_elements: Sequence[str] | None = None,
) -> tuple[MetaGraphDef, dict[str, Any], list[Any] | None]:
    """Adds a saved graph under `import_scope`, and its collections; the message, its variables by name, the elements.

    Raises ValueError unless `input_map` names exactly what the graph takes from outside, OSError for a bad file.
    """
    if isinstance(meta_graph_or_file, meta_graph_pb2.MetaGraphDef):
        definition = meta_graph_or_file
    else:
        definition = read_meta_graph_file(os.fspath(meta_graph_or_file))
    if unbound_inputs_col_name and unbound_inputs_col_name in definition.collection_def:
        wanted = [each.decode() for each in definition.collection_def[unbound_inputs_col_name].bytes_list.value]
        if sorted(wanted) != sorted(input_map or ()):
            missing = ",".join(name for name in wanted if name not in (input_map or ()))
            raise ValueError(f"Graph contains unbound inputs: {missing}. Must provide these inputs through input_map.")
    graph_def = definition.graph_def
    if clear_devices:
        graph_def = graph_pb2.GraphDef()
        graph_def.CopyFrom(definition.graph_def)
        for node in graph_def.node:
            node.device = ""
    graph = get_default_graph() if graph is None else graph
    with graph.as_default():
        # without `import_scope` it goes into the current name scope
        here = graph.get_name_scope()
        # a scope that ends with "/" is one that is there
        open_scope = import_scope[:-1] if import_scope and import_scope.endswith("/") else None
        scope = here if not import_scope else open_scope or graph.unique_name(import_scope, mark_as_used=False)
        elements = import_graph_def(
            graph_def,
            name=import_scope or (f"{here}/" if here else ""),
            input_map=input_map,
            return_elements=return_elements,
            producer_op_list=definition.meta_info_def.stripped_op_list,
        )
        _restore_collections(definition, graph, scope, unbound_inputs_col_name, restore_collections_predicate)
        found = graph.get_collection(GraphKeys.GLOBAL_VARIABLES, scope=scope or None)
    prefix = f"{scope}/" if scope else ""
    return definition, {variable.name[len(prefix) :]: variable for variable in found}, elements


def _restore_collections(
    definition: MetaGraphDef, graph: Graph, scope: str, unbound: str, wanted: Callable[[str], bool]
) -> None:
    # one object for a variable that is in several collections; trainable ones first, whose message says that they are
    objects: dict[bytes, Any] = {}
    keys = sorted(definition.collection_def, key=lambda key: (key != GraphKeys.TRAINABLE_VARIABLES, key))
    prefix = f"{scope}/" if scope else ""
    for key in keys:
        if key == unbound or not wanted(key):
            continue
        collection = definition.collection_def[key]
        kind = collection.WhichOneof("kind")
        if kind is None:
            logging.error("Cannot identify data type for collection %s. Skipping.", key)
            continue
        values = getattr(collection, kind).value
        codec = COLLECTIONS.get(key)
        for value in values:
            item: Any = value
            if codec is not None and kind == "bytes_list":
                if codec is _VARIABLE:
                    item = objects.get(value) or objects.setdefault(value, codec.decode(value, scope))
                else:
                    item = codec.decode(value, scope)
            elif kind == "node_list":
                item = graph.as_graph_element(prefix + value)
            elif kind == "bytes_list" and prefix:
                # as TensorFlow: under a scope a text is taken for a name
                item = prefix + value.decode(errors="surrogateescape")
            graph.add_to_collection(key, item)
