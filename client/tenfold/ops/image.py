"""Images (`tf.image`): types, colours, and random changes of them; the rest is in the ops/image_*.py.

An image is (height, width, channels), images have a leading batch dimension. Follows TensorFlow 1.15's
ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.ops import array, math
from tenfold.ops.image_checks import at_least_3d, grey, required
from tenfold.ops.products import tensordot
from tenfold.ops.random import random_uniform
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.graph.tensor import Tensor


# --- types and colours ---


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """The image as another type: floats are in [0, 1), integers in the whole range of their type."""
    image = convert_to_tensor(image, name="image")
    wanted, kind = as_dtype(dtype).base_dtype, image.dtype.base_dtype
    if not wanted.is_floating and not wanted.is_integer:
        raise AttributeError("dtype must be either floating point or integer")
    if wanted == kind:
        return array.identity(image, name=name)
    with name_scope(name, "convert_image", [image]) as scope:
        result: Tensor
        if kind.is_integer and wanted.is_integer:
            if kind.max > wanted.max:
                image = math.floordiv(image, (kind.max + 1) // (wanted.max + 1))
                result = math.saturate_cast(image, wanted, name=scope) if saturate else math.cast(image, wanted, scope)
                return result
            widened = math.saturate_cast(image, wanted) if saturate else math.cast(image, wanted)
            return math.multiply(widened, (wanted.max + 1) // (kind.max + 1), name=scope)
        if kind.is_floating and wanted.is_floating:
            result = math.cast(image, wanted, name=scope)
            return result
        if kind.is_integer:
            return math.multiply(math.cast(image, wanted), 1.0 / kind.max, name=scope)
        scaled = math.multiply(image, wanted.max + 0.5)
        result = math.saturate_cast(scaled, wanted, name=scope) if saturate else math.cast(scaled, wanted, name=scope)
        return result


def _as_float(image: Any, change: Callable[[Tensor], Tensor], *, saturate: bool = True, name: Any = None) -> Tensor:
    """`change` applied to the image as half or float; the result has the image's type."""
    image = convert_to_tensor(image, name="image")
    kind = image.dtype.base_dtype
    wide = image if kind in (dtypes.float16, dtypes.float32) else convert_image_dtype(image, dtypes.float32)
    return convert_image_dtype(change(wide), kind, saturate=saturate, name=name)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Adds `delta`, on the scale of images in [0, 1)."""
    with name_scope(None, "adjust_brightness", [image, delta]) as scope:
        return _as_float(image, lambda x: math.add(x, math.cast(delta, x.dtype), name=scope))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scales each channel's distance from its mean by the factor."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]) as scope:
        return _as_float(
            images, lambda x: tensor_op("AdjustContrastv2", scope, images=x, contrast_factor=contrast_factor)
        )


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * image ** gamma. Raises ValueError for a negative gamma; one that is fed fails the step."""
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        gamma = required([(gamma >= 0, "Gamma should be a non-negative real number.")], gamma)
        return _as_float(image, lambda x: gain * x**gamma)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Rotates the hue of RGB images by `delta` in [-1, 1]."""
    with name_scope(name, "adjust_hue", [image]):
        return _as_float(image, lambda x: tensor_op("AdjustHue", None, images=x, delta=delta), saturate=False)


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of RGB images."""
    with name_scope(name, "adjust_saturation", [image]):
        return _as_float(
            image, lambda x: tensor_op("AdjustSaturation", None, images=x, scale=saturation_factor), saturate=False
        )


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """One channel of brightness."""
    with name_scope(name, "rgb_to_grayscale", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        wide = convert_image_dtype(images, dtypes.float32)
        grey_values = tensordot(wide, [0.2989, 0.5870, 0.1140], [-1, -1])
        return convert_image_dtype(array.expand_dims(grey_values, -1), images.dtype, name=scope)


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Three equal channels from one. Raises ValueError where the last dimension is known not to be 1."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = grey(convert_to_tensor(images, name="images"))
        lead = array.expand_dims(array.rank(images) - 1, 0)
        multiples = array.concat([array.ones(lead, dtype=dtypes.int32), [3]], 0)
        result = array.tile(images, multiples, name=scope)
        result.set_shape(images.shape[:-1].concatenate([3]))
        return result


def _mixed(images: Any, weights: list[list[float]]) -> Tensor:
    """The colours, in the last axis, times a matrix."""
    images = convert_to_tensor(images, name="images")
    kernel = convert_to_tensor(weights, dtype=images.dtype, name="kernel")
    result: Tensor = tensordot(images, kernel, [[images.shape.ndims - 1], [0]])
    return result


def rgb_to_yiq(images: Any) -> Tensor:
    """Luma and two chroma axes of NTSC, of RGB in [0, 1]; the rank must be known."""
    return _mixed(
        images, [[0.299, 0.59590059, 0.2115], [0.587, -0.27455667, -0.52273617], [0.114, -0.32134392, 0.31119955]]
    )


def yiq_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yiq`."""
    return _mixed(images, [[1, 1, 1], [0.95598634, -0.27201283, -1.10674021], [0.6208248, -0.64720424, 1.70423049]])


def rgb_to_yuv(images: Any) -> Tensor:
    """Luma and two chroma axes of PAL, of RGB in [0, 1]; the rank must be known."""
    return _mixed(
        images,
        [[0.299, -0.14714119, 0.61497538], [0.587, -0.28886916, -0.51496512], [0.114, 0.43601035, -0.10001026]],
    )


def yuv_to_rgb(images: Any) -> Tensor:
    """The inverse of `rgb_to_yuv`."""
    return _mixed(images, [[1, 1, 1], [0, -0.394642334, 2.03206185], [1.13988303, -0.58062185, 0]])


def per_image_standardization(image: Any) -> Tensor:
    """Mean 0 and variance 1; the deviation is taken as at least 1 / sqrt(number of elements)."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = at_least_3d(image)

        def standardized(x: Tensor) -> Tensor:
            pixels = math.reduce_prod(array.shape(x)[-3:])
            mean = math.reduce_mean(x, axis=[-1, -2, -3], keepdims=True)
            deviation = math.reduce_std(x, axis=[-1, -2, -3], keepdims=True)
            least = math.rsqrt(math.cast(pixels, x.dtype))
            return math.div(math.subtract(x, mean), math.maximum(deviation, least), name=scope)

        return _as_float(image, standardized)


# --- random changes ---


def random_brightness(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_brightness` by a random delta within ±max_delta. Raises ValueError for a negative one."""
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_brightness(image, random_uniform([], -max_delta, max_delta, seed=seed))


def random_contrast(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_contrast` by a random factor in [lower, upper]. Raises ValueError unless 0 <= lower < upper."""
    _check_range(lower, upper)
    return adjust_contrast(image, random_uniform([], lower, upper, seed=seed))


def random_saturation(image: Any, lower: float, upper: float, seed: int | None = None) -> Tensor:
    """`adjust_saturation` by a random factor in [lower, upper]. Raises ValueError unless 0 <= lower < upper."""
    _check_range(lower, upper)
    return adjust_saturation(image, random_uniform([], lower, upper, seed=seed))


def random_hue(image: Any, max_delta: float, seed: int | None = None) -> Tensor:
    """`adjust_hue` by a random delta within ±max_delta, at most 0.5. Raises ValueError for another one."""
    if max_delta > 0.5:
        raise ValueError("max_delta must be <= 0.5.")
    if max_delta < 0:
        raise ValueError("max_delta must be non-negative.")
    return adjust_hue(image, random_uniform([], -max_delta, max_delta, seed=seed))


def _check_range(lower: float, upper: float) -> None:
    if upper <= lower:
        raise ValueError("upper must be > lower.")
    if lower < 0:
        raise ValueError("lower must be non-negative.")
