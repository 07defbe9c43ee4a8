"""Images (`tf.image`): resizing. Crops and padding are ops/image_crop.py's, what is asked of shapes image_checks.py's.

Follows TensorFlow 1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import constant_value_as_shape
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.named import named
from tenfold.ops import array, math
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.image_checks import batched, checks_of, dimensions, rank_checks
from tenfold.ops.image_crop import pad_to_bounding_box
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor


class ResizeMethodV1:
    """The interpolation of `resize_images`: `tf.image.ResizeMethod`."""

    BILINEAR = 0
    NEAREST_NEIGHBOR = 1
    BICUBIC = 2
    AREA = 3


class ResizeMethod:
    """The interpolation of `resize_images_v2`, which are names."""

    BILINEAR = "bilinear"
    NEAREST_NEIGHBOR = "nearest"
    BICUBIC = "bicubic"
    AREA = "area"
    LANCZOS3 = "lanczos3"
    LANCZOS5 = "lanczos5"
    GAUSSIAN = "gaussian"
    MITCHELLCUBIC = "mitchellcubic"


#: By number, and by the names that TensorFlow 2 gives them.
_OPS = {
    ResizeMethodV1.BILINEAR: "ResizeBilinear",
    ResizeMethodV1.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethodV1.BICUBIC: "ResizeBicubic",
    ResizeMethodV1.AREA: "ResizeArea",
    ResizeMethod.BILINEAR: "ResizeBilinear",
    ResizeMethod.NEAREST_NEIGHBOR: "ResizeNearestNeighbor",
    ResizeMethod.BICUBIC: "ResizeBicubic",
    ResizeMethod.AREA: "ResizeArea",
}
#: TensorFlow 2's methods of ScaleAndTranslate, and the kernels of those that are it only when they smooth.
_SAMPLED = ("lanczos3", "lanczos5", "gaussian", "mitchellcubic")
_SMOOTHED = {"bilinear": "triangle", "bicubic": "keyscubic"}


def _resize(op_type: str) -> Any:
    def function(
        images: Any, size: Any, align_corners: bool = False, name: str | None = None, half_pixel_centers: bool = False
    ) -> Tensor:
        return tensor_op(
            op_type, name, images=images, size=size, align_corners=align_corners, half_pixel_centers=half_pixel_centers
        )

    return named(function, op_type, f"The operation {op_type}: images (B, H, W, C) at another size (height, width).")


resize_bilinear = _resize("ResizeBilinear")
resize_bicubic = _resize("ResizeBicubic")
resize_nearest_neighbor = _resize("ResizeNearestNeighbor")


def resize_images(
    images: Any,
    size: Any,
    method: Any = ResizeMethodV1.BILINEAR,
    align_corners: bool = False,
    preserve_aspect_ratio: bool = False,
    name: str | None = None,
) -> Tensor:
    """An image or images resized to (height, width); unchanged if they have that size.

    Raises ValueError for another rank, a size that is not a pair, and an unknown method.
    """

    def resized(batch: Tensor, size: Tensor) -> Tensor:
        if method not in _OPS:
            raise ValueError("Resize method is not implemented.")
        return tensor_op(_OPS[method], None, images=batch, size=size, align_corners=align_corners)

    return _resize_to(images, resized, size, preserve_aspect_ratio, name, same_is_done=True)


resize = resize_images


def scale_and_translate(
    images: Any,
    size: Any,
    scale: Any,
    translation: Any,
    kernel_type: str = "lanczos3",
    antialias: bool = True,
    name: str | None = None,
) -> Tensor:
    """The operation ScaleAndTranslate: images [B, H, W, C] sampled by a kernel; scale and translation are pairs."""
    return tensor_op(
        "ScaleAndTranslate", name, images=images, size=size, scale=scale, translation=translation,
        kernel_type=kernel_type, antialias=antialias,
    )  # fmt: skip


def resize_images_v2(
    images: Any,
    size: Any,
    method: str = "bilinear",
    preserve_aspect_ratio: bool = False,
    antialias: bool = False,
    name: str | None = None,
) -> Tensor:
    """`resize_images` as TensorFlow 2 has it: pixels are areas with centres, and images that shrink may be smoothed.

    Methods are bilinear, nearest, bicubic, area, lanczos3, lanczos5, gaussian and mitchellcubic. Raises ValueError as
    `resize_images` does.
    """

    def resized(batch: Tensor, size: Tensor) -> Tensor:
        if method in _SAMPLED or (antialias and method in _SMOOTHED):
            now = math.cast(array.shape(batch)[1:3], dtypes.float32)
            scale = math.cast(size, dtypes.float32) / now
            kind = _SMOOTHED.get(method, method)
            return scale_and_translate(batch, size, scale, array.zeros([2]), kind, antialias)
        if method not in _OPS or not isinstance(method, str):
            raise ValueError("Resize method is not implemented.")
        centres = {} if method == "area" else {"half_pixel_centers": True}
        return tensor_op(_OPS[method], None, images=batch, size=size, **centres)

    return _resize_to(images, resized, size, preserve_aspect_ratio, name, same_is_done=False)


def _resize_to(
    images: Any,
    resized: Callable[[Tensor, Tensor], Tensor],
    size: Any,
    keeps_ratio: bool,
    name: str | None,
    *,
    same_is_done: bool,
) -> Tensor:
    with name_scope(name, "resize", [images, size]):
        images = convert_to_tensor(images, name="images")
        if images.shape.ndims is None:
            raise ValueError("'images' contains no shape.")
        if images.shape.ndims not in (3, 4):
            raise ValueError("'images' must have either 3 or 4 dimensions.")
        single = images.shape.ndims == 3
        batch = array.expand_dims(images, 0) if single else images
        try:
            size = convert_to_tensor(size, dtypes.int32, name="size")
        except (TypeError, ValueError):
            raise ValueError("'size' must be a 1-D int32 Tensor") from None
        if not size.shape.is_compatible_with([2]):
            raise ValueError("'size' must be a 1-D Tensor of 2 elements: new_height, new_width")
        if keeps_ratio:
            size = _fitting(batch, size)
        new = _known_sizes(size)
        if same_is_done and None not in new and new == batch.shape.as_list()[1:3]:
            return array.squeeze(batch, axis=[0]) if single else batch
        result = resized(batch, size)
        result.set_shape([None, *new, None])
        return array.squeeze(result, axis=[0]) if single else result


def _known_sizes(size: Tensor) -> list[int | None]:
    """Height and width, as far as they are known."""
    static = constant_value_as_shape(size)
    return [None, None] if static.ndims is None else static.as_list()


def _fitting(batch: Tensor, size: Tensor) -> Tensor:
    """The largest size within `size` that has the ratio of the images' sides."""
    sides = dimensions(batch, 4)[1:3]
    wanted = [size[i] if each is None else each for i, each in enumerate(_known_sizes(size))]
    now = [math.cast(side, dtypes.float32) for side in sides]
    scales = [math.cast(want, dtypes.float32) / side for want, side in zip(wanted, now, strict=True)]
    scale = math.minimum(*scales)
    scaled = [math.cast(math.round(scale * side), dtypes.int32) for side in now]
    return convert_to_tensor(scaled, dtypes.int32, name="size")


def resize_image_with_pad(
    image: Any,
    target_height: Any,
    target_width: Any,
    method: Any = ResizeMethodV1.BILINEAR,
    align_corners: bool = False,
) -> Tensor:
    """The image resized as far as it fits, its sides keeping their ratio, and padded evenly with zeros."""
    return _resize_and_pad(
        image, target_height, target_width, lambda x, size: resize_images(x, size, method, align_corners=align_corners)
    )


resize_image_with_pad_v1 = resize_image_with_pad


def resize_image_with_pad_v2(
    image: Any, target_height: Any, target_width: Any, method: str = "bilinear", antialias: bool = False
) -> Tensor:
    """`resize_image_with_pad` by `resize_images_v2`."""
    return _resize_and_pad(
        image, target_height, target_width, lambda x, size: resize_images_v2(x, size, method, antialias=antialias)
    )


def _resize_and_pad(image: Any, target_height: Any, target_width: Any, resized: Callable[[Any, Any], Tensor]) -> Tensor:
    with name_scope(None, "resize_image_with_pad", [image]):
        batch, single = batched(image)
        checks = rank_checks(batch, 4)
        checks += checks_of(
            (target_width > 0, "target_width must be > 0."), (target_height > 0, "target_height must be > 0.")
        )
        batch = with_dependencies(checks, batch) if checks else batch
        _, height, width, _ = dimensions(batch, 4)
        wide, wanted = (
            [math.cast(side, dtypes.float64) for side in sides]
            for sides in ((height, width), (target_height, target_width))
        )
        ratio = math.maximum(wide[1] / wanted[1], wide[0] / wanted[0])
        fitting = [side / ratio for side in wide]
        size = [math.cast(math.floor(side), dtypes.int32) for side in fitting]
        margins = [math.floor((want - side) / 2) for want, side in zip(wanted, fitting, strict=True)]
        pads = [math.maximum(0, math.cast(margin, dtypes.int32)) for margin in margins]
        padded = pad_to_bounding_box(resized(batch, size), pads[0], pads[1], target_height, target_width)
        return array.squeeze(padded, axis=[0]) if single else padded
