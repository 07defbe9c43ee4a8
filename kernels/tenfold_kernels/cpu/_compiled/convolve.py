"""Convolutions without a matrix of windows, and the gradients of their filters: one loop of register tiles for both.

Each output position is a product of its window with the filter. In an image that is padded already, a window's rows
are as they lie in memory, so tiles.py reads them where they are; what the two products differ in is a plan of strides
(cpu/_convolve.py). Images are padded one at a time into the caller's scratch, which stays in the cache.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import MOST_ROWS, WIDTHS, tile
from tenfold_kernels.cpu._compiled.windows import _index

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Fields of a plan, in the order of the vector that the loop takes. All offsets count elements.
FIELDS = (
    # groups_2 × groups × rows are the rows of C for one image, and where they begin in A and in C
    *("groups_2", "groups", "rows", "a_group_2", "a_group", "a_row", "c_group_2", "c_group", "c_row"),
    # outer_2 × outer × inner is what is summed; a level 2 is a depth, or keeps the slice of B in use in the cache
    *("outer_2", "outer", "inner", "a_out_2", "a_out", "a_in", "b_out_2", "b_out", "b_in"),
    # packed: B lies tile by tile, each of b_rows rows; b_out_2, b_out and b_in count rows of a tile then
    *("vectors", "lanes", "packed", "b_rows", "b_image", "c_image", "add"),
    # one image, and the padded height and width in pixels, 0 where no image needs padding
    *("a_image", "padded_h", "padded_w"),
)

_WIDEST = WIDTHS[0]


@inline
def _pad(image, at, geometry, padded_h, padded_w, padded):  # type: ignore[no-untyped-def]
    # Copies one image into the middle of `padded`, whose margins are zero.
    width, channels = geometry[2] * geometry[18], geometry[18]
    for d in range(geometry[0]):
        for h in range(geometry[1]):
            start = _index(at + (d * geometry[1] + h) * width)
            row = ((d + geometry[15]) * padded_h + h + geometry[16]) * padded_w + geometry[17]
            to = _index(row * channels)
            for i in range(_index(width)):
                padded[to + i] = image[start + i]


def _products(image, other, geometry, plan, first, last, scratch, padded, out):  # type: ignore[no-untyped-def]
    # Lines first ≤ line < last of images × groups_2 × groups. `padded` is `scratch` again, as one that is only read:
    # whichever of the two images is read must have one type.
    groups, rows, lanes, packed = plan[1], plan[2], plan[19], plan[20]
    lines = plan[0] * groups
    tiles = (rows + MOST_ROWS - 1) // MOST_ROWS
    at_image = first // lines
    while at_image * lines < last:
        begin, end = max(first - at_image * lines, 0), min(last - at_image * lines, lines)
        source, source_at = image, at_image * plan[25]
        if plan[26]:
            _pad(image, source_at, geometry, plan[26], plan[27], scratch)
            source, source_at = padded, 0
        column = 0
        while column < plan[18] * lanes:
            vectors = _WIDEST
            while column + vectors * lanes > plan[18] * lanes:
                vectors //= 2
            width = vectors * lanes if packed else 1
            b_tile = at_image * plan[22] + (column * plan[21] if packed else column)
            for k in range(plan[9]):
                for line in range(begin, end):
                    a_at = source_at + k * plan[12] + line // groups * plan[3] + line % groups * plan[4]
                    c_at = at_image * plan[23] + column + line // groups * plan[6] + line % groups * plan[7]
                    for t in range(tiles):
                        count = rows // tiles + (1 if t < rows % tiles else 0)
                        # fmt: off
                        tile(
                            count, vectors, source, a_at, plan[5], plan[13], plan[14],
                            other, b_tile + k * plan[15] * width, plan[16] * width, plan[17] * width,
                            plan[10], plan[11], out, c_at, plan[8], plan[24] != 0 or k > 0,
                        )
                        # fmt: on
                        a_at += count * plan[5]
                        c_at += count * plan[8]
            column += vectors * lanes
        at_image += 1


def _products_in_numpy(
    image: Array,
    other: Array,
    geometry: Array,
    plan: Array,
    first: int,
    last: int,
    scratch: Array,
    padded: Array,
    out: Array,
) -> None:
    p, g = dict(zip(FIELDS, plan.tolist(), strict=True)), geometry.tolist()
    lines, size, wide = p["groups_2"] * p["groups"], image.itemsize, p["vectors"] * p["lanes"]
    counts = p["outer_2"], p["outer"], p["inner"]
    places = sum(i * p[name] for i, name in zip(np.indices(counts), ("b_out_2", "b_out", "b_in"), strict=True)).ravel()
    for n in range(first // lines, -(-last // lines)):
        source = image[n * p["a_image"] :]
        if p["padded_h"]:
            pixels = source[: math.prod(g[:3]) * g[18]].reshape(*g[:3], g[18])
            frame = scratch.reshape(-1, p["padded_h"], p["padded_w"], g[18])
            frame[g[15] : g[15] + g[0], g[16] : g[16] + g[1], g[17] : g[17] + g[2]] = pixels
            source = padded
        begin, end = max(first - n * lines, 0), min(last - n * lines, lines)
        a_steps = [size * p[name] for name in ("a_group_2", "a_group", "a_row", "a_out_2", "a_out", "a_in")]
        a = as_strided(source, (p["groups_2"], p["groups"], p["rows"], *counts), a_steps, writeable=False)
        a = a.reshape(lines, p["rows"], -1)[begin:end].reshape((end - begin) * p["rows"], -1)
        c_steps = [size * p[name] for name in ("c_group_2", "c_group", "c_row")]
        c = as_strided(out[n * p["c_image"] :], (p["groups_2"], p["groups"], p["rows"], wide), [*c_steps, size])
        column = 0
        while column < wide:
            width = next(each for each in WIDTHS if column + each * p["lanes"] <= wide) * p["lanes"]
            step, start = (width, column * p["b_rows"]) if p["packed"] else (1, column)
            b = other[n * p["b_image"] + start + places[:, None] * step + np.arange(width)]
            for at, product in enumerate((a @ b).reshape(end - begin, p["rows"], width), begin):
                to = c[at // p["groups"], at % p["groups"], :, column : column + width]
                np.add(to, product, out=to) if p["add"] else np.copyto(to, product)
            column += width


def products(element: Any) -> Callable[..., None]:
    """(image, other, geometry, plan, first line, last line, scratch, the same scratch, out), vectors.

    `other` is B: the filter, or the gradient of the output. `out` is C.
    """
    return compile_loop(_products, "r1 r1 i1 i1 n n w1 r1 w1", element, stand_in=_products_in_numpy, heavy=True)
