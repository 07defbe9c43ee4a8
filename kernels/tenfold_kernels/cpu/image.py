"""Images [N, H, W, C]: contrast, hue, saturation, colour spaces, crops, boxes. Resizing is in image_resize.py.

NumPy bodies; colours are computed in float. Outputs are fresh. Follows adjust_*_op.cc, colorspace_op.h,
crop_and_resize_op.cc and non_max_suppression_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, as_array, invalid, one_number, output_type, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import FLOATING, REAL

no_kernel("DecodeJpeg", "EncodeJpeg", device="CPU", why="needs a JPEG codec, which is no dependency of Tenfold")
no_kernel("DrawBoundingBoxes", "ExtractVolumePatches", device="CPU", why="no program of the op census uses it")


@kernel("AdjustContrastv2", T=FLOATING)
def build_adjust_contrast(node: KernelNode) -> Compute:
    """(x − mean) · factor + mean, the mean of each channel of each image."""
    dtype = output_type(node)

    def compute(images: Array, factor: Array) -> Array:
        if images.ndim < 3:
            raise invalid(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        if factor.ndim:
            raise invalid(f"contrast_factor must be scalar: {shape_text(factor.shape)}")
        wide = images.astype(np.float32, copy=False)
        mean = wide.mean(axis=(-3, -2), keepdims=True, dtype=np.float64).astype(np.float32)
        return as_array((wide - mean) * np.float32(factor) + mean).astype(dtype, copy=False)

    return compute


def _channels(images: Array) -> Array:
    if images.ndim < 1 or images.shape[-1] != 3:
        raise invalid(f"input must have 3 channels but instead has {images.shape[-1] if images.ndim else 0} channels.")
    return images


def _to_hsv(rgb: Array) -> Array:
    """Hue, saturation, value, each in 0 … 1; grey has hue and saturation 0."""
    t = rgb.dtype.type
    red, green, blue = np.moveaxis(rgb, -1, 0)
    value = rgb.max(axis=-1)
    spread = value - rgb.min(axis=-1)
    saturation = np.where(value > 0, spread / value, t(0))
    scale = t(1) / (t(6) * spread)
    hue = np.where(
        red == value,
        scale * (green - blue),
        np.where(green == value, scale * (blue - red) + t(2 / 6), scale * (red - green) + t(4 / 6)),
    )
    hue = np.where(spread <= 0, t(0), hue)
    return np.stack([np.where(hue < 0, hue + t(1), hue), saturation, value], axis=-1)


def _to_rgb(hsv: Array) -> Array:
    hue, saturation, value = np.moveaxis(hsv, -1, 0)
    sixths = hue * hsv.dtype.type(6)
    parts = [np.abs(sixths - 3) - 1, 2 - np.abs(sixths - 2), 2 - np.abs(sixths - 4)]
    return np.stack([((1 - saturation) + saturation * np.clip(p, 0, 1)) * value for p in parts], axis=-1)


@kernel("RGBToHSV", "HSVToRGB", T=FLOATING)
def build_colour_space(node: KernelNode) -> Compute:
    convert = _to_hsv if node.op == "RGBToHSV" else _to_rgb
    dtype = output_type(node)
    wide = np.float32 if dtype == np.float16 else dtype
    return lambda images: convert(_channels(images).astype(wide, copy=False)).astype(dtype, copy=False)


@kernel("AdjustHue", "AdjustSaturation", T=FLOATING)
def build_adjust_colour(node: KernelNode) -> Compute:
    """Hue moved round the circle by delta, or saturation times scale, kept within 0 … 1."""
    hue, dtype = node.op == "AdjustHue", output_type(node)

    def compute(images: Array, amount: Array) -> Array:
        if images.ndim < 3:
            raise invalid(f"input must be at least 3-D, got shape{shape_text(images.shape)}")
        if amount.ndim:
            raise invalid(f"{'delta' if hue else 'scale'} must be scalar: {shape_text(amount.shape)}")
        hsv = _to_hsv(_channels(images).astype(np.float32, copy=False))
        if hue:
            hsv[..., 0] = np.mod(hsv[..., 0] + np.float32(amount), np.float32(1))
        else:
            hsv[..., 1] = np.clip(hsv[..., 1] * np.float32(amount), 0, 1)
        return _to_rgb(hsv).astype(dtype, copy=False)

    return compute


def _check_boxes(boxes: Array, box_index: Array, batch: int, gradient: Array | None = None) -> None:
    """Raises InvalidArgumentError unless each box is finite and has a crop of `gradient`.

    OutOfRangeError for a box of no image.
    """
    if boxes.ndim != 2 or boxes.shape[1] != 4:
        raise invalid(f"boxes must have shape [num_boxes, 4], got {shape_text(boxes.shape)}")
    if box_index.shape != (len(boxes),):
        raise invalid(f"box_index has incompatible shape: {shape_text(box_index.shape)}")
    if box_index.size and (box_index.min() < 0 or box_index.max() >= batch):
        raise errors.OutOfRangeError(None, None, f"box_index has values outside [0, batch_size): [0, {batch})")
    if not np.isfinite(boxes).all():
        raise invalid("boxes values must be finite")
    if gradient is None:
        return
    if gradient.ndim != 4 or 0 in gradient.shape[1:3]:
        raise invalid(f"grads must be 4-D, of crops that are not empty, got shape {shape_text(gradient.shape)}")
    if len(gradient) != len(boxes):
        raise invalid(f"boxes and grads have incompatible shape: {len(boxes)} and {len(gradient)}")


def _along(first: float, last: float, size: int, count: int) -> Array:
    """Where `count` samples between two ends of a box (in 0 … 1) lie in pixels."""
    low, high = np.float32(first), np.float32(last)
    if count == 1:
        return np.array([np.float32(0.5) * (low + high) * np.float32(size - 1)], np.float32)
    step = (high - low) * np.float32(size - 1) / np.float32(count - 1)
    return low * np.float32(size - 1) + np.arange(count, dtype=np.float32) * step


@kernel("CropAndResize", T=REAL)
def build_crop_and_resize(node: KernelNode) -> Compute:
    """(images, boxes [B, 4] of y1 x1 y2 x2, which image, crop size) → [B, h, w, C], float."""
    outside = np.float32(node.attrs.get("extrapolation_value", 0.0))
    nearest = text_attr(node, "method", "bilinear") == "nearest"

    def compute(images: Array, boxes: Array, box_index: Array, crop_size: Array) -> Array:
        if images.ndim != 4:
            raise invalid(f"input image must be 4-D{shape_text(images.shape)}")
        _check_boxes(boxes, box_index, len(images))
        if crop_size.shape != (2,):
            raise invalid(f"crop_size must have two elements, got shape {shape_text(crop_size.shape)}")
        height, width = (int(v) for v in crop_size.tolist())
        if height <= 0 or width <= 0:
            raise invalid(f"crop dimensions must be positive, got {height} x {width}")
        rows, columns = images.shape[1:3]
        if rows == 0 or columns == 0:
            raise invalid("image dimensions must be positive")
        allow((len(boxes), height, width, images.shape[3]), np.float32)
        out = np.full((len(boxes), height, width, images.shape[3]), outside, np.float32)
        for b, (y1, x1, y2, x2) in enumerate(boxes.tolist()):
            ys, xs = _along(y1, y2, rows, height), _along(x1, x2, columns, width)
            at_y = np.flatnonzero((ys >= 0) & (ys <= rows - 1))
            at_x = np.flatnonzero((xs >= 0) & (xs <= columns - 1))
            if not at_y.size or not at_x.size:
                continue
            image, ys, xs = images[box_index[b]], ys[at_y], xs[at_x]
            near = image[_round(ys)][:, _round(xs)] if nearest else None
            out[b][np.ix_(at_y, at_x)] = _bilinear(image, ys, xs) if near is None else near
        return out

    return compute


def _round(x: Array) -> Array:
    """Halves away from zero, as C's round."""
    return np.floor(x + np.float32(0.5)).astype(np.int64)


def _bilinear(image: Array, ys: Array, xs: Array) -> Array:
    top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
    bottom, right = np.ceil(ys).astype(np.int64), np.ceil(xs).astype(np.int64)
    dy, dx = (ys - top).astype(np.float32)[:, None, None], (xs - left).astype(np.float32)[None, :, None]
    wide = image.astype(np.float32, copy=False)
    upper = wide[top][:, left] + (wide[top][:, right] - wide[top][:, left]) * dx
    lower = wide[bottom][:, left] + (wide[bottom][:, right] - wide[bottom][:, left]) * dx
    return as_array(upper + (lower - upper) * dy)


@kernel("CropAndResizeGradImage", T=FLOATING)
def build_crop_and_resize_grad_image(node: KernelNode) -> Compute:
    nearest, dtype = text_attr(node, "method", "bilinear") == "nearest", output_type(node)

    def compute(gradient: Array, boxes: Array, box_index: Array, image_size: Array) -> Array:
        dims = tuple(int(v) for v in image_size.reshape(-1).tolist())
        if len(dims) != 4 or min(dims) < 0:
            raise invalid(f"image_size must hold 4 sizes, got {shape_text(dims)}")
        _check_boxes(boxes, box_index, dims[0], gradient)
        if gradient.shape[3] != dims[3]:
            raise invalid("image_size and grads are incompatible")
        if min(dims[1:3]) == 0:
            raise invalid("image dimensions must be positive")
        allow(dims, np.float32)
        out = np.zeros(dims, np.float32)
        for b, (y1, x1, y2, x2) in enumerate(boxes.tolist()):
            ys, xs = _along(y1, y2, dims[1], gradient.shape[1]), _along(x1, x2, dims[2], gradient.shape[2])
            at_y = np.flatnonzero((ys >= 0) & (ys <= dims[1] - 1))
            at_x = np.flatnonzero((xs >= 0) & (xs <= dims[2] - 1))
            given, ys, xs = gradient[b][np.ix_(at_y, at_x)], ys[at_y], xs[at_x]
            image = out[box_index[b]]
            if nearest:
                np.add.at(image, np.ix_(_round(ys), _round(xs)), given)
                continue
            top, left = np.floor(ys).astype(np.int64), np.floor(xs).astype(np.int64)
            dy, dx = (ys - top)[:, None, None], (xs - left)[None, :, None]
            bottom, right = np.ceil(ys).astype(np.int64), np.ceil(xs).astype(np.int64)
            for rows, weight_y in ((top, 1 - dy), (bottom, dy)):
                for columns, weight_x in ((left, 1 - dx), (right, dx)):
                    np.add.at(image, np.ix_(rows, columns), given * weight_y * weight_x)
        return out.astype(dtype, copy=False)

    return compute


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
            if not at_y.size or not at_x.size:
                continue
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


@kernel("NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3")
def build_non_max_suppression(node: KernelNode) -> Compute:
    """Indices of boxes, best score first, that overlap no better one by more than the threshold."""
    fixed = float(node.attrs.get("iou_threshold", 0.5))

    def compute(boxes: Array, scores: Array, most: Array, *thresholds: Array) -> Array:
        if boxes.ndim != 2 or boxes.shape[1] != 4:
            raise invalid(f"boxes must have 4 columns{shape_text(boxes.shape)}")
        if scores.shape != (len(boxes),):
            raise invalid("scores has incompatible shape")
        size = one_number(most, "max_output_size")
        for name, value in zip(("iou_threshold", "score_threshold"), thresholds, strict=False):
            if value.ndim:
                raise invalid(f"{name} must be 0-D, got shape {shape_text(value.shape)}")
        limit = float(thresholds[0]) if thresholds else fixed
        if not 0 <= limit <= 1:
            raise invalid("iou_threshold must be in [0, 1]")
        lowest = float(thresholds[1]) if len(thresholds) > 1 else -np.inf
        wide = boxes.astype(np.float32)
        low = np.minimum(wide[:, :2], wide[:, 2:])
        high = np.maximum(wide[:, :2], wide[:, 2:])
        area = (high - low).prod(axis=1)
        kept: list[int] = []
        order = np.argsort(-scores.astype(np.float64), kind="stable")
        for i in order.tolist():
            if len(kept) >= size:
                break
            if not scores[i] > lowest:
                continue
            if kept and (_overlaps(i, kept, low, high, area) > limit).any():
                continue
            kept.append(i)
        return np.array(kept, np.int32)

    return compute


def _overlaps(i: int, others: list[int], low: Array, high: Array, area: Array) -> Any:
    """Intersection over union of box i with others; 0 where a box is empty."""
    sides = np.minimum(high[i], high[others]) - np.maximum(low[i], low[others])
    shared = np.clip(sides, 0, None).prod(axis=1)
    total = area[i] + area[others] - shared
    return np.where((area[i] > 0) & (area[others] > 0), shared / total, 0)
