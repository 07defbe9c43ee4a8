"""Random numbers: TensorFlow's own, number for number, from the same seeds (see _philox.py).

Each node has a generator that moves on with every call. seed = seed2 = 0 starts anywhere. Outputs are fresh. Follows
random_op.cc, random_op_cpu.h, multinomial_op.cc, random_shuffle_op.cc, candidate_sampler_ops.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu import _philox
from tenfold_kernels.cpu._common import Array, as_shape, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel, no_kernel
from tenfold_kernels.typesets import FLOATING, INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator

no_kernel(
    "RandomGamma",
    "RandomPoissonV2",
    "ParameterizedTruncatedNormal",
    "StatelessRandomNormal",
    "StatelessRandomUniform",
    "StatelessTruncatedNormal",
    device="CPU",
    why="no program of the op census uses it",
)

_TRUNCATE = 2.0


def _generator(node: KernelNode) -> _philox.Generator:
    return _philox.Generator(int(node.attrs.get("seed", 0)), int(node.attrs.get("seed2", 0)))


def _blocks(position: _philox.Philox, count: int) -> Array:
    return position.blocks(np.arange(count, dtype=np.uint64))


def _uniform(position: _philox.Philox, size: int, dtype: Any) -> Array:
    if dtype == np.float64:
        pairs = _blocks(position, (size + 1) // 2).reshape(-1, 2)
        return _philox.to_double(pairs[:, 0], pairs[:, 1])[:size]
    x = _blocks(position, (size + 3) // 4).reshape(-1)
    return (_philox.to_half(x) if dtype == np.float16 else _philox.to_float(x))[:size]


def _normal(position: _philox.Philox, size: int, dtype: Any) -> Array:
    if dtype == np.float64:
        return _philox.normal_double(_blocks(position, (size + 1) // 2)).reshape(-1)[:size]
    return _philox.normal_float(_blocks(position, (size + 3) // 4)).reshape(-1)[:size].astype(dtype, copy=False)


def _truncated_normal(position: _philox.Philox, size: int, dtype: Any) -> Array:
    """Every group of outputs draws from its own run of blocks until it has enough normals inside ±2."""
    group = 2 if dtype == np.float64 else 4
    groups = -(-size // group)
    skip = np.uint64(group * 256 // 4)
    out = np.empty((groups, group), dtype=np.float64 if dtype == np.float64 else np.float32)
    filled = np.zeros(groups, dtype=np.int64)
    open_groups = np.arange(groups)
    block = np.uint64(0)
    while open_groups.size:
        x = position.blocks(open_groups.astype(np.uint64) * skip + block)
        candidates = _philox.normal_double(x) if dtype == np.float64 else _philox.normal_float(x)
        for column in candidates.T:
            take = (np.abs(column) < _TRUNCATE) & (filled[open_groups] < group)
            chosen = open_groups[take]
            out[chosen, filled[chosen]] = column[take]
            filled[chosen] += 1
        open_groups = open_groups[filled[open_groups] < group]
        block += np.uint64(1)
    return out.reshape(-1)[:size].astype(dtype, copy=False)


_DISTRIBUTIONS = {
    "RandomUniform": _uniform,
    "RandomStandardNormal": _normal,
    "TruncatedNormal": _truncated_normal,
}


@kernel(*_DISTRIBUTIONS, dtype=FLOATING)
def build_random(node: KernelNode) -> Compute:
    """An array of the given shape: uniform in [0, 1), standard normal, or normal cut off at ±2."""
    generator, distribution, dtype = _generator(node), _DISTRIBUTIONS[node.op], output_type(node)

    def compute(shape: Array) -> Array:
        dims = as_shape(shape)
        size = math.prod(dims)
        return distribution(generator.reserve_outputs(size), size, dtype).reshape(dims)

    return compute


@kernel("RandomUniformInt", Tout=INDEX)
def build_random_uniform_int(node: KernelNode) -> Compute:
    """Integers in [minval, maxval)."""
    generator, dtype = _generator(node), output_type(node)
    wide = dtype == np.int64

    def compute(shape: Array, low: Array, high: Array) -> Array:
        for name, value in (("minval", low), ("maxval", high)):
            if value.ndim:
                raise invalid(f"{name} must be 0-D, got shape {shape_text(value.shape)}")
        if not low < high:
            raise invalid(f"Need minval < maxval, got {low} >= {high}")
        dims = as_shape(shape)
        size = math.prod(dims)
        span = np.uint64(int(high) - int(low))
        position = generator.reserve_outputs(size)
        if wide:
            x = _blocks(position, (size + 1) // 2).reshape(-1, 2).astype(np.uint64)
            bits = x[:, 0] | (x[:, 1] << np.uint64(32))
        else:
            bits = _blocks(position, (size + 3) // 4).reshape(-1).astype(np.uint64)
        # Wraps as two's complement does: low may be negative.
        values = (bits[:size] % span + np.uint64(int(low) & (1 << 64) - 1)).view(np.int64)
        return values.astype(dtype, copy=False).reshape(dims)

    return compute


def _doubles(position: _philox.Philox) -> Iterator[float]:
    """RandDouble of TensorFlow's SimplePhilox, one after the other."""
    words = position.single()
    while True:
        pair = np.array([next(words), next(words)], dtype=np.uint32)
        yield float(_philox.to_double(pair[:1], pair[1:])[0])


@kernel("Multinomial")
def build_multinomial(node: KernelNode) -> Compute:
    """logits_BC → num_samples class numbers a row."""
    generator, dtype = _generator(node), output_type(node)

    def compute(logits: Array, num_samples: Array) -> Array:
        if logits.ndim != 2:
            raise invalid(f"logits should be a matrix, got shape {shape_text(logits.shape)}")
        if num_samples.ndim:
            raise invalid(f"num_samples should be a scalar, got shape {shape_text(num_samples.shape)}")
        count = int(num_samples)
        if count < 0:
            raise invalid(f"num_samples should be nonnegative, got {count}")
        rows, classes = logits.shape
        if rows and not classes:
            raise invalid(f"num_classes should be positive, got {classes}")
        position = generator.reserve_outputs(rows * ((count + 3) // 4 * 4) * 2)
        draws = _doubles(position)
        out = np.empty((rows, count), dtype=dtype)
        for b in range(rows):
            row = logits[b].astype(np.float64)
            finite = np.isfinite(row)
            top = row[finite].max() if finite.any() else 0.0
            cdf = np.cumsum(np.where(finite, np.exp(row - top), 0.0))
            uniform = np.array([next(draws) for _ in range(count)]) * cdf[-1]
            out[b] = np.searchsorted(cdf, uniform, side="right")
        return out

    return compute


@kernel("RandomShuffle")
def build_random_shuffle(node: KernelNode) -> Compute:
    """The rows in another order."""
    generator = _generator(node)

    def compute(x: Array) -> Array:
        if x.ndim == 0 or x.shape[0] <= 1:
            return x
        size = x.shape[0]
        words = generator.reserve((size + 3) // 4).single()
        order = list(range(size))
        for i in range(size - 1):
            j = i + next(words) % (size - i)
            order[i], order[j] = order[j], order[i]
        shuffled: Array = x[np.array(order)]
        return shuffled

    return compute


@kernel("LogUniformCandidateSampler")
def build_log_uniform_candidate_sampler(node: KernelNode) -> Compute:
    """Candidates with P(v) = log((v + 2)/(v + 1))/log(range + 1), and how often each is to be expected."""
    generator = _generator(node)
    num_true, num_sampled = int(node.attrs["num_true"]), int(node.attrs["num_sampled"])
    unique, limit = bool(node.attrs["unique"]), int(node.attrs["range_max"])
    if unique and num_sampled > limit:
        raise invalid("Sampler's range is too small.")
    log_range = math.log1p(limit)

    def expected(values: Array, tries: int) -> Array:
        v = values.astype(np.float64)
        p = np.log((v + 2.0) / (v + 1.0)) / log_range
        count = p * num_sampled if tries == num_sampled else -np.expm1(tries * np.log1p(-p))
        return count.astype(np.float32)

    def compute(true_classes: Array) -> tuple[Array, Array, Array]:
        if true_classes.ndim != 2 or true_classes.shape[1] != num_true:
            raise invalid(
                f"true_classes must have num_true columns, expected: {num_true} was: {true_classes.shape[-1:]}"
            )
        draws = _doubles(generator.reserve(2048 * num_sampled // 4))
        sampled: list[int] = []
        tries = 0
        while len(sampled) < num_sampled:
            value = int(math.exp(next(draws) * log_range)) - 1
            value = value % limit
            tries += 1
            if not unique or value not in sampled:
                sampled.append(value)
        candidates = np.array(sampled, dtype=np.int64)
        return candidates, expected(true_classes, tries), expected(candidates, tries)

    return compute
