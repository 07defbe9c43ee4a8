"""Blocks of space moved to the batch or to the channels and back, the gradient of mirrored borders, patches of images.

Outputs are fresh. What gives a view and a shape, or checks, serves a GPU's kernels too: it reads no element. Follows
spacetobatch_op.cc, spacetodepth_op.cc, mirror_pad_op.cc and extract_image_patches_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, contiguous, invalid, scalar_object, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import NUMERIC

if TYPE_CHECKING:
    from collections.abc import Sequence


def mirrored_widths(x: Array, paddings: Array, offset: int) -> list[list[int]]:
    """How much of each dimension was mirrored before and after it. Raises InvalidArgumentError."""
    if paddings.shape != (x.ndim, 2):
        raise invalid(
            f"paddings must be a matrix of {x.ndim} rows and 2 columns, got shape {shape_text(paddings.shape)}"
        )
    widths: list[list[int]] = paddings.tolist()
    for length, (before, after) in zip(x.shape, widths, strict=True):
        size = length - before - after
        if before < 0 or after < 0 or max(before, after) > size - offset:
            raise invalid(f"Paddings must be non-negative and no larger than {size - offset}: {before}, {after}")
    return widths


@kernel("MirrorPadGrad", T=NUMERIC)
def build_mirror_pad_grad(node: KernelNode) -> Compute:
    """Folds what was mirrored outwards back onto where it came from."""
    offset = 0 if text_attr(node, "mode") == "SYMMETRIC" else 1

    def compute(x: Array, paddings: Array) -> Array:
        out = x.copy()
        for axis, (before, after) in enumerate(mirrored_widths(x, paddings, offset)):
            size = out.shape[axis] - before - after
            moved = np.moveaxis(out, axis, 0)
            core = moved[before : before + size].copy()
            if before:
                core[offset : offset + before] += moved[:before][::-1]
            if after:
                core[size - offset - after : size - offset] += moved[before + size :][::-1]
            out = np.moveaxis(core, 0, axis)
        return contiguous(out)

    return compute


def blocks_to_batch(padded: Array, block: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """[N, space…, rest…] → [N · Π block, space / block…, rest…]: a view in its order, and its shape."""
    rank = len(block)
    for i, (size, b) in enumerate(zip(padded.shape[1 : rank + 1], block, strict=True)):
        if size % b:
            raise invalid(f"padded_shape[{i}]={size} is not divisible by block_shape[{i}]={b}")
    split = [padded.shape[0]]
    for size, b in zip(padded.shape[1 : rank + 1], block, strict=True):
        split += [size // b, b]
    allow((*split, *padded.shape[rank + 1 :]), padded.dtype)
    parts = padded.reshape(*split, *padded.shape[rank + 1 :])
    order = [*range(2, 2 * rank + 1, 2), 0, *range(1, 2 * rank + 1, 2), *range(2 * rank + 1, parts.ndim)]
    spaces = [s // b for s, b in zip(padded.shape[1 : rank + 1], block, strict=True)]
    batch = padded.shape[0] * math.prod(block)
    return parts.transpose(order), (batch, *spaces, *padded.shape[rank + 1 :])


def batch_to_blocks(x: Array, block: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """The reverse, likewise."""
    rank, factor = len(block), math.prod(block)
    if x.shape[0] % factor:
        raise invalid(f"Input batch dimension ({x.shape[0]}) is not divisible by product of block sizes ({factor})")
    batch = x.shape[0] // factor
    allow((*block, batch, *x.shape[1:]), x.dtype)
    parts = x.reshape(*block, batch, *x.shape[1:])
    order = [rank]
    for i in range(rank):
        order += [rank + 1 + i, i]
    order += range(2 * rank + 1, parts.ndim)
    spaces = [s * b for s, b in zip(x.shape[1 : rank + 1], block, strict=True)]
    return parts.transpose(order), (batch, *spaces, *x.shape[rank + 1 :])


def padded_widths(x: Array, block: Sequence[int], paddings: list[list[int]]) -> list[tuple[int, int]]:
    """How much every dimension of x is padded before blocks go to the batch. Raises ResourceExhaustedError."""
    rank = len(block)
    sizes = [d + sum(edges) for d, edges in zip(x.shape[1 : rank + 1], paddings, strict=True)]
    allow((x.shape[0], *sizes, *x.shape[rank + 1 :]), x.dtype, 2)
    return [(0, 0), *((before, after) for before, after in paddings), *[(0, 0)] * (x.ndim - rank - 1)]


def _to_batch(x: Array, block: list[int], paddings: list[list[int]]) -> Array:
    # of bytes themselves np.pad makes a type of its own
    nothing = scalar_object(b"") if x.dtype.hasobject else 0
    view, shape = blocks_to_batch(np.pad(x, padded_widths(x, block, paddings), constant_values=nothing), block)
    return np.ascontiguousarray(view).reshape(shape)


def cropped(shape: Sequence[int], crops: list[list[int]]) -> tuple[slice, ...]:
    """What is left of an array of that shape. Raises InvalidArgumentError for crops that leave nothing."""
    index: list[slice] = [slice(None)]
    for i, (before, after) in enumerate(crops):
        space = shape[i + 1]
        if before < 0 or after < 0 or before + after > space:
            raise invalid(f"Crops must be non-negative and leave something: {before} and {after} of {space}")
        index.append(slice(before, space - after))
    return tuple(index)


def _to_space(x: Array, block: list[int], crops: list[list[int]]) -> Array:
    view, shape = batch_to_blocks(x, block)
    whole = np.ascontiguousarray(view).reshape(shape)
    return np.ascontiguousarray(whole[cropped(shape, crops)])


def blocks_and_edges(node: KernelNode, x: Array, rest: Sequence[Array]) -> tuple[list[int], list[list[int]]]:
    """(the block's sizes, paddings or crops) of a SpaceToBatch or BatchToSpace. Raises InvalidArgumentError."""
    fixed = node.attrs.get("block_size")
    block = [int(fixed)] * 2 if fixed is not None else [int(b) for b in rest[0].reshape(-1).tolist()]
    edges = rest[-1]
    if x.ndim < len(block) + 1:
        raise invalid(f"input rank should be >= {len(block) + 1} instead of {x.ndim}")
    if edges.shape != (len(block), 2):
        what = "paddings" if node.op.startswith("Space") else "crops"
        raise invalid(f"{what} should have shape [{len(block)}, 2] instead of {shape_text(edges.shape)}")
    if any(b < 1 for b in block):
        raise invalid(f"block_shape must be positive, got {block}")
    if (edges < 0).any():
        raise invalid("paddings and crops must be non-negative")
    return block, edges.tolist()


@kernel("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace", views=True)
def build_space_to_batch(node: KernelNode) -> Compute:
    """(x, block_shape, paddings or crops), and the old names with the block's size as an attr."""
    move = _to_batch if node.op.startswith("Space") else _to_space
    return lambda x, *rest: move(x, *blocks_and_edges(node, x, rest))


@kernel("ExtractImagePatches")
def build_extract_image_patches(node: KernelNode) -> Compute:
    """[N, H, W, C] → [N, OH, OW, kh · kw · C]; a patch's place outside the image is zero."""
    ksizes, strides, rates = (list(node.attrs[name])[1:3] for name in ("ksizes", "strides", "rates"))
    same = text_attr(node, "padding") == "SAME"
    for name in ("ksizes", "strides", "rates"):
        values = list(node.attrs[name])
        if values[0] != 1 or values[3] != 1:
            raise errors.unimplemented(
                f"Only support {name} across space; {name} of batch and depth must be 1, got {values}"
            )
        if min(values) < 1:
            raise invalid(f"{name} must be positive, got {values}")

    def compute(x: Array) -> Array:
        if x.ndim != 4:
            raise invalid(f"input must be 4-dimensional{shape_text(x.shape)}")
        rows_columns = []
        for i in range(2):
            size, reach = x.shape[i + 1], (ksizes[i] - 1) * rates[i] + 1
            out = max(-(-size // strides[i]) if same else (size - reach + strides[i]) // strides[i], 0)
            before = max((out - 1) * strides[i] + reach - size, 0) // 2 if same else 0
            allow((max(out, 1), ksizes[i]), np.int64)
            rows_columns.append(np.arange(out)[:, None] * strides[i] - before + np.arange(ksizes[i]) * rates[i])
        rows, columns = rows_columns
        allow((len(x), len(rows), len(columns), ksizes[0] * ksizes[1] * x.shape[3]), x.dtype, 2)
        inside = ((rows >= 0) & (rows < x.shape[1]))[:, None, :, None] & ((columns >= 0) & (columns < x.shape[2]))[
            None, :, None
        ]
        at_rows = np.clip(rows, 0, x.shape[1] - 1)[:, None, :, None]
        at_columns = np.clip(columns, 0, x.shape[2] - 1)[None, :, None, :]
        patches = np.where(inside[..., None], x[:, at_rows, at_columns], x.dtype.type(0))
        return np.ascontiguousarray(patches).reshape(len(x), len(rows), len(columns), math.prod(patches.shape[3:]))

    return compute


def blocks_to_depth(x: Array, block: int, channels_first: bool = False) -> tuple[Array, tuple[int, ...]]:
    """[N, H, W, C], or [N, C, H, W]: blocks of space become channels. A view in their order, and the shape."""
    if x.ndim != 4:
        raise invalid(f"Input rank should be: 4 instead of: {x.ndim}")
    n, c, h, w = x.shape if channels_first else (x.shape[0], x.shape[3], x.shape[1], x.shape[2])
    if h % block or w % block:
        raise invalid(f"Image width {w} and height {h} should be divisible by block_size: {block}")
    down, right, depth = h // block, w // block, c * block * block
    if channels_first:
        parts = x.reshape(n, c, down, block, right, block)
        return parts.transpose(0, 3, 5, 1, 2, 4), (n, depth, down, right)
    parts = x.reshape(n, down, block, right, block, c)
    return parts.transpose(0, 1, 3, 2, 4, 5), (n, down, right, depth)


def depth_to_blocks(x: Array, block: int, channels_first: bool = False) -> tuple[Array, tuple[int, ...]]:
    """The reverse, likewise."""
    if x.ndim != 4:
        raise invalid(f"Input rank should be: 4 instead of: {x.ndim}")
    n, c, h, w = x.shape if channels_first else (x.shape[0], x.shape[3], x.shape[1], x.shape[2])
    if c % (block * block):
        raise invalid(f"Input depth dimension {c} should be divisible by: {block * block}")
    depth = c // (block * block)
    if channels_first:
        parts = x.reshape(n, block, block, depth, h, w)
        return parts.transpose(0, 3, 4, 1, 5, 2), (n, depth, h * block, w * block)
    parts = x.reshape(n, h, w, block, block, depth)
    return parts.transpose(0, 1, 3, 2, 4, 5), (n, h * block, w * block, depth)


@kernel("SpaceToDepth", "DepthToSpace", views=True)
def build_space_to_depth(node: KernelNode) -> Compute:
    """NHWC: blocks of space become channels, and back."""
    block = int(node.attrs["block_size"])
    arrange = blocks_to_depth if node.op == "SpaceToDepth" else depth_to_blocks
    if node.attrs.get("data_format", b"NHWC") not in (b"NHWC", "NHWC"):
        raise invalid(f"{node.op} on the CPU supports data_format NHWC only")

    def compute(x: Array) -> Array:
        view, shape = arrange(x, block)
        return np.ascontiguousarray(view).reshape(shape)

    return compute
