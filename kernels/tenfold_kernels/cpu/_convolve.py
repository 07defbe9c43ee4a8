"""Plans of strides for the compiled convolution (_compiled/convolve.py), and the calls that share it among threads.

A convolution and the gradient of its filter are products with the same window rows of the input: the first sums over
the window for each output position, the second over the output positions for each place of the window. Used by
_convolutions.py, which has another way for integers, windows with gaps and strided gradients of inputs.

R output positions, K = window places × input channels, O output channels, P = O rounded up to whole vectors.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._windows import Place

#: Multiplications below which the work is not shared among threads: about a millisecond.
_SHARE = 1 << 25
#: Bytes of a slice of the filter that stay in the cache while all positions of an image pass by.
_SLICE = 384 << 10
#: A padded image may have so many elements more than twice the image's; a window far outside of it has another way.
_MOST_PADDING = 1 << 22


class _Frame:
    """The padded image of a place: its sizes, and whether there is any padding."""

    def __init__(self, place: Place) -> None:
        g = [int(value) for value in place.geometry]
        self.channels = g[18]
        reach = [(g[6 + i] - 1) * g[9 + i] + (g[3 + i] - 1) * g[12 + i] + 1 for i in range(3)]
        before = g[15:18]
        self.is_padded = any(before) or any(reach[i] > g[i] for i in range(3))
        sizes = [max(reach[i], before[i] + g[i]) for i in range(3)] if self.is_padded else g[0:3]
        self.depth, self.height, self.width = sizes
        self.elements = math.prod(sizes) * self.channels
        #: Elements from a place to the next along depth, height and width.
        self.steps = (self.height * self.width * self.channels, self.width * self.channels, self.channels)


def _widened(x: Array, width: int) -> Array:
    """`x` with zeros after its last axis, up to `width`."""
    if x.shape[-1] == width:
        return x
    out = np.zeros((*x.shape[:-1], width), x.dtype)
    out[..., : x.shape[-1]] = x
    return out


def _packed(weights_KP: Array, lanes: int, widths: tuple[int, ...]) -> Array:
    """The columns tile by tile, so that a tile reads memory in order."""
    parts, at = [], 0
    while at < weights_KP.shape[1]:
        width = next(w for w in widths if at + w * lanes <= weights_KP.shape[1]) * lanes
        parts.append(weights_KP[:, at : at + width].reshape(-1))
        at += width
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _shares(place: Place, width: int) -> int:
    """How many lines of output positions are worth a thread."""
    each = place.out[-1] * math.prod(place.window) * place.channels * width
    return _SHARE // each + 1


def _padded(frame: _Frame, dtype: Any) -> Array:
    # Cleared by hand: zeros from the system are new pages, and these were used a step ago.
    out = np.empty(frame.elements if frame.is_padded else 0, dtype)
    out.fill(0)
    return out


def sum_of_images(part: Callable[[int, int], Array], place: Place, images: int) -> Array:
    """The sum of what `part(first image, last image)` gives, fresh, for parts of so many images at least; in the order
    of the images, however the threads ran: the same result each time."""
    sums: dict[int, Array] = {}

    def kept(first: int, last: int) -> None:
        sums[first] = part(first, last)

    in_parts(kept, place.batch, images)
    total, *others = (sums[first] for first in sorted(sums))
    for other in others:
        np.add(total, other, out=total)
    return total


class Direct:
    """The compiled convolution of one element type. Make it when a node is built: making it compiles."""

    def __init__(self, dtype: Any) -> None:
        from tenfold_kernels.cpu._compiled import convolve, intrinsics

        self._run = convolve.products(np.dtype(dtype))
        self._fields, self._widths, self._lanes = convolve.FIELDS, intrinsics.WIDTHS, intrinsics.lanes(np.dtype(dtype))

    @classmethod
    def of(cls, dtype: Any) -> Direct | None:
        """None for types that it does not take."""
        return cls(dtype) if np.dtype(dtype) in (np.float32, np.float64) else None

    def fits(self, place: Place) -> bool:
        """Whether it takes this window: one whose columns lie side by side, and mostly within the image."""
        image = math.prod(place.sizes) * place.channels
        # The filter turned round, in a gradient, begins inside of the image where the padding is larger than it.
        if image == 0 or place.geometry[14] != 1 or (place.geometry[15:18] < 0).any():
            return False
        return _Frame(place).elements <= 2 * image + _MOST_PADDING

    def _plan(self, **fields: int) -> Array:
        return np.array([fields[name] for name in self._fields], np.int64)

    def forward(self, x: Array, kernel: Array, place: Place) -> Array:
        """x [N, …, C] (contiguous), kernel [window…, C, O] → [N, out…, O], fresh. Only where `fits` says so."""
        lanes = self._lanes
        frame, g = _Frame(place), [int(value) for value in place.geometry]
        depth, width = math.prod(place.window) * frame.channels, kernel.shape[-1]
        vectors = -(-width // lanes)
        wide = vectors * lanes
        weights = _packed(_widened(kernel.reshape(depth, width), wide), lanes, self._widths)
        weights = np.ascontiguousarray(weights).reshape(-1)
        positions = math.prod(place.out)
        inner = g[5] * frame.channels
        # A large filter is summed row by row of its window, so that one row's part stays in the cache.
        by_row = g[3] == 1 and depth * self._widths[0] * lanes * x.itemsize > _SLICE
        level_2, level_1 = (g[4], 1) if by_row else (g[3], g[4])
        a_h, b_h = g[13] * frame.steps[1], inner
        plan = self._plan(
            groups_2=g[6], groups=g[7], rows=g[8],
            a_group_2=g[9] * frame.steps[0], a_group=g[10] * frame.steps[1], a_row=g[11] * frame.steps[2],
            c_group_2=g[7] * g[8] * wide, c_group=g[8] * wide, c_row=wide,
            outer_2=level_2, outer=level_1, inner=inner,
            a_out_2=a_h if by_row else g[12] * frame.steps[0], a_out=a_h, a_in=1,
            b_out_2=b_h if by_row else g[4] * inner, b_out=b_h, b_in=1,
            vectors=vectors, lanes=lanes, packed=1, b_rows=depth, b_image=0, c_image=positions * wide, add=0,
            a_image=math.prod(place.sizes) * frame.channels,
            padded_h=frame.height if frame.is_padded else 0, padded_w=frame.width,
        )  # fmt: skip
        out = np.empty((place.batch * positions, wide), x.dtype)
        image, flat = x.reshape(-1), out.reshape(-1)

        def part(first: int, last: int) -> None:
            padded = _padded(frame, x.dtype)
            self._run(image, weights, place.geometry, plan, first, last, padded, padded, flat)

        in_parts(part, place.lines, _shares(place, wide))
        if wide != width:
            out = np.ascontiguousarray(out[:, :width])
        return out.reshape(place.batch, *place.out, width)

    def filter_gradient(self, x: Array, gradient: Array, place: Place) -> Array:
        """x [N, …, C], gradient [N, out…, O] → [window…, C, O], fresh. Only where `fits` says so."""
        lanes = self._lanes
        frame, g = _Frame(place), [int(value) for value in place.geometry]
        depth, width = math.prod(place.window) * frame.channels, gradient.shape[-1]
        vectors = -(-width // lanes)
        wide = vectors * lanes
        given = np.ascontiguousarray(_widened(gradient, wide)).reshape(-1)
        positions = math.prod(place.out)
        run_length = g[5] * frame.channels
        plan = self._plan(
            groups_2=g[3], groups=g[4], rows=run_length,
            a_group_2=g[12] * frame.steps[0], a_group=g[13] * frame.steps[1], a_row=1,
            c_group_2=g[4] * run_length * wide, c_group=run_length * wide, c_row=wide,
            outer_2=g[6], outer=g[7], inner=g[8],
            a_out_2=g[9] * frame.steps[0], a_out=g[10] * frame.steps[1], a_in=g[11] * frame.steps[2],
            b_out_2=g[7] * g[8] * wide, b_out=g[8] * wide, b_in=wide,
            vectors=vectors, lanes=lanes, packed=0, b_rows=0, b_image=positions * wide, c_image=0, add=1,
            a_image=math.prod(place.sizes) * frame.channels,
            padded_h=frame.height if frame.is_padded else 0, padded_w=frame.width,
        )  # fmt: skip
        image, per_image = x.reshape(-1), g[3] * g[4]

        def part(first: int, last: int) -> Array:
            total, padded = np.empty(depth * wide, x.dtype), _padded(frame, x.dtype)
            total.fill(0)
            self._run(image, given, place.geometry, plan, first * per_image, last * per_image, padded, padded, total)
            return total

        total = sum_of_images(part, place, _shares(place, wide) // (place.lines // place.batch) + 1)
        out = total.reshape(depth, wide)
        if wide != width:
            out = np.ascontiguousarray(out[:, :width])
        return out.reshape(*place.window, frame.channels, width)
