"""Plans for the compiled sums of depthwise convolutions (_compiled/depthwise.py), and the calls that share them.

The gradient of an input is a sum of the same kind: an image's pixel is the sum over the windows that it was in. With
stride s, the pixels r, r + s, r + 2s, … meet the same places of the filter, and one output after the other: each such
residue of rows and of columns has a plan. A filter with several outputs a channel is one over a wider image, in which
each channel stands as often. Used by nn_depthwise.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._convolve import sum_of_images
from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._windows import Place

#: Multiplications below which the work is not shared among threads.
_SHARE = 1 << 20


def _least(place: Place) -> int:
    """How many lines of outputs are worth a thread."""
    return _SHARE // max(1, place.out[-1] * math.prod(place.window) * place.channels) + 1


def _forward(place: Place, axis: int) -> tuple[int, ...]:
    """One axis of a plan for the convolution itself; 1 is of rows, 2 of columns."""
    g = [int(value) for value in place.geometry]
    out, size, places = g[6 + axis], g[axis], g[3 + axis]
    return out, -g[15 + axis], g[9 + axis], g[12 + axis], places, size, 0, 1, 0, 1, out


def _backward(place: Place, axis: int) -> Iterator[tuple[int, ...]]:
    """That axis of the plans for the gradient of the input: one for each residue that was in a window at all."""
    g = [int(value) for value in place.geometry]
    size, places, out, stride, apart, before = (g[at + axis] for at in (0, 3, 6, 9, 12, 15))
    common = math.gcd(stride, apart)
    turn = stride // common
    for first in range(min(places, turn)):
        residue = (first * apart - before) % stride
        if residue < size:
            count, at = -(-(size - residue) // stride), (residue + before - first * apart) // stride
            met = -(-(places - first) // turn)
            yield count, at, 1, -(apart // common), met, out, first, turn, residue, stride, size


class Depthwise:
    """The compiled sums of one element type. Make it when a node is built: making it compiles."""

    def __init__(self, dtype: Any, *, of_filter: bool = False) -> None:
        from tenfold_kernels.cpu._compiled import depthwise, intrinsics

        made: Callable[[Any], Callable[..., None]] = depthwise.of_filter if of_filter else depthwise.sums
        self._run, self._lanes = made(dtype), intrinsics.lanes(np.dtype(dtype))

    def _plan(self, place: Place, rows: tuple[int, ...], columns: tuple[int, ...]) -> Array:
        return np.array([*rows, *columns, place.channels, self._lanes, place.window[1]], np.int64)

    def forward(self, x: Array, weights: Array, place: Place) -> Array:
        """x [N, H, W, C] (contiguous), weights [kh, kw, C] → [N, OH, OW, C], fresh."""
        out = np.empty((place.batch, *place.out, place.channels), x.dtype)
        if out.size:
            plan = self._plan(place, _forward(place, 1), _forward(place, 2))
            image, filters, flat = x.reshape(-1), weights.reshape(-1), out.reshape(-1)
            in_parts(lambda a, b: self._run(image, filters, plan, a, b, flat), place.lines, _least(place))
        return out

    def input_gradient(self, gradient: Array, weights: Array, place: Place) -> Array:
        """gradient [N, OH, OW, C] (contiguous), weights [kh, kw, C] → [N, H, W, C], fresh."""
        shape = (place.batch, *place.sizes, place.channels)
        plans = [
            (place.batch * rows[0], self._plan(place, rows, columns))
            for rows in _backward(place, 1)
            for columns in _backward(place, 2)
        ]
        residues = math.prod(min(int(place.geometry[9 + axis]), place.sizes[axis - 1]) for axis in (1, 2))
        # A pixel that was in no window has no sum.
        out = np.empty(shape, gradient.dtype) if len(plans) == residues else np.zeros(shape, gradient.dtype)
        if out.size:
            given, filters, flat = gradient.reshape(-1), weights.reshape(-1), out.reshape(-1)

            for lines, plan in plans:

                def part(first: int, last: int, plan: Array = plan) -> None:
                    self._run(given, filters, plan, first, last, flat)

                in_parts(part, lines, _least(place))
        return out

    def filter_gradient(self, x: Array, gradient: Array, place: Place) -> Array:
        """x [N, H, W, C], gradient [N, OH, OW, C] (contiguous) → [kh, kw, C], fresh. Only of one made for filters."""
        shape = (*place.window, place.channels)
        if not (x.size and gradient.size):
            return np.zeros(shape, x.dtype)
        plan = self._plan(place, _forward(place, 1), _forward(place, 2))
        image, given = x.reshape(-1), gradient.reshape(-1)

        def part(first: int, last: int) -> Array:
            total = np.zeros(math.prod(shape), x.dtype)
            self._run(image, given, plan, first, last, total)
            return total

        per_image = place.lines // place.batch
        return sum_of_images(part, place, _least(place) // per_image + 1).reshape(shape)
