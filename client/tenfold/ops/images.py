"""Normalization and windows of `tf.nn`: moments, batch and response normalization, convolution, pooling.

Exported by ops/nn.py. `ksize`, `strides` and `dilations` may be one number, two, or all four. Node names follow
TensorFlow 1.15.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.framework import dtypes
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math
from tenfold.ops.array import _alias
from tenfold.ops.elementwise import add, rsqrt, square, subtract
from tenfold.ops.op_builder import apply_op, tensor_op

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


# --- normalization ---


def l2_normalize(x: Any, axis: Any = None, epsilon: float = 1e-12, name: str | None = None, dim: Any = None) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `axis`."""
    axis = _alias("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        total = math.reduce_sum(square(x), axis, keepdims=True)
        return math.multiply(x, rsqrt(math.maximum(total, epsilon)), name=scope)


def moments(
    x: Any,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor]:
    """The mean and variance of `x` over `axes`. `shift` is accepted and not needed."""
    keep = bool(_alias("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x, name="x")
        wide = math.cast(x, dtypes.float32) if x.dtype.base_dtype == dtypes.float16 else x
        mean = math.reduce_mean(wide, axes, keepdims=True, name="mean")
        variance = math.reduce_mean(
            math.squared_difference(wide, array.stop_gradient(mean)), axes, keepdims=True, name="variance"
        )
        if not keep:
            gone = axes if isinstance(axes, int) else list(axes)
            mean, variance = array.squeeze(mean, gone), array.squeeze(variance, gone)
        if wide is not x:
            mean, variance = math.cast(mean, dtypes.float16), math.cast(variance, dtypes.float16)
        return mean, variance


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; scale and offset may be None."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        factor = rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            factor = math.multiply(factor, scale)
        shift = math.negative(mean * factor) if offset is None else subtract(offset, mean * factor)
        return add(math.multiply(x, math.cast(factor, convert_to_tensor(x).dtype)), math.cast(shift, factor.dtype))


def fused_batch_norm(
    x: Any,
    scale: Any,
    offset: Any,
    mean: Any = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization in one operation: `(y, mean, variance)`. Raises ValueError for inference without both."""
    if not is_training and (mean is None or variance is None):
        raise ValueError("Both 'mean' and 'variance' must be a 1D tensor when is_training is False")
    empty = array.constant([], dtypes.float32)
    result = apply_op(
        "FusedBatchNormV3",
        name or "FusedBatchNorm",
        x=x,
        scale=scale,
        offset=offset,
        mean=empty if mean is None else mean,
        variance=empty if variance is None else variance,
        epsilon=max(epsilon, 1.001e-5),
        data_format=data_format,
        is_training=is_training,
    )
    return result.y, result.batch_mean, result.batch_variance


def local_response_normalization(
    input: Any, depth_radius: int = 5, bias: float = 1, alpha: float = 1, beta: float = 0.5, name: str | None = None
) -> Tensor:
    """Divides each element by a power of the sum of squares over its neighbouring channels."""
    return tensor_op("LRN", name, input=input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)


lrn = local_response_normalization


# --- convolution and pooling ---


def _sizes(value: Any, data_format: str, name: str) -> list[int]:
    """`ksize` or `strides` as four numbers. Raises ValueError for another number of them."""
    items = [value] if isinstance(value, int) else list(value)
    if len(items) == 4:
        return items
    if len(items) not in (1, 2):
        raise ValueError(f"{name} should be of length 1, 2 or 4 but was {len(items)}")
    pair = items * 2 if len(items) == 1 else items
    return [1, *pair, 1] if data_format == "NHWC" else [1, 1, *pair]


def conv2d(
    input: Any,
    filter: Any = None,
    strides: Any = None,
    padding: str | None = None,
    use_cudnn_on_gpu: bool = True,
    data_format: str = "NHWC",
    dilations: Any = (1, 1, 1, 1),
    name: str | None = None,
    filters: Any = None,
) -> Tensor:
    """The two-dimensional convolution.

    # input (B batch, H, W, C), filter (R, S, C, K) → (B, H', W', K)
    """
    return tensor_op(
        "Conv2D",
        name,
        input=input,
        filter=_alias("filter", filter, "filters", filters),
        strides=_sizes(1 if strides is None else strides, data_format, "strides"),
        padding=padding,
        use_cudnn_on_gpu=use_cudnn_on_gpu,
        data_format=data_format,
        dilations=_sizes(dilations, data_format, "dilations"),
    )


def _pool(
    op_type: str, argument: str, value: Any, ksize: Any, strides: Any, padding: Any, data_format: str, name: str | None
) -> Tensor:
    with name_scope(name, op_type, [value]) as scope:
        return tensor_op(
            op_type,
            scope,
            **{argument: convert_to_tensor(value, name="input" if argument == "input" else "value")},
            ksize=_sizes(ksize, data_format, "ksize"),
            strides=_sizes(strides, data_format, "strides"),
            padding=padding,
            data_format=data_format,
        )


def max_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The largest element of each window."""
    return _pool("MaxPool", "input", _alias("value", value, "input", input), ksize, strides, padding, data_format, name)


def avg_pool(
    value: Any = None,
    ksize: Any = None,
    strides: Any = None,
    padding: Any = None,
    data_format: str = "NHWC",
    name: str | None = None,
    input: Any = None,
) -> Tensor:
    """The mean of each window."""
    return _pool("AvgPool", "value", _alias("value", value, "input", input), ksize, strides, padding, data_format, name)
