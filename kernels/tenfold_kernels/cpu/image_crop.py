"""Crops of images [N, H, W, C], each brought to one size, and the gradients. Outputs are fresh, float.

The loops are _compiled/sampling.py's; the gradient of the boxes is NumPy's. Follows crop_and_resize_op.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, contiguous, invalid, output_type, shape_text, text_attr
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, REAL

#: Elements made below which the work is not shared among threads.
_SHARE = 1 << 16


def _no_image(batch: int) -> errors.OutOfRangeError:
    return errors.out_of_range(f"box_index has values outside [0, batch_size): [0, {batch})")


def _check_boxes(boxes: Array, box_index: Array, batch: int, gradient: Array | None = None) -> None:
    """Raises InvalidArgumentError unless each box is finite and has a crop of `gradient`.

    OutOfRangeError for a box of no image.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise invalid(f"boxes must have shape [num_boxes, 4], got {shape_text(boxes.shape)}")
    if box_index.shape != (len(boxes),):
        raise invalid(f"box_index has incompatible shape: {shape_text(box_index.shape)}")
    if box_index.size and (box_index.min() < 0 or box_index.max() >= batch):
        raise _no_image(batch)
    if not np.isfinite(boxes).all():
        raise invalid("boxes values must be finite")
    if gradient is None:
        return
    if gradient.ndim != 4 or 0 in gradient.shape[1:3]:
        raise invalid(f"grads must be 4-D, of crops that are not empty, got shape {shape_text(gradient.shape)}")
    if len(gradient) != len(boxes):
        raise invalid(f"boxes and grads have incompatible shape: {len(boxes)} and {len(gradient)}")


@kernel("CropAndResize", T=REAL)
def build_crop_and_resize(node: KernelNode) -> Compute:
    """(images, boxes [B, 4] of y1 x1 y2 x2, which image, crop size) → [B, h, w, C], float."""
    from tenfold_kernels.cpu._compiled import sampling

    outside = np.float32(node.attrs.get("extrapolation_value", 0.0))
    nearest, run = text_attr(node, "method", "bilinear") == "nearest", sampling.crop()

    def compute(images: Array, boxes: Array, box_index: Array, crop_size: Array) -> Array:
        if images.ndim != 4:
            raise invalid(f"input image must be 4-D{shape_text(images.shape)}")
        _check_boxes(boxes, box_index, len(images))
        if crop_size.shape != (2,):
            raise invalid(f"crop_size must have two elements, got shape {shape_text(crop_size.shape)}")
        height, width = (int(v) for v in crop_size.tolist())
        if height <= 0 or width <= 0:
            raise invalid(f"crop dimensions must be positive, got {height} x {width}")
        if 0 in images.shape[1:3]:
            raise invalid("image dimensions must be positive")
        channels = images.shape[3]
        allow((len(boxes), height, width, channels), np.float32)
        out = np.empty((len(boxes), height, width, channels), np.float32)
        if out.size:
            wide, corners = contiguous(images.astype(np.float32, copy=False)), contiguous(boxes)
            index, least = contiguous(box_index), _SHARE // (height * width * channels) + 1

            def crop(first: int, last: int) -> None:
                if run(wide, corners, index, nearest, outside, first, last, out) >= 0:
                    raise _no_image(len(images))

            in_parts(crop, len(boxes), least)
        return out

    return compute


@kernel("CropAndResizeGradImage", T=FLOATING)
def build_crop_and_resize_grad_image(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import sampling

    nearest, dtype = text_attr(node, "method", "bilinear") == "nearest", output_type(node)
    run = sampling.crop_gradient()

    def compute(gradient: Array, boxes: Array, box_index: Array, image_size: Array) -> Array:
        if image_size.ndim != 1:
            raise invalid(f"image_size must be 1-D, got shape {shape_text(image_size.shape)}")
        dims = tuple(int(v) for v in image_size.tolist())
        if len(dims) != 4 or min(dims) < 0:
            raise invalid(f"image_size must hold 4 sizes, got {shape_text(dims)}")
        _check_boxes(boxes, box_index, dims[0], gradient)
        if gradient.shape[3] != dims[3]:
            raise invalid("image_size and grads are incompatible")
        if min(dims[1:3]) == 0:
            raise invalid("image dimensions must be positive")
        allow(dims, np.float32)
        out = np.zeros(dims, np.float32)
        if run(contiguous(gradient), contiguous(boxes), contiguous(box_index), nearest, out) >= 0:
            raise _no_image(dims[0])
        return out.astype(dtype, copy=False)

    return compute


def _along(first: float, last: float, size: int, count: int) -> Array:
    """Where `count` samples between two ends of a box (in 0 … 1) lie in pixels."""
    low, high = np.float32(first), np.float32(last)
    if count == 1:
        return np.array([np.float32(0.5) * (low + high) * np.float32(size - 1)], np.float32)
    step = (high - low) * np.float32(size - 1) / np.float32(count - 1)
    return low * np.float32(size - 1) + np.arange(count, dtype=np.float32) * step


@kernel("CropAndResizeGradBoxes", T=REAL)
def build_crop_and_resize_grad_boxes(node: KernelNode) -> Compute:
    def compute(gradient: Array, images: Array, boxes: Array, box_index: Array) -> Array:
        if images.ndim != 4:
            raise invalid(f"input image must be 4-D{shape_text(images.shape)}")
        _check_boxes(boxes, box_index, len(images), gradient)
        if gradient.shape[3] != images.shape[3]:
            raise invalid("image, grads depth differ")
        if 0 in images.shape[1:3]:
            raise invalid("image dimensions must be positive")
        rows, columns = images.shape[1:3]
        height, width = gradient.shape[1:3]
        out = np.zeros(boxes.shape, np.float32)
        for b, (y1, x1, y2, x2) in enumerate(boxes.tolist()):
            ys, xs = _along(y1, y2, rows, height), _along(x1, x2, columns, width)
            at_y = np.flatnonzero((ys >= 0) & (ys <= rows - 1))
            at_x = np.flatnonzero((xs >= 0) & (xs <= columns - 1))
            given, image = gradient[b][np.ix_(at_y, at_x)], images[box_index[b]].astype(np.float32)
            ys, xs = ys[at_y], xs[at_x]
            top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
            bottom, right = np.ceil(ys).astype(np.int64), np.ceil(xs).astype(np.int64)
            dy, dx = (ys - top)[:, None, None], (xs - left)[None, :, None]
            tl, tr = image[top][:, left], image[top][:, right]
            bl, br = image[bottom][:, left], image[bottom][:, right]
            by_y = ((1 - dx) * (bl - tl) + dx * (br - tr)) * given
            by_x = ((1 - dy) * (tr - tl) + dy * (br - bl)) * given
            for first, per, size, count, places in (
                (0, by_y.sum(axis=(1, 2)), rows, height, at_y),
                (1, by_x.sum(axis=(0, 2)), columns, width, at_x),
            ):
                share = places / (count - 1) if count > 1 else np.full(len(places), 0.5)
                out[b, first] += ((1 - share) * per).sum() * (size - 1)
                out[b, first + 2] += (share * per).sum() * (size - 1)
        return out

    return compute
