"""Shape functions of sparse tensors: indices [n, rank], values [n], shape [rank]. The others are in shape_fns.py.

How many values a result has is known only when it runs; how many axes, from the shape that goes in. Follows
sparse_ops.cc and set_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import always
from tenfold_core.tensor_shape import TensorShape, from_dims, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

_VECTOR = unknown_shape(1)
_MATRIX = unknown_shape(2)

unknown_matrix = always([None, None], [None])


def _rows(shape: TensorShape) -> int | None:
    return shape.as_list()[0] if shape.ndims else None


def _sparse(rank: int | None) -> Shapes:
    return [TensorShape([None, rank]), _VECTOR, TensorShape([rank])]


def deserialize(c: ShapeContext) -> Shapes:
    """A member is a vector of three strings; nothing tells the rank."""
    rank = c.input(0).ndims
    if rank is not None:
        c.input(0)[-1].merge_with(3)
    return _sparse(None)


serialize = always([3])
serialize_many = always([None, 3])


def set_operation(c: ShapeContext) -> Shapes:
    """Sets in the last axis of two dense tensors of one rank."""
    ranks = [shape.ndims for shape in c.inputs[:2] if shape.ndims is not None]
    if ranks and ranks[0] < 2:
        raise ValueError(f"Input must have rank >= 2, got {ranks[0]}")
    return _sparse(ranks[0] if ranks else None)


def add(c: ShapeContext) -> Shapes:
    return _sparse(_rows(c.input(2).with_rank(1)))


def add_grad(c: ShapeContext) -> Shapes:
    a, b = c.input(1).with_rank(2), c.input(2).with_rank(2)
    return [TensorShape([_rows(a)]), TensorShape([_rows(b)])]


def concat(c: ShapeContext) -> Shapes:
    """All values of all tensors."""
    count = int(c.attrs["N"])
    rows: int | None = 0
    columns: int | None = None
    for shape in c.inputs[:count]:
        n, rank = shape.with_rank(2).as_list()
        rows = None if rows is None or n is None else rows + n
        columns = rank if columns is None else columns
    for shape in c.inputs[2 * count :]:
        length = _rows(shape.with_rank(1))
        columns = length if columns is None else columns
    return [TensorShape([rows, columns]), TensorShape([rows]), TensorShape([columns])]


def cross(c: ShapeContext) -> Shapes:
    """A matrix of as many values as only the step knows."""
    return [TensorShape([None, 2]), _VECTOR, TensorShape([2])]


def values_of_rows(c: ShapeContext) -> Shapes:
    """A value for each row of the indices (input 0)."""
    return [TensorShape([_rows(c.input(0).with_rank(2))])]


def slice_grad(c: ShapeContext) -> Shapes:
    return [TensorShape([_rows(c.input(1).with_rank(2))])]


def softmax(c: ShapeContext) -> Shapes:
    return [c.input(1).with_rank(1)]


def reorder(c: ShapeContext) -> Shapes:
    return [c.input(0).with_rank(2), c.input(1).with_rank(1)]


def fill_empty_rows(c: ShapeContext) -> Shapes:
    """Indices, values, which rows were empty, and where each old value is now."""
    indices, shape = c.input(0).with_rank(2), c.constant(2)
    length = _rows(c.input(2).with_rank(1))
    rank = indices.as_list()[1]
    rank = length if rank is None else rank
    values = _rows(c.input(1).with_rank(1))
    count = _rows(indices) if values is None else values
    if length == 0:
        raise ValueError("Dense shape cannot be empty.")
    rows = None if shape is None else int(shape[0])
    return [TensorShape([None, rank]), _VECTOR, TensorShape([rows]), TensorShape([count])]


def fill_empty_ragged_rows(c: ShapeContext) -> Shapes:
    count = c.constant(2)
    return [_VECTOR, _VECTOR, TensorShape([None if count is None else int(count)]), c.input(0).with_rank(1)]


def fill_empty_rows_grad(c: ShapeContext) -> Shapes:
    return [c.input(0).with_rank(1), TensorShape([])]


def reduction(c: ShapeContext) -> Shapes:
    shape, axes = c.constant(2), c.constant(3)
    if shape is None or axes is None:
        return [TensorShape(None)]
    dims = [int(size) for size in shape.reshape(-1)]
    gone = {int(axis) % len(dims) for axis in axes.reshape(-1)} if dims else set()
    if c.attrs["keep_dims"]:
        return [from_dims(1 if i in gone else d for i, d in enumerate(dims))]
    return [from_dims(d for i, d in enumerate(dims) if i not in gone)]


def reshape(c: ShapeContext) -> Shapes:
    rank = _rows(c.input(2).with_rank(1))
    return [TensorShape([_rows(c.input(0).with_rank(2)), rank]), TensorShape([rank])]


def slice_(c: ShapeContext) -> Shapes:
    shape = c.input(2)
    return [TensorShape([None, shape.num_elements()]), _VECTOR, shape]


def split(c: ShapeContext) -> Shapes:
    count, shape = int(c.attrs["num_split"]), c.input(3)
    return [TensorShape([None, shape.num_elements()])] * count + [_VECTOR] * count + [shape] * count


taken = always([None, None], [None], [None])
handle = always([])
handles = always([None])


def from_ragged(c: ShapeContext) -> Shapes:
    """Every value of a ragged tensor, whose values are the last input."""
    values = c.inputs[-1]
    rank = None if values.ndims is None else int(c.attrs["RAGGED_RANK"]) + values.ndims
    count = values.num_elements()
    return [TensorShape([count, rank]), TensorShape([count]), TensorShape([rank])]


def dense_sparse_set_operation(c: ShapeContext) -> Shapes:
    """Sets in the last axis of a dense tensor and of a sparse one of its rank, whose shape is input 3."""
    rank, other = c.input(0).ndims, _rows(c.input(3).with_rank(1))
    if rank is not None and rank < 2:
        raise ValueError(f"Input must have rank >= 2, got {rank}")
    if rank is not None and other is not None and rank != other:
        raise ValueError(f"Ranks must be equal, but are {rank} and {other}")
    return _sparse(other if rank is None else rank)


def sparse_set_operation(c: ShapeContext) -> Shapes:
    """Sets in the last axis of two sparse tensors of one rank, whose shapes are inputs 2 and 5."""
    ranks = [_rows(c.input(number).with_rank(1)) for number in (2, 5)]
    known = [rank for rank in ranks if rank is not None]
    if any(rank < 2 for rank in known):
        raise ValueError(f"Input rank must be >= 2, got {min(known)}")
    if len(set(known)) > 1:
        raise ValueError(f"Ranks must be equal, but are {known[0]} and {known[1]}")
    return _sparse(known[0] if known else None)
