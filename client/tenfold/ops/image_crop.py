"""Images (`tf.image`): cropping and padding to a size. What is asked of their shapes: ops/image_checks.py.

Follows TensorFlow 1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.image_checks import (
    at_least_3d,
    batched,
    checks_of,
    dimensions,
    known,
    largest,
    rank_checks,
    required,
    smallest,
)
from tenfold_core import dtypes


def crop_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The crop of the given size at the offset. Raises ValueError if it is not within the image; or the step fails."""
    with name_scope(None, "crop_to_bounding_box", [image]):
        batch, single = batched(image)
        checks = rank_checks(batch, 4)
        count, height, width, depth = dimensions(batch, 4)
        checks += checks_of(
            (offset_width >= 0, "offset_width must be >= 0."),
            (offset_height >= 0, "offset_height must be >= 0."),
            (target_width > 0, "target_width must be > 0."),
            (target_height > 0, "target_height must be > 0."),
            (width >= target_width + offset_width, "width must be >= target + offset."),
            (height >= target_height + offset_height, "height must be >= target + offset."),
        )
        batch = with_dependencies(checks, batch) if checks else batch
        begin = array.stack([0, offset_height, offset_width, 0])
        cropped = slicing.slice(batch, begin, array.stack([-1, target_height, target_width, -1]))
        cropped.set_shape(known(count, target_height, target_width, depth))
        return array.squeeze(cropped, axis=[0]) if single else cropped


def pad_to_bounding_box(
    image: Any, offset_height: Any, offset_width: Any, target_height: Any, target_width: Any
) -> Tensor:
    """The image padded with zeros to the given size, placed at the offset.

    Raises ValueError if it cannot fit; where only the step knows the sizes, the step fails.
    """
    with name_scope(None, "pad_to_bounding_box", [image]):
        batch, single = batched(image)
        checks = rank_checks(batch, 4)
        count, height, width, depth = dimensions(batch, 4)
        right, below = target_width - offset_width - width, target_height - offset_height - height
        checks += checks_of(
            (offset_height >= 0, "offset_height must be >= 0"),
            (offset_width >= 0, "offset_width must be >= 0"),
            (right >= 0, "width must be <= target - offset"),
            (below >= 0, "height must be <= target - offset"),
        )
        batch = with_dependencies(checks, batch) if checks else batch
        pads = array.stack([0, 0, offset_height, below, offset_width, right, 0, 0])
        padded = array.pad(batch, array.reshape(pads, [4, 2]))
        padded.set_shape(known(count, target_height, target_width, depth))
        return array.squeeze(padded, axis=[0]) if single else padded


def resize_image_with_crop_or_pad(image: Any, target_height: Any, target_width: Any) -> Tensor:
    """The image cropped to its centre or padded evenly with zeros, along each dimension."""
    with name_scope(None, "resize_image_with_crop_or_pad", [image]):
        batch, single = batched(image)
        checks = rank_checks(batch, 4)
        checks += checks_of(
            (target_width > 0, "target_width must be > 0."), (target_height > 0, "target_height must be > 0.")
        )
        if checks:
            batch = with_dependencies(checks, batch)
            target_height, target_width = (
                with_dependencies(checks, size) if isinstance(size, Tensor) else size
                for size in (target_height, target_width)
            )
        crops: list[Any] = []
        pads: list[Any] = []
        sizes: list[Any] = []
        for size, target in zip(dimensions(batch, 4)[1:3], (target_height, target_width), strict=True):
            more = target - size
            crops.append(largest(-more // 2, 0))
            pads.append(largest(more // 2, 0))
            sizes.append(smallest(target, size))
        cropped = crop_to_bounding_box(batch, *crops, *sizes)
        resized = pad_to_bounding_box(cropped, pads[0], pads[1], target_height, target_width)
        _, height, width, _ = dimensions(resized, 4)
        resized = required(
            [
                (_equal(height, target_height), "resized height is not correct."),
                (_equal(width, target_width), "resized width is not correct."),
            ],
            resized,
        )
        result: Tensor = array.squeeze(resized, axis=[0]) if single else resized
        return result


resize_with_crop_or_pad = resize_image_with_crop_or_pad


def _equal(x: Any, y: Any) -> Any:
    return math.equal(x, y) if isinstance(x, Tensor) or isinstance(y, Tensor) else x == y


def central_crop(image: Any, central_fraction: float) -> Tensor:
    """The centre of the image, `central_fraction` of each dimension. Raises ValueError outside of (0, 1]."""
    with name_scope(None, "central_crop", [image]):
        image = convert_to_tensor(image, name="image")
        if central_fraction <= 0.0 or central_fraction > 1.0:
            raise ValueError("central_fraction must be within (0, 1]")
        if central_fraction == 1.0:
            whole_image: Tensor = image
            return whole_image
        image = at_least_3d(image)
        rank = image.shape.ndims
        if rank not in (3, 4):
            raise ValueError(f"`image` should either be a Tensor with rank = 3 or rank = 4. Had rank = {rank}.")
        static, first = image.shape.as_list(), rank - 3
        starts: list[Any] = []
        sizes: list[Any] = []
        for axis in (first, first + 1):
            if static[axis] is not None:
                start: Any = int((static[axis] - static[axis] * central_fraction) / 2)
                whole: Any = static[axis]
            else:
                whole = array.shape(image)[axis]
                wide = math.cast(whole, dtypes.float64)
                start = math.cast((wide - wide * central_fraction) / 2, dtypes.int32)
            starts.append(start)
            sizes.append(whole - start * 2)
        begin, size = array.stack([*[0] * first, *starts, 0]), array.stack([*[-1] * first, *sizes, -1])
        result = slicing.slice(image, begin, size)
        result.set_shape([*static[:first], *known(*sizes), static[-1]])
        return result
