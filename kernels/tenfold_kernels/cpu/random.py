"""Random numbers: TensorFlow's own, number for number, from the same seeds (see philox.py).

Each node has a generator that moves on with every call. seed = seed2 = 0 starts anywhere. Outputs are fresh. Follows
random_op.cc, random_op_cpu.h, multinomial_op.cc, random_shuffle_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.memory_limits import allow
from tenfold_kernels import philox, philox_draws
from tenfold_kernels.arrays import Array, as_shape, invalid, output_type, shape_text
from tenfold_kernels.parallel import in_parts
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import FLOATING, INDEX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_TRUNCATE = 2.0
#: Drawing numbers takes so many times the memory of the result: blocks are made in 64-bit words, all at once.
WORK = 12
#: Groups of numbers that are worth handing to another thread.
_LEAST = 1 << 15


def generator_of(node: KernelNode) -> philox.Generator:
    """The generator that the seeds of a node start."""
    return philox.Generator(int(node.attrs["seed"]), int(node.attrs["seed2"]))


#: The offset of the first block.
_FIRST = np.zeros(1, np.uint64)


def blocks(position: philox.Philox, count: int) -> Array:
    """The next `count` blocks: uint32 [count, 4]."""
    drawn = philox_draws.draw(philox.WORDS, position, count)
    return position.blocks(_offsets(0, count)) if drawn is None else drawn


_UNIFORM = {np.float16: philox.to_half, dtypes.bfloat16.as_numpy_dtype: philox.to_bfloat16}


def _in_pieces(make: Callable[[int, int], Array], count: int, group: int, dtype: Any) -> Array:
    """[count, group] of what `make` gives for groups begin to end, a piece at a time: what lies between stays in the
    cache. The pieces of large ones are shared among the cores.
    """
    out = np.empty((count, group), dtype)

    def part(first: int, last: int) -> None:
        for begin in range(first, last, philox.PIECE):
            end = min(begin + philox.PIECE, last)
            out[begin:end] = make(begin, end)

    in_parts(part, count, _LEAST)
    return out


def _offsets(begin: int, end: int) -> Array:
    return np.arange(begin, end, dtype=np.uint64)


def uniform(position: philox.Philox, size: int, dtype: Any) -> Array:
    """`size` numbers in [0, 1)."""
    wide = dtype == np.float64
    convert = philox.to_doubles if wide else _UNIFORM.get(dtype, philox.to_float)
    group = 2 if wide else 4
    if size <= group:
        first: Array = convert(position.blocks(_FIRST)).reshape(-1)
        return first[:size].copy()
    if dtype == np.float32:
        drawn = philox_draws.draw(philox.UNIFORM, position, -(-size // group))
        if drawn is not None:
            return drawn.reshape(-1)[:size]
    made = _in_pieces(lambda b, e: convert(position.blocks(_offsets(b, e))), -(-size // group), group, dtype)
    return made.reshape(-1)[:size]


def normal(position: philox.Philox, size: int, dtype: Any) -> Array:
    """`size` standard normals."""
    draw, group = (philox.normal_double, 2) if dtype == np.float64 else (philox.normal_float, 4)
    if dtype == np.float32:
        drawn = philox_draws.draw(philox.NORMAL, position, -(-size // group))
        if drawn is not None:
            return drawn.reshape(-1)[:size]
    made = _in_pieces(lambda b, e: draw(position.blocks(_offsets(b, e))), -(-size // group), group, dtype)
    return made.reshape(-1)[:size]


def truncated_normal(position: philox.Philox, size: int, dtype: Any) -> Array:
    """Every group of outputs draws from its own run of blocks until it has enough normals inside ±2."""
    group, draw = (2, philox.normal_double) if dtype == np.float64 else (4, philox.normal_float)
    skip = np.uint64(group * 256 // 4)
    if dtype == np.float32:
        drawn = philox_draws.draw_truncated(position, -(-size // group), int(skip))
        if drawn is not None:
            return drawn.reshape(-1)[:size]

    def make(begin: int, end: int) -> Array:
        starts = _offsets(begin, end) * skip
        candidates = draw(position.blocks(starts))
        inside = np.abs(candidates) < _TRUNCATE
        # most groups are full after one block
        short = np.flatnonzero(~inside.all(axis=1))
        rows = candidates[short]
        _fill_truncated(position, draw, starts[short], rows, rows.copy(), inside[short])
        candidates[short] = rows
        return candidates

    return _in_pieces(make, -(-size // group), group, dtype).reshape(-1)[:size]


def _fill_truncated(
    position: philox.Philox,
    draw: Callable[[Array], Array],
    starts: Array,
    out: Array,
    candidates: Array,
    inside: Array,
) -> None:
    """Every row of `out`: the candidates that are `inside`, those of its next blocks, until it is full."""
    filled = np.zeros(starts.size, dtype=np.int64)
    still_open = np.arange(starts.size)
    block = np.uint64(0)
    while True:
        for column, taken in zip(candidates.T, inside.T, strict=True):
            take = taken & (filled[still_open] < out.shape[1])
            chosen = still_open[take]
            out[chosen, filled[chosen]] = column[take]
            filled[chosen] += 1
        still_open = still_open[filled[still_open] < out.shape[1]]
        if not still_open.size:
            return
        block += np.uint64(1)
        candidates = draw(position.blocks(starts[still_open] + block))
        inside = np.abs(candidates) < _TRUNCATE


_DISTRIBUTIONS = {
    "RandomUniform": uniform,
    "RandomStandardNormal": normal,
    "TruncatedNormal": truncated_normal,
}


class _Draws:
    """What a node of one of these distributions computes. `rows` are its next calls at once, number for number."""

    def __init__(self, node: KernelNode) -> None:
        self.generator = generator_of(node)
        self._distribution, self._dtype = _DISTRIBUTIONS[node.op], output_type(node)

    def __call__(self, shape: Array) -> Array:
        dims = as_shape(shape, dtype=self._dtype, times=WORK)
        size = math.prod(dims)
        return self._distribution(self.generator.reserve_outputs(size), size, self._dtype).reshape(dims)

    def rows(self, count: int, values: Sequence[Array], has_rows: Sequence[bool]) -> list[Array] | None:
        if any(has_rows):
            return None
        dtype, draw = self._dtype, self._distribution
        dims = as_shape(values[0], dtype=dtype, times=WORK)
        size = math.prod(dims)
        allow((count, *dims), dtype, WORK)
        position = self.generator.reserve_outputs(count * size)
        if draw is uniform and 0 < size <= _SMALL:
            wide = dtype == np.float64
            convert = philox.to_doubles if wide else _UNIFORM.get(dtype, philox.to_float)
            return [_next_calls(position, count, size, 256 * size, 2 if wide else 4, convert).reshape(count, *dims)]
        out = np.empty((count, size), dtype)
        for number in range(count):
            out[number] = draw(position.behind(256 * size * number), size, dtype)
        return [out.reshape(count, *dims)]


#: Numbers of a call up to which the blocks of many calls are made together.
_SMALL = 1 << 10


def _next_calls(
    position: philox.Philox, count: int, size: int, stride: int, group: int, convert: Callable[[Array], Array]
) -> Array:
    """[count, size] numbers: a row is what a call gives, whose first block is `stride` after that of the last one."""
    groups = -(-size // group)
    starts = np.arange(count, dtype=np.uint64) * np.uint64(stride)
    offsets = (starts[:, np.newaxis] + np.arange(groups, dtype=np.uint64)).reshape(-1)
    return convert(position.blocks(offsets)).reshape(count, -1)[:, :size]


@kernel(*_DISTRIBUTIONS, dtype=FLOATING | {dtypes.bfloat16})
def build_random(node: KernelNode) -> Compute:
    """An array of the given shape: uniform in [0, 1), standard normal, or normal cut off at ±2."""
    return _Draws(node)


def full_ints(position: philox.Philox, size: int, dtype: Any) -> Array:
    """`size` integers, every one of the type as likely as any other."""
    kind = np.dtype(dtype)
    if kind.itemsize == 4:
        words: Array = blocks(position, (size + 3) // 4).reshape(-1)[:size].view(kind)
        return words
    longs: Array = blocks(position, (size + 1) // 2).reshape(-1).view(kind)[:size]
    return longs


def ints(position: philox.Philox, size: int, dtype: Any, low: int, high: int) -> Array:
    """`size` integers in [low, high)."""
    unsigned = np.uint64 if np.dtype(dtype).itemsize == 8 else np.uint32
    return _between(full_ints(position, size, unsigned).astype(np.uint64), dtype, low, high)


def _between(bits: Array, dtype: Any, low: int, high: int) -> Array:
    span = np.uint64(high - low)
    # Wraps as two's complement does: low may be negative.
    values = (bits % span + np.uint64(low & (1 << 64) - 1)).view(np.int64)
    return values.astype(dtype, copy=False)


def check_limits(low: Array, high: Array) -> None:
    """Raises InvalidArgumentError unless minval and maxval are scalars."""
    for name, value in (("minval", low), ("maxval", high)):
        if value.ndim:
            raise invalid(f"{name} must be 0-D, got shape {shape_text(value.shape)}")


def int_limits(low: Array, high: Array) -> tuple[int, int]:
    """minval and maxval. Raises InvalidArgumentError unless they are scalars with something between them."""
    check_limits(low, high)
    if not low < high:
        raise invalid(f"Need minval < maxval, got {low} >= {high}")
    return int(low), int(high)


class _IntDraws:
    """What a RandomUniformInt computes. `rows` are its next calls at once, number for number."""

    def __init__(self, node: KernelNode) -> None:
        self.generator, self._dtype = generator_of(node), output_type(node)

    def __call__(self, shape: Array, low: Array, high: Array) -> Array:
        found = self._drawn(1, shape, low, high)
        return found.reshape(found.shape[1:])

    def rows(self, count: int, values: Sequence[Array], has_rows: Sequence[bool]) -> list[Array] | None:
        return None if any(has_rows) else [self._drawn(count, *values)]

    def _drawn(self, count: int, shape: Array, low: Array, high: Array) -> Array:
        check_limits(low, high)
        dtype = self._dtype
        dims = as_shape(shape, dtype=dtype, times=WORK)
        allow((count, *dims), dtype, WORK)
        size = math.prod(dims)
        if not size:
            # As in TensorFlow, limits that leave no number are no error where none is asked for.
            return np.empty((count, *dims), dtype)
        limits = int_limits(low, high)
        position = self.generator.reserve_outputs(count * size)
        if count == 1:
            return ints(position, size, dtype, *limits).reshape(1, *dims)
        words = 2 if np.dtype(dtype).itemsize == 8 else 1
        drawn = _next_calls(position, count, words * size, 256 * size, 4, lambda blocks: blocks)
        bits = np.ascontiguousarray(drawn).view(np.uint64 if words == 2 else np.uint32)
        return _between(bits.astype(np.uint64), dtype, *limits).reshape(count, *dims)


@kernel("RandomUniformInt", Tout=INDEX)
def build_random_uniform_int(node: KernelNode) -> Compute:
    """Integers in [minval, maxval)."""
    return _IntDraws(node)


def samples_of(logits: Any, num_samples: Array) -> int:
    """num_samples. Raises InvalidArgumentError unless it is a scalar ≥ 0, and logits a matrix with columns."""
    if logits.ndim != 2:
        raise invalid(f"logits should be a matrix, got shape {shape_text(logits.shape)}")
    if num_samples.ndim:
        raise invalid(f"num_samples should be a scalar, got shape {shape_text(num_samples.shape)}")
    count = int(num_samples)
    if count < 0:
        raise invalid(f"num_samples should be non-negative, got {count}")
    if not logits.shape[1]:
        raise invalid(f"num_classes should be positive, got {logits.shape[1]}")
    return count


#: Logits of which one after the other takes less time than NumPy's calls.
_FEW_LOGITS = 1 << 10


def outputs_of_samples(rows: int, count: int) -> int:
    """How many outputs of a generator `count` samples of each row take."""
    return rows * ((count + 3) // 4 * 4) * 2


def multinomial(
    logits: Array,
    num_samples: Array,
    dtype: Any,
    reserve: Callable[[int], philox.Philox],
    pick: Callable[..., None] | None = None,
) -> Array:
    """logits_BC → num_samples class numbers a row; `reserve` gives room for as many outputs as it is told.

    `pick` is the loop of _compiled/picking.py, for few logits: NumPy needs twenty calls.
    """
    count = samples_of(logits, num_samples)
    rows = logits.shape[0]
    allow((rows, count), np.int64, WORK)
    if not rows * count:
        return np.empty((rows, count), dtype=dtype)
    position = reserve(outputs_of_samples(rows, count))
    if pick is not None and logits.size <= _FEW_LOGITS:
        picked = np.empty((rows, count), np.int64)
        pick(*position.as_signed(), np.array(logits, np.float64, order="C"), picked)
        return picked.astype(dtype, copy=False)
    return _picked(position, np.cumsum(_weights(logits.astype(np.float64)), axis=1), count, dtype)


def _picked(position: philox.Philox, cdf_BC: Array, count: int, dtype: Any) -> Array:
    """`count` draws a row, as classes whose sums of weights are `cdf_BC`."""
    rows = len(cdf_BC)
    words = blocks(position, (rows * count + 1) // 2).reshape(-1, 2)[: rows * count]
    draws = philox.to_double(words[:, 0], words[:, 1]).reshape(rows, count)
    draws *= cdf_BC[:, -1:]
    if count == 1:
        chosen: Array = (cdf_BC <= draws).sum(1, keepdims=True, dtype=dtype)
        return chosen
    out = np.empty((rows, count), dtype=dtype)
    for b in range(rows):
        out[b] = np.searchsorted(cdf_BC[b], draws[b], side="right")
    return out


def _pick_in_numpy(key: int, low: int, high: int, logits_BC: Array, out_BS: Array) -> None:
    np.cumsum(_weights(logits_BC), axis=1, out=logits_BC)
    out_BS[:] = _picked(philox.Philox.of_signed(key, low, high), logits_BC, out_BS.shape[1], out_BS.dtype)


def _weights(logits_BC: Array) -> Array:
    """exp(logits) but for a factor a row; 0 for those that are not finite."""
    finite = np.isfinite(logits_BC)
    if finite.all():
        weights: Array = np.exp(logits_BC - logits_BC.max(1, keepdims=True))
        return weights
    top = np.where(finite, logits_BC, -np.inf).max(1, keepdims=True)
    return np.where(finite, np.exp(logits_BC - np.where(np.isfinite(top), top, 0.0)), 0.0)


@kernel("Multinomial")
def build_multinomial(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import picking

    generator, dtype, pick = generator_of(node), output_type(node), picking.pick(_pick_in_numpy)
    return lambda logits, num_samples: multinomial(logits, num_samples, dtype, generator.reserve_outputs, pick)


def shuffled(x: Array, reserve: Callable[[int], philox.Philox]) -> Array:
    """The rows in another order, fresh; `reserve` gives room for as many blocks as it is told."""
    from tenfold_kernels.cpu._compiled import rows

    if x.ndim == 0 or x.shape[0] <= 1:
        return x.copy()
    size = x.shape[0]
    allow((size,), np.int64, WORK)
    words = blocks(reserve((size + 3) // 4), (size + 3) // 4).reshape(-1)
    order = np.arange(size)
    rows.shuffle()(words, order)
    result: Array = x[order]
    return result


@kernel("RandomShuffle")
def build_random_shuffle(node: KernelNode) -> Compute:
    from tenfold_kernels.cpu._compiled import rows

    rows.shuffle()  # compiled here, and not in a step
    generator = generator_of(node)
    return lambda x: shuffled(x, generator.reserve)


@kernel("RandomCrop")
def build_random_crop(node: KernelNode) -> Compute:
    """image_HWC → a window of `size` [height, width] somewhere in it."""
    generator = generator_of(node)

    def compute(image: Array, size: Array) -> Array:
        if image.ndim != 3:
            raise invalid("image must be 3-dimensional, got shape " + shape_text(image.shape))
        if size.shape != (2,):
            raise invalid("size must be a vector of size 2, got shape " + shape_text(size.shape))
        words = generator.reserve(1).single()
        window: list[slice] = []
        for name, whole, wanted in zip(("width", "height"), image.shape[1::-1], size.tolist()[::-1], strict=True):
            if wanted > whole:
                raise errors.failed_precondition(
                    f"{name} must be >= target_{name}: {name} = {whole}, target_{name} = {wanted}"
                )
            start = next(words) % (whole - wanted + 1) if wanted < whole else 0
            window.insert(0, slice(start, start + wanted))
        return image[tuple(window)].copy()

    return compute
