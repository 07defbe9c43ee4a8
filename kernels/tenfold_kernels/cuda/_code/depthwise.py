"""Depthwise convolutions and their gradients, one thread an element of what is written: every sum has one order.

Images are [N, height, width, channels], filters [rows, columns, channels, times], outputs [N, out_height, out_width,
channels · times]: channel c of the image gives c · times + m. A filter's elements are `apart_down` and `apart_across`
apart; it moves by `down` and `across`, and begins `top` and `left` of the image. Each loop is made for a type of
elements; half is computed as float32. The first arguments are the same in all: n elements of what is written, and that
geometry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

from tenfold_kernels.cuda._code.device import element_of, number_of
from tenfold_kernels.cuda.narrow_text import wide

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def forward(dtype: np.dtype[Any]) -> Callable[..., None]:
    """out[n elements]: sums go by the filter's rows and columns."""
    number, element, zero = number_of(dtype), element_of(dtype), wide(dtype).type(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, times, out_height, out_width, rows, columns, down, across, apart_down, apart_across,
        top, left, image, filters, out,
    ):  # fmt: skip
        depth = channels * times
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c = i % depth
            pixel = i // depth
            start = pixel // (out_width * out_height) * height
            first_row = pixel // out_width % out_height * down - top
            first_column = pixel % out_width * across - left
            total = zero
            for r in range(rows):
                row = first_row + r * apart_down
                if row >= 0 and row < height:
                    for s in range(columns):
                        column = first_column + s * apart_across
                        if column >= 0 and column < width:
                            value = number(image[((start + row) * width + column) * channels + c // times])
                            total += value * number(filters[(r * columns + s) * depth + c])
            out[i] = element(total)

    return run


def input_gradient(dtype: np.dtype[Any]) -> Callable[..., None]:
    """out[n elements of an image]: sums go by the filter's rows, columns and times."""
    number, element, zero = number_of(dtype), element_of(dtype), wide(dtype).type(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, times, out_height, out_width, rows, columns, down, across, apart_down, apart_across,
        top, left, gradient, filters, out,
    ):  # fmt: skip
        depth = channels * times
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c = i % channels * times
            pixel = i // channels
            start = pixel // (width * height) * out_height
            total = zero
            for r in range(rows):
                below = pixel // width % height + top - r * apart_down
                if below >= 0 and below % down == 0 and below // down < out_height:
                    for s in range(columns):
                        beside = pixel % width + left - s * apart_across
                        if beside >= 0 and beside % across == 0 and beside // across < out_width:
                            at = ((start + below // down) * out_width + beside // across) * depth + c
                            weight = (r * columns + s) * depth + c
                            for m in range(times):
                                total += number(gradient[at + m]) * number(filters[weight + m])
            out[i] = element(total)

    return run


def filter_gradient(dtype: np.dtype[Any], into: np.dtype[Any]) -> Callable[..., None]:
    """parts[chunks, rows, columns, channels, times]: a chunk is `step` of all the outputs' pixels, in order."""
    number, element, zero = number_of(dtype), element_of(into), wide(dtype).type(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, times, out_height, out_width, rows, columns, down, across, apart_down, apart_across,
        top, left, pixels, step, image, gradient, parts,
    ):  # fmt: skip
        depth = channels * times
        size = rows * columns * depth
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c = i % depth
            place = i % size // depth
            from_row = place // columns * apart_down - top
            from_column = place % columns * apart_across - left
            first = i // size * step
            total = zero
            for pixel in range(first, min(first + step, pixels)):
                row = pixel // out_width % out_height * down + from_row
                column = pixel % out_width * across + from_column
                if row >= 0 and row < height and column >= 0 and column < width:
                    start = pixel // (out_width * out_height) * height
                    value = number(image[((start + row) * width + column) * channels + c // times])
                    total += value * number(gradient[pixel * depth + c])
            parts[i] = element(total)

    return run


def summed(dtype: np.dtype[Any]) -> Callable[..., None]:
    """out[n] = the sum of parts[chunks, n], from the first chunk to the last."""
    element, zero = element_of(dtype), wide(dtype).type(0)

    def run(n, chunks, parts, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            total = zero
            for chunk in range(chunks):
                total += parts[chunk * n + i]
            out[i] = element(total)

    return run
