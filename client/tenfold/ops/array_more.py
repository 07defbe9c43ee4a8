"""Arrays, third part: diagonals, blocks of space, patches, sorting and searching, grids, batches of gathers.

The family's other parts are ops/array.py and ops/slicing.py; what is one operation is in ops/one_op.py.
Node names follow TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.constant_value import constant_value
from tenfold.graph.conversion import convert_to_tensor, is_dense_tensor_like
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.array import _alias
from tenfold.ops.op_builder import apply_op, tensor_op
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def is_tensor(x: Any) -> bool:
    """True for what TensorFlow takes as a tensor: tensors, sparse tensors, indexed slices, variables."""
    from tenfold.graph.indexed_slices import IndexedSlices

    return is_dense_tensor_like(x) or isinstance(x, IndexedSlices) or type(x).__name__ == "SparseTensor"


# --- diagonals ---


def matrix_diag(
    diagonal: Any, name: str = "diag", k: Any = 0, num_rows: Any = -1, num_cols: Any = -1, padding_value: Any = 0
) -> Tensor:
    """Matrices with the given diagonals `k` (one number, or a pair: the lowest and the highest), zero elsewhere."""
    diagonal = convert_to_tensor(diagonal)
    if _is_main(k) and num_rows == -1 and num_cols == -1 and _is_zero(padding_value):
        return tensor_op("MatrixDiag", name, diagonal=diagonal)
    padding = convert_to_tensor(padding_value, dtype=diagonal.dtype)
    return tensor_op(
        "MatrixDiagV2", name, diagonal=diagonal, k=k, num_rows=num_rows, num_cols=num_cols, padding_value=padding
    )


def matrix_diag_part(input: Any, name: str = "diag_part", k: Any = 0, padding_value: Any = 0) -> Tensor:
    """The diagonals `k` of a batch of matrices."""
    input = convert_to_tensor(input)
    if _is_main(k) and _is_zero(padding_value):
        return tensor_op("MatrixDiagPart", name, input=input)
    padding = convert_to_tensor(padding_value, dtype=input.dtype)
    return tensor_op("MatrixDiagPartV2", name, input=input, k=k, padding_value=padding)


def matrix_set_diag(input: Any, diagonal: Any, name: str = "set_diag", k: Any = 0) -> Tensor:
    """A batch of matrices with their diagonals `k` replaced."""
    if _is_main(k):
        return tensor_op("MatrixSetDiag", name, input=input, diagonal=diagonal)
    return tensor_op("MatrixSetDiagV2", name, input=input, diagonal=diagonal, k=k)


def _is_main(k: Any) -> bool:
    return isinstance(k, int) and k == 0


def _is_zero(value: Any) -> bool:
    return isinstance(value, (int, float)) and value == 0


def matrix_transpose(a: Any, name: str = "matrix_transpose", conjugate: bool = False) -> Tensor:
    """Each matrix of a batch transposed. Raises ValueError for fewer than two dimensions."""
    with name_scope(name, values=[a]):
        a = convert_to_tensor(a, name="a")
        ndims = a.shape.ndims
        if ndims is None:
            rank = array.rank(a)
            head = math.range(rank - 2)
            perm: Any = array.concat([head, [rank - 1, rank - 2]], 0)
        elif ndims < 2:
            raise ValueError(f"Argument 'a' should be a (batch) matrix, with rank >= 2.  Found: {a.shape}")
        else:
            perm = [*range(ndims - 2), ndims - 1, ndims - 2]
        return array.transpose(a, perm, conjugate=conjugate)


# --- blocks of space ---


def batch_to_space(
    input: Any, crops: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Moves blocks of the batch dimension into height and width, and crops; `block_size` is a number."""
    blocks = _alias("block_shape", block_shape, "block_size", block_size)
    if np.ndim(blocks) == 0:
        return tensor_op("BatchToSpace", name, input=input, crops=crops, block_size=int(blocks))
    return tensor_op("BatchToSpaceND", name, input=input, block_shape=blocks, crops=crops)


def space_to_batch(
    input: Any, paddings: Any, block_size: int | None = None, name: str | None = None, block_shape: Any = None
) -> Tensor:
    """Pads, and moves blocks of height and width into the batch dimension."""
    blocks = _alias("block_shape", block_shape, "block_size", block_size)
    both = [blocks, blocks] if np.ndim(blocks) == 0 else blocks
    return tensor_op("SpaceToBatchND", name, input=input, paddings=paddings, block_shape=both)


def required_space_to_batch_paddings(
    input_shape: Any, block_shape: Any, base_paddings: Any = None, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """`(paddings, crops)` that make the blocks of `space_to_batch_nd` fit; both [n, 2]."""
    with name_scope(name, "required_space_to_batch_paddings", [input_shape, block_shape]):
        sizes = convert_to_tensor(input_shape, dtype=dtypes.int32, name="input_shape")
        blocks = convert_to_tensor(block_shape, dtype=dtypes.int32, name="block_shape")
        count = blocks.shape.with_rank(1).as_list()[0]
        if count is None:
            raise ValueError(f"block_shape must have a known length, got shape {blocks.shape}")
        if base_paddings is None:
            base_paddings = np.zeros((count, 2), np.int32)
        base = convert_to_tensor(base_paddings, dtype=dtypes.int32, name="base_paddings")
        known = [constant_value(part) for part in (sizes, blocks, base)]
        if all(part is not None for part in known):
            size, block, pads = (np.asarray(part) for part in known)
            start = pads[:, 0]
            extra = (-(size + start + pads[:, 1])) % block
            return (
                array.constant(np.stack([start, pads[:, 1] + extra], 1).astype(np.int32), name="paddings"),
                array.constant(np.stack([0 * extra, extra], 1).astype(np.int32), name="crops"),
            )
        start_t, end_t = base[:, 0], base[:, 1]
        full = sizes + start_t + end_t
        extra_t = (blocks - full % blocks) % blocks
        paddings = array.stack([start_t, end_t + extra_t], 1, name="paddings")
        crops = array.stack([array.zeros_like(extra_t), extra_t], 1, name="crops")
        return paddings, crops


def space_to_depth(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves blocks of height and width into the channels."""
    return tensor_op("SpaceToDepth", name, input=input, block_size=block_size, data_format=data_format)


def depth_to_space(input: Any, block_size: int, name: str | None = None, data_format: str = "NHWC") -> Tensor:
    """Moves channels into blocks of height and width."""
    return tensor_op("DepthToSpace", name, input=input, block_size=block_size, data_format=data_format)


def extract_image_patches(
    images: Any,
    ksizes: Any = None,
    strides: Any = None,
    rates: Any = None,
    padding: str | None = None,
    name: str | None = None,
    sizes: Any = None,
) -> Tensor:
    """Patches of images, each laid out in the channels of one position."""
    return tensor_op(
        "ExtractImagePatches",
        name,
        images=images,
        ksizes=_alias("ksizes", ksizes, "sizes", sizes),
        strides=strides,
        rates=rates,
        padding=padding,
    )


def extract_patches(
    images: Any, sizes: Any, strides: Any, rates: Any, padding: str, name: str | None = None
) -> Tensor:
    """`extract_image_patches` under its name in `tf.image`."""
    return extract_image_patches(images, sizes, strides, rates, padding, name)


# --- sorting and searching ---


def sort(values: Any, axis: Any = -1, direction: str = "ASCENDING", name: str | None = None) -> Tensor:
    """The values in order along `axis`. Raises ValueError for a direction that is neither ASCENDING nor DESCENDING."""
    with name_scope(name, "sort"):
        return _sorted(values, axis, direction, positions=False)


def argsort(
    values: Any, axis: Any = -1, direction: str = "ASCENDING", stable: bool = False, name: str | None = None
) -> Tensor:
    """The positions that put the values in order along `axis`; always stable."""
    with name_scope(name, "argsort"):
        return _sorted(values, axis, direction, positions=True)


def _sorted(values: Any, axis: Any, direction: str, *, positions: bool) -> Tensor:
    if direction not in ("ASCENDING", "DESCENDING"):
        raise ValueError(f"{direction} should be one of ASCENDING, DESCENDING")
    along = axis if isinstance(axis, int) else constant_value(convert_to_tensor(axis, name="axis"))
    if along is None or np.ndim(along) != 0:
        raise ValueError("axis must be a constant scalar")
    along = int(along)
    values = convert_to_tensor(values, name="values")
    rank = values.shape.ndims
    if rank is None:
        if along != -1:
            raise ValueError(f"sorting along axis {along} needs values of known rank; got {values!r}")
        order = None
    else:
        if not -rank <= along < rank:
            raise ValueError(f"axis = {along} not in [{-rank}, {rank})")
        order = [*range(rank)]
        order[along % rank], order[-1] = order[-1], order[along % rank]
        order = None if order == [*range(rank)] else order
    moved = values if order is None else array.transpose(values, order)
    ascending = direction == "ASCENDING"
    # top_k gives the largest first: ascending order is that of the negated values, without overflow for integers.
    keys = moved
    if ascending:
        kind = values.dtype.base_dtype
        if kind.is_unsigned:
            keys = math.subtract(array.constant(kind.max, kind), moved)
        elif kind.is_integer:
            keys = math.subtract(array.constant(-1, kind), moved)
        else:
            keys = math.negative(moved)
    found = apply_op("TopKV2", None, input=keys, k=array.shape(moved)[-1], sorted=True)
    if positions:
        result: Tensor = found.indices
    else:
        result = found.values
        if ascending:
            if kind.is_unsigned:
                result = math.subtract(array.constant(kind.max, kind), result)
            elif kind.is_integer:
                result = math.subtract(array.constant(-1, kind), result)
            else:
                result = math.negative(result)
    result = result if order is None else array.transpose(result, order)
    result.set_shape(values.shape)
    return result


def searchsorted(
    sorted_sequence: Any, values: Any, side: str = "left", out_type: Any = dtypes.int32, name: str | None = None
) -> Tensor:
    """Where each value would go into its sorted row, before ("left") or after ("right") its equals."""
    if side not in ("left", "right"):
        raise ValueError(f"side must be either 'right' or 'left'.  Saw: {side}.")
    width = array.shape(sorted_sequence, out_type=dtypes.int32)[-1]
    count = array.shape(values, out_type=dtypes.int32)[-1]
    rows = array.reshape(sorted_sequence, array.stack([-1, width]))
    wanted = array.reshape(values, array.stack([-1, count]))
    found = tensor_op(
        "LowerBound" if side == "left" else "UpperBound", name, sorted_inputs=rows, values=wanted, out_type=out_type
    )
    return array.reshape(found, array.shape(values))


def unique_with_counts(x: Any, out_idx: Any = dtypes.int32, name: str | None = None) -> Any:
    """`(y, idx, count)`: as `unique`, and how often each element appears."""
    return apply_op("UniqueWithCounts", name, x=x, out_idx=out_idx)


# --- grids, repeats, batches ---


def meshgrid(*args: Any, indexing: str = "xy", name: str = "meshgrid") -> list[Tensor]:
    """The coordinates of a grid, one tensor for each given vector. `indexing` is "xy" (like NumPy's) or "ij"."""
    if indexing not in ("xy", "ij"):
        raise ValueError("indexing parameter must be either 'xy' or 'ij'")
    with name_scope(name, "meshgrid", args):
        count = len(args)
        reshaped = []
        for place, value in enumerate(args):
            shape = [1] * count
            shape[place] = -1
            reshaped.append(array.reshape(array.stack(value), shape))
        sizes = [array.size(x) for x in args]
        dtype = convert_to_tensor(args[0]).dtype.base_dtype if args else dtypes.float32
        if indexing == "xy" and count > 1:
            reshaped[0] = array.reshape(reshaped[0], [1, -1] + [1] * (count - 2))
            reshaped[1] = array.reshape(reshaped[1], [-1, 1] + [1] * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        ones = array.fill(array.stack(sizes), array.constant(1, dtype)) if args else None
        return [math.multiply(x, ones) for x in reshaped]


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element along `axis` as often as `repeats` says (one number, or one each); flattened if axis is None.

    Raises TypeError for repeats that are no integers, ValueError for an axis that `input` does not have, or a negative
    one of an unknown rank, and where the sizes known before the run disagree; those known later fail the step.
    """
    with name_scope(name, "Repeat", [input, repeats]):
        data = convert_to_tensor(input, name="data")
        counts = convert_to_tensor(repeats, name="repeats")
        if not counts.dtype.is_integer:
            raise TypeError(f"repeats must be an integer tensor; dtype={counts.dtype!r}")
        counts = math.maximum(math.cast(counts, dtypes.int32), 0)
        counts.shape.with_rank_at_most(1)
        if axis is None:
            data, axis = array.reshape(data, [-1]), 0
        elif data.shape.ndims is None:
            size = array.shape(data)  # a scalar becomes a vector
            data = array.reshape(data, array.concat([[1], size], 0)[-math.maximum(array.rank(data), 1) :])
        elif data.shape.ndims == 0:
            data = array.expand_dims(data, 0)
        axis = positive_axis(axis, data.shape.ndims)
        if counts.shape.ndims == 1 and data.shape.dims is not None:
            data.shape.dims[axis].assert_is_compatible_with(counts.shape[0])
        if counts.shape.ndims == 0:  # a fill's values are known before the run, and so is the result's size
            counts = array.fill([array.shape(data)[axis]], counts)
        elif counts.shape.ndims is None:
            counts = array.broadcast_to(counts, [array.shape(data)[axis]])
        ends = math.cumsum(counts)
        # Position p of the result comes from the first element whose repeats end after p.
        places = math.range(math.reduce_sum(counts))
        return slicing.gather(data, searchsorted(ends, places, side="right"), axis=axis)


def positive_axis(axis: int, rank: int | None) -> int:
    """`axis` counted from the front. Raises TypeError and ValueError as TensorFlow does."""
    if not isinstance(axis, int):
        raise TypeError(f"axis must be an int; got {type(axis).__name__}")
    if rank is None:
        if axis < 0:
            raise ValueError("axis may only be negative if ndims is statically known.")
        return axis
    if not -rank <= axis < rank:
        raise ValueError(f"axis={axis} out of bounds: expected {-rank}<=axis<{rank}")
    return axis % rank


def batch_gather(params: Any, indices: Any, name: str | None = None) -> Tensor:
    """Gathers along the last dimension of `indices`, for each batch: the dimensions before it are shared."""
    with name_scope(name, "BatchGather", [params, indices]):
        indices = convert_to_tensor(indices, name="indices")
        params = convert_to_tensor(params, name="params")
        if indices.shape.ndims is None:
            raise ValueError("batch_gather does not allow indices with unknown shape.")
        shared = indices.shape.ndims - 1
        return tensor_op("GatherV2", None, params=params, indices=indices, axis=shared, batch_dims=shared)


def parallel_stack(values: Any, name: str = "parallel_stack") -> Tensor:
    """`stack` along a first dimension, each value copied as it comes. Raises ValueError unless shapes are known."""
    with name_scope(name):
        tensors = [convert_to_tensor(value) for value in values]
        shape = tensors[0].shape
        if not shape.is_fully_defined():
            raise ValueError(f"parallel_stack needs values of known shape, got {shape}")
        full = [len(tensors), *shape.as_list()]
        parts = [array.expand_dims(tensor, 0) for tensor in tensors]
        return tensor_op("ParallelConcat", None, values=parts, shape=full)


def batch_scatter_update(
    ref: Any, indices: Any, updates: Any, use_locking: bool = True, name: str | None = None
) -> Any:
    """`scatter_update` along the last dimension of `indices`, for each batch."""
    from tenfold.ops import state_ops

    with name_scope(name):
        indices = convert_to_tensor(indices, name="indices")
        shape = array.shape(indices)
        shared = (indices.shape.ndims or 1) - 1
        places = []
        for dim in range(shared):
            view = [1] * dim + [-1] + [1] * (shared - dim)
            places.append(math.cast(array.reshape(math.range(shape[dim]), view), indices.dtype))
        full = [math.add(place, array.zeros_like(indices)) for place in places]
        nd = array.stack([*full, indices], axis=-1)
        return state_ops.scatter_nd_update(ref, nd, updates, use_locking, name)
