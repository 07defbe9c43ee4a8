"""Gradients of convolutions whose output was given a gradient that is zero nearly everywhere.

Behind a pool over all positions, as in a convolutional net over words, one position in fifty has a gradient for a
channel. A product of matrices multiplies all the zeros; here each element that is not zero is multiplied with its
window, or with its filter. Where those are not finite, zeros count: a product of matrices it is. Used by
_convolutions.py (docs/decisions/0188-gradients-that-are-mostly-zeros.md).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._convolve import sum_of_images
from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._windows import Place

#: One element in so many, at most, is not zero: a product of matrices does four to eight times as many multiplications
#: in the same time.
_SPARSE = 16
#: Elements that are looked at first: most gradients show with these that they are dense.
_SAMPLE = 1024
#: Multiplications of the product of matrices below which nobody looks.
_LEAST = 1 << 22
#: Elements of a window that lie side by side, at least.
_RUN = 16
#: Multiplications below which the work is not shared among threads: about half a millisecond.
_SHARE = 1 << 19


class SparseGradients:
    """The loops of one element type; they are asked for when the first sparse gradient comes."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)

    @classmethod
    def of(cls, dtype: Any) -> SparseGradients | None:
        """None for types that it does not take."""
        return cls(dtype) if np.dtype(dtype) in (np.float32, np.float64) else None

    def count(self, gradient: Array, other: Array, place: Place) -> int | None:
        """How many elements are not zero; None where the products of matrices with `other` are better."""
        g, size = place.geometry, gradient.size
        run = int(g[5] * g[18]) if g[14] == 1 else int(g[18])
        if run < _RUN or size * math.prod(place.window) * place.channels < _LEAST:
            return None
        flat = gradient.reshape(-1)
        sample = flat[:: (size // _SAMPLE) | 1]
        # twice as many in the sample: it is small
        if np.count_nonzero(sample) * _SPARSE > 2 * sample.size:
            return None
        found = int(np.count_nonzero(flat != 0))  # five times as fast as of floats
        if found * _SPARSE > size:
            return None
        with np.errstate(over="ignore", invalid="ignore"):  # what is finite may have a sum that is not: no harm
            return found if math.isfinite(other.sum()) else None

    def of_filter(self, x: Array, gradient: Array, place: Place, count: int) -> Array:
        """x [N, …, C], gradient [N, out…, O] of which `count` are not zero → [window…, C, O], fresh."""
        from tenfold_kernels.cpu._compiled import sparse_windows

        run = sparse_windows.of_filter(self._dtype)
        outputs, depth = gradient.shape[-1], math.prod(place.window) * place.channels
        image, given, lines = x.reshape(-1), gradient.reshape(-1), place.lines // place.batch

        def part(first: int, last: int) -> Array:
            total = np.zeros(outputs * depth, x.dtype)
            run(image, given, place.geometry, first * lines, last * lines, outputs, total)
            return total

        total = sum_of_images(part, place, _images(place, count * depth))
        return np.ascontiguousarray(total.reshape(outputs, depth).T).reshape(*place.window, place.channels, outputs)

    def of_input(self, gradient: Array, kernel: Array, place: Place, count: int) -> Array:
        """gradient [N, out…, O] of which `count` are not zero, kernel [window…, C, O] → [N, in…, C], fresh."""
        from tenfold_kernels.cpu._compiled import sparse_windows

        run: Callable[..., None] = sparse_windows.of_input(self._dtype)
        outputs, lines = gradient.shape[-1], place.lines // place.batch
        filters = np.ascontiguousarray(kernel.reshape(-1, outputs).T).reshape(-1)
        given, out = gradient.reshape(-1), np.zeros((place.batch, *place.sizes, place.channels), gradient.dtype)
        image = out.reshape(-1)

        def part(first: int, last: int) -> None:
            run(given, filters, place.geometry, first * lines, last * lines, outputs, image)

        in_parts(part, place.batch, _images(place, count * len(filters) // outputs))
        return out


def _images(place: Place, multiplications: int) -> int:
    """How many images are worth a thread."""
    return _SHARE * place.batch // max(multiplications, 1) + 1
