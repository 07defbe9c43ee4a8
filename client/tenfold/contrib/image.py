"""`tf.contrib.image`: images rotated, shifted, or transformed by a projection. Made of gathers, so that gradients flow.

A transform is eight numbers [a0, a1, a2, b0, b1, b2, c0, c1]: output pixel (x, y) is the input's at
((a0 x + a1 y + a2) / k, (b0 x + b1 y + b2) / k), with k = c0 x + c1 y + 1. Follows TensorFlow 1.15's
contrib/image/python/ops/image_ops.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.contrib.image_colors import adjust_hsv_in_yiq, random_hsv_in_yiq
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.array_repeat import meshgrid
from tenfold_core import dtypes

__all__ = [
    "adjust_hsv_in_yiq", "angles_to_projective_transforms", "compose_transforms", "flat_transforms_to_matrices",
    "matrices_to_flat_transforms", "random_hsv_in_yiq", "rotate", "transform", "translate",
    "translations_to_projective_transforms",
]  # fmt: skip

_IMAGE_DTYPES = (
    dtypes.uint8, dtypes.int32, dtypes.int64, dtypes.float16, dtypes.float32, dtypes.float64,
)  # fmt: skip
_WARPS = "its warps have kernels of their own, which are not served; tf.contrib.image.transform is"
_LEFT_OUT = {
    "bipartite_match": "match boxes in tf.py_func, or by tf.image.non_max_suppression",
    "connected_components": "scipy.ndimage.label in tf.py_func does it",
    "dense_image_warp": _WARPS,
    "interpolate_spline": _WARPS,
    "single_image_random_dot_stereograms": _WARPS,
    "sparse_image_warp": _WARPS,
}


def __getattr__(name: str) -> Any:
    if name in _LEFT_OUT:
        raise AttributeError(f"tf.contrib.image.{name} is not part of Tenfold: {_LEFT_OUT[name]}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def rotate(images: Any, angles: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """The images, counterclockwise by angles in radians, one for all or one each; corners that come in are 0."""
    with name_scope(name, "rotate"):
        images = convert_to_tensor(images)
        rank = images.get_shape().ndims
        if rank not in (2, 3, 4):
            raise TypeError("Images should have rank between 2 and 4.")
        sizes = array.shape(images)
        height, width = (sizes[1], sizes[2]) if rank == 4 else (sizes[0], sizes[1])
        transforms = angles_to_projective_transforms(
            angles, math.cast(height, dtypes.float32), math.cast(width, dtypes.float32)
        )
        return transform(images, transforms, interpolation=interpolation)


def translate(images: Any, translations: Any, interpolation: str = "NEAREST", name: str | None = None) -> Any:
    """The images, moved by (dx, dy), one for all or one each."""
    with name_scope(name, "translate"):
        return transform(images, translations_to_projective_transforms(translations), interpolation=interpolation)


def _rows(values: Any, what: str, single: int) -> Any:
    """The values as a matrix, a row each. Raises TypeError for another rank than `single` or one more."""
    values = convert_to_tensor(values, dtype=dtypes.float32)
    rank = values.get_shape().ndims
    if rank is None:
        raise TypeError(f"{what} rank must be statically known")
    if rank == single:
        return array.expand_dims(values, 0)
    if rank == single + 1:
        return values
    raise TypeError(f"{what} should have rank {single} or {single + 1}.")


def angles_to_projective_transforms(angles: Any, image_height: Any, image_width: Any, name: str | None = None) -> Any:
    """Transforms (number, 8) that turn around the middle of an image."""
    with name_scope(name, "angles_to_projective_transforms"):
        angles = _rows(angles, "Angles", 0)
        cos, sin = math.cos(angles), math.sin(angles)
        across, down = image_width - 1, image_height - 1
        x = (across - (cos * across - sin * down)) / 2.0
        y = (down - (sin * across + cos * down)) / 2.0
        zeros = array.zeros_like(angles)
        return array.stack([cos, -sin, x, sin, cos, y, zeros, zeros], axis=1)


def translations_to_projective_transforms(translations: Any, name: str | None = None) -> Any:
    """Transforms (number, 8) that move by (dx, dy)."""
    with name_scope(name, "translations_to_projective_transforms"):
        moved = _rows(translations, "Translations", 1)
        dx, dy = moved[:, 0], moved[:, 1]
        zeros, ones = array.zeros_like(dx), array.ones_like(dx)
        return array.stack([ones, zeros, -dx, zeros, ones, -dy, zeros, zeros], axis=1)


def flat_transforms_to_matrices(transforms: Any) -> Any:
    """Matrices (number, 3, 3) of transforms."""
    with name_scope("flat_transforms_to_matrices"):
        flat = convert_to_tensor(transforms, name="transforms")
        if flat.get_shape().ndims not in (1, 2):
            raise ValueError(f"Transforms should be 1D or 2D, got: {flat}")
        flat = array.reshape(flat, [-1, 8])
        ones = array.ones([array.shape(flat)[0], 1], dtype=flat.dtype)
        return array.reshape(array.concat([flat, ones], axis=1), [-1, 3, 3])


def matrices_to_flat_transforms(transform_matrices: Any) -> Any:
    """Transforms (number, 8) of matrices, the last number of which becomes 1."""
    with name_scope("matrices_to_flat_transforms"):
        matrices = convert_to_tensor(transform_matrices, name="transform_matrices")
        if matrices.get_shape().ndims not in (2, 3):
            raise ValueError(f"Matrices should be 2D or 3D, got: {matrices}")
        flat = array.reshape(matrices, [-1, 9])
        return (flat / flat[:, 8:9])[:, :8]


def compose_transforms(*transforms: Any) -> Any:
    """One transform that does what all do, the last one first. Raises ValueError for none."""
    if not transforms:
        raise ValueError("transforms cannot be empty")
    with name_scope("compose_transforms"):
        composed = flat_transforms_to_matrices(transforms[0])
        for each in transforms[1:]:
            composed = math.matmul(composed, flat_transforms_to_matrices(each))
        return matrices_to_flat_transforms(composed)


def transform(
    images: Any,
    transforms: Any,
    interpolation: str = "NEAREST",
    output_shape: Any = None,
    name: str | None = None,
) -> Any:
    """The images, each by its transform or all by one; what comes from outside an image is 0.

    Images (height, width), (height, width, channels) or a batch of these; `interpolation` is "NEAREST" or "BILINEAR",
    `output_shape` (height, width). Raises TypeError for other ranks and types, ValueError for another interpolation.
    """
    with name_scope(name, "transform"):
        given = convert_to_tensor(images, name="images")
        if given.dtype.base_dtype not in _IMAGE_DTYPES:
            raise TypeError(f"Invalid dtype {given.dtype}.")
        rank = given.get_shape().ndims
        if rank is None:
            raise TypeError("image_or_images rank must be statically known")
        if rank not in (2, 3, 4):
            raise TypeError("Images should have rank between 2 and 4.")
        if interpolation.upper() not in ("NEAREST", "BILINEAR"):
            raise ValueError(f"interpolation must be NEAREST or BILINEAR, not {interpolation}.")
        batch = given if rank == 4 else array.expand_dims(given, 0)
        batch = array.expand_dims(batch, -1) if rank == 2 else batch
        rows = _rows(transforms, "Transforms", 1)
        sizes = array.shape(batch)
        known = batch.get_shape().as_list()
        shape: Any = output_shape
        if shape is None:
            shape = sizes[1:3] if None in known[1:3] else known[1:3]
        shape = convert_to_tensor(shape, dtypes.int32, name="output_shape")
        if not shape.get_shape().is_compatible_with([2]):
            raise ValueError("output_shape must be a 1-D Tensor of 2 elements: new_height, new_width")
        x, y = _sources(rows, shape)
        # One transform stands for all images.
        one = array.zeros([sizes[0], 1, 1], dtypes.float32)
        x, y = x + one, y + one
        if interpolation.upper() == "NEAREST":
            output = _pixels(batch, math.rint(x), math.rint(y))
        else:
            output = _between(batch, x, y)
        if output_shape is None:
            output.set_shape([known[0], known[1], known[2], known[3]])
        output = array.squeeze(output, [-1]) if rank == 2 else output
        return output if rank == 4 else array.squeeze(output, [0])


def _sources(transforms: Any, shape: Any) -> tuple[Any, Any]:
    """Where the pixels of the output come from: x and y (transforms, height, width)."""
    ys, xs = (math.cast(math.range(shape[axis]), dtypes.float32) for axis in (0, 1))
    x, y = (array.expand_dims(each, 0) for each in meshgrid(xs, ys))
    a0, a1, a2, b0, b1, b2, c0, c1 = (array.reshape(transforms[:, place], [-1, 1, 1]) for place in range(8))
    k = c0 * x + c1 * y + 1.0
    return (a0 * x + a1 * y + a2) / k, (b0 * x + b1 * y + b2) / k


def _pixels(images: Any, x: Any, y: Any) -> Any:
    """The pixels at whole coordinates, 0 outside."""
    sizes = array.shape(images)
    right, bottom = (math.cast(sizes[axis] - 1, dtypes.float32) for axis in (2, 1))
    inside = math.logical_and(
        math.logical_and(math.greater_equal(x, 0), math.less_equal(x, right)),
        math.logical_and(math.greater_equal(y, 0), math.less_equal(y, bottom)),
    )
    column = math.cast(math.minimum(math.maximum(x, 0.0), right), dtypes.int32)
    row = math.cast(math.minimum(math.maximum(y, 0.0), bottom), dtypes.int32)
    number = array.reshape(math.range(sizes[0]), [-1, 1, 1]) + array.zeros_like(row)
    found = slicing.gather_nd(images, array.stack([number, row, column], axis=-1))
    return found * array.expand_dims(math.cast(inside, images.dtype), -1)


def _between(images: Any, x: Any, y: Any) -> Any:
    """The pixels at coordinates between whole ones, mixed of the four around."""
    left, top = math.floor(x), math.floor(y)
    mixed: Any = 0.0
    for dx in (0.0, 1.0):
        for dy in (0.0, 1.0):
            share = (1.0 - math.abs(x - left - dx)) * (1.0 - math.abs(y - top - dy))
            part = math.cast(_pixels(images, left + dx, top + dy), dtypes.float32)
            mixed = mixed + array.expand_dims(share, -1) * part
    return math.cast(mixed, images.dtype)
