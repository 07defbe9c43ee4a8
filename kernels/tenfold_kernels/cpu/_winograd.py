"""Where a convolution with fewer multiplications is taken, its sizes, and its filters' transforms.

The compiled loops (_compiled/winograd.py) transform images; filters are few, and NumPy transforms them. Used by
_convolutions.py for float32: results differ from a direct convolution's by about 2e-6 of the largest output, ten times
what the order of a sum does. docs/decisions/0038 has the figures.

R window of R × R places, C input channels, O output channels, P 36 places of a transformed tile.
"""

from __future__ import annotations

import math
import threading
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._windows import scratch
from tenfold_kernels.parallel import in_parts

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._windows import Place, Sliding

#: Multiplications of a direct convolution below which the transforms do not pay.
_LEAST = 1 << 22
#: Tiles below which reading the transformed filter costs more than it saves.
_LEAST_TILES = 48
#: Outputs that tiles may compute for each that is wanted.
_MOST_WASTE = 1.35
#: Bytes of transformed tiles of a block of images, in and out together: they and a filter stay in the second cache.
_BLOCK = 512 << 10
#: Multiplications below which the work is not shared among threads: about half a millisecond.
_SHARE = 1 << 25
#: Elements that keep the 36 places of v and m out of each other's cache sets.
_APART = 16


@cache
def _filter_matrix(window: int) -> Array:
    """What a filter of window × window places is multiplied with: [P, R · R], double."""
    from tenfold_kernels.cpu._compiled.intrinsics import POINTS

    rows = [
        [point**i / math.prod(point - other for other in POINTS if other != point) for i in range(window)]
        for point in POINTS
    ]
    one = np.array([*rows, [0.0] * (window - 1) + [1.0]])
    return np.kron(one, one)


class Winograd:
    """The compiled loops for float32. Make it when a node is built: making it compiles."""

    def __init__(self) -> None:
        from tenfold_kernels.cpu._compiled import intrinsics, winograd

        self._forward, self._filter = winograd.forward(np.float32), winograd.filter_gradient(np.float32)
        self._fields, self._lanes, self._size = winograd.FIELDS, intrinsics.lanes(np.dtype(np.float32)), intrinsics.SIZE

    @classmethod
    def of(cls, dtype: Any, slide: Sliding) -> Winograd | None:
        """None for types and ways of sliding that it never takes."""
        fitting = np.dtype(dtype) == np.float32 and all(s == 1 for s in (*slide.strides, *slide.dilations))
        return cls() if fitting and len(slide.strides) == 2 else None

    def fits(self, place: Place, width: int) -> bool:
        """Whether it takes this convolution to `width` outputs, and pays: of a node that slides as `of` wants it."""
        g, window = place.geometry, place.window
        if window[0] != window[1] or window[0] not in (3, 5):
            return False
        if g[16] < 0 or g[17] < 0 or place.channels % self._lanes or width % self._lanes:
            return False
        step = self._size + 1 - window[0]
        high, wide = place.out
        if min(high, wide) < step:
            return False
        tiles = -(-high // step) * -(-wide // step)
        multiplications = place.batch * high * wide * window[0] ** 2 * place.channels * width
        wasted = tiles * step * step / (high * wide)
        return multiplications >= _LEAST and place.batch * tiles >= _LEAST_TILES and wasted <= _MOST_WASTE

    def _plan(self, place: Place, width: int, *, whole_tiles: bool) -> dict[str, int]:
        window = place.window[0]
        step = self._size + 1 - window
        tiles = [-(-size // step) for size in place.out]
        covered = [count * step for count in tiles] if whole_tiles else place.out
        each = math.prod(tiles) * (place.channels + width) * self._size**2 * 4
        block = max(1, min(_BLOCK // each, place.batch))
        count = block * math.prod(tiles)
        return {
            "step": step, "block": block, "lanes": self._lanes,
            "in_h": place.sizes[0], "in_w": place.sizes[1], "channels": place.channels,
            "out_h": place.out[0], "out_w": place.out[1], "width": width,
            "before_h": int(place.geometry[16]), "before_w": int(place.geometry[17]),
            "padded_h": covered[0] + window - 1, "padded_w": covered[1] + window - 1,
            "spread_h": covered[0], "spread_w": covered[1],
            "tiles_h": tiles[0], "tiles_w": tiles[1],
            "v_place": count * place.channels + _APART, "m_place": count * width + _APART,
        }  # fmt: skip

    def _vector(self, plan: dict[str, int]) -> Array:
        return np.array([plan[name] for name in self._fields], np.int64)

    def forward(self, x: Array, kernel: Array, place: Place) -> Array | None:
        """x [N, H, W, C] (contiguous), kernel [R, R, C, O] → [N, out…, O], fresh. Only where `fits` says so.

        None if an output is not finite: a whole tile is, where one of its pixels is not, and others shall be right.
        """
        width = kernel.shape[-1]
        matrix = _filter_matrix(place.window[0]).astype(np.float32)
        weights = np.matmul(matrix, np.ascontiguousarray(kernel).reshape(matrix.shape[1], -1)).reshape(-1)
        plan = self._plan(place, width, whole_tiles=False)
        fields, image = self._vector(plan), x.reshape(-1)
        out = np.empty((place.batch, *place.out, width), np.float32)
        flat = out.reshape(-1)
        odd: list[int] = []

        def part(first: int, last: int) -> None:
            padded, _, v, m = self._scratch(plan)
            if self._forward(image, weights, fields, first, last, padded, v, m, flat):
                odd.append(first)

        in_parts(part, place.batch, self._share(place, width, plan["block"]))
        return None if odd else out

    def filter_gradient(self, x: Array, gradient: Array, place: Place) -> Array | None:
        """x [N, H, W, C], gradient [N, out…, O] → [R, R, C, O], fresh. None as `forward` gives it."""
        width = gradient.shape[-1]
        plan = self._plan(place, width, whole_tiles=True)
        fields, image, given = self._vector(plan), x.reshape(-1), np.ascontiguousarray(gradient).reshape(-1)
        lock = threading.Lock()
        sums: dict[int, Array] = {}

        def part(first: int, last: int) -> None:
            padded, spread, v, m = self._scratch(plan, width)
            # Cleared by hand: zeros from the system are new pages, and these were used a step ago.
            total = np.empty(self._size**2 * place.channels * width, np.float32)
            total.fill(0)
            self._filter(image, given, fields, first, last, padded, spread, v, m, total)
            with lock:
                sums[first] = total

        in_parts(part, place.batch, self._share(place, width, plan["block"]))
        # In the order of the images, however the threads ran: the same result each time.
        total, *others = (sums[first] for first in sorted(sums))
        for other in others:
            np.add(total, other, out=total)
        matrix = _filter_matrix(place.window[0]).astype(np.float32)
        out: Array = np.matmul(matrix.T, total.reshape(matrix.shape[0], -1))
        return out.reshape(*place.window, place.channels, width) if np.isfinite(out.sum()) else None

    def _scratch(self, plan: dict[str, int], width: int = 0) -> tuple[Array, ...]:
        """This thread's padded image and, of `width` channels, padded gradient, both zero; v and m. Kept for later."""
        places = self._size**2
        padded = plan["padded_h"] * plan["padded_w"] * plan["channels"]
        spread = plan["spread_h"] * plan["spread_w"] * width
        v_at = padded + spread
        m_at = v_at + places * plan["v_place"]
        held = scratch(m_at + places * plan["m_place"], np.float32)
        held[:v_at] = 0
        return held[:padded], held[padded:v_at], held[v_at:m_at], held[m_at:]

    @staticmethod
    def _share(place: Place, width: int, block: int) -> int:
        """How many images are worth a thread: whole blocks of them."""
        each = math.prod(place.out) * place.window[0] ** 2 * place.channels * width
        images = _SHARE // each + 1
        return -(-images // block) * block
