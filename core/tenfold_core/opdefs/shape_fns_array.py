"""Shape functions of the rarer array and math ops: blocks, diagonals, duplicates, segments, spectra, sparse sets.

The common ones are in shape_fns.py. Follows array_ops.cc, math_ops.cc, spectral_ops.cc and sparse_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core.opdefs.shape_fns import (
    _axis,
    _each_axis,
    _exactly,
    _less,
    _merge,
    _size_constant,
    _vector_constant,
    add_n,
    always,
    attr_shape,
    broadcast,
    scalar,
    unchanged,
)
from tenfold_core.opdefs.shape_fns_math import unsorted_segment
from tenfold_core.tensor_shape import TensorShape, from_dims, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.shape_inference import ShapeContext

    Shapes = list[TensorShape]

__all__ = ["add_n", "always", "attr_shape", "broadcast", "scalar", "unchanged", "unsorted_segment"]

_UNKNOWN = TensorShape(None)
_SCALAR = TensorShape([])
_VECTOR = unknown_shape(1)
_MATRIX = unknown_shape(2)


def second_input(c: ShapeContext) -> Shapes:
    return [c.input(1)]


def third_input(c: ShapeContext) -> Shapes:
    return [c.input(2)]


def fourth_input(c: ShapeContext) -> Shapes:
    return [c.input(3)]


def _times(size: int | None, factor: int) -> int | None:
    return None if size is None else size * factor


# ---- blocks ----------------------------------------------------------------------------------------------------------


def depth_to_space(c: ShapeContext) -> Shapes:
    block = int(c.attrs["block_size"])
    dims, (h, w, depth) = c.input(0).with_rank(4).as_list(), _image_axes(c)
    channels = dims[depth]
    if channels is not None and channels % (block * block):
        raise ValueError(f"Dimension size must be evenly divisible by {block * block} but is {channels}")
    dims[h], dims[w] = _times(dims[h], block), _times(dims[w], block)
    dims[depth] = None if channels is None else channels // (block * block)
    return [from_dims(dims)]


def space_to_depth(c: ShapeContext) -> Shapes:
    block = int(c.attrs["block_size"])
    dims, (h, w, depth) = c.input(0).with_rank(4).as_list(), _image_axes(c)
    for axis in (h, w):
        size = dims[axis]
        if size is not None and size % block:
            raise ValueError(f"Dimension size must be evenly divisible by {block} but is {size}")
        dims[axis] = None if size is None else size // block
    dims[depth] = _times(dims[depth], block * block)
    return [from_dims(dims)]


def _image_axes(c: ShapeContext) -> tuple[int, int, int]:
    if c.attrs["data_format"] == b"NCHW":
        return 2, 3, 1
    return 1, 2, 3


def _blocks(c: ShapeContext, shape: TensorShape, block: Any, pads: Any, to_batch: bool) -> TensorShape:
    """A batch's shape after its spatial axes were cut into blocks or put together again."""
    if shape.ndims is None:
        return _UNKNOWN
    dims = shape.with_rank_at_least(len(block) + 1).as_list()
    if pads is not None and pads.shape != (len(block), 2):
        what = "paddings" if to_batch else "crops"
        raise ValueError(f"{c.op_def.name}: {what} should have shape [{len(block)}, 2], but have {list(pads.shape)}")
    if pads is not None and (pads < 0).any():
        raise ValueError(f"{c.op_def.name}: {'paddings' if to_batch else 'crops'} cannot be negative")
    whole = 1
    for size in block:
        if size <= 0:
            raise ValueError(f"{c.op_def.name}: block sizes must be positive, got {list(map(int, block))}")
        whole *= int(size)
    batch = dims[0]
    if to_batch:
        dims[0] = _times(batch, whole)
    elif batch is not None and batch % whole:
        raise ValueError(f"Dimension size must be evenly divisible by {whole} but is {batch}")
    else:
        dims[0] = None if batch is None else batch // whole
    for i, size in enumerate(block, 1):
        extent = dims[i]
        if extent is None or pads is None:
            dims[i] = None
            continue
        change = int(pads[i - 1][0]) + int(pads[i - 1][1])
        if not to_batch:
            dims[i] = extent * int(size) - change
        elif (extent + change) % int(size):
            raise ValueError(f"Dimension size must be evenly divisible by {int(size)} but is {extent + change}")
        else:
            dims[i] = (extent + change) // int(size)
    return from_dims(dims)


def space_to_batch(c: ShapeContext) -> Shapes:
    size = int(c.attrs["block_size"])
    return [_blocks(c, c.input(0).with_rank(4), (size, size), c.constant(1), True)]


def batch_to_space(c: ShapeContext) -> Shapes:
    size = int(c.attrs["block_size"])
    return [_blocks(c, c.input(0).with_rank(4), (size, size), c.constant(1), False)]


def _in_blocks(c: ShapeContext, to_batch: bool) -> Shapes:
    block, shape = c.constant(1), c.input(0)
    c.input(1).with_rank(1)
    if block is None:
        if shape.ndims is None or c.input(1).ndims != 1 or c.input(1).as_list()[0] is None:
            return [unknown_shape(shape.ndims)]
        cut = 1 + int(c.input(1)[0])  # the batch and the axes that are cut
        return [unknown_shape(cut).concatenate(shape.with_rank_at_least(cut)[cut:])]
    return [_blocks(c, c.input(0), block.reshape(-1), c.constant(2), to_batch)]


def space_to_batch_nd(c: ShapeContext) -> Shapes:
    return _in_blocks(c, True)


def batch_to_space_nd(c: ShapeContext) -> Shapes:
    return _in_blocks(c, False)


def patches(c: ShapeContext) -> Shapes:
    """ExtractImagePatches: a patch's values lie in the channels."""
    dims = c.input(0).with_rank(4).as_list()
    return [from_dims([dims[0], *_windows(c, dims[1:3], _each_axis(c, "rates", 4)[1:3]), _patch(c, dims[3])])]


def volume_patches(c: ShapeContext) -> Shapes:
    dims = c.input(0).with_rank(5).as_list()
    return [from_dims([dims[0], *_windows(c, dims[1:4], (1, 1, 1)), _patch(c, dims[4])])]


def _patch(c: ShapeContext, depth: int | None) -> int | None:
    sizes = c.attrs["ksizes"][1:-1]
    for size in sizes:
        depth = _times(depth, int(size))
    return depth


def _windows(c: ShapeContext, extents: Any, rates: Any) -> list[int | None]:
    found: list[int | None] = []
    strides, sizes = (_each_axis(c, name, len(extents) + 2) for name in ("strides", "ksizes"))
    for i, extent in enumerate(extents, 1):
        stride, reach = int(strides[i]), (int(sizes[i]) - 1) * int(rates[i - 1]) + 1
        if stride <= 0:
            raise ValueError(f"Stride must be > 0, but got {stride}")
        if extent is None:
            found.append(None)
        elif c.attrs["padding"] == b"SAME":
            found.append(-(-extent // stride))
        else:
            found.append((extent - reach + stride) // stride)
    return found


# ---- diagonals -------------------------------------------------------------------------------------------------------


def diag_part(c: ShapeContext) -> Shapes:
    """Half the axes: both halves are the same."""
    shape = c.input(0)
    if shape.ndims is None:
        return [_UNKNOWN]
    if shape.ndims % 2 or not shape.ndims:
        raise ValueError(f"Input must have even and non-zero rank, input rank is {shape.ndims}")
    half = shape.ndims // 2
    return [shape[:half].merge_with(shape[half:])]


def matrix_diag_part(c: ShapeContext) -> Shapes:
    shape = c.input(0).with_rank_at_least(2)
    if shape.ndims is None:
        return [_UNKNOWN]
    rows, columns = shape.as_list()[-2:]
    return [shape[:-2].concatenate([_less(rows, columns)])]


def _band(c: ShapeContext, index: int = 1) -> tuple[int, int] | None:
    value = c.constant(index)
    if value is None:
        return None
    flat = value.reshape(-1)
    if len(flat) not in (1, 2):
        raise ValueError(f"diag_index must be a vector with one or two elements. It has {len(flat)} elements.")
    lower, upper = int(flat[0]), int(flat[-1])
    if lower > upper:
        raise ValueError(f"diag_index[0] ({lower}) must not be larger than diag_index[1] ({upper})")
    return lower, upper


def matrix_diag_part_v2(c: ShapeContext) -> Shapes:
    """[..., diagonals, longest], without the axis of diagonals where there is one."""
    shape, band = c.input(0).with_rank_at_least(2), _band(c)
    if shape.ndims is None or band is None:
        return [_UNKNOWN]
    rows, columns = shape.as_list()[-2:]
    lower, upper = band
    longest = None
    if rows is not None and columns is not None:
        longest = min(rows + min(upper, 0), columns - max(lower, 0))
    count = [] if lower == upper else [upper - lower + 1]
    return [shape[:-2].concatenate([*count, longest])]


def matrix_diag_v2(c: ShapeContext) -> Shapes:
    shape, band = c.input(0).with_rank_at_least(1), _band(c)
    if shape.ndims is None or band is None:
        return [_UNKNOWN]
    lower, upper = band
    batch = shape[:-1] if lower == upper else shape[:-2]
    length = shape.as_list()[-1]
    rows, columns = (None if (v := c.constant(i)) is None else int(v.reshape(())) for i in (2, 3))
    if length is not None:
        least_rows, least_columns = length - min(upper, 0), length + max(lower, 0)
        rows, columns = (None if size == -1 else size for size in (rows, columns))
        known = c.constant(2) is not None and c.constant(3) is not None
        if rows is None and columns is None and known:
            rows = columns = max(least_rows, least_columns)
        elif known:
            rows = least_rows if rows is None else rows
            columns = least_columns if columns is None else columns
    else:
        rows, columns = (None if size == -1 else size for size in (rows, columns))
    return [batch.concatenate([rows, columns])]


def matrix_set_diag(c: ShapeContext) -> Shapes:
    """The matrix, whose batch the diagonal's batch may say more about."""
    shape, diagonal = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(1)
    if diagonal.ndims is None:
        return [shape]
    if shape.ndims is None:
        return [diagonal[:-1].concatenate([None, None])]
    return [shape[:-2].merge_with(diagonal[:-1]).concatenate(shape[-2:])]


def matrix_set_diag_v2(c: ShapeContext) -> Shapes:
    shape, diagonal = c.input(0).with_rank_at_least(2), c.input(1).with_rank_at_least(1)
    band = _band(c, 2)
    if band is not None:
        one = band[0] == band[1]
    elif c.input(2).ndims == 0:
        one = True
    else:
        return [shape]
    if diagonal.ndims is None:
        return [shape]
    batch = diagonal[: -1 if one else -2]
    if shape.ndims is None:
        return [batch.concatenate([None, None])]
    return [shape[:-2].merge_with(batch).concatenate(shape[-2:])]


# ---- duplicates, search, shapes --------------------------------------------------------------------------------------


def unique_with_counts(c: ShapeContext) -> Shapes:
    return [_VECTOR, c.input(0), _VECTOR]


def unique_v2(c: ShapeContext) -> Shapes:
    """Values, indices along the axis, and counts where the op has them."""
    shape, axis = c.input(0), c.constant(1)
    index = _VECTOR
    if shape.ndims is not None and axis is not None:
        if axis.ndim != 1 or axis.size > 1:
            raise ValueError(f"{c.op_def.name}: axis is a vector of one element or of none, not of shape {c.input(1)}")
        if axis.size:
            at = int(axis[0])
            if not -shape.ndims <= at < shape.ndims:
                raise ValueError(f"axis {at} is not in [{-shape.ndims}, {shape.ndims})")
            index = TensorShape([shape.as_list()[at]])
        else:
            index = shape
    return [unknown_shape(shape.ndims), index, _VECTOR][: c.output_count]


def invert_permutation(c: ShapeContext) -> Shapes:
    return [c.input(0).with_rank(1)]


def reverse_sequence(c: ShapeContext) -> Shapes:
    """As the data, whose batch has as many rows as there are lengths."""
    shape, lengths = c.input(0), c.input(1).with_rank(1)
    if shape.ndims is None:
        return [shape]
    at = int(c.attrs["batch_dim"])
    if not -shape.ndims <= at < shape.ndims:
        raise ValueError(f"batch_dim must be < input rank: {at} vs. {shape.ndims}")
    at %= shape.ndims
    return [shape[:at].concatenate(shape[at : at + 1].merge_with(lengths)).concatenate(shape[at + 1 :])]


def flipped(c: ShapeContext) -> Shapes:
    """As the data, with a flag for each axis."""
    return [c.input(0).merge_with(unknown_shape(c.input(1).with_rank(1).as_list()[0]))]


def reverse(c: ShapeContext) -> Shapes:
    """As the data; no axis twice."""
    shape, axes = c.input(0), c.constant(1)
    if shape.ndims is not None and axes is not None:
        for i, axis in enumerate(axes.reshape(-1).tolist()):
            if not -shape.ndims <= axis < shape.ndims:
                raise ValueError(f"'axis'[{i}] = {axis} is out of valid range [0, {shape.ndims - 1}]")
        places = [_axis(int(axis), shape.ndims) for axis in axes.reshape(-1)]
        for i, place in enumerate(places):
            if place in places[:i]:
                raise ValueError(f"axis {place} specified more than once.")
    return [shape]


def search(c: ShapeContext) -> Shapes:
    """As the values that are looked for; their rows are those of the sorted sequences."""
    return [c.input(1)]


def unravel_index(c: ShapeContext) -> Shapes:
    indices, dims = c.input(0), c.input(1)
    if indices.ndims is None:
        return [_UNKNOWN]
    if indices.ndims == 0:
        return [dims.with_rank(1)]
    rank = dims.as_list()[0] if dims.ndims == 1 else None
    return [TensorShape([rank, indices.num_elements()])]


def fingerprint(c: ShapeContext) -> Shapes:
    data, method = c.input(0), c.constant(1)
    del method  # a name, of which every one means eight bytes that only the run knows
    return [TensorShape([None if data.ndims is None else data.as_list()[0], None])]


def mirror_pad_grad(c: ShapeContext) -> Shapes:
    pads, shape = c.constant(1), c.input(0)
    if pads is None:
        rows = c.input(1).as_list()[0] if c.input(1).ndims == 2 else None
        return [unknown_shape(rows if shape.ndims is None or rows is not None else None)]
    if pads.ndim != 2 or pads.shape[1] != 2:
        raise ValueError(f"paddings must have shape [rank, 2], but have {list(pads.shape)}")
    if (pads < 0).any():
        raise ValueError("Paddings must be non-negative")
    if shape.ndims is None:
        return [unknown_shape(len(pads))]
    return [
        from_dims(None if d is None else d - int(p[0]) - int(p[1]) for d, p in zip(shape.as_list(), pads, strict=True))
    ]


def edit_distance(c: ShapeContext) -> Shapes:
    """The larger of both shapes without the last axis, where both are known."""
    both = c.constant(2), c.constant(5)
    if both[0] is None or both[1] is None:
        return [_UNKNOWN]
    return [from_dims(max(int(a), int(b)) for a, b in zip(both[0][:-1], both[1][:-1], strict=True))]


def quantize_range(c: ShapeContext) -> Shapes:
    return [c.input(0), _SCALAR, _SCALAR]


def quantize_gradient(c: ShapeContext) -> Shapes:
    """Of the data, the lower and the upper ends: scalars, or one a slice along the axis."""
    rank = 0 if int(c.attrs["axis"]) == -1 else 1
    ends = c.input(2).with_rank(rank).merge_with(c.input(3))
    return [c.input(0).merge_with(c.input(1)), ends, ends]


def quantize_channels(c: ShapeContext) -> Shapes:
    shape = c.input(0)
    depth = None if not shape.ndims else shape.as_list()[-1]
    vector = TensorShape([depth])
    return [shape, vector.merge_with(c.input(2)), vector.merge_with(c.input(3))]


def cross(c: ShapeContext) -> Shapes:
    """Vectors of three, in the last axis."""
    shape = c.input(0).with_rank_at_least(1).merge_with(c.input(1))
    if shape.ndims is not None:
        _exactly(shape.as_list()[-1], 3, ": Cross is a product of vectors of 3")
    return [shape]


# ---- math ------------------------------------------------------------------------------------------------------------


def merged(c: ShapeContext) -> Shapes:
    """All inputs have one shape; scalars stand for any."""
    result = _UNKNOWN if any(shape.ndims is None for shape in c.inputs) else _SCALAR
    for shape in c.inputs:
        if shape.ndims:
            result = result.merge_with(shape) if result.ndims else shape
    return [result]


def bincount(c: ShapeContext) -> Shapes:
    return [TensorShape([_size_constant(c, 1)])]


def dense_bincount(c: ShapeContext) -> Shapes:
    shape, size = c.input(0), _size_constant(c, 1)
    if shape.ndims is None or size is None:
        return [unknown_shape(shape.ndims)]
    return [TensorShape([size] if shape.ndims < 2 else [shape.as_list()[0], size])]


def histogram(c: ShapeContext) -> Shapes:
    c.input(1).with_rank(1).merge_with(TensorShape([2]))
    count = _size_constant(c, 2)
    if count == 0:
        raise ValueError("Requires nbins > 0: 0")
    return [TensorShape([count])]


def ragged_range(c: ShapeContext) -> Shapes:
    """Row splits and values: a row for each of what is not a scalar."""
    rows: int | None = None
    vectors = [shape for shape in c.inputs if shape.ndims != 0]
    for shape in vectors:
        if shape.ndims is not None:
            rows = _merge(rows, shape.as_list()[0], " for the limits of RaggedRange")
    if not vectors:
        rows = 1
    return [TensorShape([None if rows is None else rows + 1]), _VECTOR]


def segments_of_number(c: ShapeContext) -> Shapes:
    """SparseSegment*WithNumSegments: the last input says how many rows there are."""
    data = c.input(0).with_rank_at_least(1)
    c.input(1).assert_is_compatible_with(c.input(2))
    return [_UNKNOWN if data.ndims is None else TensorShape([_size_constant(c, 3)]).concatenate(data[1:])]


def segments_found(c: ShapeContext) -> Shapes:
    """SparseSegment*GradV2: a row for each index that occurs, and those indices."""
    data = c.input(0).with_rank_at_least(1)
    c.input(1).assert_is_compatible_with(c.input(2))
    return [_UNKNOWN if data.ndims is None else TensorShape([None]).concatenate(data[1:]), TensorShape([None])]


def einsum(c: ShapeContext) -> Shapes:
    """Labels have sizes; an ellipsis has a broadcast shape."""
    from tenfold_core.opdefs.shape_fns import broadcast_shapes

    equation = c.attrs["equation"].decode()
    left, arrow, right = equation.replace(" ", "").partition("->")
    if not arrow or "->" in right:
        raise ValueError(f"Expecting exactly one '->' in einsum equation: {equation}")
    labels_of = left.split(",")
    if len(labels_of) not in (1, 2):
        raise ValueError(f"Expecting 1 or 2 input subscripts in equation '{equation}' but got: {len(labels_of)}")
    if len(labels_of) != len(c.inputs):
        raise ValueError(f"Got {len(c.inputs)} inputs for the {len(labels_of)} subscripts of '{equation}'")
    for part in (*labels_of, right):
        if part.count(".") not in (0, 3) or (part.count(".") == 3 and "..." not in part):
            raise ValueError(f"Expected at most one ellipsis (...) in the subscript '{part}' of '{equation}'")
    for label in right.replace("...", ""):
        if label not in left:
            raise ValueError(
                f"Einsum output subscripts for equation '{equation}' has label '{label}' which is not present in the "
                "input subscripts"
            )
    sizes: dict[str, int | None] = {}
    ellipsis, is_open = TensorShape([]), False
    for labels, shape in zip(labels_of, c.inputs, strict=True):
        before, dots, after = labels.partition("...")
        if shape.ndims is None:
            is_open = is_open or bool(dots)
            continue
        dims = shape.as_list()
        if len(dims) < len(before) + len(after) or (not dots and len(dims) != len(before)):
            raise ValueError(f"Einsum: subscripts '{labels}' do not fit a shape of rank {len(dims)}")
        for label, size in zip(before + after, dims[: len(before)] + dims[len(dims) - len(after) :], strict=True):
            known = sizes.get(label)
            if known is not None and size is not None and known != size:
                raise ValueError(f"Dimensions must be equal, but are {known} and {size} for label '{label}'")
            sizes[label] = size if known is None else known
        if dots:
            ellipsis = broadcast_shapes(ellipsis, from_dims(dims[len(before) : len(dims) - len(after)]))
    before, dots, after = right.partition("...")
    if dots and is_open:
        return [_UNKNOWN]
    middle = ellipsis.as_list() if dots else []
    return [from_dims([*(sizes.get(x) for x in before), *middle, *(sizes.get(x) for x in after)])]


# ---- spectra ---------------------------------------------------------------------------------------------------------


def _spectrum(c: ShapeContext, halve: bool) -> Shapes:
    axes = int(c.op_def.name[-2]) if c.op_def.name[-2:] in ("2D", "3D") else 1
    shape, length = c.input(0).with_rank_at_least(axes), _vector_constant(c, 1, axes)
    if shape.ndims is None:
        return [_UNKNOWN]
    sizes: list[int | None] = [None] * axes if length is None else [*length]
    last = sizes[-1]
    if halve and last:
        sizes[-1] = last // 2 + 1
    return [shape[: shape.ndims - axes].concatenate(sizes)]


def rfft(c: ShapeContext) -> Shapes:
    return _spectrum(c, True)


def irfft(c: ShapeContext) -> Shapes:
    return _spectrum(c, False)


def sparse_bincount(c: ShapeContext) -> Shapes:
    """Of a vector, or of each row of a matrix: as input 2, the sparse tensor's shape, says."""
    dims = c.input(2).with_rank(1)
    size, rank, rows = _size_constant(c, 3), dims.as_list()[0], c.constant(2)
    if rank == 1:
        return [TensorShape([size])]
    return [TensorShape([None if rows is None else int(rows[0]), size]) if rank == 2 else TensorShape(None)]


def ragged_bincount(c: ShapeContext) -> Shapes:
    """A row of counts for each row that the splits make."""
    splits = c.input(0).with_rank(1).as_list()[0]
    return [TensorShape([None if splits is None else splits - 1, _size_constant(c, 2)])]
