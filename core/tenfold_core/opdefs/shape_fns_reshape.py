"""Shape functions of arrays made, filled, reshaped, padded and reordered. See shape_fns.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import _UNKNOWN, _axis, _dims, _same_prefix, _size_constant, _times
from tenfold_core.tensor_shape import TensorShape, from_dims, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]


def reshape(c: ShapeContext) -> Shapes:
    wanted, total = c.constant(1), 0 if 0 in (_dims(c.input(0)) or ()) else c.input(0).num_elements()
    if wanted is None:
        dims_known = _dims(c.partial(1))
        if dims_known is None or dims_known.count(None) != 1 or total is None:
            return [c.partial(1)]
        # Whether it is -1 or only not known yet: the one open size can only be what is left.
        wanted_dims = [-1 if d is None else d for d in dims_known]
        return [from_dims(_without_minus_one(wanted_dims, total))]
    dims = [int(d) for d in wanted.reshape(-1)]
    if dims.count(-1) > 1:
        raise ValueError(f"Reshape: only one size may be -1, got {dims}")
    if -1 in dims:
        return [from_dims(_without_minus_one(dims, total))]
    known = 1
    for d in dims:
        known *= d
    if total is not None and total != known:
        sizes = ",".join(str(d) for d in dims)
        raise ValueError(f"Cannot reshape a tensor with {total} elements to shape [{sizes}] ({known} elements)")
    return [from_dims(dims)]


def _without_minus_one(dims: list[int], total: int | None) -> list[int | None]:
    """`dims` with the size that makes up `total` elements for the -1; None where that cannot be told."""
    known = 1
    for d in dims:
        known *= 1 if d == -1 else d
    missing = None
    if total is not None and known:
        if total % known:
            raise ValueError(f"Dimension size must be evenly divisible by {known} but is {total} for Reshape to {dims}")
        missing = total // known
    return [missing if d == -1 else d for d in dims]


def fill(c: ShapeContext) -> Shapes:
    dims = c.constant(0)
    if dims is not None and (dims < 0).any():
        raise ValueError("Fill dimensions must be >= 0")
    return [c.partial(0)]


def random_shape(c: ShapeContext) -> Shapes:
    return [c.partial(0)]


def tile(c: ShapeContext) -> Shapes:
    dims, times = _dims(c.input(0)), c.constant(1)
    if dims is None:
        return [unknown_shape(_length(c, 1))]
    _one_for_each_axis(c, 1, len(dims))
    if times is None:
        return [from_dims(_times(d, None) for d in dims)]
    return [from_dims(_times(d, int(n)) for d, n in zip(dims, times, strict=True))]


def _length(c: ShapeContext, index: int) -> int | None:
    """How many elements input `index`, a vector, or rows, a matrix, has."""
    return c.input(index).as_list()[0] if c.input(index).ndims else None


def _one_for_each_axis(c: ShapeContext, index: int, rank: int) -> None:
    """Raises ValueError unless input `index`, a vector, has `rank` elements, as far as is known."""
    length = c.input(index).with_rank(1).as_list()[0]
    if length not in (None, rank):
        name = c.op_def.inputs[index].name
        raise ValueError(f"{c.op_def.name}: {name} has {length} elements, for a shape of rank {rank}")


def tile_grad(c: ShapeContext) -> Shapes:
    """What `tile` made into the input: each size divided by its multiple."""
    dims, times = _dims(c.input(0)), c.constant(1)
    if dims is None or times is None or times.shape != (len(dims),):
        return [_UNKNOWN if dims is None else unknown_shape(len(dims))]
    return [from_dims(None if d is None or n < 1 else d // int(n) for d, n in zip(dims, times, strict=True))]


def expand_dims(c: ShapeContext) -> Shapes:
    value = c.constant(1)
    if value is not None and value.size != 1:
        raise ValueError(f"'dim' input must be a tensor with a single value, not of shape {c.input(1)}")
    dims = _dims(c.input(0))
    if dims is None or value is None:
        return [_UNKNOWN]
    at = _axis(int(value.reshape(())), len(dims) + 1)
    return [from_dims([*dims[:at], 1, *dims[at:]])]


def squeeze(c: ShapeContext) -> Shapes:
    dims, axes = _dims(c.input(0)), c.attrs.get("squeeze_dims") or []
    if dims is None:
        return [_UNKNOWN]
    if axes:
        gone = {_axis(int(a), len(dims)) for a in axes}
        for axis in gone:
            if dims[axis] not in (None, 1):
                raise ValueError(f"Can not squeeze dim[{axis}], expected a dimension of 1, got {dims[axis]}")
        return [from_dims(d for i, d in enumerate(dims) if i not in gone)]
    return [_UNKNOWN if None in dims else from_dims(d for d in dims if d != 1)]


def shape_of(c: ShapeContext) -> Shapes:
    return [TensorShape([c.input(0).ndims])]


def shape_n(c: ShapeContext) -> Shapes:
    return [TensorShape([shape.ndims]) for shape in c.inputs]


def transpose(c: ShapeContext) -> Shapes:
    dims, order = _dims(c.input(0)), c.constant(1)
    if dims is None:
        length = _length(c, 1)
        return [unknown_shape(None if length == 1 else length)]  # of one element for a scalar, too
    if order is not None and order.ndim != 1:
        raise ValueError(f"Shape must be rank 1 but is rank {order.ndim}: the order of Transpose is a vector")
    if order is None:
        _one_for_each_axis(c, 1, len(dims))
        return [unknown_shape(len(dims))]
    rank = len(dims)
    for i in order:
        if not -rank <= i < rank:
            raise ValueError(f"perm dim {int(i)} is out of range of input rank {rank}")
    if sorted(int(i) % rank for i in order) != list(range(rank)):
        raise ValueError(f"Transpose: {list(map(int, order))} is no permutation of the axes of {c.input(0)}")
    return [from_dims(dims[int(i)] for i in order)]


def one_hot(c: ShapeContext) -> Shapes:
    dims, depth = _dims(c.input(0)), _size_constant(c, 1)
    if dims is None:
        return [_UNKNOWN]
    at = int(c.attrs["axis"])
    at = len(dims) if at == -1 else at
    return [from_dims([*dims[:at], depth, *dims[at:]])]


def pad(c: ShapeContext) -> Shapes:
    if c.input(1).ndims == 2 and c.input(1).as_list()[1] not in (None, 2):
        raise ValueError(f"Dimension must be 2 but is {c.input(1).as_list()[1]}")
    paddings = c.constant(1)
    if paddings is None:
        dims, rows = _dims(c.input(0)), _length(c, 1)
        if dims is not None and rows not in (None, len(dims)):
            raise ValueError(f"{c.op_def.name}: paddings have {rows} rows, for a shape of rank {len(dims)}")
        return [unknown_shape(rows if dims is None else len(dims))]
    if (paddings < 0).any():
        raise ValueError("Paddings must be non-negative")
    shape = c.input(0).with_rank(len(paddings))
    both = zip(shape.as_list(), paddings, strict=True)
    return [from_dims(None if d is None else d + int(p[0]) + int(p[1]) for d, p in both)]


def unique(c: ShapeContext) -> Shapes:
    return [unknown_shape(1), c.input(0)]


def list_diff(c: ShapeContext) -> Shapes:
    return [unknown_shape(1), unknown_shape(1)]


def diag(c: ShapeContext) -> Shapes:
    return [c.input(0).concatenate(c.input(0))]


def matrix_diag(c: ShapeContext) -> Shapes:
    shape = c.input(0).with_rank_at_least(1)
    return [_UNKNOWN if shape.ndims is None else shape.concatenate(shape[-1:])]


def ensure_shape(c: ShapeContext) -> Shapes:
    return [c.input(0).merge_with(c.attrs["shape"])]


def scatter_nd(c: ShapeContext) -> Shapes:
    return [c.partial(2)]


def dynamic_stitch(c: ShapeContext) -> Shapes:
    """As many rows as the largest index says; the rest of the shape is any pair's."""
    half = len(c.inputs) // 2
    indices_known = [c.constant(i) for i in range(half)]
    rows: int | None = 0
    for value in indices_known:
        if value is None:
            rows = None
            break
        rows = max(rows or 0, int(value.max(initial=-1)) + 1)
    rest = _UNKNOWN
    for indices, data in zip(c.inputs[:half], c.inputs[half:], strict=True):
        if indices.ndims is not None and data.ndims is not None:
            rest = rest.merge_with(_same_prefix(data, indices))
    return [TensorShape([rows]).concatenate(rest)]


def dynamic_partition(c: ShapeContext) -> Shapes:
    data, partitions = c.input(0), c.input(1)
    if data.ndims is None or partitions.ndims is None:
        return [_UNKNOWN] * c.output_count
    return [TensorShape([None]).concatenate(_same_prefix(data, partitions))] * c.output_count


def sparse_to_dense(c: ShapeContext) -> Shapes:
    return [c.partial(1)]


def bitcast(c: ShapeContext) -> Shapes:
    shape, before, after = c.input(0), c.attrs["T"].size, c.attrs["type"].size
    if shape.ndims is None or before == after:
        return [shape]
    if before > after:
        return [shape.concatenate([before // after])]
    last = shape.with_rank_at_least(1).as_list()[-1]
    if last not in (None, after // before):
        raise ValueError(f"Cannot bitcast: the last dimension must be {after // before} but is {last}")
    return [shape[:-1]]


def multinomial(c: ShapeContext) -> Shapes:
    rows = _dims(c.input(0).with_rank(2))
    return [TensorShape([rows[0] if rows else None, _size_constant(c, 1)])]
