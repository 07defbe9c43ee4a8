"""Images, second part: resizing, cropping and padding to a size, boxes. The first part is ops/image.py.

Follows TensorFlow 1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import constant_value_as_shape
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math, slicing
from tenfold.ops.array import _alias
from tenfold.ops.image import convert_image_dtype, required
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class ResizeMethod:
    """The interpolation of `resize_images`."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


_OPS = {
    ResizeMethod.BILINEAR: "ResizeBilinear",
    ResizeMethod.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethod.BICUBIC: "ResizeBicubic",
    ResizeMethod.AREA: "ResizeArea",
}


def _resize(op_type: str) -> Any:
    def function(
        images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
    ) -> Tensor:
        return tensor_op(
            op_type, name, images=images, size=size, align_corners=align_corners, half_pixel_centers=half_pixel_centers
        )

    function.__name__ = function.__qualname__ = op_type
    function.__doc__ = f"The operation {op_type}: images (B, H, W, C) at another size (height, width)."
    return function


resize_bilinear = _resize("ResizeBilinear")
resize_bicubic = _resize("ResizeBicubic")
resize_nearest_neighbor = _resize("ResizeNearestNeighbor")


def resize_images(
    images: Any,
    size: Any,
    method: int = ResizeMethod.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """An image or images resized to (height, width); unchanged if they have that size.

    Raises ValueError for another rank, a size that is not a pair, and an unknown method.
    """
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        rank = images.shape.ndims
        if rank not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        batch = images if rank == 4 else array.expand_dims(images, 0)
        size = convert_to_tensor(size, dtypes.int32, name="size")
        if not size.shape.is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        if preserve_aspect_ratio:
            now = array.shape(batch)[1:3]
            scale = math.reduce_min(math.cast(size, dtypes.float32) / math.cast(now, dtypes.float32))
            size = math.cast(math.round(scale * math.cast(now, dtypes.float32)), dtypes.int32)
        if method not in _OPS:
            raise ValueError("Resize method is not implemented.")
        static = constant_value_as_shape(size)
        known = [None, None] if static.ndims is None else static.as_list()
        if None not in known and known == batch.shape.as_list()[1:3]:
            same: Tensor = images
            return same
        result = tensor_op(_OPS[method], None, images=batch, size=size, align_corners=align_corners)
        result.set_shape([None, *known, None])
        return result if rank == 4 else array.squeeze(result, [0])


resize = resize_images


# --- crops and padding ---


def _batched(image: Any) -> tuple[Tensor, bool]:
    """(images of rank 4, whether there was only one). An image of unknown rank is taken for one."""
    image = convert_to_tensor(image, name="image")
    if image.shape.ndims is None:
        batch = array.expand_dims(image, 0)
        batch.set_shape([None] * 4)
        return batch, True
    if image.shape.ndims not in (3, 4):
        raise ValueError(f"'image' must have either 3 or 4 dimensions, got shape {image.shape}")
    return (image, False) if image.shape.ndims == 4 else (array.expand_dims(image, 0), True)


def _sides(batch: Tensor) -> tuple[Any, Any]:
    """Height and width: numbers where they are known, else scalar tensors."""
    known = batch.shape.as_list()[1:3]
    if None not in known:
        return known[0], known[1]
    shape = array.shape(batch)
    return (shape[1] if known[0] is None else known[0]), (shape[2] if known[1] is None else known[1])


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The crop of the given size at the offset. Raises ValueError if it is not within the image; or the step fails."""
    with name_scope(None, "crop_to_bounding_box", [image]):
        batch, single = _batched(image)
        height, width = _sides(batch)
        batch = required(
            [
                (offset_width >= 0, "offset_width must be >= 0."),
                (offset_height >= 0, "offset_height must be >= 0."),
                (target_width > 0, "target_width must be > 0."),
                (target_height > 0, "target_height must be > 0."),
                (width >= target_width + offset_width, "width must be >= target + offset."),
                (height >= target_height + offset_height, "height must be >= target + offset."),
            ],
            batch,
        )
        begin = array.stack([0, offset_height, offset_width, 0])
        cropped = slicing.slice(batch, begin, array.stack([-1, target_height, target_width, -1]))
        sizes = [size if isinstance(size, int) else None for size in (target_height, target_width)]
        static = batch.shape.as_list()
        cropped.set_shape([static[0], *sizes, static[3]])
        return array.squeeze(cropped, [0]) if single else cropped


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The image padded with zeros to the given size, placed at the offset.

    Raises ValueError if it cannot fit; where only the step knows the sizes, the step fails.
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        batch, single = _batched(image)
        static = batch.shape.as_list()
        height, width = _sides(batch)
        below, right = target_height - offset_height - height, target_width - offset_width - width
        batch = required(
            [
                (offset_height >= 0, "offset_height must be >= 0"),
                (offset_width >= 0, "offset_width must be >= 0"),
                (right >= 0, "width must be <= target - offset"),
                (below >= 0, "height must be <= target - offset"),
            ],
            batch,
        )
        pads = array.stack([0, 0, offset_height, below, offset_width, right, 0, 0])
        padded = array.pad(batch, array.reshape(pads, [4, 2]))
        sizes = [size if isinstance(size, int) else None for size in (target_height, target_width)]
        padded.set_shape([static[0], *sizes, static[3]])
        return array.squeeze(padded, [0]) if single else padded


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The image cropped to its centre or padded evenly with zeros, along each dimension."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        batch, single = _batched(image)
        batch = required(
            [(target_width > 0, "target_width must be > 0."), (target_height > 0, "target_height must be > 0.")], batch
        )
        crop: list[Any] = []
        pad: list[Any] = []
        sizes: list[Any] = []
        for size, target in zip(_sides(batch), (target_height, target_width), strict=True):
            if isinstance(size, int) and isinstance(target, int):
                crop.append(max((size - target) // 2, 0))
                pad.append(max((target - size) // 2, 0))
                sizes.append(min(size, target))
            else:
                crop.append(math.maximum((size - target) // 2, 0))
                pad.append(math.maximum((target - size) // 2, 0))
                sizes.append(math.minimum(size, target))
        cropped = crop_to_bounding_box(batch, *crop, *sizes)
        result = pad_to_bounding_box(cropped, pad[0], pad[1], target_height, target_width)
        return array.squeeze(result, [0]) if single else result


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The centre of the image, `central_fraction` of each dimension. Raises ValueError outside of (0, 1]."""
    with name_scope(None, "central_crop", [image]):
        if not 0.0 < central_fraction <= 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        if central_fraction == 1.0:
            return convert_to_tensor(image)
        batch, single = _batched(image)
        static, shape = batch.shape.as_list(), array.shape(batch)
        starts: list[Any] = []
        sizes: list[Any] = []
        for axis in (1, 2):
            known = static[axis]
            if known is not None:
                start: Any = int((known - known * central_fraction) / 2)
                whole: Any = known
            else:
                whole = shape[axis]
                wide = math.cast(whole, dtypes.float64)
                start = math.cast((wide - wide * central_fraction) / 2, dtypes.int32)
            starts.append(start)
            sizes.append(whole - start * 2)
        result = crop_to_bounding_box(batch, *starts, *sizes)
        return array.squeeze(result, [0]) if single else result


# --- boxes ---


def crop_and_resize(
    image: Any,
    boxes: Any,
    box_ind: Any = None,
    crop_size: Any = None,
    method: str = "bilinear",
    extrapolation_value: float = 0,
    name: str | None = None,
    box_indices: Any = None,
) -> Tensor:
    """Crops boxes (y1, x1, y2, x2, as fractions) out of the images that `box_ind` names, at one size."""
    return tensor_op(
        "CropAndResize", name, image=image, boxes=boxes, box_ind=_alias("box_ind", box_ind, "box_indices", box_indices),
        crop_size=crop_size, method=method, extrapolation_value=extrapolation_value,
    )  # fmt: skip


def non_max_suppression(
    boxes: Any,
    scores: Any,
    max_output_size: Any,
    iou_threshold: Any = 0.5,
    score_threshold: Any = float("-inf"),
    name: str | None = None,
) -> Tensor:
    """The indices of the highest-scored boxes that overlap no better one by more than `iou_threshold`."""
    with name_scope(name, "non_max_suppression"):
        return tensor_op(
            "NonMaxSuppressionV3", None, boxes=boxes, scores=scores, max_output_size=max_output_size,
            iou_threshold=iou_threshold, score_threshold=score_threshold,
        )  # fmt: skip


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences of neighbouring elements of each image."""
    with name_scope(name, "total_variation"):
        images = convert_to_tensor(images)
        if images.shape.ndims == 3:
            down, right, axis = images[1:] - images[:-1], images[:, 1:] - images[:, :-1], None
        elif images.shape.ndims == 4:
            down, right = images[:, 1:] - images[:, :-1], images[:, :, 1:] - images[:, :, :-1]
            axis = [1, 2, 3]
        else:
            raise ValueError("'images' must be either 3 or 4-dimensional.")
        return math.reduce_sum(math.abs(down), axis=axis) + math.reduce_sum(math.abs(right), axis=axis)


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of two images, in decibels."""
    with name_scope(name, "PSNR", [a, b]):
        a, b = convert_to_tensor(a), convert_to_tensor(b)
        peak = convert_image_dtype(math.cast(max_val, a.dtype), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = math.reduce_mean(math.squared_difference(a, b), [-3, -2, -1])
        return math.subtract(20 * math.log(peak) / math.log(10.0), (10 / 2.302585092994046) * math.log(error))
