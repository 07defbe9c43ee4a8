"""Blocks of space moved to the batch or to the channels and back; the gradient of mirrored borders.

Each is one copy in another order, after one that pads or before one that crops. See cpu/array_blocks.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_kernels.arrays import text_attr
from tenfold_kernels.cpu import array_blocks as arranged
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._types import ANY_NUMBERS, MOVED, ON_HOST
from tenfold_kernels.cuda._views import ghost, place_of
from tenfold_kernels.cuda.array_fill import inside
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

_OPS = ("SpaceToBatchND", "SpaceToBatch", "BatchToSpaceND", "BatchToSpace", "SpaceToDepth", "DepthToSpace")
shared_kernel(*_OPS, "MirrorPadGrad", host=(EVERYTHING,), T=ON_HOST)
no_kernel("ExtractImagePatches", "ExtractVolumePatches", device="GPU", why="no program of the op census uses them")


@kernel("SpaceToBatchND", device="GPU", views=True, host=("block_shape", "paddings"), T=MOVED)
@kernel("SpaceToBatch", device="GPU", views=True, host=("paddings",), T=MOVED)
def build_space_to_batch(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, *rest: Array) -> DeviceArray:
        block, paddings = arranged.blocks_and_edges(node, x, rest)  # type: ignore[arg-type] # its shape is all it reads
        widths = arranged.padded_widths(x, block, paddings)  # type: ignore[arg-type] # as above
        padded = x
        if any(map(any, widths)):
            shape = tuple([d + sum(edges) for d, edges in zip(x.shape, widths, strict=True)])
            padded = x.runtime.empty(shape, x.dtype)
            x.runtime.zero(padded)
            _moves.put(x, padded, inside(padded, x.shape, [before for before, _ in widths]))
        of = ghost(padded.shape, x.dtype)
        view, out = arranged.blocks_to_batch(of, block)
        return _moves.take(padded, place_of(view, of)).reshape(out)

    return compute


@kernel("BatchToSpaceND", device="GPU", views=True, host=("block_shape", "crops"), T=MOVED)
@kernel("BatchToSpace", device="GPU", views=True, host=("crops",), T=MOVED)
def build_batch_to_space(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, *rest: Array) -> DeviceArray:
        block, crops = arranged.blocks_and_edges(node, x, rest)  # type: ignore[arg-type] # as above
        of = ghost(x.shape, x.dtype)
        view, shape = arranged.batch_to_blocks(of, block)
        left = arranged.cropped(shape, crops)
        spread = _moves.take(x, place_of(view, of)).reshape(shape)
        whole = ghost(shape, x.dtype)
        return _moves.take(spread, place_of(whole[left], whole))

    return compute


@kernel("SpaceToDepth", "DepthToSpace", device="GPU", views=True, T=MOVED)
def build_space_to_depth(node: KernelNode) -> Compute:
    """NHWC and NCHW."""
    block, layout = int(node.attrs["block_size"]), text_attr(node, "data_format", "NHWC")
    arrange = arranged.blocks_to_depth if node.op == "SpaceToDepth" else arranged.depth_to_blocks
    if layout not in ("NHWC", "NCHW"):
        raise errors.unimplemented(f"{node.op} supports data_format NHWC and NCHW, not {layout}")

    def compute(x: DeviceArray) -> DeviceArray:
        of = ghost(x.shape, x.dtype)
        view, shape = arrange(of, block, layout == "NCHW")
        return _moves.take(x, place_of(view, of)).reshape(shape)

    return compute


@kernel("MirrorPadGrad", device="GPU", views=True, host=("paddings",), T=ANY_NUMBERS)
def build_mirror_pad_grad(node: KernelNode) -> Compute:
    """Folds what was mirrored outwards back onto where it came from, dimension after dimension."""
    offset = 0 if text_attr(node, "mode") == "SYMMETRIC" else 1

    def compute(x: DeviceArray, paddings: Array) -> DeviceArray:
        widths = arranged.mirrored_widths(x, paddings, offset)  # type: ignore[arg-type] # as above
        if not any(map(any, widths)):
            return x
        folded = x.runtime.empty(x.shape, x.dtype)
        x.runtime.copy(x, folded)
        strides = _moves.whole(x).strides
        begins, sizes = [0] * x.ndim, list(x.shape)
        for axis, (before, after) in enumerate(widths):
            size = x.shape[axis] - before - after
            back = (*strides[:axis], -strides[axis], *strides[axis + 1 :])
            last = x.shape[axis] - 1
            for width, source, target in (
                (before, before - 1, before + offset),
                (after, last, before + size - offset - after),
            ):
                if width:
                    sizes[axis], begins[axis] = width, source
                    at = _moves.Place(tuple(sizes), back, inside(x, tuple(sizes), begins).begin)
                    begins[axis] = target
                    _moves.add(folded, at, folded, inside(x, tuple(sizes), begins))
            # what is outside has been added, and is not looked at again
            sizes[axis], begins[axis] = size, before
        return _moves.take(folded, inside(x, tuple(sizes), begins))

    return compute
