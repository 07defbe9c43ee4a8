"""Constants, placeholders, pass-through ops, joining, splitting, reordering and making arrays.

Shapes are in array_shape.py, slices in array_slice.py, gathers in array_gather.py. Identity and its kin, Transpose,
Split, Unpack and ReverseV2 return views of their input (a view of a read-only array is read-only); the rest is fresh.
"""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, tensor_util
from tenfold_core.dtypes import as_dtype
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import (
    Array,
    as_array,
    as_shape,
    canonical_axis,
    freeze,
    invalid,
    is_frozen,
    output_type,
    remembering,
    shape_text,
)
from tenfold_kernels.cpu import math_variants
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import NUMERIC

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_SIZE = attrgetter("size")
#: Bytes of joined arrays that are worth a part of their own, 100 to 200 µs; and of each of them, which has to be cut.
_PART, _EACH = 1 << 19, 1 << 18


@kernel("Const")
def build_const(node: KernelNode) -> Compute:
    """The value is decoded once, and enters every step as the same read-only array; a large one that is one element
    repeated holds that once, with strides of 0.
    """
    value = node.attrs["value"]
    if isinstance(value, np.ndarray):
        array = value.copy()
    else:
        if value.dtype != node.output_types[0].as_datatype_enum:
            try:
                given = as_dtype(value.dtype).op_name
            except TypeError:
                given = f"unknown type number {value.dtype}"
            raise invalid(f"Type mismatch between value ({given}) and dtype ({node.output_types[0].op_name})")
        array = tensor_util.proto_to_tensor(value, held_once=True)
        if not array.flags.writeable and (tensor_util.held_bytes(array) or not array.ndim):
            array = array.copy()
    freeze(array)
    return lambda: array


@kernel("Placeholder", "PlaceholderV2")
def build_placeholder(node: KernelNode) -> Compute:
    """Runs only when nothing was fed. Raises InvalidArgumentError that says what to feed."""
    shape = node.attrs.get("shape")
    wanted = ""
    if shape is not None and shape.ndims:
        wanted = f" and shape [{','.join('?' if d is None else str(d) for d in shape.as_list())}]"
    dtype = node.output_types[0].op_name
    message = f"You must feed a value for placeholder tensor '{node.name}' with dtype {dtype}{wanted}"

    def compute() -> Array:
        raise invalid(message)

    return compute


def _same(x: Array) -> Array:
    return x


@kernel("Identity", "StopGradient", "PreventGradient", "Snapshot", "DebugGradientIdentity", views=True)
def build_identity(node: KernelNode) -> Compute:
    return _same


@kernel("GuaranteeConst", views=True)
def build_guarantee_const(node: KernelNode) -> Compute:
    """Its input. Raises InvalidArgumentError for a resource, which never is constant."""
    if node.input_types[0] is not dtypes.resource:
        return _same

    def compute(handle: Any) -> Any:
        raise invalid("Input tensor cannot be a resource variable handle.")

    return compute


@kernel("PlaceholderWithDefault", views=True)
def build_placeholder_with_default(node: KernelNode) -> Compute:
    return _same


@kernel("RefIdentity", views=True)
def build_ref_identity(node: KernelNode) -> Compute:
    """The reference itself goes on, initialized or not."""
    return _same


@kernel("IdentityN", views=True)
def build_identity_n(node: KernelNode) -> Compute:
    if len(node.output_types) == 1:
        return _same
    return lambda *inputs: inputs


@kernel("DeepCopy")
def build_deep_copy(node: KernelNode) -> Compute:
    return lambda x: x.copy()


def _zero(node: KernelNode) -> Any:
    return b"" if node.output_types[0].name == "string" else 0


@kernel("Fill")
def build_fill(node: KernelNode) -> Compute:
    dtype = output_type(node)

    return lambda dims, value: np.full(fill_shape(dims, value, dtype), value.item(), dtype=dtype)


def fill_shape(dims: Array, value: Array, dtype: Any) -> tuple[int, ...]:
    """The shape that a Fill gives. Raises InvalidArgumentError."""
    if value.ndim and value.shape != (1,):
        raise invalid(f"value must represent a scalar, got shape {shape_text(value.shape)}")
    if dims.ndim > 1:
        raise invalid(f"dims must represent a vector, got shape {shape_text(dims.shape)}")
    return as_shape(dims, "dims", dtype)


@kernel("Empty")
def build_empty(node: KernelNode) -> Compute:
    dtype, zero = output_type(node), _zero(node)
    return lambda shape: np.full(as_shape(shape, dtype=dtype), zero, dtype=dtype)


@kernel("ZerosLike", "OnesLike")
def build_fill_like(node: KernelNode) -> Compute:
    if node.output_types[0] is dtypes.variant:
        return math_variants.zeros_like
    if node.op == "OnesLike":
        return lambda x: np.ones(x.shape, dtype=x.dtype)
    zero = _zero(node)
    if zero == b"":
        return lambda x: np.full(x.shape, b"", dtype=object)
    return lambda x: np.zeros(x.shape, dtype=x.dtype)


@kernel("Pack")
def build_pack(node: KernelNode) -> Compute:
    axis = int(node.attrs.get("axis", 0))

    def compute(*values: Array) -> Array:
        where = pack_axis(values, axis)
        shape, dtype = values[0].shape, values[0].dtype
        # of texts it would make an array that holds the scalars' arrays
        if not shape and not dtype.hasobject:
            return np.array(values, dtype)
        shape = *shape[:where], len(values), *shape[where:]
        allow(shape, dtype)
        # np.stack takes two or three times as long
        out = np.empty(shape, dtype)
        before: tuple[Any, ...] = (slice(None),) * where

        def part(first: int, last: int) -> None:
            rows = out[first:last]
            for i, value in enumerate(values):
                rows[(*before, i, ...)] = value[first:last]

        if where and out.nbytes >= max(2 * _PART, _EACH * len(values)) and not dtype.hasobject:
            in_parts(part, shape[0], -(-_PART * shape[0] // out.nbytes))
            return out
        for i, value in enumerate(values):
            out[(*before, i, ...)] = value
        return out

    return compute


def pack_axis(values: Sequence[Array], axis: int) -> int:
    """The new axis, counted from the front. Raises InvalidArgumentError unless all have one shape and it has room."""
    first = values[0].shape
    for i, value in enumerate(values):
        if value.shape != first:
            raise invalid(
                f"Shapes of all inputs must match: values[0].shape = {shape_text(first)} != "
                f"values[{i}].shape = {shape_text(value.shape)}"
            )
    rank = len(first) + 1
    return canonical_axis(axis, rank, f"axis = {axis} not in [-{rank}, {rank})")


@kernel("Unpack", views=True)
def build_unpack(node: KernelNode) -> Compute:
    axis, num = int(node.attrs.get("axis", 0)), int(node.attrs["num"])

    def compute(value: Array) -> Any:
        where = canonical_axis(axis, value.ndim, f"axis = {axis} not in [{-value.ndim}, {value.ndim})")
        if value.shape[where] != num:
            raise invalid(f"Input shape axis {where} must equal {num}, got shape {shape_text(value.shape)}")
        before: tuple[Any, ...] = (slice(None),) * where
        parts = tuple([value[(*before, i, ...)] for i in range(num)])
        return parts[0] if num == 1 else parts

    return compute


def concat_axis(axis: Array) -> int:
    """The number that an axis input holds. Raises InvalidArgumentError unless it is one number."""
    if axis.size != 1 or axis.ndim > 1:
        raise invalid(f"axis tensor should be a scalar integer, but got shape {shape_text(axis.shape)}")
    return int(axis.reshape(()))


def _concat(number: int, values: tuple[Array, ...]) -> Array:
    where = joined_axis(number, values[0].ndim)
    size, dtype = sum(map(_SIZE, values)), values[0].dtype
    allow((size,), dtype)
    if where and size * dtype.itemsize >= max(2 * _PART, _EACH * len(values)) and not dtype.hasobject:
        check_joined(values, where)
        return _concat_in_parts(values, where)
    try:
        return np.concatenate(values, axis=where)
    except ValueError:
        pass
    check_joined(values, where)
    raise invalid("ConcatOp : the inputs cannot be joined")


def _concat_in_parts(values: tuple[Array, ...], where: int) -> Array:
    """np.concatenate of what fits, along another axis than the first."""
    shape = list(values[0].shape)
    shape[where] = sum(value.shape[where] for value in values)
    out = np.empty(shape, values[0].dtype)

    def part(first: int, last: int) -> None:
        np.concatenate([value[first:last] for value in values], axis=where, out=out[first:last])

    in_parts(part, shape[0], -(-_PART * shape[0] // out.nbytes))
    return out


def joined_axis(number: int, rank: int) -> int:
    """The axis that arrays of that rank are joined along, from the front. Raises InvalidArgumentError."""
    if rank == 0:
        raise invalid("ConcatOp : Can't concatenate scalars (use tf.stack instead)")
    return canonical_axis(
        number,
        rank,
        f"ConcatOp : Expected concatenating dimensions in the range [{-rank}, {rank}), but got {number}",
    )


def check_joined(values: Sequence[Array], where: int) -> None:
    """Raises InvalidArgumentError unless the arrays differ along that axis only."""
    first, rank = values[0].shape, values[0].ndim
    for i, value in enumerate(values):
        texts = f"shape[0] = {shape_text(first)} vs. shape[{i}] = {shape_text(value.shape)}"
        if value.ndim != rank:
            raise invalid(f"ConcatOp : Ranks of all input tensors should match: {texts}")
        for d in range(rank):
            if d != where and value.shape[d] != first[d]:
                raise invalid(f"ConcatOp : Dimension {d} in both shapes must be equal: {texts}")


@kernel("ConcatV2", views=True)
def build_concat_v2(node: KernelNode) -> Compute:
    axis_of = remembering(concat_axis)
    return lambda *inputs: _concat(axis_of(inputs[-1]), inputs[:-1])


@kernel("Concat", views=True)
def build_concat(node: KernelNode) -> Compute:
    axis_of = remembering(concat_axis)
    return lambda axis, *values: _concat(axis_of(axis), values)


def _spaced(shape: Array) -> str:
    return "[" + " ".join(map(str, shape.tolist())) + "]"


@kernel("ConcatOffset")
def build_concat_offset(node: KernelNode) -> Compute:
    """Where each of the joined arrays begins, from their shapes."""

    def compute(axis: Array, *shapes: Array) -> Any:
        if axis.ndim:
            raise invalid(f"Concat dim tensor should be a scalar integer, but got shape {shape_text(axis.shape)}")
        for i, shape in enumerate(shapes):
            if shape.ndim != 1:
                raise invalid(f"input {i + 1} should be a vector, but got shape {shape_text(shape.shape)}")
        rank, number = shapes[0].size, int(axis)
        where = canonical_axis(number, rank, f"Concat dim is out of range: {number} vs. {rank}")
        offsets, at = [], 0
        for i, shape in enumerate(shapes):
            if shape.size != rank:
                raise invalid(f"input {i} should contain {rank} elements, but got {shape.size}")
            for d in range(rank):
                if d != where and shape[d] != shapes[0][d]:
                    raise invalid(
                        f"All dimensions except {where} must match. Input {i} has shape "
                        f"{_spaced(shape)} and doesn't match input 0 with shape {_spaced(shapes[0])}."
                    )
            offset = np.zeros_like(shape)
            offset[where] = at
            at += int(shape[where])
            offsets.append(offset)
        return tuple(offsets)

    return compute


@kernel("Split", views=True)
def build_split(node: KernelNode) -> Compute:
    num = int(node.attrs["num_split"])
    #: Shape and axis of the last call whose axis was a constant, and the places of its parts.
    last: tuple[tuple[int, ...], Any, list[Any]] = ((), None, [])

    def compute(axis: Array, value: Array) -> Any:
        nonlocal last
        known = last
        if known[1] is axis and known[0] == value.shape:
            return tuple([value[place] for place in known[2]])
        if axis.ndim:
            raise invalid(f"split_dim must be a scalar but has rank {axis.ndim}")
        rank, number = value.ndim, int(axis)
        where = canonical_axis(
            number, rank, f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {number}"
        )
        if value.shape[where] % num:
            raise invalid(
                "Number of ways to split should evenly divide the split dimension, but got split_dim "
                f"{where} (size = {value.shape[where]}) and num_split {num}"
            )
        if num == 1:
            return value
        size, before = value.shape[where] // num, (slice(None),) * where
        places = [(*before, slice(i * size, (i + 1) * size)) for i in range(num)]
        if is_frozen(axis):
            last = value.shape, axis, places
        return tuple([value[place] for place in places])

    return compute


@kernel("SplitV", views=True)
def build_split_v(node: KernelNode) -> Compute:
    """At most one size may be -1: it takes what the others leave."""
    num = int(node.attrs["num_split"])
    #: Shape, sizes and axis of the last call whose sizes and axis were constants, and the places of its parts.
    last: tuple[tuple[int, ...], Any, Any, list[Any]] = ((), None, None, [])

    def compute(value: Array, sizes: Array, axis: Array) -> Any:
        nonlocal last
        known = last
        if known[1] is sizes and known[2] is axis and known[0] == value.shape:
            return tuple([value[place] for place in known[3]])
        if axis.size != 1:
            raise invalid("split_dim_tensor must have exactly one element.")
        rank, number = value.ndim, int(axis.reshape(()))
        where = canonical_axis(
            number, rank, f"-input rank(-{rank}) <= split_dim < input rank ({rank}), but got {number}"
        )
        if sizes.ndim != 1 or sizes.size != num:
            raise invalid(
                "size of the split_tensor must be 1-D and have the same elements as outputs got "
                f"{sizes.ndim} -D and {sizes.size} elements"
            )
        lengths, total = sizes.tolist(), value.shape[where]
        unknown = [i for i, n in enumerate(lengths) if n == -1]
        if len(unknown) > 1:
            raise invalid("There can only be one -1 in the input.")
        known = sum(n for n in lengths if n != -1)
        if any(n < -1 for n in lengths) or (known > total if unknown else known != total):
            raise invalid(
                "Determined shape must either match input shape along split_dim exactly if fully specified, or be "
                f"less than the size of the input along split_dim if not fully specified.  Got: {known}"
            )
        if unknown:
            lengths[unknown[0]] = total - known
        if num == 1:
            return value
        lead, begin, places = (slice(None),) * where, 0, []
        for length in lengths:
            places.append((*lead, slice(begin, begin + length)))
            begin += length
        if is_frozen(sizes) and is_frozen(axis):
            last = value.shape, sizes, axis, places
        return tuple([value[place] for place in places])

    return compute


@kernel("Tile", views=True)
def build_tile(node: KernelNode) -> Compute:
    def compute(x: Array, multiples: Array) -> Array:
        times = tile_times(x, multiples)
        if not times:
            return x.copy()
        if x.size == 1:
            # what a mean's gradient does; np.tile takes several times as long
            out = np.empty(times, dtype=x.dtype)
            out.fill(x.item())
            return out
        # np.tile makes a copy for each dimension
        wide = [size for pair in zip(times, x.shape, strict=True) for size in pair]
        copies = np.empty(wide, x.dtype)
        copies[...] = x.reshape([size for d in x.shape for size in (1, d)])
        return copies.reshape([n * d for n, d in zip(times, x.shape, strict=True)])

    return compute


@kernel("TileGrad", T=NUMERIC, views=True)
def build_tile_grad(node: KernelNode) -> Compute:
    """Sums the copies that Tile made."""

    def compute(x: Array, multiples: Array) -> Array:
        if multiples.ndim != 1 or multiples.size != x.ndim:
            raise invalid(
                f"Expected multiples argument to be a vector of length {x.ndim} but got length {multiples.size}"
            )
        split: list[int] = []
        for i, (size, times) in enumerate(zip(x.shape, multiples.tolist(), strict=True)):
            if times < 1:
                raise invalid(f"Expected multiples[{i}] > 0, but got {times}")
            if size % times:
                raise invalid(f"Expected input_dim[{i}] to be divisible by multiples[{i}], but {size} % {times} != 0")
            split += [times, size // times]
        if split[1::2] == list(x.shape):
            return x
        return as_array(x.reshape(split).sum(axis=tuple(range(0, len(split), 2)), dtype=x.dtype))

    return compute


def tile_times(x: Array, multiples: Array) -> list[int]:
    """How often each dimension is repeated. Raises InvalidArgumentError."""
    if multiples.ndim != 1 or multiples.size != x.ndim:
        raise invalid(f"Expected multiples argument to be a vector of length {x.ndim} but got length {multiples.size}")
    times: list[int] = multiples.tolist()
    for i, n in enumerate(times):
        if n < 0:
            raise invalid(f"Expected multiples[{i}] >= 0, but got {n}")
    allow([n * d for n, d in zip(times, x.shape, strict=True)], x.dtype)
    return times


def _pad_widths(x: Array, paddings: Array) -> list[list[int]]:
    if paddings.ndim != 2 or paddings.shape[1] != 2:
        raise invalid(f"paddings must be a matrix with 2 columns: {shape_text(paddings.shape)}")
    if paddings.shape[0] != x.ndim:
        raise invalid(
            f"The first dimension of paddings must be the rank of inputs{shape_text(paddings.shape)} "
            f"{shape_text(x.shape)}"
        )
    widths: list[list[int]] = paddings.tolist()
    for before, after in widths:
        if before < 0 or after < 0:
            raise invalid(f"Paddings must be non-negative: {before} {after}")
    allow([before + d + after for d, (before, after) in zip(x.shape, widths, strict=True)], x.dtype)
    return widths


def padded_place(x: Array, paddings: Array) -> tuple[list[int], tuple[slice, ...]]:
    """The shape of the result, and where x is in it."""
    pairs = list(zip(x.shape, _pad_widths(x, paddings), strict=True))
    shape = [before + d + after for d, (before, after) in pairs]
    return shape, tuple([slice(before, before + d) for d, (before, _) in pairs])


def remembered_padded() -> Callable[[Array, Array], tuple[list[int], tuple[slice, ...]]]:
    """`_padded`, which knows its last answer where the paddings were a constant."""
    last: tuple[Any, tuple[int, ...], Any] = (None, (), None)

    def padded(x: Array, paddings: Array) -> Any:
        nonlocal last
        known = last
        if known[0] is not paddings or known[1] != x.shape:
            known = paddings, x.shape, padded_place(x, paddings)
            if is_frozen(paddings):
                last = known
        return known[2]

    return padded


@kernel("Pad", "PadV2")
def build_pad(node: KernelNode) -> Compute:
    """A Pad of more than one pair of x and paddings is the sum of them: a pass makes it (optimize/sums.py)."""
    zero, padded = _zero(node), remembered_padded()

    def compute(x: Array, paddings: Array, constant: Array | None = None) -> Array:
        shape, place = padded(x, paddings)
        if constant is not None and constant.ndim:
            raise invalid(f"constant_values must be a scalar. Found: {shape_text(constant.shape)}")
        # not np.pad, which takes 20 µs to find out what there is to do
        if constant is None and not x.dtype.hasobject:
            out = np.zeros(shape, x.dtype)
        else:
            out = np.full(shape, zero if constant is None else constant[()], x.dtype)
        out[place] = x if x.ndim else x[()]  # an array of texts would hold the array itself
        return out

    if len(node.input_types) < 4:
        return compute
    each = [remembered_padded() for _ in node.input_types[::2]]

    def compute_sum(*pairs: Array) -> Array:
        out: Array | None = None
        for i, padded in enumerate(each):
            x = pairs[2 * i]
            shape, place = padded(x, pairs[2 * i + 1])
            if out is None:
                out = np.zeros(shape, x.dtype)
            elif out.shape != tuple(shape):
                raise invalid(
                    f"Inputs to operation {node.name} of type AddN must have the same size and shape.  "
                    f"Input 0: {shape_text(out.shape)} != input {i}: {shape_text(tuple(shape))}"
                )
            part = out[place]
            np.add(part, x, part)
        assert out is not None
        return out

    return compute_sum


@kernel("MirrorPad")
def build_mirror_pad(node: KernelNode) -> Compute:
    """Mirrors once: an edge cannot be wider than what there is, without its own border when that is left out."""
    reflect = node.attrs["mode"] in (b"REFLECT", "REFLECT")

    def compute(x: Array, paddings: Array) -> Array:
        widths = mirror_widths(x, paddings, reflect)
        return np.pad(x, widths, mode="reflect" if reflect else "symmetric") if x.ndim else x.copy()

    return compute


def mirror_widths(x: Array, paddings: Array, reflect: bool) -> list[list[int]]:
    """How much of each dimension is mirrored before and after it. Raises InvalidArgumentError."""
    widths = _pad_widths(x, paddings)
    for size, (before, after) in zip(x.shape, widths, strict=True):
        if reflect and max(before, after) >= size:
            raise invalid(f"paddings must be less than the dimension size: {before}, {after} not less than {size}")
        if max(before, after) > size:
            text = f"{before}, {after} greater than {size}"
            raise invalid(f"paddings must be no greater than the dimension size: {text}")
    return widths


@kernel("Transpose", views=True)
def build_transpose(node: KernelNode) -> Compute:
    axes_of = remembering(_permutation)

    def compute(x: Array, perm: Array) -> Array:
        if perm.ndim == 1 and perm.size != x.ndim:
            raise invalid(f"transpose expects a vector of size {x.ndim}. But input(1) is a vector of size {perm.size}")
        return x.transpose(axes_of(perm))

    return compute


def _permutation(perm: Array) -> list[int]:
    """The axes, counted from the front. Raises InvalidArgumentError unless each is there once."""
    if perm.ndim != 1:
        raise invalid(f"perm must be rank 1, got shape {shape_text(perm.shape)}")
    given, rank = perm.tolist(), perm.size
    for d in given:
        if not -rank <= d < rank:
            raise invalid(f"{d} is out of range [0 .. {rank})")
    axes = [d % rank for d in given]
    for d in range(rank):
        if d not in axes:
            raise invalid(f"{d} is missing from {{{','.join(map(str, given))}}}.")
    return axes


@kernel("ReverseV2", views=True)
def build_reverse(node: KernelNode) -> Compute:
    def compute(x: Array, axis: Array) -> Array:
        if axis.ndim != 1:
            raise invalid(f"'dims' must be 1-dimension, not {axis.ndim}")
        axes: list[int] = []
        for i, d in enumerate(axis.tolist()):
            where = canonical_axis(d, x.ndim, f"'axis'[{i}] = {d} is out of valid range [0, {x.ndim - 1}]")
            if where in axes:
                raise invalid(f"axis {where} specified more than once.")
            axes.append(where)
        return as_array(np.flip(x, tuple(axes))) if axes else x

    return compute
