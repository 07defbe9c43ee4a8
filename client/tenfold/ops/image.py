"""Images (`tf.image`): sizes, crops and padding, flips, colours, and random changes of them.

An image is (height, width, channels), images have a leading batch dimension. Resizing is in ops/image_resize.py.
Follows TensorFlow 1.15's ops/image_ops_impl.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.constant_value import constant_value
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_case import case
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.control_flow_primitives import with_dependencies
from tenfold.ops.random import random_uniform
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype

if TYPE_CHECKING:
    from collections.abc import Callable


def required(conditions: list[tuple[Any, str]], value: Any) -> Any:
    """`value`; where a condition is a tensor, available only if it holds in the step.

    Raises ValueError with the condition's words if it is known to be false.
    """
    checks = []
    for condition, words in conditions:
        if isinstance(condition, Tensor):
            checks.append(Assert(condition, [words]))
        elif not condition:
            raise ValueError(words)
    return with_dependencies(checks, value) if checks else value


# --- types and colours ---


def convert_image_dtype(image: Any, dtype: Any, saturate: bool = False, name: str | None = None) -> Tensor:
    """The image as another type: floats are in [0, 1), integers in the whole range of their type."""
    image = convert_to_tensor(image, name="image")
    wanted, kind = as_dtype(dtype), image.dtype.base_dtype
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


def _as_float(image: Any, change: Callable[[Tensor], Tensor]) -> Tensor:
    """`change` applied to the image as float32; the result has the image's type."""
    image = convert_to_tensor(image, name="image")
    kind = image.dtype.base_dtype
    if kind.is_floating:
        return change(image)
    return convert_image_dtype(change(convert_image_dtype(image, dtypes.float32)), kind, saturate=True)


def adjust_brightness(image: Any, delta: Any) -> Tensor:
    """Adds `delta`, on the scale of images in [0, 1)."""
    with name_scope(None, "adjust_brightness", [image, delta]):
        return _as_float(image, lambda x: math.add(x, math.cast(delta, x.dtype)))


def adjust_contrast(images: Any, contrast_factor: Any) -> Tensor:
    """Scales each channel's distance from its mean by the factor."""
    with name_scope(None, "adjust_contrast", [images, contrast_factor]):
        return _as_float(
            images,
            lambda x: math.cast(
                tensor_op(
                    "AdjustContrastv2", None, images=math.cast(x, dtypes.float32),
                    contrast_factor=math.cast(contrast_factor, dtypes.float32),
                ),
                x.dtype,
            ),
        )  # fmt: skip


def adjust_gamma(image: Any, gamma: Any = 1, gain: Any = 1) -> Tensor:
    """gain * image ** gamma. Raises ValueError for a negative gamma; one that is fed fails the step."""
    with name_scope(None, "adjust_gamma", [image, gamma, gain]):
        gamma = required([(gamma >= 0, "Gamma should be a non-negative real number.")], gamma)
        return _as_float(image, lambda x: gain * x**gamma)


def adjust_hue(image: Any, delta: Any, name: str | None = None) -> Tensor:
    """Rotates the hue of RGB images by `delta` in [-1, 1]."""
    with name_scope(name, "adjust_hue", [image]):
        return _as_float(image, lambda x: tensor_op("AdjustHue", None, images=x, delta=delta))


def adjust_saturation(image: Any, saturation_factor: Any, name: str | None = None) -> Tensor:
    """Multiplies the saturation of RGB images."""
    with name_scope(name, "adjust_saturation", [image]):
        return _as_float(image, lambda x: tensor_op("AdjustSaturation", None, images=x, scale=saturation_factor))


def rgb_to_grayscale(images: Any, name: str | None = None) -> Tensor:
    """One channel of brightness."""
    with name_scope(name, "rgb_to_grayscale", [images]):
        weights = [0.2989, 0.5870, 0.1140]
        return _as_float(images, lambda x: array.expand_dims(math.reduce_sum(x * weights, -1), -1))


def grayscale_to_rgb(images: Any, name: str | None = None) -> Tensor:
    """Three equal channels from one."""
    with name_scope(name, "grayscale_to_rgb", [images]) as scope:
        images = convert_to_tensor(images, name="images")
        lead = array.expand_dims(array.rank(images) - 1, 0)
        multiples = array.concat([array.ones(lead, dtype=dtypes.int32), [3]], 0)
        result = array.tile(images, multiples, name=scope)
        result.set_shape(images.shape[:-1].concatenate([3]))
        return result


def per_image_standardization(image: Any) -> Tensor:
    """Mean 0 and variance 1; the deviation is taken as at least 1 / sqrt(number of elements)."""
    with name_scope(None, "per_image_standardization", [image]) as scope:
        image = math.cast(convert_to_tensor(image, name="image"), dtypes.float32)
        pixels = math.reduce_prod(array.shape(image)[-3:])
        mean = math.reduce_mean(image, axis=[-1, -2, -3], keepdims=True)
        deviation = math.sqrt(math.reduce_mean(math.squared_difference(image, mean), axis=[-1, -2, -3], keepdims=True))
        least = math.rsqrt(math.cast(pixels, dtypes.float32))
        return math.div(math.subtract(image, mean), math.maximum(deviation, least), name=scope)


# --- flips and rotations ---


def _image_rank(image: Tensor) -> Any:
    """3 or 4, or a scalar tensor if only the step knows. Raises ValueError for another rank."""
    rank = image.shape.ndims
    if rank not in (None, 3, 4):
        raise ValueError(f"'image' must have either 3 or 4 dimensions, got shape {image.shape}")
    return array.rank(image) if rank is None else rank


def _flipped(image: Any, axis: int) -> Tensor:
    image = convert_to_tensor(image, name="image")
    return slicing.reverse(image, [_image_rank(image) - 3 + axis])


def flip_left_right(image: Any) -> Tensor:
    """Mirrored: left becomes right."""
    with name_scope(None, "flip_left_right", [image]):
        return _flipped(image, 1)


def flip_up_down(image: Any) -> Tensor:
    """Mirrored: up becomes down."""
    with name_scope(None, "flip_up_down", [image]):
        return _flipped(image, 0)


def transpose_image(image: Any, name: str | None = None) -> Tensor:
    """Height and width exchanged."""
    with name_scope(name, "transpose_image", [image]):
        image = convert_to_tensor(image, name="image")
        rank = _image_rank(image)
        if isinstance(rank, int):
            return array.transpose(image, [1, 0, 2] if rank == 3 else [0, 2, 1, 3])
        return array.transpose(image, array.concat([math.range(rank - 3), [rank - 2, rank - 3, rank - 1]], 0))


transpose = transpose_image


def rot90(image: Any, k: Any = 1, name: str | None = None) -> Tensor:
    """Rotated counter-clockwise by k times 90 degrees; k is a scalar int32, known now or in the step."""
    with name_scope(name, "rot90", [image, k]) as scope:
        image = convert_to_tensor(image, name="image")
        k = convert_to_tensor(k, dtype=dtypes.int32, name="k")
        k.shape.assert_has_rank(0)
        rank = _image_rank(image)
        turns: list[Callable[[], Tensor]] = [
            lambda: array.identity(image),
            lambda: _flipped(transpose_image(image), 0),
            lambda: _flipped(_flipped(image, 0), 1),
            lambda: transpose_image(_flipped(image, 0)),
        ]
        known = constant_value(k)
        if known is not None:
            return turns[int(known) % 4]()
        times = math.floormod(k, 4)
        choices = [(math.equal(times, number), turns[number]) for number in (1, 2, 3)]
        turned: Tensor = case(choices, default=turns[0], exclusive=True, name=scope)
        if isinstance(rank, int):
            batch = image.shape.as_list()[: rank - 3]
            turned.set_shape([*batch, None, None, image.shape.as_list()[-1]])
        return turned


# --- random changes ---


def _randomly_flipped(image: Any, axis: int, seed: int | None, name: str) -> Tensor:
    with name_scope(None, name, [image]) as scope:
        image = convert_to_tensor(image, name="image")
        if image.shape.ndims == 4:
            count = array.shape(image)[0]
            drawn = math.cast(math.round(random_uniform([count], 0, 1.0, seed=seed)), image.dtype)
            flags = array.reshape(drawn, [count, 1, 1, 1])
            return math.add(flags * slicing.reverse(image, [axis + 1]), (1 - flags) * image, name=scope)
        turn = math.less(random_uniform([], 0, 1.0, seed=seed), 0.5)
        flipped: Tensor = cond(turn, lambda: slicing.reverse(image, [axis]), lambda: image, name=scope)
        flipped.set_shape(image.shape)
        return flipped


def random_flip_left_right(image: Any, seed: int | None = None) -> Tensor:
    """Mirrored left and right, or not, with equal probability; each image of a batch independently."""
    return _randomly_flipped(image, 1, seed, "random_flip_left_right")


def random_flip_up_down(image: Any, seed: int | None = None) -> Tensor:
    """Mirrored up and down, or not, with equal probability; each image of a batch independently."""
    return _randomly_flipped(image, 0, seed, "random_flip_up_down")


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
