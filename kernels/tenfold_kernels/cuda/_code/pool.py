"""Loops of max and average pooling and of their gradients, one thread an element of the output: no two threads write to
one place, and all sums go by rows and columns, so that results are the same in every run.

Images are [N, height, width, channels], outputs [N, out_height, out_width, channels]. A window of rows × columns
moves by `down` and `across`; the first begins `top` and `left` of the image. Places outside the image count for
nothing. Each loop is made for a type of elements; half is computed as float32. The first arguments are the same in
all: n elements of what is written, and that geometry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

from tenfold_kernels.cpu.math_reduction import lowest_finite
from tenfold_kernels.cuda._code.device import device, element_of, number_of
from tenfold_kernels.cuda.narrow_text import wide

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


@device
def _window(  # type: ignore[no-untyped-def]
    i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
):
    # What element i of an output is made of: (channel, the image's first row among all images', rows from … to,
    # columns from … to), of those within the image.
    pixel = i // channels
    row = pixel // out_width % out_height * down - top
    column = pixel % out_width * across - left
    return (
        i % channels,
        pixel // (out_width * out_height) * height,
        max(row, 0),
        min(row + rows, height),
        max(column, 0),
        min(column + columns, width),
    )


@device
def _windows_with(  # type: ignore[no-untyped-def]
    i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
):
    # The elements of the output whose windows have element i of an image: (channel, image, rows from … to, columns
    # from … to).
    pixel = i // channels
    row = pixel // width % height + top
    column = pixel % width + left
    return (
        i % channels,
        pixel // (width * height),
        max((row - rows) // down + 1, 0),
        min(row // down + 1, out_height),
        max((column - columns) // across + 1, 0),
        min(column // across + 1, out_width),
    )


def largest(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(…, image, out): the largest of each window, not less than the least finite number, so that a NaN is passed over;
    0 of an empty window.
    """
    kind, number, element = wide(dtype).type, number_of(dtype), element_of(dtype)
    least, zero = kind(lowest_finite(dtype)), kind(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, image, out
    ):
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, start, first_row, end_row, first_column, end_column = _window(
                i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
            )
            best = least
            found = False
            for row in range(first_row, end_row):
                for column in range(first_column, end_column):
                    value = number(image[((start + row) * width + column) * channels + c])
                    found = True
                    if value > best:
                        best = value
            out[i] = element(best if found else zero)

    return run


def places(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(…, size, image, out): where the first largest element of each window is, -1 for an empty window.

    A NaN is larger than nothing, and nothing is larger than a NaN: it is found where it comes first. Places count
    within the batch if `size` is 0, within an image if it is an image's size.
    """
    number, zero = number_of(dtype), wide(dtype).type(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, size, image, out
    ):
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, start, first_row, end_row, first_column, end_column = _window(
                i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
            )
            first = start // height * size
            best = zero
            place = first - 1
            fresh = True
            for row in range(first_row, end_row):
                for column in range(first_column, end_column):
                    at = ((start + row) * width + column) * channels + c
                    value = number(image[at])
                    if fresh or value > best:
                        best = value
                        place = at
                        fresh = False
            out[i] = place - first

    return run


def spread(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(…, size, gradient, found, out): the gradient of an image, for each of its elements the sum of the gradients of
    those outputs whose `found` names it, among those whose window has it. `size` as in places.
    """
    number, element, zero = number_of(dtype), element_of(dtype), wide(dtype).type(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, size, gradient,
        found, out,
    ):  # fmt: skip
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, image_number, first_y, end_y, first_x, end_x = _windows_with(
                i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
            )
            mine = i - image_number * size
            total = zero
            for y in range(first_y, end_y):
                for x in range(first_x, end_x):
                    at = ((image_number * out_height + y) * out_width + x) * channels + c
                    if found[at] == mine:
                        total += number(gradient[at])
            out[i] = element(total)

    return run


def taken(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(n, per_image, size, limit, source, found, out): out[i] = source at found[i], of which each image has per_image;
    0 where that is not in 0 … limit - 1. `size` as in places.
    """
    number, element, zero = number_of(dtype), element_of(dtype), wide(dtype).type(0)

    def run(n, per_image, size, limit, source, found, out):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            place = found[i]
            value = zero
            if place >= 0 and place < limit:
                value = number(source[i // per_image * size + place])
            out[i] = element(value)

    return run


def at_equal(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(…, image, wanted, given, out): what is given at the first place of each window whose element equals what is
    wanted; 0 where none does.
    """
    number, element, zero = number_of(dtype), element_of(dtype), wide(dtype).type(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, image, wanted,
        given, out,
    ):  # fmt: skip
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, start, first_row, end_row, first_column, end_column = _window(
                i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
            )
            value = zero
            fresh = True
            sought = number(wanted[i])
            for row in range(first_row, end_row):
                for column in range(first_column, end_column):
                    at = ((start + row) * width + column) * channels + c
                    if fresh and number(image[at]) == sought:
                        value = number(given[at])
                        fresh = False
            out[i] = element(value)

    return run


def average(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(…, image, out): the mean of each window, of the elements within the image."""
    kind, number, element = wide(dtype).type, number_of(dtype), element_of(dtype)
    zero = kind(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, image, out
    ):
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, start, first_row, end_row, first_column, end_column = _window(
                i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
            )
            total = zero
            count = 0
            for row in range(first_row, end_row):
                for column in range(first_column, end_column):
                    total += number(image[((start + row) * width + column) * channels + c])
                    count += 1
            out[i] = element(total / kind(count) if count > 1 else total)

    return run


def average_gradient(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(…, gradient, out): for each element of an image the sum of its shares of the outputs' gradients."""
    kind, number, element = wide(dtype).type, number_of(dtype), element_of(dtype)
    zero = kind(0)

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, gradient, out
    ):
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, image_number, first_y, end_y, first_x, end_x = _windows_with(
                i, height, width, channels, out_height, out_width, rows, columns, down, across, top, left
            )
            total = zero
            for y in range(first_y, end_y):
                row = y * down - top
                tall = min(row + rows, height) - max(row, 0)
                for x in range(first_x, end_x):
                    column = x * across - left
                    size = tall * (min(column + columns, width) - max(column, 0))
                    at = ((image_number * out_height + y) * out_width + x) * channels + c
                    total += number(gradient[at]) / kind(size)
            out[i] = element(total)

    return run
