"""Local response normalisation and batch normalisation, fused and old, with their gradients.

Compiled loops over pixels × channels (_compiled/response.py, _compiled/normalize.py); half is computed in float.
Channels-first images are transposed on the way in and out. Outputs are fresh. Follows lrn_op.cc and
fused_batch_norm_op.cc on a CPU: reserve spaces 1 and 2 hold the batch's mean and uncorrected variance.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels.arrays import (
    Array,
    Shaped,
    as_array,
    contiguous,
    input_type,
    invalid,
    output_type,
    shape_text,
    text_attr,
)
from tenfold_kernels.cpu.nn_conv import wide_type
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING

if TYPE_CHECKING:
    from collections.abc import Callable

#: Elements below which the work is not shared among threads.
_SHARE = 1 << 17
#: Elements of a row that the loops of a batch normalisation need to be fast.
_LONG = 256
#: An attr of ours: the last output is the factor and the offset that were applied [2, C], for an activation's gradient.
KEEPS = "_keeps_what_was_applied"
#: Channels up to which TensorFlow sums an LRN's squares by a product with a matrix of ones and zeros.
_LRN_PRODUCT = 384


def _pixels(x: Array) -> int:
    """How many pixels of `x` [R, C] are worth a thread."""
    return _SHARE // max(1, int(x.shape[1])) + 1


def _times(x: Array) -> int:
    """How many pixels of `x` [R, C] are counted as one, so that the innermost loop is long."""
    times = 1
    while times * 2 * x.shape[1] <= _LONG and len(x) % (times * 2) == 0 and len(x):
        times *= 2
    return times


def _tiled(vector: Array, times: int) -> Array:
    """As np.tile, which takes 20 µs."""
    return vector if times == 1 else np.concatenate([vector] * times)


def check_lrn(x: Shaped, what: str = "in") -> None:
    """Raises InvalidArgumentError unless it is [N, H, W, C]."""
    if x.ndim != 4:
        raise invalid(f"{what} must be 4-dimensional, got shape {shape_text(x.shape)}")


def check_lrn_grad(gradient: Shaped, x: Shaped, y: Shaped) -> None:
    """Raises InvalidArgumentError for shapes that differ."""
    if gradient.shape != x.shape or y.shape != x.shape:
        raise invalid(
            "input_grads, input_image, and out_image should have the same shape: "
            f"{shape_text(gradient.shape)}, {shape_text(x.shape)}, {shape_text(y.shape)}"
        )


def lrn_radius(node: KernelNode) -> int:
    """Raises InvalidArgumentError for a negative one."""
    radius = int(node.attrs["depth_radius"])
    if radius < 0:
        raise invalid(f"depth_radius must not be negative, got {radius}")
    return radius


class _Lrn:
    """The attrs and loops of one LRN or LRNGrad node."""

    def __init__(self, node: KernelNode) -> None:
        self.wide = wide = wide_type(output_type(node))
        self.radius = lrn_radius(node)
        self.bias, self.alpha = wide(node.attrs["bias"]), wide(node.attrs["alpha"])
        self.beta = float(node.attrs["beta"])
        #: The exponents that have roots, and so a loop of their own.
        self.in_one_pass = self.beta in (0.5, 0.75)
        if not self.in_one_pass:
            _ = self._norms

    @cached_property
    def _norms(self) -> Callable[..., None]:
        """Compiled when it is first asked for: after one pass, only for what is not finite."""
        from tenfold_kernels.cpu._compiled import response

        return response.norms(self.wide)

    def rows(self, x: Array, what: str = "in") -> Array:
        check_lrn(x, what)
        return contiguous(x.astype(self.wide, copy=False)).reshape(-1, max(x.shape[-1], 1))

    def reach(self, x_RC: Array) -> int:
        """The radius, as far as there are channels."""
        return min(self.radius, int(x_RC.shape[1]) - 1)

    def norms(self, x_RC: Array) -> Array:
        out, reach = np.empty_like(x_RC), self.reach(x_RC)
        if out.size:
            in_parts(lambda a, b: self._norms(x_RC, reach, self.bias, self.alpha, a, b, out), len(out), _pixels(x_RC))
        return out

    def spread_nan(self, x_RC: Array, norms_RC: Array) -> None:
        """Makes a norm nan where a square outside of its window is not finite: TensorFlow multiplies that by zero."""
        channels = x_RC.shape[1]
        if channels > _LRN_PRODUCT:
            return
        odd = ~np.isfinite(np.square(x_RC))
        before = np.zeros((len(odd), channels + 1), np.int32)
        np.cumsum(odd, axis=1, out=before[:, 1:])
        places = np.arange(channels)
        first, end = np.maximum(places - self.radius, 0), np.minimum(places + self.radius + 1, channels)
        norms_RC[before[:, -1:] > before[:, end] - before[:, first]] = np.nan

    def powered(self, norms_RC: Array, x_RC: Array) -> Array:
        """x · norm^-beta, for any beta."""
        out: Array = np.power(norms_RC, self.wide(-self.beta))
        return np.multiply(out, x_RC, out=out)


@kernel("LRN", T=FLOATING)
def build_lrn(node: KernelNode) -> Compute:
    """x / (bias + alpha · Σ x² of the channels within depth_radius)^beta."""
    from tenfold_kernels.cpu._compiled import response

    lrn, dtype = _Lrn(node), output_type(node)
    run = response.forward(lrn.wide) if lrn.in_one_pass else None

    def in_one_pass(rows: Array) -> Array | None:
        """None where a norm is not finite: that takes more than a pass."""
        out, reach = np.empty_like(rows), lrn.reach(rows)
        odd: list[int] = []

        def part(first: int, last: int) -> None:
            if run is not None and run(rows, reach, lrn.bias, lrn.alpha, lrn.beta == 0.5, first, last, out):
                odd.append(first)

        in_parts(part, len(rows), _pixels(rows))
        return None if odd else out

    def compute(x: Array) -> Array:
        rows = lrn.rows(x)
        made = in_one_pass(rows) if run is not None and rows.size else None
        if made is None:
            norms = lrn.norms(rows)
            lrn.spread_nan(rows, norms)
            made = lrn.powered(norms, rows)
        return made.reshape(x.shape).astype(dtype, copy=False)

    return compute


@kernel("LRNGrad", T=FLOATING)
def build_lrn_grad(node: KernelNode) -> Compute:
    """(input_grads, input_image, output_image) → the gradient of the input."""
    from tenfold_kernels.cpu._compiled import response

    lrn, dtype = _Lrn(node), output_type(node)
    run = response.backward(lrn.wide) if lrn.in_one_pass else None
    spread = None if run else response.spread(lrn.wide)
    factor = lrn.wide(-2.0 * float(lrn.alpha) * lrn.beta)

    def in_passes(given: Array, rows: Array, outs: Array, out: Array) -> None:
        norms = lrn.norms(rows)
        scaled = lrn.powered(norms, given)
        shares, reach = np.multiply(given, outs), lrn.reach(rows)
        np.divide(shares, norms, out=shares)
        if spread is not None:
            in_parts(lambda a, b: spread(scaled, rows, reach, factor, shares, a, b, out), len(out), _pixels(rows))

    def compute(gradient: Array, x: Array, y: Array) -> Array:
        check_lrn_grad(gradient, x, y)
        given, rows, outs = lrn.rows(gradient, "input_grads"), lrn.rows(x), lrn.rows(y)
        out, reach, is_half = np.empty_like(rows), lrn.reach(rows), lrn.beta == 0.5

        def part(first: int, last: int) -> None:
            if run is not None:
                run(given, rows, outs, reach, lrn.bias, lrn.alpha, factor, is_half, first, last, out)

        if out.size and run is None:
            in_passes(given, rows, outs, out)
        elif out.size:
            in_parts(part, len(out), _pixels(rows))
        return out.reshape(x.shape).astype(dtype, copy=False)

    return compute


def check_batch(x: Shaped, what: str = "x") -> None:
    """Raises InvalidArgumentError unless it is a batch of images or of volumes."""
    if x.ndim not in (4, 5):
        raise invalid(f"input must be 4 or 5-dimensional: {what} has shape {shape_text(x.shape)}")


def check_per_channel(name: str, value: Shaped, channels: int) -> None:
    """Raises InvalidArgumentError unless it is a vector with an element a channel."""
    if value.ndim != 1:
        raise invalid(f"{name} must be 1-dimensional: {shape_text(value.shape)}")
    if value.shape[0] != channels:
        raise invalid(
            f"{name} must have the same number of elements as the channels of x, got {value.shape[0]} and {channels}"
        )


def check_estimates(mean: Shaped, variance: Shaped) -> None:
    """Raises InvalidArgumentError unless both are vectors; in training they may be empty."""
    for name, value in (("estimated_mean", mean), ("estimated_variance", variance)):
        if value.ndim != 1:
            raise invalid(f"{name} must be 1-dimensional: {shape_text(value.shape)}")


def check_backprop(x: Shaped, gradient: Shaped) -> None:
    """Raises InvalidArgumentError unless they have one shape."""
    if gradient.shape != x.shape:
        raise invalid(
            f"x and y_backprop must have same shape, but x has shape {shape_text(x.shape)} and y_backprop "
            f"has shape {shape_text(gradient.shape)}"
        )


def batch_norm_activation(node: KernelNode) -> str:
    """What follows the normalisation, Identity or Relu, and Relu6 where the compiler joined them. Raises
    InvalidArgumentError for anything else.
    """
    activation = text_attr(node, "activation_mode", "Identity")
    joined = node.op != "_FusedBatchNormEx" and activation == "Relu6"
    if activation not in ("Identity", "Relu") and not joined:
        raise invalid(f"Unsupported activation mode: {activation}")
    return activation


#: Mean, factor and offset, a vector each: (x − mean) · factor + offset is what a normalisation gives.
Applied: TypeAlias = tuple[Array, Array, Array]


class BatchNorm:
    """The attrs and loops that the forward and backward batch normalisations share."""

    def __init__(self, node: KernelNode) -> None:
        from tenfold_kernels.cpu._compiled import normalize

        self.node, self.dtype = node, input_type(node)
        self.wide = wide_type(self.dtype)
        self.first = text_attr(node, "data_format", "NHWC").startswith("NC")
        self.epsilon = self.wide(node.attrs["epsilon"])
        self.training = bool(node.attrs["is_training"])
        self.activation = batch_norm_activation(node)
        self._bounds = normalize.ACTIVATIONS.index(self.activation), self.wide(0), self.wide(6)
        self._moments, self._sums = normalize.moments(self.wide), normalize.sums(self.wide)
        self._scale, self._back = normalize.scale(self.wide), normalize.back(self.wide)

    def rows(self, x: Array, what: str = "x") -> tuple[Array, tuple[int, ...]]:
        """`x` as pixels × channels, and its shape with channels last."""
        check_batch(x, what)
        wide = x.astype(self.wide, copy=False)
        last = np.ascontiguousarray(np.moveaxis(wide, 1, -1)) if self.first else contiguous(wide)
        return last.reshape(-1, last.shape[-1]) if last.size else last.reshape(0, last.shape[-1]), last.shape

    def shaped(self, rows: Array, shape: tuple[int, ...]) -> Array:
        out = rows.reshape(shape)
        return (np.ascontiguousarray(np.moveaxis(out, -1, 1)) if self.first else out).astype(self.dtype, copy=False)

    def per_channel(self, name: str, value: Array, channels: int) -> Array:
        check_per_channel(name, value, channels)
        return contiguous(value.astype(self.wide, copy=False))

    def moments(self, rows: Array) -> tuple[Array, Array]:
        """The mean and the uncorrected variance of each channel."""
        times, channels = _times(rows), rows.shape[1]
        if not rows.size:
            return np.full(channels, np.nan, self.wide), np.full(channels, np.nan, self.wide)
        folded = rows.reshape(-1, times * channels)
        found: dict[int, tuple[int, Array, Array]] = {}

        def part(first: int, last: int) -> None:
            mean, apart = np.empty(folded.shape[1]), np.empty(folded.shape[1])
            self._moments(folded, first, last, mean, apart)
            found[first] = last - first, mean, apart

        in_parts(part, len(folded), _pixels(folded))
        # In the order of the pixels, however the threads ran: the same result each time.
        parts = [found[first] for first in sorted(found)]
        counts = np.repeat([count for count, _, _ in parts], times).reshape(-1, 1)
        means = np.concatenate([each.reshape(times, channels) for _, each, _ in parts])
        aparts = np.concatenate([each.reshape(times, channels) for _, _, each in parts])
        mean = (counts * means).sum(0) / len(rows)
        variance = (aparts.sum(0) + (counts * np.square(means - mean)).sum(0)) / len(rows)
        return mean.astype(self.wide), variance.astype(self.wide)

    def sums(self, given: Array, rows: Array, applied: Applied) -> tuple[Array, Array]:
        """Σ given and Σ given · (x − mean) of each channel, double, of what gets through the activation."""
        times, channels = _times(rows), rows.shape[1]
        if not rows.size:
            return np.zeros(channels), np.zeros(channels)
        given, rows = (each.reshape(-1, times * channels) for each in (given, rows))
        vectors = [_tiled(each, times) for each in applied]
        found: dict[int, Array] = {}

        def part(first: int, last: int) -> None:
            found[first] = np.zeros((2, rows.shape[1]))
            self._sums(given, rows, *vectors, *self._bounds, first, last, *found[first])

        in_parts(part, len(rows), _pixels(rows))
        # In the order of the pixels, as above.
        both: Array = np.zeros((2, rows.shape[1]))
        for first in sorted(found):
            both += found[first]
        total, product = both.reshape(2, times, channels).sum(1)
        return total, product

    def scaled(self, rows: Array, applied: Applied, *, activated: bool) -> Array:
        out, times = np.empty_like(rows), _times(rows)
        if out.size:
            x, y = rows.reshape(-1, times * rows.shape[1]), out.reshape(-1, times * rows.shape[1])
            vectors = [_tiled(each, times) for each in applied]
            bounds = self._bounds if activated else (0, *self._bounds[1:])
            in_parts(lambda a, b: self._scale(x, *vectors, *bounds, a, b, y), len(x), _pixels(x))
        return out

    def backward(self, given: Array, rows: Array, applied: Applied, *coefficients: Array) -> Array:
        """factor · (given − average − (x − mean) · slope), of what gets through the activation."""
        out, times = np.empty_like(rows), _times(rows)
        if out.size:
            dy, x, dx = (each.reshape(-1, times * rows.shape[1]) for each in (given, rows, out))
            vectors = [_tiled(each, times) for each in applied]
            others = [_tiled(each, times) for each in coefficients]
            in_parts(lambda a, b: self._back(dy, x, *vectors, *self._bounds, *others, a, b, dx), len(x), _pixels(x))
        return out


def build_batch_norm(node: KernelNode) -> Compute:
    """(x, scale, offset, mean, variance, side input…) → (y, mean, variance, reserve spaces)."""
    norm = BatchNorm(node)
    average = float(node.attrs["exponential_avg_factor"])
    third, keeps = node.op in ("FusedBatchNormV3", "_FusedBatchNormEx"), bool(node.attrs.get(KEEPS))

    def compute(x: Array, scale: Array, offset: Array, mean: Array, variance: Array, *side: Array) -> tuple[Array, ...]:
        rows, shape = norm.rows(x)
        channels = shape[-1]
        gamma, beta = norm.per_channel("scale", scale, channels), norm.per_channel("offset", offset, channels)
        needed = not norm.training or average != 1.0
        check_estimates(mean, variance)
        if needed:
            # The estimates are read in inference, and when a moving average is kept.
            mean = norm.per_channel("mean", mean, channels)
            variance = norm.per_channel("variance", variance, channels)
        if norm.training:
            count = len(rows)
            batch_mean, batch_variance = norm.moments(rows)
            unbiased = batch_variance * norm.wide(count / max(count - 1, 1))
            if average == 1.0:
                new_mean, new_variance = batch_mean.copy(), unbiased
            else:
                keep, take = norm.wide(1 - average), norm.wide(average)
                new_mean, new_variance = keep * mean + take * batch_mean, keep * variance + take * unbiased
        else:
            new_mean, new_variance = mean.copy(), variance.copy()
            batch_mean, batch_variance = mean.copy(), variance.copy()
        factor = gamma / np.sqrt(batch_variance + norm.epsilon)
        y = norm.shaped(norm.scaled(rows, (batch_mean, factor, beta), activated=not side), shape)
        if side:
            y = np.add(y, side[0])
            if norm.activation == "Relu":
                y = np.maximum(y, y.dtype.type(0))
        spaces = (np.zeros((), norm.wide),) if third else ()
        kept = (np.stack((factor, beta)),) if keeps else ()
        return (y, new_mean, new_variance, batch_mean, batch_variance, *spaces, *kept)

    return compute


kernel("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3", T=FLOATING)(build_batch_norm)


@kernel("FusedBatchNormGrad", "FusedBatchNormGradV2", "FusedBatchNormGradV3", T=FLOATING)
def build_batch_norm_grad(node: KernelNode) -> Compute:
    """(y_backprop, x, scale, reserve spaces…) → (x_backprop, scale_backprop, offset_backprop, twice 0).

    With an activation, y_backprop is that of its output, and what KEEPS says follows the reserve spaces.
    """
    norm = BatchNorm(node)
    activated = norm.activation != "Identity"

    def compute(gradient: Array, x: Array, scale: Array, mean: Array, variance: Array, *rest: Any) -> tuple[Array, ...]:
        rows, shape = norm.rows(x)
        given, _ = norm.rows(gradient, "y_backprop")
        check_backprop(x, gradient)
        channels = shape[-1]
        gamma = norm.per_channel("scale", scale, channels)
        mean = norm.per_channel("reserve_space_1", mean, channels)
        variance = norm.per_channel("reserve_space_2", variance, channels)
        inverse = 1 / np.sqrt(variance + norm.epsilon)
        applied = (mean, *rest[-1]) if activated else (mean, mean, mean)
        total, product = norm.sums(given, rows, applied)
        if norm.training:
            count = max(len(rows), 1)
            average = (total / count).astype(norm.wide)
            slope = (product / count * inverse * inverse).astype(norm.wide)
            back = norm.backward(given, rows, applied, gamma * inverse, average, slope)
        else:
            back = given * (gamma * inverse)
        return (
            norm.shaped(back, shape),
            (product * inverse).astype(norm.wide),
            total.astype(norm.wide),
            np.zeros(0, norm.wide),
            np.zeros(0, norm.wide),
        )

    return compute


def _check_global(x: Array, vectors: tuple[tuple[str, Array], ...]) -> None:
    """Raises InvalidArgumentError unless `x` is [N, H, W, C] and each of the vectors [C]."""
    if x.ndim != 4:
        raise invalid(f"input must be 4-dimensional {shape_text(x.shape)}")
    for name, vector in vectors:
        if vector.shape != x.shape[3:]:
            raise invalid(f"{name} must be a vector of {x.shape[3]} channels, got shape {shape_text(vector.shape)}")


@kernel("BatchNormWithGlobalNormalization", T=FLOATING)
def build_global_batch_norm(node: KernelNode) -> Compute:
    """(t − m) · rsqrt(v + ε) [· γ] + β, a vector a channel."""
    epsilon, scaled = float(node.attrs["variance_epsilon"]), bool(node.attrs["scale_after_normalization"])

    def compute(x: Array, mean: Array, variance: Array, beta: Array, gamma: Array) -> Array:
        vectors = (("mean", mean), ("var", variance), ("beta", beta), ("gamma", gamma))
        _check_global(x, vectors if scaled else vectors[:3])
        factor = 1 / np.sqrt(variance + x.dtype.type(epsilon))
        return as_array((x - mean) * (factor * gamma if scaled else factor) + beta).astype(x.dtype, copy=False)

    return compute


@kernel("BatchNormWithGlobalNormalizationGrad", T=FLOATING)
def build_global_batch_norm_grad(node: KernelNode) -> Compute:
    """(t, m, v, γ, backprop) → gradients of t, m, v, β and γ; that of γ is zero where nothing was scaled."""
    epsilon, scaled = float(node.attrs["variance_epsilon"]), bool(node.attrs["scale_after_normalization"])

    def compute(x: Array, mean: Array, variance: Array, gamma: Array, backprop: Array) -> tuple[Array, ...]:
        _check_global(x, (("mean", mean), ("var", variance), ("gamma", gamma)))
        if backprop.shape != x.shape:
            raise invalid(
                f"out_backprop must have the shape of the input, got {shape_text(backprop.shape)} and "
                f"{shape_text(x.shape)}"
            )
        # float16 is computed in float, as in the other normalisations
        wide = wide_type(input_type(node))
        x, mean, variance, gamma, backprop = (
            each.astype(wide, copy=False) for each in (x, mean, variance, gamma, backprop)
        )
        spread = variance + wide(epsilon)
        inverse = 1 / np.sqrt(spread)
        factor = inverse * gamma if scaled else inverse
        total = backprop.sum(axis=(0, 1, 2))
        apart = (backprop * (x - mean)).sum(axis=(0, 1, 2))
        found = (
            backprop * factor,
            -total * factor,
            apart * factor * wide(-0.5) / spread,
            total,
            apart * inverse if scaled else np.zeros_like(gamma),
        )
        dtype = output_type(node)
        return tuple(as_array(each).astype(dtype, copy=False) for each in found)

    return compute
