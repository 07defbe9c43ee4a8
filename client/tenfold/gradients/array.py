"""Gradient rows of the array ops; the op definitions are in tenfold_core/opdefs/array.py.

The gradient of a gather of rows is IndexedSlices, so that an optimizer updates only the rows that were read.
Follows TensorFlow's ops/array_grad.py. `g` is the gradient of the output throughout.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.constant_value import known_value
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient(
    "Identity",
    "RefIdentity",
    "Snapshot",
    "GuaranteeConst",
    "EnsureShape",
    "PlaceholderWithDefault",
    "DebugGradientIdentity",
)
def _identity(op: Operation, g: Any) -> Any:
    return g


@gradient("IdentityN")
def _identity_n(op: Operation, *g: Any) -> Any:
    return list(g)


@gradient("Reshape")
def _reshape(op: Operation, g: Tensor) -> Any:
    return apply_op("Reshape", tensor=g, shape=array_ops.shape(op.inputs[0])), None


@gradient("ExpandDims")
def _expand_dims(op: Operation, g: Tensor) -> Any:
    return apply_op("Reshape", tensor=g, shape=array_ops.shape(op.inputs[0])), None


@gradient("Squeeze")
def _squeeze(op: Operation, g: Tensor) -> Any:
    return apply_op("Reshape", tensor=g, shape=array_ops.shape(op.inputs[0]))


@gradient("Transpose")
def _transpose(op: Operation, g: Tensor) -> Any:
    return apply_op("Transpose", x=g, perm=apply_op("InvertPermutation", x=op.inputs[1])), None


@gradient("Fill")
def _fill(op: Operation, g: Tensor) -> Any:
    rank = g.get_shape().ndims
    axes = np.arange(rank, dtype=np.int32) if rank is not None else _all_axes(g)
    return None, apply_op("Sum", input=g, reduction_indices=axes)


def _all_axes(x: Tensor) -> Any:
    return apply_op("Range", start=0, limit=apply_op("Rank", input=x), delta=1)


@gradient("Tile")
def _tile(op: Operation, g: Tensor) -> Any:
    # Split every dimension into (repeats, size), then sum over the repeats, which are the even axes.
    x, multiples = op.inputs
    rank = x.get_shape().ndims
    sizes = apply_op("Cast", x=array_ops.shape(x), DstT=multiples.dtype.base_dtype)
    split_shape = apply_op("Reshape", tensor=array_ops.stack([multiples, sizes], axis=1), shape=[-1])
    split = apply_op("Reshape", tensor=g, shape=split_shape)
    repeats: Any = (
        apply_op("Range", start=0, limit=apply_op("Size", input=split_shape), delta=2)
        if rank is None
        else np.arange(0, 2 * rank, 2, dtype=np.int32)
    )
    return apply_op("Sum", input=split, reduction_indices=repeats), None


@gradient("Pack")
def _pack(op: Operation, g: Tensor) -> Any:
    return apply_op("Unpack", value=g, num=len(op.inputs), axis=op.get_attr("axis"))


@gradient("Unpack")
def _unpack(op: Operation, *g: Tensor) -> Any:
    return apply_op("Pack", values=list(g), axis=op.get_attr("axis"))


def _concat_slices(op: Operation, values: list[Tensor], axis: Tensor, g: Tensor) -> list[Any]:
    """The pieces of `g` that belong to each of the concatenated values."""
    if len(values) == 1:
        return [g]
    shapes = [value.get_shape() for value in values]
    axis_value = known_value(axis)
    if axis_value is not None and all(shape.ndims is not None for shape in shapes):
        position = int(axis_value) % len(shapes[0].as_list())
        sizes = [shape.as_list()[position] for shape in shapes]
        if None not in sizes:
            return list(
                apply_op(
                    "SplitV", value=g, size_splits=np.array(sizes, np.int32), split_dim=position, num_split=len(sizes)
                )
            )
    tensor_shapes = apply_op("ShapeN", input=values)
    positive = apply_op("FloorMod", x=axis, y=apply_op("Rank", input=values[0]))
    offsets = apply_op("ConcatOffset", concat_dim=positive, shape=tensor_shapes)
    return [
        apply_op("Slice", input=g, begin=begin, size=size) for begin, size in zip(offsets, tensor_shapes, strict=True)
    ]


@gradient("ConcatV2")
def _concat_v2(op: Operation, g: Tensor) -> Any:
    values, axis = list(op.inputs[:-1]), op.inputs[-1]
    return [*_concat_slices(op, values, axis, g), None]


@gradient("Concat")
def _concat(op: Operation, g: Tensor) -> Any:
    axis, values = op.inputs[0], list(op.inputs[1:])
    return [None, *_concat_slices(op, values, axis, g)]


def _rejoined(g: tuple[Tensor, ...], axis: Tensor) -> Tensor:
    """The gradients of the pieces as one; there may be only one piece, which ConcatV2 does not take."""
    return g[0] if len(g) == 1 else tensor_op("ConcatV2", None, values=list(g), axis=axis)


@gradient("Split")
def _split(op: Operation, *g: Tensor) -> Any:
    return None, _rejoined(g, op.inputs[0])


@gradient("SplitV")
def _split_v(op: Operation, *g: Tensor) -> Any:
    return _rejoined(g, op.inputs[2]), None, None


@gradient("Slice")
def _slice(op: Operation, g: Tensor) -> Any:
    # Pad g with zeros: `begin` before it, the rest of the input's size after it.
    x, begin, _ = op.inputs
    begin = apply_op("Cast", x=begin, DstT=dtypes.int32) if begin.dtype.base_dtype != dtypes.int32 else begin
    after = array_ops.shape(x) - array_ops.shape(op.outputs[0]) - begin
    return apply_op("Pad", input=g, paddings=array_ops.stack([begin, after], axis=1)), None, None


_STRIDED_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@gradient("StridedSlice")
def _strided_slice(op: Operation, g: Tensor) -> Any:
    x, begin, end, strides = op.inputs
    masks = {name: op.get_attr(name) for name in _STRIDED_MASKS}
    # shape, begin, end and strides must have one type, which may be int64.
    shape = array_ops.shape(x, out_type=begin.dtype.base_dtype)
    grad = apply_op("StridedSliceGrad", shape=shape, begin=begin, end=end, strides=strides, dy=g, **masks)
    return grad, None, None, None


@gradient("StridedSliceGrad")
def _strided_slice_grad(op: Operation, g: Tensor) -> Any:
    _, begin, end, strides, _ = op.inputs
    masks = {name: op.get_attr(name) for name in _STRIDED_MASKS}
    return None, None, None, None, apply_op("StridedSlice", input=g, begin=begin, end=end, strides=strides, **masks)


@gradient("Pad", "PadV2")
def _pad(op: Operation, g: Tensor) -> Any:
    x, paddings = op.inputs[:2]
    before = apply_op("Slice", input=paddings, begin=[0, 0], size=[-1, 1])
    begin = apply_op("Reshape", tensor=before, shape=[-1])
    grad = apply_op("Slice", input=g, begin=begin, size=array_ops.shape(x, out_type=begin.dtype.base_dtype))
    return (grad, None) if len(op.inputs) == 2 else (grad, None, None)


@gradient("ReverseV2")
def _reverse_v2(op: Operation, g: Tensor) -> Any:
    return apply_op("ReverseV2", tensor=g, axis=op.inputs[1]), None


def _rows_gradient(params: Tensor, indices: Tensor, g: Tensor) -> IndexedSlices:
    """The gradient of gathering along axis 0: rows `g`, at `indices`, of something shaped like params."""
    with params.graph.colocate_with(params.op):
        shape = array_ops.shape(params)
    count = apply_op("Size", input=indices)
    flat_indices = apply_op("Reshape", tensor=indices, shape=[-1])
    tail = shape[1:]
    rows = array_ops.concat([apply_op("ExpandDims", input=count, dim=0), tail], 0)
    return IndexedSlices(apply_op("Reshape", tensor=g, shape=rows), flat_indices, shape)


@gradient("Gather")
def _gather(op: Operation, g: Tensor) -> Any:
    return _rows_gradient(op.inputs[0], op.inputs[1], g), None


@gradient("GatherV2")
def _gather_v2(op: Operation, g: Tensor) -> Any:
    params, indices, axis = op.inputs
    axis_value = known_value(axis)
    rank = params.get_shape().ndims
    if axis_value is not None and int(axis_value) == 0:
        return _rows_gradient(params, indices, g), None, None
    if axis_value is None or rank is None or indices.get_shape().ndims is None or op.get_attr("batch_dims"):
        return _batched_gather_gradient(op, g), None, None
    # Move the gathered axis to the front, sum rows with the same index, move it back.
    position = int(axis_value) % rank
    shape = array_ops.shape(params)
    outer = [shape[axis] for axis in range(position)]
    inner = [shape[axis] for axis in range(position + 1, rank)]
    rows = apply_op("Reshape", tensor=g, shape=array_ops.stack([*outer, apply_op("Size", input=indices), *inner]))
    to_front = [position, *range(position), *range(position + 1, rank)]
    front = apply_op("Transpose", x=rows, perm=np.array(to_front, np.int32))
    flat_indices = apply_op("Reshape", tensor=indices, shape=[-1])
    summed = apply_op("UnsortedSegmentSum", data=front, segment_ids=flat_indices, num_segments=shape[position])
    return apply_op("Transpose", x=summed, perm=np.argsort(to_front).astype(np.int32)), None, None


def _batched_gather_gradient(op: Operation, g: Tensor) -> Tensor:
    """The gradient of GatherV2's params where an axis or a rank is known in the step only, or with batch_dims.

    # B batch dimensions; the gathered axis moves to place B, all batches become one, and rows with one index add up
    Raises ValueError for a negative batch_dims of indices whose rank is unknown.
    """
    params, indices, axis = op.inputs
    batch = int(op.get_attr("batch_dims"))
    if batch < 0:
        ranks = indices.get_shape().ndims
        if ranks is None:
            raise ValueError(f"Cannot differentiate {op.name!r} (GatherV2): batch_dims {batch} of an unknown rank")
        batch += ranks
    shape = array_ops.shape(params)
    rank = array_ops.rank(params)
    at = apply_op("FloorMod", x=apply_op("Cast", x=axis, DstT=rank.dtype), y=rank)
    count, batches = shape[at], apply_op("Prod", input=shape[:batch], reduction_indices=[0])
    rows = apply_op("Reshape", tensor=g, shape=apply_op("ConcatV2", values=[shape[:at], [-1], shape[at + 1 :]], axis=0))
    before, between = np.arange(batch, dtype=np.int32), apply_op("Range", start=batch, limit=at, delta=1)
    rest = apply_op("Range", start=at + 1, limit=rank, delta=1)
    order = apply_op("ConcatV2", values=[before, array_ops.stack([at]), between, rest], axis=0)
    moved = apply_op("Transpose", x=rows, perm=order)
    inner = array_ops.shape(moved)[batch + 1 :]
    data = apply_op("Reshape", tensor=moved, shape=apply_op("ConcatV2", values=[[-1], inner], axis=0))
    places = apply_op("Reshape", tensor=indices, shape=array_ops.stack([batches, -1]))
    first = apply_op("Range", start=0, limit=batches, delta=1) * count
    places = places + apply_op("Cast", x=apply_op("ExpandDims", input=first, dim=-1), DstT=indices.dtype.base_dtype)
    flat = apply_op("Reshape", tensor=places, shape=[-1])
    summed = apply_op("UnsortedSegmentSum", data=data, segment_ids=flat, num_segments=batches * count)
    whole = apply_op("ConcatV2", values=[shape[:batch], array_ops.stack([count]), inner], axis=0)
    parted = apply_op("Reshape", tensor=summed, shape=whole)
    back: Tensor = apply_op("Transpose", x=parted, perm=apply_op("InvertPermutation", x=order))
    return back


@gradient("GatherNd")
def _gather_nd(op: Operation, g: Tensor) -> Any:
    params, indices = op.inputs
    shape = array_ops.shape(params, out_type=indices.dtype.base_dtype)
    known = indices.get_shape()
    if known.ndims == 2 and known.as_list()[-1] == 1:
        return IndexedSlices(g, apply_op("Squeeze", input=indices, squeeze_dims=[-1]), shape), None
    return apply_op("ScatterNd", indices=indices, updates=g, shape=shape), None


@gradient("ScatterNd")
def _scatter_nd(op: Operation, g: Tensor) -> Any:
    return None, apply_op("GatherNd", params=g, indices=op.inputs[0]), None


@gradient("DynamicPartition")
def _dynamic_partition(op: Operation, *g: Tensor) -> Any:
    # Partition the row numbers in the same way; they give the source of each row of each gradient.
    data, partitions = op.inputs
    shape = array_ops.shape(partitions)
    count = apply_op("Prod", input=shape, reduction_indices=[0])
    positions = apply_op("Reshape", tensor=apply_op("Range", start=0, limit=count, delta=1), shape=shape)
    partitioned = apply_op(
        "DynamicPartition", data=positions, partitions=partitions, num_partitions=op.get_attr("num_partitions")
    )
    rows = apply_op("ParallelDynamicStitch", indices=partitioned, data=list(g))
    return apply_op("Reshape", tensor=rows, shape=array_ops.shape(data)), None


@gradient("DynamicStitch", "ParallelDynamicStitch")
def _dynamic_stitch(op: Operation, g: Tensor) -> Any:
    indices = op.inputs[: len(op.inputs) // 2]
    return [None] * len(indices) + [apply_op("GatherV2", params=g, indices=index, axis=0) for index in indices]


@gradient("PreventGradient")
def _prevent_gradient(op: Operation, g: Any) -> Any:
    message = op.get_attr("message")
    text = message.decode() if isinstance(message, bytes) else message
    raise LookupError(f"Gradient explicitly disabled. Reason: {text} (operation {op.name!r})")


@gradient("MatrixBandPart")
def _matrix_band_part(op: Operation, g: Tensor) -> Any:
    return apply_op("MatrixBandPart", input=g, num_lower=op.inputs[1], num_upper=op.inputs[2]), None, None


@gradient("SparseToDense")
def _sparse_to_dense(op: Operation, g: Tensor) -> Any:
    of_values = apply_op("GatherNd", params=g, indices=op.inputs[0])
    whole = [apply_op("Sum", input=part, reduction_indices=_all_axes(part)) for part in (g, of_values)]
    return None, None, of_values, whole[0] - whole[1]


not_differentiable("StopGradient", why="that is what it is for")
not_differentiable(
    "Const",
    "Empty",
    "OnesLike",
    "Placeholder",
    "PlaceholderV2",
    "ZerosLike",
    why="the value depends on no input",
)
not_differentiable("Shape", "ShapeN", "Rank", "Size", "ConcatOffset", "InvertPermutation", why="works on shapes")
not_differentiable(
    "EditDistance",
    "Fingerprint",
    "ListDiff",
    "LowerBound",
    "OneHot",
    "Unique",
    "UniqueV2",
    "UniqueWithCounts",
    "UniqueWithCountsV2",
    "UnravelIndex",
    "UpperBound",
    "Where",
    why="indices",
)
not_implemented(
    "BatchMatrixBandPart",
    "BatchMatrixDiagPart",
    "TileGrad",
    "DeepCopy",
    "InplaceAdd",
    "InplaceSub",
    "InplaceUpdate",
)

not_differentiable("ResourceStridedSliceAssign", "StridedSliceAssign", why="an update of a variable")


not_differentiable("QuantizeAndDequantizeV4Grad", why="a gradient of a rounding")
not_differentiable(
    "FakeQuantWithMinMaxArgsGradient",
    "FakeQuantWithMinMaxVarsGradient",
    "FakeQuantWithMinMaxVarsPerChannelGradient",
    why="a gradient of a rounding",
)
