"""Gradient rows of embedding variables; definitions in tenfold_core/opdefs/embedding.py.

The gradient of a lookup is a row for each id that was asked for. Follows DeepRec's ops/kv_variable_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("KvResourceGather")
def _gather(op: Operation, g: Tensor) -> Any:
    return _rows(op, g), None, None


@gradient("KvResourceGatherV1")
def _gather_with_counts(op: Operation, g: Tensor) -> Any:
    return _rows(op, g), None, None, None


def _rows(op: Operation, g: Tensor) -> IndexedSlices:
    handle, ids = op.inputs[:2]
    if ids.op.type == "EmbeddingSplit":
        return IndexedSlices(g, ids, None)
    (width,) = TensorShape(handle.op.get_attr("shape")).as_list()
    values = apply_op("Reshape", tensor=g, shape=[-1, width])
    return IndexedSlices(values, apply_op("Reshape", tensor=ids, shape=[-1]), None)


@gradient("EmbeddingMerge")
def _merge(op: Operation, *gradients: Tensor) -> Any:
    count = op.get_attr("N")
    split = _split_of(op.inputs[count])
    sizes = split.outputs[split.get_attr("parts") : -1]
    sums = apply_op("EmbeddingSum", gradients=list(gradients), places=op.inputs[count], sizes=sizes)
    return [None] * (count + 1) + list(sums)


@gradient("EmbeddingSum")
def _sum(op: Operation, *gradients: Tensor) -> Any:
    places = op.inputs[op.get_attr("N")]
    merged = apply_op("EmbeddingMerge", ids=list(_split_of(places).inputs), places=places, rows=list(gradients))
    return [*merged, None, *([None] * op.get_attr("parts"))]


def _split_of(places: Tensor) -> Operation:
    if places.op.type != "EmbeddingSplit":
        raise LookupError(f"{places.name} is not the places of an EmbeddingSplit: no gradient")
    return places.op


not_differentiable(
    "EmbeddingRows", "KvResourceGathers", "KvResourceSparseApplies", why="takes the place of others before a step"
)
not_differentiable(
    "ActivateSparseRecorder",
    "ApplyAdagradDecay",
    "ApplyAdamAsync",
    "CollectSparseIndices",
    "DestroyKvResourceOp",
    "EmbeddingSplit",
    "EVGetFrequency",
    "EVGetVersion",
    "IncrRestore",
    "IncrSave",
    "InitializeKvVariableOp",
    "KvResourceExport",
    "KvResourceImportV2",
    "KvResourceIncrApply",
    "KvResourceIncrImport",
    "KvResourceIncrRead",
    "KvResourceLookupTier",
    "KvResourceSparseApplyAdagrad",
    "KvResourceSparseApplyAdagradDecay",
    "KvResourceSparseApplyAdam",
    "KvResourceSparseApplyAdamAsync",
    "KvResourceSparseApplyFtrl",
    "KvResourceSparseApplyFtrlV2",
    "KvResourceSparseApplyGradientDescent",
    "KvResourceSparseApplyMomentum",
    "KvVarHandleOp",
    "KvVarIsInitializedOp",
    "KvVariableShape",
    "RecordSparseIndices",
    "ResourceApplyAdagradDecay",
    "ResourceApplyAdamAsync",
    "ResourceSparseApplyAdagradDecay",
    "ResourceSparseApplyAdamAsync",
    "SparseApplyAdagradDecay",
    "SparseApplyAdamAsync",
    why="holds or asks about state",
)
