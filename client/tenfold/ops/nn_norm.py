"""Normalization of `tf.nn`: moments, batch, response and L2 normalization. Exported by ops/nn.py.

Follows TensorFlow 1.15's nn_impl.py, node names included.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.ops import array, math
from tenfold.ops.array import _alias
from tenfold.ops.elementwise import add, rsqrt, square, subtract
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.argument_types import TensorLike
    from tenfold.graph.tensor import Tensor


def l2_normalize(
    x: TensorLike,
    axis: TensorLike | None = None,
    epsilon: float = 1e-12,
    name: str | None = None,
    dim: TensorLike | None = None,
) -> Tensor:
    """x / sqrt(max(sum(x ** 2), epsilon)) along `axis`."""
    axis = _alias("axis", axis, "dim", dim)
    with name_scope(name, "l2_normalize", [x]) as scope:
        x = convert_to_tensor(x, name="x")
        total = math.reduce_sum(square(x), axis, keepdims=True)
        return math.multiply(x, rsqrt(math.maximum(total, epsilon)), name=scope)


# --- moments ---


def _axes(axes: Any) -> Any:
    return axes if isinstance(axes, int) or hasattr(axes, "graph") else [int(axis) for axis in axes]


def _dropped(parts: tuple[Tensor, ...], axes: Any, keep: bool) -> tuple[Tensor, ...]:
    return parts if keep else tuple(array.squeeze(part, _axes(axes)) for part in parts)


def moments(
    x: TensorLike,
    axes: Any,
    shift: Any = None,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, ...]:
    """The mean and variance of `x` over `axes`. `shift` is accepted and ignored."""
    keep = bool(_alias("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "moments", [x, axes]):
        x = convert_to_tensor(x, name="x")
        wide = math.cast(x, dtypes.float32) if x.dtype.base_dtype == dtypes.float16 else x
        mean = math.reduce_mean(wide, axes, keepdims=True, name="mean")
        variance = math.reduce_mean(
            math.squared_difference(wide, array.stop_gradient(mean)), axes, keepdims=True, name="variance"
        )
        pair = _dropped((mean, variance), axes, keep)
        return pair if wide is x else tuple(math.cast(part, dtypes.float16) for part in pair)


def sufficient_statistics(
    x: TensorLike,
    axes: Any,
    shift: Any = None,
    keep_dims: bool | None = None,
    name: str | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, Tensor, Tensor, Any]:
    """`(count, sum, sum of squares, shift)` of `x` over `axes`, the sums of `x - shift`."""
    keep = bool(_alias("keepdims", keepdims, "keep_dims", keep_dims))
    axes = sorted(set(axes))
    with name_scope(name, "sufficient_statistics", [x, shift]):
        x = convert_to_tensor(x, name="x")
        sizes = None if x.shape.ndims is None else [x.shape.as_list()[axis] for axis in axes]
        if sizes is not None and None not in sizes:
            total = 1
            for size in sizes:
                total *= size or 0
            count = array.constant(total, x.dtype.base_dtype, name="count")
        else:
            picked = tensor_op("GatherV2", None, params=array.shape(x), indices=axes, axis=0)
            count = math.cast(math.reduce_prod(picked), x.dtype, name="count")
        if shift is not None:
            shift = convert_to_tensor(shift, name="shift")
            first, second = math.subtract(x, shift), math.squared_difference(x, shift)
        else:
            first, second = x, math.square(x)
        mean_ss = math.reduce_sum(first, axes, keepdims=keep, name="mean_ss")
        return count, mean_ss, math.reduce_sum(second, axes, keepdims=keep, name="var_ss"), shift


def normalize_moments(
    counts: Any, mean_ss: Any, variance_ss: Any, shift: Any, name: str | None = None
) -> tuple[Tensor, Tensor]:
    """The mean and variance from the result of `sufficient_statistics`."""
    with name_scope(name, "normalize", [counts, mean_ss, variance_ss, shift]):
        divisor = math.reciprocal(counts, name="divisor")
        if shift is not None:
            shifted = math.multiply(mean_ss, divisor, name="shifted_mean")
            mean = add(shifted, shift, name="mean")
        else:
            shifted = mean = math.multiply(mean_ss, divisor, name="mean")
        variance = subtract(math.multiply(variance_ss, divisor), square(shifted), name="variance")
        return mean, variance


def weighted_moments(
    x: Any,
    axes: Any,
    frequency_weights: Any,
    name: str | None = None,
    keep_dims: bool | None = None,
    keepdims: bool | None = None,
) -> tuple[Tensor, ...]:
    """The weighted mean and variance of `x` over `axes`; the weights broadcast to `x`."""
    keep = bool(_alias("keepdims", keepdims, "keep_dims", keep_dims))
    with name_scope(name, "weighted_moments", [x, frequency_weights, axes]):
        x = convert_to_tensor(x, name="x")
        weights = convert_to_tensor(frequency_weights, name="frequency_weights")
        narrow = x.dtype.base_dtype == dtypes.float16
        if narrow:
            x = math.cast(x, dtypes.float32)
        weights = math.cast(weights, x.dtype)
        summed = math.reduce_sum(weights * x, axes, keepdims=True)
        # The weights count once for each element that they broadcast to.
        total = math.reduce_sum(weights + array.zeros_like(x), axes, keepdims=True)
        divisor = math.reciprocal(total)
        mean = math.multiply(summed, divisor)
        spread = math.reduce_sum(weights * math.squared_difference(x, mean), axes, keepdims=True)
        pair = _dropped((mean, math.multiply(spread, divisor)), axes, keep)
        return tuple(math.cast(part, dtypes.float16) for part in pair) if narrow else pair


# --- batches and channels ---


def batch_normalization(
    x: Any, mean: Any, variance: Any, offset: Any, scale: Any, variance_epsilon: Any, name: str | None = None
) -> Tensor:
    """scale * (x - mean) / sqrt(variance + variance_epsilon) + offset; scale and offset may be None."""
    with name_scope(name, "batchnorm", [x, mean, variance, scale, offset]):
        x = convert_to_tensor(x)
        factor = rsqrt(convert_to_tensor(variance) + variance_epsilon)
        if scale is not None:
            factor = factor * scale
        scaled = x * math.cast(factor, x.dtype)
        shift = -mean * factor if offset is None else offset - mean * factor
        result: Tensor = scaled + math.cast(shift, x.dtype)
        return result


def batch_norm_with_global_normalization(
    t: Any = None,
    m: Any = None,
    v: Any = None,
    beta: Any = None,
    gamma: Any = None,
    variance_epsilon: Any = None,
    scale_after_normalization: bool | None = None,
    name: str | None = None,
    input: TensorLike | None = None,
    mean: TensorLike | None = None,
    variance: Any = None,
) -> Tensor:
    """Old spelling of `batch_normalization`; `gamma` is used only if `scale_after_normalization`."""
    return batch_normalization(
        _alias("input", input, "t", t),
        _alias("mean", mean, "m", m),
        _alias("variance", variance, "v", v),
        beta,
        gamma if scale_after_normalization else None,
        variance_epsilon,
        name,
    )


def fused_batch_norm(
    x: TensorLike,
    scale: Any,
    offset: Any,
    mean: TensorLike | None = None,
    variance: Any = None,
    epsilon: float = 0.001,
    data_format: str = "NHWC",
    is_training: bool = True,
    name: str | None = None,
) -> tuple[Tensor, Tensor, Tensor]:
    """Batch normalization in one operation: `(y, mean, variance)`. Raises ValueError for inference without both."""
    if is_training and (mean is not None or variance is not None):
        raise ValueError("Both 'mean' and 'variance' must be None if is_training is True.")
    if not is_training and (mean is None or variance is None):
        raise ValueError("Both 'mean' and 'variance' must be a 1D tensor when is_training is False.")
    x = convert_to_tensor(x, name="input")
    # TensorFlow makes one constant for each, mean first.
    known_mean = array.constant([]) if mean is None else mean
    known_variance = array.constant([]) if variance is None else variance
    result = apply_op(
        "FusedBatchNormV3",
        name or "FusedBatchNormV3",
        x=x,
        scale=convert_to_tensor(scale, name="scale"),
        offset=convert_to_tensor(offset, name="offset"),
        mean=known_mean,
        variance=known_variance,
        # cuDNN's minimum, as in TensorFlow.
        epsilon=max(epsilon, 1.001e-5),
        data_format=data_format,
        is_training=is_training,
    )
    return result.y, result.batch_mean, result.batch_variance


def local_response_normalization(
    input: TensorLike,
    depth_radius: int = 5,
    bias: float = 1,
    alpha: float = 1,
    beta: float = 0.5,
    name: str | None = None,
) -> Tensor:
    """Divides each element by a power of the sum of squares over its neighbouring channels."""
    return tensor_op("LRN", name, input=input, depth_radius=depth_radius, bias=bias, alpha=alpha, beta=beta)


lrn = local_response_normalization
