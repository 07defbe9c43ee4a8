"""Distributions by rejection: gamma, Poisson, and normals cut off anywhere. TensorFlow's numbers, outputs fresh.

Each gamma or Poisson sample reads a stretch of 256 Philox blocks of its own, so all samples advance together, a draw at
a time, until each is accepted. Follows random_op.cc, random_poisson_op.cc, parameterized_truncated_normal_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels import philox
from tenfold_kernels.arrays import Array, as_shape, invalid, output_type, shape_text
from tenfold_kernels.cpu import random
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, INDEX

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.philox import Philox

#: Blocks that a sample has to itself.
_STRETCH = 256
_MAX_ITERATIONS = 1000
#: Samples of one distribution are drawn in pieces of so many.
_PIECE = 100
_lgamma = np.frompyfunc(math.lgamma, 1, 1)


class _Draws:
    """Doubles for many samples, two a block, the second of a block first; every sample keeps its own place."""

    def __init__(self, position: Philox, samples: Array) -> None:
        self._position = position
        self._start = samples.astype(np.uint64) * np.uint64(_STRETCH)
        #: Blocks that each sample has read; shared by the draws of every distribution.
        self.read = np.zeros(samples.size, np.uint64)

    def source(self, convert: Callable[[Array], Array]) -> Callable[[Array], Array]:
        """A function of sample numbers that gives the next draw of each; `convert` makes [G, 2] of blocks [G, 4]."""
        held = np.empty((self.read.size, 2))
        left = np.zeros(self.read.size, np.int64)

        def draw(samples: Array) -> Array:
            empty = samples[left[samples] == 0]
            if empty.size:
                held[empty] = convert(self._position.blocks(self._start[empty] + self.read[empty]))
                left[empty] = 2
                self.read[empty] += np.uint64(1)
            left[samples] -= 1
            drawn: Array = held[samples, left[samples]]
            return drawn

        return draw


def _uniforms(x: Array) -> Array:
    return np.stack((philox.to_double(x[:, 0], x[:, 1]), philox.to_double(x[:, 2], x[:, 3])), axis=-1)


def gamma(position: Philox, per_alpha: int, alphas: Array) -> Array:
    """[per_alpha, alphas.size] samples of gamma distributions, computed in double. Marsaglia and Tsang's method."""
    count = alphas.size
    samples = np.arange(per_alpha * count)
    # Outputs are numbered alpha by alpha, but laid out sample by sample.
    alpha = np.repeat(alphas.reshape(-1).astype(np.float64), per_alpha)
    draws = _Draws(position, samples)
    uniform, normal = draws.source(_uniforms), draws.source(philox.normal_double)
    out = np.full(samples.size, np.nan)  # of an alpha that has no distribution
    ones = samples[alpha == 1]
    if ones.size:
        out[ones] = -np.log1p(-uniform(ones))
    small = alpha < 1
    d = alpha + np.where(small, 2.0 / 3, -1.0 / 3)
    c = 1.0 / 3 / np.sqrt(d)
    todo = samples[(alpha != 1) & (d > 0)]
    while todo.size:
        x = normal(todo)
        v = 1 + c[todo] * x
        positive = v > 0
        tried, x, v = todo[positive], x[positive], v[positive] ** 3
        u = uniform(tried)
        squeezed = u < 1 - 0.0331 * (x * x) * (x * x)
        taken = squeezed | (np.log(u) < 0.5 * x * x + d[tried] * (1 - v + np.log(v)))
        chosen = tried[taken]
        result = d[chosen] * v[taken]
        few = small[chosen]
        if few.any():
            result[few] *= uniform(chosen[few]) ** (1 / alpha[chosen[few]])
        out[chosen] = result
        todo = np.setdiff1d(todo, chosen, assume_unique=True)
    return np.ascontiguousarray(out.reshape(count, per_alpha).T).astype(alphas.dtype)


def poisson(position: Philox, per_rate: int, rates: Array, dtype: Any) -> Array:
    """[per_rate, rates.size] samples of Poisson distributions: Knuth's method for rates under 10, else Hörmann's."""
    count = rates.size
    samples = np.arange(per_rate * count)
    rate = np.repeat(rates.reshape(-1).astype(np.float64), per_rate)
    draw = _Draws(position, samples).source(_uniforms)
    kind = np.dtype(dtype)
    highest = float(np.finfo(kind).max if kind.kind == "f" else np.iinfo(kind).max)
    out = np.zeros(samples.size)
    _knuth(draw, samples[rate < 10], rate, out)
    infinite = rate == np.inf
    # An integer type has no infinity: 0 is what TensorFlow gives.
    out[infinite] = np.inf if kind.kind == "f" else 0
    out[np.isnan(rate)] = np.nan if kind.kind == "f" else 0
    beyond = (rate > highest) & ~infinite
    if beyond.any():  # nearly no sample would be one of that type, and the search for one would not end
        raise invalid(f"a rate of {rate[beyond][0]:g} gives samples that {kind.name} does not hold")
    _hormann(draw, samples[(rate >= 10) & ~infinite], rate, out, highest)
    return np.ascontiguousarray(out.reshape(count, per_rate).T).astype(dtype)


def _knuth(draw: Callable[[Array], Array], todo: Array, rate: Array, out: Array) -> None:
    product = np.ones(out.size)
    limit = np.exp(-rate)
    while todo.size:
        product[todo] *= draw(todo)
        todo = todo[product[todo] > limit[todo]]
        out[todo] += 1


def _hormann(draw: Callable[[Array], Array], todo: Array, rate: Array, out: Array, highest: float) -> None:
    log_rate = np.log(rate)
    b = 0.931 + 2.53 * np.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    while todo.size:
        u = draw(todo) - 0.5
        v = draw(todo)
        shifted = 0.5 - np.abs(u)
        a_, b_, rate_ = a[todo], b[todo], rate[todo]
        k = np.floor((2 * a_ / shifted + b_) * u + rate_ + 0.43)
        quick = (shifted >= 0.07) & (v <= 0.9277 - 3.6224 / (b_ - 2))
        barred = (k < 0) | ((shifted < 0.013) & (v > shifted))
        s = np.log(v * inverse_alpha[todo] / (a_ / (shifted * shifted) + b_))
        slow = ~quick & ~barred & (k <= highest)
        accepted = quick & (k <= highest)
        if slow.any():
            t = -rate_[slow] + k[slow] * log_rate[todo][slow] - _lgamma(k[slow] + 1).astype(np.float64)
            accepted[slow] = s[slow] <= t
        out[todo[accepted]] = k[accepted]
        todo = todo[~accepted]


@kernel("RandomGamma")
def build_random_gamma(node: KernelNode) -> Compute:
    """shape + alpha.shape samples of gamma distributions."""
    generator = random.generator_of(node)

    def compute(shape: Array, alpha: Array) -> Array:
        if shape.ndim != 1:
            raise invalid(f"shape must be a vector of {{int32,int64}}, got shape: {shape_text(shape.shape)}")
        dims = (*as_shape(shape), *alpha.shape)
        allow(dims, np.float64, random.WORK)
        if not math.prod(dims):
            return np.empty(dims, alpha.dtype)
        size = math.prod(dims)
        return gamma(generator.reserve(size * _STRETCH), size // alpha.size, alpha).reshape(dims)

    return compute


@kernel("RandomPoisson", "RandomPoissonV2")
def build_random_poisson(node: KernelNode) -> Compute:
    """shape + rate.shape samples of Poisson distributions."""
    generator, dtype = random.generator_of(node), output_type(node)

    def compute(shape: Array, rate: Array) -> Array:
        dims = (*as_shape(shape), *rate.shape)
        allow(dims, np.float64, random.WORK)
        size = math.prod(dims)
        if not size:
            return np.empty(dims, dtype)
        return poisson(generator.reserve(size * _STRETCH), size // rate.size, rate, dtype).reshape(dims)

    return compute


class _Stream:
    """Blocks one after the other, as many as are wanted at a time; `back` returns those that were not needed."""

    def __init__(self, position: Philox) -> None:
        self._position = position
        self._at = 0

    def take(self, count: int) -> Array:
        found = self._position.blocks(np.arange(self._at, self._at + count, dtype=np.uint64))
        self._at += count
        return found

    def back(self, count: int) -> None:
        self._at -= count


def _candidates(kind: str, blocks: Array, dtype: Any, low: Any, high: Any) -> tuple[Array, Array]:
    """What a run of blocks proposes, and which proposals are accepted; for T's arithmetic, in T."""
    t = np.dtype(dtype).type
    if kind == "normal":
        if dtype == np.float64:
            z = philox.normal_double(blocks).reshape(-1)
        else:
            z = philox.normal_float(blocks).reshape(-1).astype(dtype)
        return z, (z >= low) & (z <= high)
    if dtype == np.float64:
        u = _uniforms(blocks).reshape(-1)
    else:
        flat = blocks.reshape(-1)
        u = philox.to_half(flat) if dtype == np.float16 else philox.to_float(flat)
    if kind == "uniform":
        width = 2 if dtype == np.float64 else 4
        pairs = u.reshape(-1, 2, width)
        z = (pairs[:, 0] * (high - low) + low).reshape(-1)
        nearest = max(low, t(0))  # to the mean
        return z, pairs[:, 1].reshape(-1) <= np.exp((nearest * nearest - z * z) / t(2))
    alpha = (low + np.sqrt(low * low + t(4))) / t(2)
    z = -np.log(u[0::2]) / alpha + low
    x = alpha - z if low < alpha else np.full_like(z, low - alpha)
    return z, (u[1::2] <= np.exp(-x * x / t(2))) & (z < high)


def _cut_normals(stream: _Stream, count: int, dtype: Any, mean: Any, deviation: Any, low: Any, high: Any) -> Array:
    """`count` normals in [low, high], by the method that suits the limits."""
    t = np.dtype(dtype).type
    if not (deviation > 0 and low < high and (np.isfinite(low) or np.isfinite(high))):
        raise invalid("Invalid parameters")
    if np.isinf(low) or high < mean:
        low, high, deviation = high, low, -deviation
    a, b = (low - mean) / deviation, (high - mean) / deviation
    root = np.sqrt(a * a + t(4))
    cutoff = t(2) * np.exp(t(0.5) + (a * (a - root)) / t(4)) / (a + root)
    inside = t(1.3)
    step = 1
    if (a < -inside and b >= 0) or (b > inside and a <= 0):
        kind = "normal"
    elif b - a < cutoff:
        kind, step = "uniform", 2
    else:
        kind = "exponential"
    out = np.empty(count, dtype)
    filled = refused = 0
    while filled < count:
        runs = max((count - filled) // 2, 16)
        blocks = stream.take(runs * step)
        z, accepted = _candidates(kind, blocks, dtype, a, b)
        places = np.flatnonzero(accepted)[: count - filled]
        out[filled : filled + places.size] = z[places] * deviation + mean
        filled += places.size
        gaps = np.diff(np.concatenate(([-1 - refused], places, [z.size] if filled < count else [])))
        if gaps.max() > _MAX_ITERATIONS:
            raise invalid(
                "TruncatedNormal rejection sampler failed to accept a sample: of a mean of "
                f"{float(mean):g} and a deviation of {float(abs(deviation)):g} none lies between the limits"
            )
        if filled < count:
            refused = z.size - 1 - int(places[-1]) if places.size else refused + z.size
        else:
            # What the last block still held is dropped; the blocks after it belong to the next batch.
            stream.back((runs - 1 - int(places[-1]) // (z.size // runs)) * step)
    return out


@kernel("ParameterizedTruncatedNormal", dtype=FLOATING, T=INDEX)
def build_parameterized_truncated_normal(node: KernelNode) -> Compute:
    """[batch, …] normals; mean, deviation and limits are one for all or one a batch."""
    generator, dtype = random.generator_of(node), output_type(node)

    def compute(shape: Array, means: Array, deviations: Array, lows: Array, highs: Array) -> Array:
        if shape.ndim != 1:
            raise invalid(f"Input shape should be a vector, got shape: {shape_text(shape.shape)}")
        dims = as_shape(shape, dtype=np.float64, times=random.WORK)
        if not dims:
            raise invalid("Shape tensor must not be empty, got " + shape_text(dims))
        size = math.prod(dims)
        parameters = []
        one_for_all = True
        for value in (means, deviations, lows, highs):
            if value.ndim > 1:
                raise invalid("Input means, stddevs, minvals and maxvals should be scalars or vectors")
            if value.size != 1:
                one_for_all = False
                if value.size != dims[0]:
                    raise invalid(
                        f"Parameters must have length 1 or shape[0], got lengths {value.size}; shape[0] is {dims[0]}"
                    )
            parameters.append(value.reshape(-1))
        if not size:
            return np.empty(dims, dtype)
        # Without parameters a batch, samples are cut into pieces of their own size.
        if one_for_all:
            batches, per_batch = -(-size // _PIECE), _PIECE
        else:
            batches, per_batch = dims[0], size // dims[0]
        stream = _Stream(generator.reserve(batches * 2 * _MAX_ITERATIONS * (per_batch + 3) // 4))
        out = np.empty(size, dtype)
        for i in range(batches):
            mean, deviation, low, high = (p[0 if p.size == 1 else i] for p in parameters)
            piece = out[i * per_batch : min((i + 1) * per_batch, size)]
            piece[:] = _cut_normals(stream, piece.size, dtype, mean, deviation, low, high)
        return out.reshape(dims)

    return compute
