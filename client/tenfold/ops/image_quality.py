"""Images (`tf.image`): how alike two are (PSNR, SSIM), how they change from pixel to pixel, and where their edges are.

Follows TensorFlow 1.15's ops/image_ops_impl.py; SSIM is that of Wang et al. (2004), over scales that of Wang,
Simoncelli and Bovik (2003).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies, name_scope
from tenfold.ops import array, math
from tenfold.ops.control_flow import Assert
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.image import convert_image_dtype
from tenfold.ops.nn import relu, softmax
from tenfold.ops.nn_conv import depthwise_conv2d
from tenfold.ops.nn_pool import avg_pool
from tenfold.ops.slicing import unstack
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.tensor import Tensor

#: How much each scale counts, the finest first.
_SCALE_WEIGHTS = (0.0448, 0.2856, 0.3001, 0.2363, 0.1333)
_HALF = (1, 2, 2, 1)
#: Sobel's filters, by rows and by columns: [2, 3, 3].
_SOBEL = (((-1, -2, -1), (0, 0, 0), (1, 2, 1)), ((-1, 0, 1), (-2, 0, 2), (-1, 0, 1)))


def total_variation(images: Any, name: str | None = None) -> Tensor:
    """The sum of the differences of neighbouring elements of each image. Raises ValueError for other ranks."""
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


def image_gradients(image: Any) -> tuple[Tensor, Tensor]:
    """(dy, dx) of images [N, H, W, C]: the differences from the pixels below and to the right, 0 at the edge."""
    image = convert_to_tensor(image)
    if image.shape.ndims != 4:
        raise ValueError(f"image_gradients expects a 4D tensor [batch_size, h, w, d], not {image.shape}.")
    shape = array.shape(image)
    batch, height, width, depth = unstack(shape, 4)
    below = array.zeros(array.stack([batch, 1, width, depth]), image.dtype)
    beside = array.zeros(array.stack([batch, height, 1, depth]), image.dtype)
    down = array.concat([image[:, 1:] - image[:, :-1], below], 1)
    right = array.concat([image[:, :, 1:] - image[:, :, :-1], beside], 2)
    return array.reshape(down, shape), array.reshape(right, shape)


def sobel_edges(image: Any) -> Tensor:
    """How strong edges are in images [N, H, W, C]: [N, H, W, C, 2] of dy and dx."""
    image = convert_to_tensor(image)
    shape = array.shape(image)
    filters = np.transpose(np.array(_SOBEL), (1, 2, 0))[:, :, None, :]
    kernels = array.tile(
        array.constant(filters, dtype=image.dtype), array.stack([1, 1, shape[-1], 1]), name="sobel_filters"
    )
    padded = array.pad(image, [[0, 0], [1, 1], [1, 1], [0, 0]], mode="REFLECT")
    output = depthwise_conv2d(padded, kernels, [1, 1, 1, 1], "VALID")
    output = array.reshape(output, array.concat([shape, [2]], 0))
    output.set_shape(image.shape.concatenate([2]))
    return output


# --- likeness ---


def _alike(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor, list[Any]]:
    """The shapes in the step, and assertions that they are of images of one size. Raises ValueError if not."""
    first, second = a.shape.with_rank_at_least(3), b.shape.with_rank_at_least(3)
    if None not in (first.ndims, second.ndims):
        first[-3:].assert_is_compatible_with(second[-3:])
        batches = zip(reversed(first.as_list()[:-3]), reversed(second.as_list()[:-3]), strict=False)
        if any(None not in (x, y) and x != y and 1 not in (x, y) for x, y in batches):
            raise ValueError(f"Two images are not compatible: {first} and {second}")
    x, y = array.shape_n([a, b])
    return x, y, [
        Assert(math.greater_equal(array.size(x), 3), [x, y], summarize=10),
        Assert(math.reduce_all(math.equal(x[-3:], y[-3:])), [x, y], summarize=10),
    ]  # fmt: skip


def psnr(a: Any, b: Any, max_val: Any, name: str | None = None) -> Tensor:
    """The peak signal-to-noise ratio of each pair of images, in decibels; `max_val` is how far pixels can differ."""
    with name_scope(name, "PSNR", [a, b]):
        a, b = convert_to_tensor(a), convert_to_tensor(b)
        peak = convert_image_dtype(math.cast(max_val, a.dtype), dtypes.float32)
        a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
        error = math.reduce_mean(math.squared_difference(a, b), [-3, -2, -1])
        ratio = math.subtract(
            20 * math.log(peak) / math.log(10.0), np.float32(10 / np.log(10)) * math.log(error), name="psnr"
        )
        with control_dependencies(_alike(a, b)[2]):
            return array.identity(ratio)


def _gauss(size: Tensor, sigma: Tensor) -> Tensor:
    """A Gaussian window [size, size, 1, 1] whose elements' sum is 1."""
    at = math.cast(math.range(size), sigma.dtype)
    at -= math.cast(size - 1, sigma.dtype) / 2.0
    weights = math.square(at) * (-0.5 / math.square(sigma))
    both = array.reshape(weights, [1, -1]) + array.reshape(weights, [-1, 1])
    return array.reshape(softmax(array.reshape(both, [1, -1])), array.stack([size, size, 1, 1]))


def _ssim_of_channels(
    a: Tensor, b: Tensor, peak: Any, filter_size: int, filter_sigma: float, k1: float, k2: float
) -> tuple[Tensor, Tensor]:
    """SSIM of each channel, and its part of contrast and structure: [.., channels]."""
    size = array.constant(filter_size, dtype=dtypes.int32)
    first, second = array.shape_n([a, b])
    checks = [
        Assert(math.reduce_all(math.greater_equal(shape[-3:-1], size)), [shape, size], summarize=8)
        for shape in (first, second)
    ]
    with control_dependencies(checks):
        a = array.identity(a)
    window = _gauss(size, array.constant(filter_sigma, dtype=a.dtype))
    window = array.tile(window, array.stack([1, 1, first[-1], 1]))

    def local_mean(x: Tensor) -> Tensor:
        shape = array.shape(x)
        flat = array.reshape(x, array.concat([[-1], shape[-3:]], 0))
        y = depthwise_conv2d(flat, window, [1, 1, 1, 1], "VALID")
        return array.reshape(y, array.concat([shape[:-3], array.shape(y)[1:]], 0))

    c1, c2 = (k1 * peak) ** 2, (k2 * peak) ** 2
    mean_a, mean_b = local_mean(a), local_mean(b)
    product, squares = mean_a * mean_b * 2.0, math.square(mean_a) + math.square(mean_b)
    luminance = (product + c1) / (squares + c1)
    covariance, variances = local_mean(a * b) * 2.0, local_mean(math.square(a) + math.square(b))
    structure = (covariance - product + c2) / (variances - squares + c2)
    axes = array.constant([-3, -2], dtype=dtypes.int32)
    return math.reduce_mean(luminance * structure, axes), math.reduce_mean(structure, axes)


def ssim(
    img1: Any,
    img2: Any,
    max_val: Any,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity of each pair of images, in (−1, 1]; sides must be as long as the filter, or longer."""
    a, b = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
    with control_dependencies(_alike(a, b)[2]):
        a = array.identity(a)
    peak = convert_image_dtype(math.cast(max_val, a.dtype), dtypes.float32)
    a, b = convert_image_dtype(a, dtypes.float32), convert_image_dtype(b, dtypes.float32)
    per_channel, _ = _ssim_of_channels(a, b, peak, filter_size, filter_sigma, k1, k2)
    return math.reduce_mean(per_channel, [-1])


def ssim_multiscale(
    img1: Any,
    img2: Any,
    max_val: Any,
    power_factors: Sequence[float] = _SCALE_WEIGHTS,
    filter_size: int = 11,
    filter_sigma: float = 1.5,
    k1: float = 0.01,
    k2: float = 0.03,
) -> Tensor:
    """The structural similarity over several scales, each half as large as the one before, in [0, 1]."""
    with name_scope(None, "MS-SSIM", [img1, img2]):
        a, b = convert_to_tensor(img1, name="img1"), convert_to_tensor(img2, name="img2")
        first, second, checks = _alike(a, b)
        with control_dependencies(checks):
            a = array.identity(a)
        peak = convert_image_dtype(math.cast(max_val, a.dtype), dtypes.float32)
        images = [convert_image_dtype(each, dtypes.float32) for each in (a, b)]
        heads, tails = [shape[:-3] for shape in (first, second)], [shape[-3:] for shape in (first, second)]
        parts: list[Any] = []
        last: Any = None
        for k in range(len(power_factors)):
            with name_scope(None, f"Scale{k}", images):
                if k:
                    smaller = _halved(images, tails)
                    tails = [shape[1:] for shape in array.shape_n(smaller)]
                    images = [
                        array.reshape(x, array.concat([head, tail], 0))
                        for x, head, tail in zip(smaller, heads, tails, strict=True)
                    ]
                last, structure = _ssim_of_channels(images[0], images[1], peak, filter_size, filter_sigma, k1, k2)
                parts.append(relu(structure))
        # The coarsest scale counts with its luminance.
        scales = array.stack([*parts[:-1], relu(last)], axis=-1)
        return math.reduce_mean(math.reduce_prod(math.pow(scales, list(power_factors)), [-1]), [-1])


def _halved(images: list[Tensor], tails: list[Tensor]) -> list[Tensor]:
    """Images of half the size, in one batch dimension; odd sides are filled up by their last row or column."""
    flat = [array.reshape(x, array.concat([[-1], tail], 0)) for x, tail in zip(images, tails, strict=True)]
    rest = math.floormod(tails[0], array.constant(_HALF[1:], dtype=dtypes.int32))

    def filled() -> list[Tensor]:
        padding = array.pad(array.expand_dims(rest, -1), [[1, 0], [1, 0]])
        return [array.pad(x, padding, mode="SYMMETRIC") for x in flat]

    even = cond(math.reduce_any(math.not_equal(rest, 0)), filled, lambda: flat)
    return [avg_pool(x, ksize=list(_HALF), strides=list(_HALF), padding="VALID") for x in even]
