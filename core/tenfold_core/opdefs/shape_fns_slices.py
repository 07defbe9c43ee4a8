"""Shape functions of gathers, slices, splits and joins. See shape_fns.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core.opdefs.shape_fns import _UNKNOWN, _axis, _dims, _merge, _scalar_constant
from tenfold_core.tensor_shape import TensorShape, from_dims, unknown_shape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]


def gather(c: ShapeContext) -> Shapes:
    params = c.input(0).with_rank_at_least(1)
    return [_UNKNOWN if params.ndims is None else c.input(1).concatenate(params[1:])]


def resource_gather(c: ShapeContext) -> Shapes:
    return [_UNKNOWN]


def gather_v2(c: ShapeContext) -> Shapes:
    params, indices, axis = c.input(0), c.input(1), _scalar_constant(c, 2)
    batch = int(c.attrs.get("batch_dims", 0))
    if batch > 0:
        params, indices = params.with_rank_at_least(batch + 1), indices.with_rank_at_least(batch)
    if params.ndims is None or indices.ndims is None:
        return [_UNKNOWN]
    if axis is None:
        return [unknown_shape(params.ndims + indices.ndims - 1 - batch)]
    at = _axis(axis, params.ndims)
    return [params[:at].concatenate(indices[batch:]).concatenate(params[at + 1 :])]


def gather_nd(c: ShapeContext) -> Shapes:
    params, indices = c.input(0), c.input(1)
    if params.ndims is None or indices.ndims is None or indices.as_list()[-1] is None:
        return [_UNKNOWN]
    depth = int(indices[-1])
    if depth > params.ndims:
        raise ValueError(
            f"indices.shape[-1] must be <= params.rank, but saw indices shape: {indices} and params shape: {params}"
        )
    return [indices[:-1].concatenate(params[depth:])]


def pack(c: ShapeContext) -> Shapes:
    shape = c.input(0)
    for other in c.inputs[1:]:
        shape = shape.merge_with(other)
    dims = _dims(shape)
    if dims is None:
        return [_UNKNOWN]
    at = _axis(int(c.attrs["axis"]), len(dims) + 1)
    return [from_dims([*dims[:at], len(c.inputs), *dims[at:]])]


def unpack(c: ShapeContext) -> Shapes:
    dims = _dims(c.input(0))
    if dims is None:
        return [_UNKNOWN] * c.output_count
    at = _axis(int(c.attrs["axis"]), len(dims))
    _merge(dims[at], c.output_count, f" for Unpack of {c.input(0)} along axis {at} into {c.output_count} outputs")
    return [from_dims(d for i, d in enumerate(dims) if i != at)] * c.output_count


def _joined(shapes: Sequence[TensorShape], axis: int | None) -> TensorShape:
    ranks = {shape.ndims for shape in shapes if shape.ndims is not None}
    if len(ranks) > 1:
        raise ValueError(f"Shapes of different ranks cannot be joined: {', '.join(map(str, shapes))}")
    if not ranks:
        return _UNKNOWN
    rank = ranks.pop()
    if axis is None:
        return unknown_shape(rank)
    at = _axis(axis, rank)
    result: list[int | None] = [None] * rank
    total: int | None = 0
    for shape in shapes:
        dims = [None] * rank if shape.ndims is None else shape.as_list()
        size = dims[at]
        total = None if total is None or size is None else total + size
        for i in range(rank):
            if i != at:
                result[i] = _merge(result[i], dims[i], f" for joining {', '.join(map(str, shapes))} along axis {at}")
    result[at] = total
    return from_dims(result)


def concat_v2(c: ShapeContext) -> Shapes:
    return [_joined(c.inputs[:-1], _scalar_constant(c, len(c.inputs) - 1))]


def concat(c: ShapeContext) -> Shapes:
    return [_joined(c.inputs[1:], _scalar_constant(c, 0))]


def concat_offset(c: ShapeContext) -> Shapes:
    return list(c.inputs[1:])


def slice_(c: ShapeContext) -> Shapes:
    dims, begin, size = _dims(c.input(0)), c.constant(1), c.constant(2)
    if dims is None:
        lengths = [c.input(index).as_list()[0] for index in (1, 2) if c.input(index).ndims == 1]
        unknown = unknown_shape(next((length for length in lengths if length is not None), None))
        # Sizes hold whatever the data; -1 is the rest of it.
        return [unknown if size is None else from_dims(None if n < 0 else int(n) for n in size)]
    for index, name in ((1, "begin"), (2, "size")):
        length = c.input(index).with_rank(1).as_list()[0]
        if length not in (None, len(dims)):
            raise ValueError(f"Slice: {name} has {length} entries, but must have one a dimension of {c.input(0)}")
    if begin is None or size is None:
        # The size of a slice may be known even where its beginning is not.
        if size is not None:
            return [from_dims(None if n < 0 else int(n) for n in size)]
        return [unknown_shape(len(dims))]
    result: list[int | None] = []
    for i, d in enumerate(dims):
        b, n = int(begin[i]), int(size[i])
        if n < -1 or (d is not None and n == -1 and b > d):
            raise ValueError(f"Slice: begin {b} and size {n} are out of dimension {i} of {c.input(0)}")
        # A negative beginning fails the step, after the checks that the program made of it.
        result.append(n if n != -1 else (None if d is None or b < 0 else d - b))
    return [from_dims(result)]


def strided_slice(c: ShapeContext) -> Shapes:
    dims = _dims(c.input(0))
    begin, end, strides = (c.constant(i) for i in (1, 2, 3))
    if dims is None:
        return [_UNKNOWN]
    if strides is None:
        return [_UNKNOWN]
    masks = {name: int(c.attrs[f"{name}_mask"]) for name in ("begin", "end", "ellipsis", "new_axis", "shrink_axis")}
    result: list[int | None] = []
    axis, count = 0, len(strides)
    explicit = [i for i in range(count) if not (masks["new_axis"] >> i & 1) and not (masks["ellipsis"] >> i & 1)]
    if len(explicit) > len(dims):
        raise ValueError(f"StridedSlice: {len(explicit)} indices are too many for a shape of rank {len(dims)}")
    for i in range(count):
        if masks["ellipsis"] >> i & 1:
            after = len([j for j in explicit if j > i])
            while axis < len(dims) - after:
                result.append(dims[axis])
                axis += 1
            continue
        if masks["new_axis"] >> i & 1:
            result.append(1)
            continue
        d = dims[axis]
        axis += 1
        if masks["shrink_axis"] >> i & 1:
            if begin is not None and d is not None and not -d <= int(begin[i]) < d:
                raise ValueError(f"slice index {int(begin[i])} of dimension {axis - 1} out of bounds for size {d}")
            continue
        step = int(strides[i])
        if step == 0:
            raise ValueError(f"strides[{i}] must be non-zero")
        open_begin, open_end = masks["begin"] >> i & 1, masks["end"] >> i & 1
        if d is None or (begin is None and not open_begin) or (end is None and not open_end):
            result.append(None)
            continue
        b = None if open_begin or begin is None else int(begin[i])
        e = None if open_end or end is None else int(end[i])
        result.append(len(range(*slice(b, e, step).indices(d))))
    return [from_dims([*result, *dims[axis:]])]


def strided_slice_grad(c: ShapeContext) -> Shapes:
    return [c.partial(0)]


def where(c: ShapeContext) -> Shapes:
    return [TensorShape([None, c.input(0).ndims])]


def split(c: ShapeContext) -> Shapes:
    dims, axis = _dims(c.input(1)), _scalar_constant(c, 0)
    if dims is None:
        return [_UNKNOWN] * c.output_count
    if axis is None:
        return [unknown_shape(len(dims))] * c.output_count
    at = _axis(axis, len(dims))
    size = dims[at]
    if size is not None and size % c.output_count:
        raise ValueError(f"Dimension size must be evenly divisible by {c.output_count} but is {size}")
    dims[at] = None if size is None else size // c.output_count
    return [from_dims(dims)] * c.output_count


def split_v(c: ShapeContext) -> Shapes:
    dims, sizes, axis = _dims(c.input(0)), c.constant(1), _scalar_constant(c, 2)
    if dims is None:
        return [_UNKNOWN] * c.output_count
    if axis is None:
        return [unknown_shape(len(dims))] * c.output_count
    at = _axis(axis, len(dims))
    if sizes is None:
        if c.output_count > 1:
            dims[at] = None
        return [from_dims(dims)] * c.output_count
    total, pieces = dims[at], [int(n) for n in sizes.reshape(-1)]
    if len(pieces) != c.output_count:
        raise ValueError(f"Length of size_splits should be equal to num_outputs: {len(pieces)} vs {c.output_count}")
    rest = None if total is None else total - sum(n for n in pieces if n >= 0)
    if rest is not None and (rest < 0 or (rest and min(pieces, default=0) >= 0)):
        raise ValueError(f"can't split axis of size {total} into pieces of size {pieces}")
    return [from_dims([*dims[:at], n if n >= 0 else rest, *dims[at + 1 :]]) for n in pieces]
