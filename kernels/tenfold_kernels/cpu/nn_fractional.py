"""Fractional pools: windows of two sizes, in a random order, so that the output is as large as a ratio wants.

The order is Philox's for the node's seeds, the same in every step with them. With `overlapping` a window has the first
row and column of the next. Outputs are fresh. Follows fractional_pool_common.cc, fractional_max_pool_op.cc and
fractional_avg_pool_op.cc.
"""

from __future__ import annotations

import itertools
import math
import secrets
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, output_type, shape_text
from tenfold_kernels.philox import Generator, to_double
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import INDEX

if TYPE_CHECKING:
    from collections.abc import Iterator

_TYPES = INDEX | {dtypes.float32, dtypes.float64}
_Window = tuple[slice, slice]


def _pseudo_random(size: int, out: int, generator: Generator) -> list[int]:
    """How large each of `out` windows over `size` places is: one random number shifts all ends."""
    alpha, least = size / out, size // out
    most = min((least + 2) / alpha - 1, (size + 1 - least) / alpha - (out - 1))
    words = generator.reserve(1).blocks(np.zeros(1, np.uint64))[0]
    shift = float(to_double(words[0], words[1])) * most
    ends = [1, *(math.ceil(alpha * (i + shift)) for i in range(1, out)), size + 1]
    return [after - before for before, after in itertools.pairwise(ends)]


def _random(size: int, out: int, generator: Generator) -> list[int]:
    """The same, of the two sizes as many as there must be, shuffled."""
    each, larger = divmod(size, out)
    sizes = [each + 1] * larger + [each] * (out - larger)
    draws = generator.reserve(-(-out // 4)).single()
    for i in range(out - 1):
        other = i + next(draws) % (out - i)
        sizes[i], sizes[other] = sizes[other], sizes[i]
    return sizes


def _windows(
    rows: Array, columns: Array, overlapping: bool, shape: tuple[int, ...]
) -> Iterator[tuple[int, int, _Window]]:
    """Row and column of each output, and its window; `rows` and `columns` say where windows begin."""
    more = int(overlapping)
    for r, (top, bottom) in enumerate(itertools.pairwise(rows.tolist())):
        for c, (left, right) in enumerate(itertools.pairwise(columns.tolist())):
            yield r, c, (slice(top, min(bottom + more, shape[1])), slice(left, min(right + more, shape[2])))


def _seeds(node: KernelNode) -> tuple[int, int]:
    """Raises InvalidArgumentError for seeds of a pool that is not deterministic."""
    seeds = int(node.attrs["seed"]), int(node.attrs["seed2"])
    if not node.attrs["deterministic"]:
        if any(seeds):
            raise invalid("Both seed and seed2 should be 0 if deterministic is false.")
        return seeds
    return seeds if any(seeds) else (secrets.randbits(63) + 1, secrets.randbits(63))


@kernel("FractionalMaxPool", "FractionalAvgPool", T=_TYPES)
def build_fractional_pool(node: KernelNode) -> Compute:
    """[N, H, W, C] → the pooled image, where its windows' rows begin and where their columns do."""
    seeds, dtype = _seeds(node), output_type(node)
    ratios = list(node.attrs["pooling_ratio"])
    if len(ratios) != 4:
        raise invalid(f"pooling_ratio field must specify 4 dimensions, got {ratios}")
    if ratios[0] != 1 or ratios[3] != 1:
        raise invalid(f"Fractional pooling is not supported on the batch or channel dimension, got {ratios}")
    if not all(ratio >= 1 for ratio in ratios):  # a NaN is not
        raise invalid(f"pooling_ratio cannot be smaller than 1, got {ratios}")
    sizes_of = _pseudo_random if node.attrs["pseudo_random"] else _random
    overlapping, largest = bool(node.attrs["overlapping"]), node.op == "FractionalMaxPool"

    def compute(x: Array) -> tuple[Array, Array, Array]:
        if x.ndim != 4:
            raise invalid(f"tensor_in must be 4-dimensional, got shape {shape_text(x.shape)}")
        outs = [int(x.shape[i] / ratios[i]) for i in (1, 2)]
        if min(*outs, *x.shape) < 1:
            raise invalid(f"pooling_ratio {ratios} leaves nothing of an image of shape {shape_text(x.shape)}")
        generator = Generator(*seeds)
        rows, columns = (
            np.cumsum([0, *sizes_of(x.shape[i + 1], outs[i], generator)], dtype=np.int64) for i in range(2)
        )
        out = np.empty((len(x), *outs, x.shape[3]), dtype)
        for r, c, (high, wide) in _windows(rows, columns, overlapping, x.shape):
            window = x[:, high, wide]
            if largest:
                out[:, r, c] = window.max(axis=(1, 2))
            else:
                count = window.shape[1] * window.shape[2]
                total = window.sum(axis=(1, 2), dtype=dtype)
                # integers are divided as C++ does
                out[:, r, c] = total / dtype(count) if total.dtype.kind == "f" else np.trunc(total / count)
        return out, rows, columns

    return compute


def _check_sequence(what: str, sequence: Array, out: int, size: int) -> None:
    """Raises InvalidArgumentError unless it says where `out` windows over `size` places begin, and its end."""
    if sequence.ndim != 1 or sequence.size != out + 1:
        raise invalid(f"{what} must be a vector of {out + 1} places, got shape {shape_text(sequence.shape)}")
    if sequence[0] < 0 or sequence[-1] > size or (np.diff(sequence) < 1).any():
        raise invalid(f"{what} must rise from 0 to {size} at most, got {sequence.tolist()}")


def _check(gradient: Array, rows: Array, columns: Array, shape: tuple[int, ...]) -> None:
    if gradient.ndim != 4 or len(shape) != 4:
        raise invalid(
            f"orig_input and out_backprop must be 4-dimensional, got {shape_text(shape)} and "
            f"{shape_text(gradient.shape)}"
        )
    if (gradient.shape[0], gradient.shape[3]) != (shape[0], shape[3]):
        raise invalid(f"out_backprop {shape_text(gradient.shape)} has another batch or depth than {shape_text(shape)}")
    _check_sequence("row_pooling_sequence", rows, gradient.shape[1], shape[1])
    _check_sequence("col_pooling_sequence", columns, gradient.shape[2], shape[2])


@kernel("FractionalMaxPoolGrad", T=_TYPES)
def build_fractional_max_pool_grad(node: KernelNode) -> Compute:
    """Each output's gradient at the first place of its window that holds the maximum."""
    overlapping = bool(node.attrs["overlapping"])

    def compute(x: Array, y: Array, gradient: Array, rows: Array, columns: Array) -> Array:
        if y.shape != gradient.shape:
            raise invalid(f"orig_output {shape_text(y.shape)} and out_backprop {shape_text(gradient.shape)} differ")
        _check(gradient, rows, columns, x.shape)
        out = np.zeros_like(x, order="C")
        batch, channel = np.ogrid[: x.shape[0], : x.shape[3]]
        for r, c, (high, wide) in _windows(rows, columns, overlapping, x.shape):
            window = x[:, high, wide]
            place = window.reshape(len(x), -1, x.shape[3]).argmax(axis=1)
            i, j = np.divmod(place, window.shape[2])
            out[batch, high.start + i, wide.start + j, channel] += gradient[:, r, c]
        return out

    return compute


@kernel("FractionalAvgPoolGrad", T=_TYPES)
def build_fractional_avg_pool_grad(node: KernelNode) -> Compute:
    """Each output's gradient spread evenly over its window; summed in double."""
    overlapping, dtype = bool(node.attrs["overlapping"]), output_type(node)

    def compute(shape: Array, gradient: Array, rows: Array, columns: Array) -> Array:
        if shape.ndim != 1 or shape.size != 4:
            raise invalid(f"original input tensor shape must have 4 elements, got shape {shape_text(shape.shape)}")
        dims = tuple(int(size) for size in shape.tolist())
        _check(gradient, rows, columns, dims)
        allow(dims, np.float64, 2)
        out = np.zeros(dims)
        for r, c, (high, wide) in _windows(rows, columns, overlapping, dims):
            count = (high.stop - high.start) * (wide.stop - wide.start)
            out[:, high, wide] += (gradient[:, r, c] / count)[:, None, None]
        return out.astype(dtype)

    return compute
