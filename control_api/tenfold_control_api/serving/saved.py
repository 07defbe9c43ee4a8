"""One version of a model, read from its SavedModel: the graph, the steps that make it ready, its signatures.

Blocking; service.py calls it in threads. core/tenfold_core/saved_model.py reads the files.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_control_api.problems import ApiError
from tenfold_control_api.serving.follow_graph import add_follow_nodes
from tenfold_core import errors, opdefs, open_inference, saved_model
from tenfold_core.dtypes import as_dtype
from tenfold_core.stand_ins import MARK
from tenfold_protos import graph_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tenfold_control_api.serving.follow_graph import FollowSteps
    from tenfold_protos.meta_graph_pb2 import MetaGraphDef, TensorInfo

#: What tells a checkpoint, of whatever version, from none.
_INDEX = ".index"
_LOOKUPS = frozenset({"KvResourceGather", "KvResourceGatherV1"})


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A tensor of a signature: its name in the graph, its type and static shape (-1: any size; None: any rank)."""

    tensor: str
    dtype: np.dtype[Any]
    datatype: str
    shape: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class Signature:
    """A way to call the model: endpoints by the names that callers use."""

    name: str
    inputs: Mapping[str, Endpoint]
    outputs: Mapping[str, Endpoint]


@dataclass(frozen=True, slots=True)
class StartStep:
    """A step to run once the graph is in a session."""

    feeds: Mapping[str, np.ndarray[Any, Any]]
    target: str


@dataclass(frozen=True, slots=True)
class SavedVersion:
    """A graph without device names, the steps that restore and initialize it, and its signatures."""

    graph_def: graph_pb2.GraphDef
    start: Sequence[StartStep]
    signatures: Mapping[str, Signature]
    #: Of a model that follows a training.
    follow: FollowSteps | None = None


def read_version(folder: str, tags: Sequence[str], restored: str | None = None) -> SavedVersion:
    """The version in a folder; with `restored`, the prefix of a checkpoint, its variables are those of that one, and it
    can follow the training that has saved it. Blocks. Raises ApiError `invalid-model` that says what is wrong."""
    try:
        graph = saved_model.graph_with_tags(saved_model.read(folder), tags)
        start = _start_steps(folder, graph, restored)
        signatures = {
            name: Signature(name, _endpoints(signature.inputs), _endpoints(signature.outputs))
            for name, signature in sorted(graph.signature_def.items())
            if not name.startswith("__saved_model_")
        }
    # TypeError: a signature's number of a type that there is not
    except (OSError, RuntimeError, TypeError, errors.OpError) as error:
        raise ApiError("invalid-model", f"{folder} cannot be served: {error}") from None
    if not any(signature.outputs for signature in signatures.values()):
        raise ApiError("invalid-model", f"{folder} cannot be served: no signature of its graph has an output.")
    definition = _for_any_master(graph)
    if restored is None:
        return SavedVersion(definition, start, signatures)
    try:
        return SavedVersion(definition, start, signatures, add_follow_nodes(definition, graph.saver_def))
    except ValueError as error:
        raise ApiError("invalid-model", f"{folder} cannot follow a training: {error}.") from None


def _start_steps(folder: str, graph: MetaGraphDef, restored: str | None) -> list[StartStep]:
    steps = []
    saver = graph.saver_def
    prefix = restored or os.path.abspath(saved_model.variables_path(folder))
    if saver.restore_op_name and (restored or os.path.exists(prefix + _INDEX)):
        target = saver.restore_op_name.partition(":")[0]
        steps.append(StartStep({saver.filename_tensor_name: _text(prefix)}, target))
    init_op = saved_model.init_op_name(graph)
    if init_op:
        assets = saved_model.asset_paths(os.path.abspath(folder), graph)
        steps.append(StartStep({name: _text(path) for name, path in assets.items()}, init_op.partition(":")[0]))
    return steps


def _text(value: str) -> np.ndarray[Any, Any]:
    array = np.empty((), object)
    array[()] = os.fsencode(value)
    array.flags.writeable = False
    return array


def _endpoints(infos: Mapping[str, TensorInfo]) -> dict[str, Endpoint]:
    """By name; a sparse tensor is three, `x/indices`, `x/values` and `x/dense_shape`. Others are left out: they have no
    form in the protocol."""
    found: dict[str, Endpoint] = {}
    for name, info in sorted(infos.items()):
        match info.WhichOneof("encoding"):
            case "name":
                shape = None if info.tensor_shape.unknown_rank else tuple(dim.size for dim in info.tensor_shape.dim)
                _add(found, name, info.name, info.dtype, shape)
            case "coo_sparse":
                parts, rank = info.coo_sparse, len(info.tensor_shape.dim) or -1
                _add(found, f"{name}/indices", parts.indices_tensor_name, "int64", (-1, rank))
                _add(found, f"{name}/values", parts.values_tensor_name, info.dtype, (-1,))
                _add(found, f"{name}/dense_shape", parts.dense_shape_tensor_name, "int64", (rank,))
    return found


def _add(found: dict[str, Endpoint], name: str, tensor: str, dtype: Any, shape: tuple[int, ...] | None) -> None:
    kind = as_dtype(dtype).base_dtype
    array = np.empty(0, object if kind.name == "string" else kind.as_numpy_dtype)
    try:
        datatype = open_inference.datatype_of(array)
    except errors.OpError:  # a resource or a variant
        return
    found[name] = Endpoint(tensor, array.dtype, datatype, shape)


def _for_any_master(graph: MetaGraphDef) -> graph_pb2.GraphDef:
    """A copy whose nodes go wherever its session is: the devices of a training cluster need not be there.

    Nor need an operation that the model defines itself and no signature may need. Lookups of embedding variables add
    and count nothing: to ask a model changes nothing.
    """
    copy = graph_pb2.GraphDef()
    copy.CopyFrom(graph.graph_def)
    own = {op.name for op in graph.meta_info_def.stripped_op_list.op if not opdefs.has(op.name)}
    for node in copy.node:
        node.device = ""
        if node.op in _LOOKUPS:
            node.attr["is_inference"].b = True
        if node.op in own:
            node.attr[MARK].b = True
    for function in copy.library.function:
        for node in function.node_def:
            node.device = ""
            if node.op in _LOOKUPS:
                node.attr["is_inference"].b = True
    return copy
