"""Grids and repeated elements: `tf.meshgrid`, `tf.repeat`. Node names follow TensorFlow 1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.array_sort import searchsorted
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


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
            reshaped.append(array.reshape(convert_to_tensor(value), shape))
        sizes = [array.size(x) for x in args]
        dtype = convert_to_tensor(args[0]).dtype.base_dtype if args else dtypes.float32
        if indexing == "xy" and count > 1:
            reshaped[0] = array.reshape(reshaped[0], [1, -1] + [1] * (count - 2))
            reshaped[1] = array.reshape(reshaped[1], [-1, 1] + [1] * (count - 2))
            sizes[0], sizes[1] = sizes[1], sizes[0]
        ones = array.fill(array.stack(sizes), array.constant(1, dtype)) if args else None
        return [math.multiply(x, ones) for x in reshaped]


def repeat(input: Any, repeats: Any, axis: int | None = None, name: str | None = None) -> Tensor:
    """Each element along `axis` repeated `repeats` times (one number, or one per element); flattened if axis is None.

    Raises TypeError for repeats that are not integers, ValueError for an axis that `input` does not have, a negative
    axis with an unknown rank, and static sizes that disagree. Sizes known only in the step fail the step.
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
        if counts.shape.ndims == 0:  # fill keeps the values, and so the size of the result, static
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
