"""Array ops beyond the census: scatters into a tensor, unique along an axis, blocks of space, patches, edit distances,
fingerprints.

Outputs are fresh. Follows scatter_nd_op.cc, unique_op.cc, spacetobatch_op.cc, mirror_pad_op.h,
extract_image_patches_op.cc, inplace_ops.cc and edit_distance_op.cc.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.cpu._common import Array, as_array, as_shape, invalid, output_type, shape_text, text_attr
from tenfold_kernels.cpu._hashes import fingerprint64
from tenfold_kernels.cpu.array import build_transpose
from tenfold_kernels.cpu.array_gather import check_nd_updates, nd_index
from tenfold_kernels.cpu.array_slice import StridedSliceSpec
from tenfold_kernels.cpu.sparse import check_sparse
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import ANY, BOOL, NUMERIC, REAL

no_kernel("PlaceholderV2", device="CPU", why="removed from TensorFlow at GraphDef version 23: use Placeholder")


@kernel("ConjugateTranspose", T=ANY)
def build_conjugate_transpose(node: KernelNode) -> Compute:
    transpose = build_transpose(node)
    return lambda x, perm: as_array(np.conj(transpose(x, perm)) if x.dtype.kind == "c" else transpose(x, perm))


#: Op → how an update meets what is there.
_SCATTERS: dict[str, Any] = {
    "TensorScatterSub": np.subtract,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
    "ScatterNdNonAliasingAdd": np.add,
}


@kernel("TensorScatterSub", T=NUMERIC)
@kernel("ScatterNdNonAliasingAdd", T=NUMERIC | BOOL)
@kernel("TensorScatterMax", "TensorScatterMin", T=REAL)
def build_tensor_scatter(node: KernelNode) -> Compute:
    """A copy of the tensor with the updates worked in; updates to one place accumulate."""
    meet = _SCATTERS[node.op]

    def compute(tensor: Array, indices: Array, updates: Array) -> Array:
        check_nd_updates(indices, updates, tensor.shape)
        out = tensor.copy()
        meet.at(out, nd_index(indices, out.shape, "shape"), updates)
        return out

    return compute


@kernel("UniqueV2", "UniqueWithCountsV2")
def build_unique_v2(node: KernelNode) -> Compute:
    """(y, idx[, count]): different slices along `axis` (an empty one: of a vector) in the order of their "
    "first place."""
    index_type = output_type(node, 1)
    with_counts = node.op == "UniqueWithCountsV2"

    def compute(x: Array, axis: Array) -> tuple[Array, ...]:
        if axis.size > 1 or axis.ndim > 1:
            raise invalid("axis does not support input tensors larger than 1 elements")
        if axis.size == 0:
            if x.ndim != 1:
                raise invalid(f"unique expects a 1D vector, got shape {shape_text(x.shape)}")
            along = 0
        else:
            along = int(axis.reshape(-1)[0])
            if not -x.ndim <= along < x.ndim:
                raise invalid(f"axis has to be between [0, {x.ndim})")
        moved = np.moveaxis(x, along, 0)
        seen: dict[Any, int] = {}
        allow((len(moved),), np.int64, 2)
        places = np.zeros(len(moved), index_type)
        firsts: list[int] = []
        flat = moved.reshape(len(moved), math.prod(moved.shape[1:]))
        if not flat.size:  # empty slices are alike, however many a shape says there are
            firsts, flat = [0][: len(moved)], flat[:0]
        for i, row in enumerate(flat):
            key = tuple(row.tolist())
            if key not in seen:
                seen[key] = len(firsts)
                firsts.append(i)
            places[i] = seen[key]
        y = np.ascontiguousarray(np.moveaxis(moved[firsts], 0, along))
        counts = np.bincount(places, minlength=len(firsts)).astype(index_type)
        return (y, places, counts) if with_counts else (y, places)

    return compute


@kernel("MirrorPadGrad", T=NUMERIC)
def build_mirror_pad_grad(node: KernelNode) -> Compute:
    """Folds what was mirrored outwards back onto where it came from."""
    offset = 0 if text_attr(node, "mode") == "SYMMETRIC" else 1

    def compute(x: Array, paddings: Array) -> Array:
        if paddings.shape != (x.ndim, 2):
            raise invalid(
                f"paddings must be a matrix of {x.ndim} rows and 2 columns, got shape {shape_text(paddings.shape)}"
            )
        out = x.copy()
        for axis, (before, after) in enumerate(paddings.tolist()):
            size = out.shape[axis] - before - after
            if before < 0 or after < 0 or max(before, after) > size - offset:
                raise invalid(f"Paddings must be non-negative and no larger than {size - offset}: {before}, {after}")
            moved = np.moveaxis(out, axis, 0)
            core = moved[before : before + size].copy()
            if before:
                core[offset : offset + before] += moved[:before][::-1]
            if after:
                core[size - offset - after : size - offset] += moved[before + size :][::-1]
            out = np.moveaxis(core, 0, axis)
        return np.ascontiguousarray(out)

    return compute


def _to_batch(x: Array, block: list[int], paddings: list[list[int]]) -> Array:
    """[N, space…, rest…] → [N · Π block, space / block…, rest…]"""
    rank = len(block)
    sizes = [d + sum(edges) for d, edges in zip(x.shape[1 : rank + 1], paddings, strict=True)]
    allow((x.shape[0], *sizes, *x.shape[rank + 1 :]), x.dtype, 2)
    padded = np.pad(x, [(0, 0), *map(tuple, paddings), *[(0, 0)] * (x.ndim - rank - 1)])
    for i, (size, b) in enumerate(zip(padded.shape[1 : rank + 1], block, strict=True)):
        if size % b:
            raise invalid(f"padded_shape[{i}]={size} is not divisible by block_shape[{i}]={b}")
    split = [padded.shape[0]]
    for size, b in zip(padded.shape[1 : rank + 1], block, strict=True):
        split += [size // b, b]
    parts = padded.reshape(*split, *padded.shape[rank + 1 :])
    order = [*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank + 1, 2), *range(2 * rank + 1, parts.ndim)]
    spaces = [s // b for s, b in zip(padded.shape[1 : rank + 1], block, strict=True)]
    batch = padded.shape[0] * int(np.prod(block))
    return np.ascontiguousarray(parts.transpose(order)).reshape(batch, *spaces, *padded.shape[rank + 1 :])


def _to_space(x: Array, block: list[int], crops: list[list[int]]) -> Array:
    """The reverse, then the crops."""
    rank, factor = len(block), int(np.prod(block))
    if x.shape[0] % factor:
        raise invalid(f"Input batch dimension ({x.shape[0]}) is not divisible by product of block sizes ({factor})")
    batch = x.shape[0] // factor
    parts = x.reshape(*block, batch, *x.shape[1:])
    order = [rank]
    for i in range(rank):
        order += [rank + 1 + i, i]
    order += range(2 * rank + 1, parts.ndim)
    spaces = [s * b for s, b in zip(x.shape[1 : rank + 1], block, strict=True)]
    whole = np.ascontiguousarray(parts.transpose(order)).reshape(batch, *spaces, *x.shape[rank + 1 :])
    index: list[slice] = [slice(None)]
    for i, (before, after) in enumerate(crops):
        if before < 0 or after < 0 or before + after > spaces[i]:
            raise invalid(f"Crops must be non-negative and leave something: {before} and {after} of {spaces[i]}")
        index.append(slice(before, spaces[i] - after))
    return np.ascontiguousarray(whole[tuple(index)])


@kernel("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace")
def build_space_to_batch(node: KernelNode) -> Compute:
    """(x, block_shape, paddings or crops), and the old names with the block's size as an attr."""
    move = _to_batch if node.op.startswith("Space") else _to_space
    fixed = node.attrs.get("block_size")

    def compute(x: Array, *rest: Array) -> Array:
        block = [int(fixed)] * 2 if fixed is not None else [int(b) for b in rest[0].reshape(-1).tolist()]
        edges = rest[-1]
        if x.ndim < len(block) + 1:
            raise invalid(f"input rank should be >= {len(block) + 1} instead of {x.ndim}")
        if edges.shape != (len(block), 2):
            what = "paddings" if move is _to_batch else "crops"
            raise invalid(f"{what} should have shape [{len(block)}, 2] instead of {shape_text(edges.shape)}")
        if any(b < 1 for b in block):
            raise invalid(f"block_shape must be positive, got {block}")
        if (edges < 0).any():
            raise invalid("paddings and crops must be non-negative")
        return move(x, block, edges.tolist())

    return compute


@kernel("Reverse")
def build_reverse(node: KernelNode) -> Compute:
    """Turns round the dimensions whose flag is set."""

    def compute(x: Array, dims: Array) -> Array:
        if dims.shape != (x.ndim,):
            raise invalid(f"'dims' must have {x.ndim} elements, one a dimension, got shape {shape_text(dims.shape)}")
        return as_array(np.flip(x, tuple(np.flatnonzero(dims).tolist()))).copy()

    return compute


@kernel("ExtractImagePatches")
def build_extract_image_patches(node: KernelNode) -> Compute:
    """[N, H, W, C] → [N, OH, OW, kh · kw · C]; a patch's place outside the image is zero."""
    ksizes, strides, rates = (list(node.attrs[name])[1:3] for name in ("ksizes", "strides", "rates"))
    same = text_attr(node, "padding") == "SAME"

    def compute(x: Array) -> Array:
        if x.ndim != 4:
            raise invalid(f"input must be 4-dimensional{shape_text(x.shape)}")
        rows_columns = []
        for i in range(2):
            size, reach = x.shape[i + 1], (ksizes[i] - 1) * rates[i] + 1
            out = max(-(-size // strides[i]) if same else (size - reach + strides[i]) // strides[i], 0)
            before = max((out - 1) * strides[i] + reach - size, 0) // 2 if same else 0
            allow((out, ksizes[i]), np.int64)
            rows_columns.append(np.arange(out)[:, None] * strides[i] - before + np.arange(ksizes[i]) * rates[i])
        rows, columns = rows_columns
        allow((len(x), len(rows), len(columns), ksizes[0] * ksizes[1] * x.shape[3]), x.dtype, 2)
        inside = ((rows >= 0) & (rows < x.shape[1]))[:, None, :, None] & ((columns >= 0) & (columns < x.shape[2]))[
            None, :, None
        ]
        if x.shape[1] == 0 or x.shape[2] == 0:
            return np.zeros((len(x), len(rows), len(columns), ksizes[0] * ksizes[1] * x.shape[3]), x.dtype)
        at_rows = np.clip(rows, 0, x.shape[1] - 1)[:, None, :, None]
        at_columns = np.clip(columns, 0, x.shape[2] - 1)[None, :, None, :]
        patches = np.where(inside[..., None], x[:, at_rows, at_columns], x.dtype.type(0))
        return np.ascontiguousarray(patches).reshape(len(x), len(rows), len(columns), math.prod(patches.shape[3:]))

    return compute


@kernel("InplaceAdd", "InplaceSub", "InplaceUpdate")
def build_inplace(node: KernelNode) -> Compute:
    """(x, rows, values) → a copy of x with those rows changed: no kernel writes to an input."""

    def compute(x: Array, rows: Array, values: Array) -> Array:
        if x.ndim < 1 or values.shape != (*rows.shape, *x.shape[1:]):
            raise invalid(f"v must have the shape of the rows of x that i names: {shape_text(values.shape)}")
        out = x.copy()
        if len(x) == 0:
            return out
        # TensorFlow wraps the row numbers round.
        at = rows % len(x)
        if node.op == "InplaceUpdate":
            out[at] = values
        else:
            (np.add if node.op == "InplaceAdd" else np.subtract).at(out, at, values)
        return out

    return compute


@kernel("TensorStridedSliceUpdate")
def build_strided_slice_update(node: KernelNode) -> Compute:
    """A copy of the input with the slice replaced."""
    spec = StridedSliceSpec(node)

    def compute(x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
        out = x.copy()
        index = spec.index(x.shape, begin, end, strides)
        try:
            out[index] = value
        except ValueError as error:
            raise invalid(f"TensorStridedSliceUpdate '{node.name}': {error}") from None
        return out

    return compute


@kernel("EditDistance")
def build_edit_distance(node: KernelNode) -> Compute:
    """Levenshtein distances of the sequences along the last dimension of two sparse tensors."""
    normalize = bool(node.attrs.get("normalize", True))

    def sequences(indices: Array, values: Array, depth: int) -> dict[tuple[int, ...], list[Any]]:
        found: dict[tuple[int, ...], list[Any]] = {}
        for row, value in zip(indices.tolist(), values.tolist(), strict=True):
            found.setdefault(tuple(row[: depth - 1]), []).append(value)
        return found

    def compute(hi: Array, hv: Array, hs: Array, ti: Array, tv: Array, ts: Array) -> Array:
        if hs.shape != ts.shape or hs.ndim != 1 or hs.size < 2:
            raise invalid("Expected hypothesis.shape[0] == truth.shape[0], and at least two dimensions")
        check_sparse(hi, hv, np.maximum(hs, ts))
        check_sparse(ti, tv, np.maximum(hs, ts))
        dims = as_shape(np.maximum(hs, ts)[:-1], dtype=np.float32)
        out = np.zeros(dims, np.float32)
        guesses, truths = sequences(hi, hv, hs.size), sequences(ti, tv, ts.size)
        for place in {*guesses, *truths}:
            guess, truth = guesses.get(place, []), truths.get(place, [])
            distance = float(_distance(guess, truth))
            if normalize:
                distance = distance / len(truth) if truth else (np.inf if guess else 0.0)
            out[place] = distance
        return out

    return compute


def _distance(a: list[Any], b: list[Any]) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


@kernel("Fingerprint", T=ANY - {dtypes.resource, dtypes.variant})
def build_fingerprint(node: KernelNode) -> Compute:
    """data [N, ...] → uint8 [N, 8]: FarmHash of the bytes of each row; of several strings, of their hashes' bytes."""

    def compute(data: Array, method: Array) -> Array:
        if method.ndim:
            raise invalid(f"`method` should be a scalar string: {shape_text(method.shape)}")
        if method.item() != b"farmhash64":
            raise invalid(f"Unsupported fingerprint method: {method.item().decode(errors='replace')}")
        if not data.ndim:
            raise invalid(f"`data` should have at least one dimension: {shape_text(data.shape)}")
        rows = data.reshape(len(data), -1) if data.size else data.reshape(len(data), 0)
        if data.dtype.hasobject and rows.shape[1] != 1:
            parts = [b"".join(_farmhash(item) for item in row) for row in rows.tolist()]
        elif data.dtype.hasobject:
            parts = rows[:, 0].tolist()
        else:
            parts = [row.tobytes() for row in rows]
        return np.frombuffer(b"".join(map(_farmhash, parts)), np.uint8).reshape(len(data), 8)

    return compute


def _farmhash(data: bytes) -> bytes:
    return fingerprint64(data).to_bytes(8, "little")
