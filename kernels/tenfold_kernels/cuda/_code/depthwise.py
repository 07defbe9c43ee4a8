"""Depthwise convolutions and their gradients, one thread an element of what is written: every sum has one order.

Images are [N, height, width, channels], filters [rows, columns, channels, times], outputs [N, out_height, out_width,
channels · times]: channel c of the image gives c · times + m. A filter's elements are `apart_down` and `apart_across`
apart; it moves by `down` and `across`, and begins `top` and `left` of the image.
"""

from __future__ import annotations

from numba import cuda

# The first arguments are the same in all: n elements of what is written, and the geometry.


def forward(  # type: ignore[no-untyped-def]
    n, height, width, channels, times, out_height, out_width, rows, columns, down, across, apart_down, apart_across,
    top, left, zero, image, filters, out,
):  # fmt: skip
    """out[n elements]: sums go by the filter's rows and columns."""
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
                        value = image[((start + row) * width + column) * channels + c // times]
                        total += value * filters[(r * columns + s) * depth + c]
        out[i] = total


def input_gradient(  # type: ignore[no-untyped-def]
    n, height, width, channels, times, out_height, out_width, rows, columns, down, across, apart_down, apart_across,
    top, left, zero, gradient, filters, out,
):  # fmt: skip
    """out[n elements of an image]: sums go by the filter's rows, columns and times."""
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
                            total += gradient[at + m] * filters[weight + m]
        out[i] = total


def filter_gradient(  # type: ignore[no-untyped-def]
    n, height, width, channels, times, out_height, out_width, rows, columns, down, across, apart_down, apart_across,
    top, left, pixels, step, zero, image, gradient, parts,
):  # fmt: skip
    """parts[chunks, rows, columns, channels, times]: a chunk is `step` of all the outputs' pixels, in order."""
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
                value = image[((start + row) * width + column) * channels + c // times]
                total += value * gradient[pixel * depth + c]
        parts[i] = total


def summed(n, chunks, zero, parts, out):  # type: ignore[no-untyped-def]
    """out[n] = the sum of parts[chunks, n], from the first chunk to the last."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        total = zero
        for chunk in range(chunks):
            total += parts[chunk * n + i]
        out[i] = total
