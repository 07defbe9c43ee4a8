"""Gradient rows of image ops; the op definitions are in tenfold_core/opdefs/image.py.

Follows TensorFlow's image_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold.ops import math as math_ops
from tenfold.ops import slicing
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _flags(op: Operation) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}


@gradient("ResizeBicubic")
def _resize_bicubic(op: Operation, g: Tensor) -> Any:
    if op.inputs[0].dtype not in (dtypes.float32, dtypes.float64):
        return None, None
    return apply_op("ResizeBicubicGrad", grads=g, original_image=op.inputs[0], **_flags(op)), None


@gradient("ResizeNearestNeighbor")
def _resize_nearest(op: Operation, g: Tensor) -> Any:
    known = op.inputs[0].shape[1:3]
    size = known.as_list() if known.is_fully_defined() else array_ops.shape(op.inputs[0])[1:3]
    return apply_op("ResizeNearestNeighborGrad", grads=g, size=size, **_flags(op)), None


@gradient("CropAndResize")
def _crop_and_resize(op: Operation, g: Tensor) -> Any:
    image, boxes, box_index, _ = op.inputs
    kind = image.dtype.base_dtype if image.dtype.base_dtype.is_floating else g.dtype.base_dtype
    of_image = apply_op(
        "CropAndResizeGradImage",
        grads=g,
        boxes=boxes,
        box_ind=box_index,
        image_size=array_ops.shape(image),
        T=kind,
        method=op.get_attr("method"),
    )
    # As in TensorFlow, the derivative of bilinear sampling, for both methods.
    of_boxes = apply_op("CropAndResizeGradBoxes", grads=g, image=image, boxes=boxes, box_ind=box_index)
    return of_image if image.dtype.is_floating else None, of_boxes, None, None


not_differentiable(
    "DecodeAndCropJpeg", "DecodeBmp", "DecodeGif", "DecodeImage", "DecodeJpeg", "DecodePng", "EncodeJpeg",
    "EncodeJpegVariableQuality", "EncodePng", "ExtractJpegShape", why="bytes of files",
)  # fmt: skip
not_differentiable(
    "CombinedNonMaxSuppression", "NonMaxSuppression", "NonMaxSuppressionV2", "NonMaxSuppressionV3",
    "NonMaxSuppressionV4", "NonMaxSuppressionV5", "NonMaxSuppressionWithOverlaps", "SampleDistortedBoundingBox",
    "SampleDistortedBoundingBoxV2", "StatelessSampleDistortedBoundingBox", why="indices, or boxes drawn by lot",
)  # fmt: skip
not_differentiable("DrawBoundingBoxes", "DrawBoundingBoxesV2", "ExtractGlimpse", "ExtractGlimpseV2", "HSVToRGB",
                   why="as in TensorFlow")  # fmt: skip
not_implemented(
    "AdjustContrast",
    "AdjustContrastv2",
    "AdjustHue",
    "AdjustSaturation",
    "CropAndResizeGradBoxes",
    "CropAndResizeGradImage",
    "ResizeArea",
    "ResizeBicubicGrad",
    "ResizeNearestNeighborGrad",
    "ScaleAndTranslateGrad",
)


@gradient("ResizeBilinear")
def _resize_bilinear(op: Operation, g: Tensor) -> Any:
    return apply_op("ResizeBilinearGrad", grads=g, original_image=op.inputs[0], **_flags(op)), None


@gradient("ScaleAndTranslate")
def _scale_and_translate(op: Operation, g: Tensor) -> Any:
    image, _, scale, translation = op.inputs
    how = {name: op.get_attr(name) for name in ("kernel_type", "antialias")}
    given = apply_op(
        "ScaleAndTranslateGrad", grads=g, original_image=image, scale=scale, translation=translation, **how
    )
    return given, None, None, None


@gradient("RGBToHSV")
def _rgb_to_hsv(op: Operation, g: Tensor) -> Any:
    """Of each pixel: value is the largest colour, saturation 1 - least / largest, hue the third one's place between.

    Where colours are alike the rule of TensorFlow 1.15 holds: red before green before blue is the largest, and blue
    before green before red is the least but where it is the largest, too.
    """
    rgb, hsv = op.inputs[0], op.outputs[0]
    red, green, blue = (rgb[..., i] for i in range(3))
    zero = array_ops.zeros_like(red)
    first = [
        math_ops.logical_and(red >= blue, red >= green),
        math_ops.logical_and(green > red, green >= blue),
        math_ops.logical_and(blue > red, blue > green),
    ]
    last = [
        math_ops.logical_and(red < blue, red < green),
        math_ops.logical_and(green <= red, green < blue),
        math_ops.logical_and(blue <= red, blue <= green),
    ]
    value = hsv[..., 2]
    least = sum(slicing.where(is_last, colour, zero) for is_last, colour in zip(last, (red, green, blue), strict=True))
    spread = value - least
    per_value, per_spread = (_reciprocal(each) for each in (value, spread))
    parts = []
    for i in range(3):
        ahead, behind = (rgb[..., (i + 1) % 3] - rgb[..., (i + 2) % 3], (i + 1) % 3)
        of_value = math_ops.cast(first[i], rgb.dtype)
        # a colour that is 0 does not move the saturation: there TensorFlow has no slope
        of_saturation = slicing.where(first[i], least * per_value * per_value, zero) - slicing.where(
            math_ops.logical_and(last[i], rgb[..., i] > 0), per_value, zero
        )
        # The colour is the largest: its two neighbours' difference is divided by a larger spread …
        of_hue = slicing.where(first[i], -ahead * per_spread * per_spread, zero)
        # … or the one before it or behind it round the circle is, and it is the least, or lies between.
        for other, sign in ((behind, -1.0), ((i + 2) % 3, 1.0)):
            difference = rgb[..., (other + 1) % 3] - rgb[..., (other + 2) % 3]
            of_least = slicing.where(last[i], difference * per_spread * per_spread, zero)
            of_hue += slicing.where(first[other], sign * per_spread + of_least, zero)
        parts.append(g[..., 2] * of_value + g[..., 1] * of_saturation + g[..., 0] * of_hue / 6.0)
    return array_ops.stack(parts, axis=-1)


def _reciprocal(x: Any) -> Any:
    """1 / x, and 0 of 0."""
    return math_ops.div_no_nan(array_ops.ones_like(x), x)


not_differentiable("ResizeBilinearGrad", why="as in TensorFlow")
