"""Convolutions with a quarter to a third of the multiplications, for windows of 3 × 3 and 5 × 5 that visit every pixel.

Tiles of 6 × 6 pixels are transformed (sandwiches.py), so that 4 × 4 outputs of a 3 × 3 window, or 2 × 2 of a 5 × 5 one,
cost 36 products a channel instead of 144 or 100. What is left are 36 products of matrices, tiles × channels with
channels × outputs, in registers (tiles.py). All for a block of images that stays in the cache; sizes come from
cpu/_winograd.py. Follows Winograd 1980, Lavin and Gray 2015. P 36 places of a tile, T tiles of a block.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import (
    MOST_ROWS,
    SIZE,
    WIDTHS,
    input_tile,
    output_tile_2,
    output_tile_4,
    spread_tile_2,
    spread_tile_4,
    tile,
)
from tenfold_kernels.cpu._compiled.windows import _index

if TYPE_CHECKING:
    from collections.abc import Callable

#: Fields of a plan, in the order of the vector that the loops take.
FIELDS = (
    # outputs of a tile in a row, images of a block, lanes of a vector
    *("step", "block", "lanes"),
    *("in_h", "in_w", "channels", "out_h", "out_w", "width"),
    # zeros before the image, the padded image, and in a gradient of a filter the padded output
    *("before_h", "before_w", "padded_h", "padded_w", "spread_h", "spread_w"),
    # tiles of an image, and elements from one of the 36 places to the next in v and m
    *("tiles_h", "tiles_w", "v_place", "m_place"),
)

_PLACES = SIZE * SIZE
_WIDEST = WIDTHS[0]


@inline
def _into(image, at, height, width, channels, before_h, before_w, padded_w, padded):  # type: ignore[no-untyped-def]
    # Copies one image into `padded`, whose margins are zero.
    for h in range(height):
        start = _index(at + h * width * channels)
        to = _index(((h + before_h) * padded_w + before_w) * channels)
        for i in range(_index(width * channels)):
            padded[to + i] = image[start + i]


@inline
def _transform_image(plan, padded, t, v):  # type: ignore[no-untyped-def]
    # The tiles of one padded image into v [P, T, channels], from tile t on. The last tile of a row may overlap the one
    # before it, where it would hang over the edge.
    channels, row = plan[5], plan[12] * plan[5]
    for i in range(plan[15]):
        h = min(i * plan[0], plan[11] - SIZE)
        for j in range(plan[16]):
            w = min(j * plan[0], plan[12] - SIZE)
            for c in range(0, channels, plan[2]):
                input_tile(
                    padded, h * row + w * channels + c, row, channels, v, t * channels + c, SIZE * plan[17], plan[17]
                )
            t += 1


@inline
def _odd(x, start, count):  # type: ignore[no-untyped-def]
    # How many elements are infinite or no number.
    odd = 0
    at = _index(start)
    for i in range(_index(count)):
        odd += 0 if x[at + i] - x[at + i] == 0 else 1
    return odd


def _forward(image, weights, plan, first, last, padded, v, m, out):  # type: ignore[no-untyped-def]
    # Images first ≤ n < last. weights [P, channels, width], v and m scratch. Gives how many outputs are not finite.
    step, lanes, channels, width = plan[0], plan[2], plan[5], plan[8]
    tiles_each = plan[15] * plan[16]
    out_row = plan[7] * width
    odd = 0
    for start in range(first, last, plan[1]):
        end = min(start + plan[1], last)
        for n in range(start, end):
            at = n * plan[3] * plan[4] * channels
            _into(image, at, plan[3], plan[4], channels, plan[9], plan[10], plan[12], padded)
            _transform_image(plan, padded, (n - start) * tiles_each, v)
        rows = (end - start) * tiles_each
        parts = (rows + MOST_ROWS - 1) // MOST_ROWS
        for p in range(_PLACES):
            column = 0
            while column < width:
                vectors = _WIDEST
                while column + vectors * lanes > width:
                    vectors //= 2
                row = 0
                for part in range(parts):
                    count = rows // parts + (1 if part < rows % parts else 0)
                    # fmt: off
                    tile(
                        count, vectors, v, p * plan[17] + row * channels, channels, 0, 1,
                        weights, p * channels * width + column, 0, width,
                        1, channels, m, p * plan[18] + row * width + column, width, False,
                    )
                    # fmt: on
                    row += count
                column += vectors * lanes
        t = 0
        for n in range(start, end):
            for i in range(plan[15]):
                h = min(i * step, plan[6] - step)
                for j in range(plan[16]):
                    to = ((n * plan[6] + h) * plan[7] + min(j * step, plan[7] - step)) * width
                    for c in range(0, width, lanes):
                        if step == 4:
                            output_tile_4(m, t * width + c, SIZE * plan[18], plan[18], out, to + c, out_row, width)
                        else:
                            output_tile_2(m, t * width + c, SIZE * plan[18], plan[18], out, to + c, out_row, width)
                    t += 1
            odd += _odd(out, n * plan[6] * out_row, plan[6] * out_row)
    return odd


def _filter(image, gradient, plan, first, last, padded, spread, v, m, total):  # type: ignore[no-untyped-def]
    # Adds the transformed filter's gradient of images first ≤ n < last to total [P, channels, width]. The padded sizes
    # are whole tiles here, so that none overlaps.
    step, lanes, channels, width = plan[0], plan[2], plan[5], plan[8]
    spread_row = plan[14] * width
    for start in range(first, last, plan[1]):
        end = min(start + plan[1], last)
        t = 0
        for n in range(start, end):
            at = n * plan[3] * plan[4] * channels
            _into(image, at, plan[3], plan[4], channels, plan[9], plan[10], plan[12], padded)
            _transform_image(plan, padded, t, v)
            _into(gradient, n * plan[6] * plan[7] * width, plan[6], plan[7], width, 0, 0, plan[14], spread)
            for i in range(plan[15]):
                for j in range(plan[16]):
                    at = (i * plan[14] + j) * step * width
                    for c in range(0, width, lanes):
                        if step == 4:
                            spread_tile_4(
                                spread, at + c, spread_row, width, m, t * width + c, SIZE * plan[18], plan[18]
                            )
                        else:
                            spread_tile_2(
                                spread, at + c, spread_row, width, m, t * width + c, SIZE * plan[18], plan[18]
                            )
                    t += 1
        parts = (channels + MOST_ROWS - 1) // MOST_ROWS
        for p in range(_PLACES):
            column = 0
            while column < width:
                vectors = _WIDEST
                while column + vectors * lanes > width:
                    vectors //= 2
                row = 0
                for part in range(parts):
                    count = channels // parts + (1 if part < channels % parts else 0)
                    # fmt: off
                    tile(
                        count, vectors, v, p * plan[17] + row, 1, 0, channels,
                        m, p * plan[18] + column, 0, width,
                        1, t, total, (p * channels + row) * width + column, width, True,
                    )
                    # fmt: on
                    row += count
                column += vectors * lanes


def _forward_in_numpy(*arguments: Any) -> int:
    # "Not finite": the caller takes the direct way then, whose own stand-in is as fast as any.
    return 1


def _filter_in_numpy(*arguments: Any) -> None:
    arguments[-1].fill(np.nan)


def forward(element: Any) -> Callable[..., int]:
    """(image, weights, plan, first image, last image, padded, v, m, out), vectors → how many outputs are not finite"""
    return compile_loop(
        _forward, "r1 r1 i1 n n w1 w1 w1 w1", element, result="n", stand_in=_forward_in_numpy, heavy=True
    )


def filter_gradient(element: Any) -> Callable[..., None]:
    """(image, gradient, plan, first image, last image, padded, spread, v, m, total, added to), vectors"""
    return compile_loop(_filter, "r1 r1 i1 n n w1 w1 w1 w1 w1", element, stand_in=_filter_in_numpy, heavy=True)
