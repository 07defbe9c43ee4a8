"""Compiled copies between an image and the matrix of its windows: im2col and col2im.

An image is N images × D depth × H rows × W columns × C channels (D is 1 in two dimensions). A *line* is one row of
output positions: (image, depth, row). Row r of a window matrix holds the window of one output position, in the order
of a filter: depth, row, column, channel. `geometry` is what cpu/_windows.py lays out. Used by cpu/nn_conv.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Unsigned, an index cannot be negative, so that no element's access asks whether it counts from the end: four times
#: as fast, because the inner loops become plain copies. Signed and unsigned numbers must not meet in one sum.
_index = np.uint64

# geometry: 0–2 input D H W · 3–5 window D H W · 6–8 output D H W · 9–11 strides · 12–14 dilations · 15–17 padding
# before · 18 channels. Indices of arrays are computed here, because a flat copy is what LLVM makes a memcpy of.


def _gather(image, geometry, first, last, cols):  # type: ignore[no-untyped-def]
    # The windows of lines first ≤ line < last; zeros where a window hangs over the edge. cols [rows · K] is a vector.
    in_d, in_h, in_w = geometry[0], geometry[1], geometry[2]
    k_d, k_h, k_w = geometry[3], geometry[4], geometry[5]
    out_d, out_h, out_w = geometry[6], geometry[7], geometry[8]
    channels = geometry[18]
    apart_w = geometry[14]
    run = k_w * channels
    depth = k_d * k_h * run
    for line in range(first, last):
        image_at = line // (out_d * out_h)
        at_d = (line // out_h) % out_d * geometry[9] - geometry[15]
        at_h = line % out_h * geometry[10] - geometry[16]
        for o in range(out_w):
            w = o * geometry[11] - geometry[17]
            whole = apart_w == 1 and w >= 0 and w + k_w <= in_w
            row = ((line - first) * out_w + o) * depth
            for i_d in range(k_d):
                d = at_d + i_d * geometry[12]
                for i_h in range(k_h):
                    h = at_h + i_h * geometry[13]
                    column = row + (i_d * k_h + i_h) * run
                    if d < 0 or d >= in_d or h < 0 or h >= in_h:
                        to = _index(column)
                        for j in range(_index(run)):
                            cols[to + j] = 0
                        continue
                    base = ((image_at * in_d + d) * in_h + h) * in_w + w
                    if whole:
                        to, start = _index(column), _index(base * channels)
                        for j in range(_index(run)):
                            cols[to + j] = image[start + j]
                        continue
                    for i_w in range(k_w):
                        x = w + i_w * apart_w
                        to = _index(column + i_w * channels)
                        if x < 0 or x >= in_w:
                            for j in range(_index(channels)):
                                cols[to + j] = 0
                        else:
                            start = _index((base + i_w * apart_w) * channels)
                            for j in range(_index(channels)):
                                cols[to + j] = image[start + j]


def _scatter(cols, geometry, first, last, image):  # type: ignore[no-untyped-def]
    # The adjoint of _gather: adds every window to the places that it came from.
    in_d, in_h, in_w = geometry[0], geometry[1], geometry[2]
    k_d, k_h, k_w = geometry[3], geometry[4], geometry[5]
    out_d, out_h, out_w = geometry[6], geometry[7], geometry[8]
    channels = geometry[18]
    apart_w = geometry[14]
    run = k_w * channels
    depth = k_d * k_h * run
    for line in range(first, last):
        image_at = line // (out_d * out_h)
        at_d = (line // out_h) % out_d * geometry[9] - geometry[15]
        at_h = line % out_h * geometry[10] - geometry[16]
        for o in range(out_w):
            w = o * geometry[11] - geometry[17]
            whole = apart_w == 1 and w >= 0 and w + k_w <= in_w
            row = ((line - first) * out_w + o) * depth
            for i_d in range(k_d):
                d = at_d + i_d * geometry[12]
                if d < 0 or d >= in_d:
                    continue
                for i_h in range(k_h):
                    h = at_h + i_h * geometry[13]
                    if h < 0 or h >= in_h:
                        continue
                    base = ((image_at * in_d + d) * in_h + h) * in_w
                    column = row + (i_d * k_h + i_h) * run
                    if whole:
                        start, source = _index((base + w) * channels), _index(column)
                        for j in range(_index(run)):
                            image[start + j] += cols[source + j]
                        continue
                    for i_w in range(k_w):
                        x = w + i_w * apart_w
                        if x < 0 or x >= in_w:
                            continue
                        start = _index((base + x) * channels)
                        source = _index(column + i_w * channels)
                        for j in range(_index(channels)):
                            image[start + j] += cols[source + j]


def _places_in_numpy(geometry: Array, first: int, last: int) -> tuple[Array, Array]:
    # Of each element of the window matrix: where it is in the image, and whether it is within.
    g = geometry.tolist()
    lines, across, window = np.arange(first, last), np.arange(g[8]), np.indices(g[3:6]).reshape(3, -1)
    starts = (lines // g[7] % g[6], 0), (lines % g[7], 1), (across, 2)
    d, h, w = (at[:, None] * g[9 + i] - g[15 + i] + window[i] * g[12 + i] for at, i in starts)
    d, h, w = d[:, None], h[:, None], w[None]
    inside = (d >= 0) & (d < g[0]) & (h >= 0) & (h < g[1]) & (w >= 0) & (w < g[2])
    pixels = (((lines // (g[6] * g[7]))[:, None, None] * g[0] + d) * g[1] + h) * g[2] + w
    elements = pixels[..., None] * g[18] + np.arange(g[18])
    return elements.reshape(-1), np.repeat(inside.reshape(-1), g[18])


def _gather_in_numpy(image: Array, geometry: Array, first: int, last: int, cols: Array) -> None:
    places, inside = _places_in_numpy(geometry, first, last)
    cols[: len(places)] = 0
    cols[: len(places)][inside] = image[places[inside]]


def _scatter_in_numpy(cols: Array, geometry: Array, first: int, last: int, image: Array) -> None:
    places, inside = _places_in_numpy(geometry, first, last)
    np.add.at(image, places[inside], cols[: len(places)][inside])


def gather(element: Any) -> Callable[..., None]:
    """(image, geometry, first line, last line, cols), image and cols as vectors"""
    return compile_loop(_gather, "r1 i1 n n w1", element, stand_in=_gather_in_numpy, heavy=True)


def scatter(element: Any) -> Callable[..., None]:
    """(cols, geometry, first line, last line, image, added to), vectors"""
    return compile_loop(_scatter, "r1 i1 n n w1", element, stand_in=_scatter_in_numpy, heavy=True)
