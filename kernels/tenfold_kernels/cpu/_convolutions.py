"""A convolution and its two gradients as products of matrices, each in the best of three ways.

Many channels under a window of 3 × 3 or 5 × 5 that visits every pixel go through _winograd.py, in float32; other floats
through the compiled convolution of _convolve.py. What it does not take, integers and windows with gaps in
their rows, is a product on NumPy's BLAS: windows, copied a few megabytes at a time by _compiled/windows.py, times the
filter; and so is the gradient of a strided input. Gradients for outputs that were given little but zeros are
_sparse_gradients.py's. Used by nn_conv.py; images are channels last, outputs fresh.

R output positions, K = window places × input channels, O output channels.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._convolve import Direct
from tenfold_kernels.cpu._products import prepare, product
from tenfold_kernels.cpu._sparse_gradients import SparseGradients
from tenfold_kernels.cpu._windows import Place, Sliding, scratch
from tenfold_kernels.cpu._winograd import Winograd

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array

#: The bytes of one block of windows: in the processor's cache, and so large that threads seldom have to meet.
_BLOCK = 4 << 20
#: How many times the multiplications of its products the gradient of an input may take as a convolution, and be faster.
_MOST_TURNED = 3


def _blocks(place: Place, depth: int, dtype: Any) -> tuple[int, Array]:
    """How many lines a block holds, and the memory for its windows [rows, depth]."""
    across = place.out[-1]
    lines = max(1, min(place.lines, _BLOCK // (across * depth * np.dtype(dtype).itemsize)))
    return lines, scratch(lines * across * depth, dtype).reshape(lines * across, depth)


class Loops:
    """The compiled loops of one element type, for windows that slide so."""

    def __init__(self, dtype: Any, slide: Sliding) -> None:
        from tenfold_kernels.cpu._compiled import windows

        prepare()
        self.gather, self.scatter = windows.gather(dtype), windows.scatter(dtype)
        self._direct = Direct.of(dtype)
        self._winograd = Winograd.of(dtype, slide)
        self.sparse = SparseGradients.of(dtype)

    def direct(self, place: Place) -> Direct | None:
        """What needs no matrix of windows, for a place where it is the better way."""
        return self._direct if self._direct and not _is_dense(place) and self._direct.fits(place) else None

    def winograd(self, place: Place, width: int) -> Winograd | None:
        """What needs fewer multiplications, for a convolution to `width` outputs where it is the better way."""
        return self._winograd if self._winograd and self._winograd.fits(place, width) else None


def convolve(loops: Loops, x: Array, kernel_: Array, place: Place) -> Array:
    """x [N, …, C] (contiguous), kernel [window…, C, O] → [N, out…, O]."""
    shape = (place.batch, *place.out, kernel_.shape[-1])
    if not (kernel_.size and math.prod(shape)):
        return np.zeros(shape, x.dtype)
    if (row := _as_row(place)) is not None:
        weights = kernel_.reshape(*row.window, row.channels, shape[-1])
        return convolve(loops, _row_of(x, row), weights, row).reshape(shape)
    winograd = loops.winograd(place, kernel_.shape[-1])
    if winograd is not None and (made := winograd.forward(x, kernel_, place)) is not None:
        return made
    direct = loops.direct(place)
    if direct is not None:
        return direct.forward(x, kernel_, place)
    out = np.empty(shape, x.dtype)
    weights = np.ascontiguousarray(kernel_).reshape(-1, kernel_.shape[-1])
    depth, width = weights.shape
    flat_out = out.reshape(-1, width)
    if _is_dense(place):
        product(x.reshape(-1, depth), weights, out=flat_out)
        return out
    image, across = x.reshape(-1), place.out[-1]
    lines, cols = _blocks(place, depth, x.dtype)
    for first in range(0, place.lines, lines):
        last = min(first + lines, place.lines)
        rows = (last - first) * across
        loops.gather(image, place.geometry, first, last, cols.reshape(-1))
        product(cols[:rows], weights, out=flat_out[first * across : last * across])
    return out


def _as_row(place: Place) -> Place | None:
    """The place of a window as wide as its images, as over the words of a text, if its positions were in a row instead:
    the same memory, and neighbours share what a tile reads. None for any other window."""
    g = place.geometry
    if g[1] == 1 or g[5] != g[2] or g[8] != 1 or g[17] or g[13] != 1 or (g[14] != 1 and g[5] != 1):
        return None
    sizes, window, out = ((*each[:-2], 1, each[-2]) for each in (place.sizes, place.window, place.out))
    row = g.copy()
    for at, alone in ((0, 1), (3, 1), (6, 1), (9, 1), (12, 1), (15, 0)):
        row[at + 1 : at + 3] = alone, g[at + 1]
    row[18] *= g[2]
    return Place(place.batch, sizes, window, out, int(row[18]), row)


def _row_of(x: Array, row: Place) -> Array:
    return x.reshape(row.batch, *row.sizes, row.channels)


def _is_dense(place: Place) -> bool:
    """A window of one place that visits every pixel: the image is its own window matrix.

    With a stride of 1 there are as many outputs as pixels only where there is no padding.
    """
    g = place.geometry
    return bool((g[3:6] == 1).all() and (g[9:12] == 1).all() and (g[0:3] == g[6:9]).all())


def filter_gradient(loops: Loops, x: Array, gradient: Array, place: Place) -> Array:
    """x [N, …, C], gradient [N, out…, O] → [window…, C, O]."""
    width = gradient.shape[-1]
    shape = (*place.window, place.channels, width)
    if not (math.prod(shape) and x.size and gradient.size):
        return np.zeros(shape, x.dtype)
    if loops.sparse is not None and (count := loops.sparse.count(gradient, x, place)) is not None:
        return loops.sparse.of_filter(x, gradient, place, count)
    if (row := _as_row(place)) is not None:
        given = gradient.reshape(row.batch, *row.out, width)
        return filter_gradient(loops, _row_of(x, row), given, row).reshape(shape)
    winograd = loops.winograd(place, width)
    if winograd is not None and (made := winograd.filter_gradient(x, gradient, place)) is not None:
        return made
    direct = loops.direct(place)
    if direct is not None:
        return direct.filter_gradient(x, gradient, place)
    depth = math.prod(shape[:-1])
    total = np.zeros((depth, width), x.dtype)
    rows_of = gradient.reshape(-1, width)
    if _is_dense(place):
        product(x.reshape(-1, depth).T, rows_of, out=total)
        return total.reshape(shape)
    image, across = x.reshape(-1), place.out[-1]
    lines, cols = _blocks(place, depth, x.dtype)
    part = np.empty_like(total)
    for first in range(0, place.lines, lines):
        last = min(first + lines, place.lines)
        loops.gather(image, place.geometry, first, last, cols.reshape(-1))
        product(cols[: (last - first) * across].T, rows_of[first * across : last * across], out=part)
        np.add(total, part, out=total)
    return total.reshape(shape)


def input_gradient(loops: Loops, gradient: Array, kernel_: Array, place: Place) -> Array:
    """gradient [N, out…, O], kernel [window…, C, O] → [N, in…, C]."""
    shape = (place.batch, *place.sizes, place.channels)
    if not (math.prod(shape) and kernel_.size and gradient.size):
        return np.zeros(shape, gradient.dtype)
    if loops.sparse is not None and (count := loops.sparse.count(gradient, kernel_, place)) is not None:
        return loops.sparse.of_input(gradient, kernel_, place, count)
    width = gradient.shape[-1]
    if (row := _as_row(place)) is not None:
        given, weights = gradient.reshape(row.batch, *row.out, width), kernel_.reshape(*row.window, row.channels, width)
        return input_gradient(loops, given, weights, row).reshape(shape)
    if (place.geometry[9:12] == 1).all() and _may_turn(place, gradient.dtype):
        # The gradient of a convolution with stride 1 is one with the filter turned round.
        turned = np.flip(kernel_, tuple(range(len(place.window)))).swapaxes(-1, -2)
        return convolve(loops, gradient, turned, _turned(place, gradient.shape[-1]))
    out = np.zeros(shape, gradient.dtype)
    weights = np.ascontiguousarray(kernel_.reshape(-1, width).T)
    image, rows_of, across = out.reshape(-1), gradient.reshape(-1, width), place.out[-1]
    lines, cols = _blocks(place, weights.shape[1], gradient.dtype)
    for first in range(0, place.lines, lines):
        last = min(first + lines, place.lines)
        rows = (last - first) * across
        product(rows_of[first * across : last * across], weights, out=cols[:rows])
        loops.scatter(cols.reshape(-1), place.geometry, first, last, image)
    return out


def _may_turn(place: Place, dtype: Any) -> bool:
    """Whether a convolution with the filter turned round multiplies little more than the gradient's products with the
    filter. It visits each pixel of the image, mostly in the padding where the window is nearly as large as the image,
    and computes whole vectors of channels.
    """
    from tenfold_kernels.cpu._compiled.intrinsics import lanes

    vector = lanes(np.dtype(dtype))
    turned = math.prod(place.sizes) * -(-place.channels // vector) * vector
    return turned <= _MOST_TURNED * math.prod(place.out) * place.channels


def _turned(place: Place, channels: int) -> Place:
    """The place of the turned filter: from the output, back over the input."""
    g = place.geometry.copy()
    g[0:3], g[6:9] = place.geometry[6:9], place.geometry[0:3]
    g[15:18] = (g[3:6] - 1) * g[12:15] - place.geometry[15:18]
    g[18] = channels
    return Place(place.batch, place.out, place.window, place.sizes, channels, g)
