"""Gradient rows of image ops; the op definitions are in tenfold_core/opdefs/image.py.

Follows TensorFlow's image_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


def _flags(op: Operation) -> dict[str, Any]:
    return {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}


@gradient("ResizeBicubic")
def _resize_bicubic(op: Operation, g: Tensor) -> Any:
    return apply_op("ResizeBicubicGrad", grads=g, original_image=op.inputs[0], **_flags(op)), None


@gradient("ResizeNearestNeighbor")
def _resize_nearest(op: Operation, g: Tensor) -> Any:
    size = array_ops.shape(op.inputs[0])[1:3]
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
    "DecodeJpeg", "DecodePng", "EncodeJpeg", "EncodePng", "NonMaxSuppression", "NonMaxSuppressionV2",
    "NonMaxSuppressionV3", "DrawBoundingBoxes", why="bytes, pixels or indices",
)  # fmt: skip
not_implemented(
    "AdjustContrastv2",
    "AdjustHue",
    "AdjustSaturation",
    "CropAndResizeGradBoxes",
    "CropAndResizeGradImage",
    "ExtractVolumePatches",
    "HSVToRGB",
    "RGBToHSV",
    "ResizeArea",
    "ResizeBicubicGrad",
    "ResizeBilinearGrad",
    "ResizeNearestNeighborGrad",
)


@gradient("ResizeBilinear")
def _resize_bilinear(op: Operation, g: Tensor) -> Any:
    flags = {name: op.get_attr(name) for name in ("align_corners", "half_pixel_centers")}
    return apply_op("ResizeBilinearGrad", grads=g, original_image=op.inputs[0], **flags), None
