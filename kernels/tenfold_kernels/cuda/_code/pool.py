"""Loops of max and average pooling and of their gradients, one thread an element of the output: no two threads write to
one place, and all sums go by rows and columns, so that results are the same in every run.

Images are [N, height, width, channels], outputs [N, out_height, out_width, channels]. A window of rows × columns
moves by `down` and `across`; the first begins `top` and `left` of the image. Places outside the image count for
nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

from tenfold_kernels.cuda._code.device import device

if TYPE_CHECKING:
    from collections.abc import Callable


@device
def _window(i, channels, out_height, out_width, down, across, top, left):  # type: ignore[no-untyped-def]
    # (channel, image, first row, first column) of the window that element i of an output is made of
    pixel = i // channels
    first_row = pixel // out_width % out_height * down - top
    return i % channels, pixel // (out_width * out_height), first_row, pixel % out_width * across - left


# The first line of arguments is the same in all: n elements of what is written, and the geometry.


def largest(  # type: ignore[no-untyped-def]
    n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, least, zero, image, out
):
    """The largest of each window, not less than `least`, so that a NaN is passed over; zero of an empty window."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c, image_number, first_row, first_column = _window(i, channels, out_height, out_width, down, across, top, left)
        start = image_number * height
        best = least
        found = False
        for row in range(max(first_row, 0), min(first_row + rows, height)):
            for column in range(max(first_column, 0), min(first_column + columns, width)):
                value = image[((start + row) * width + column) * channels + c]
                found = True
                if value > best:
                    best = value
        out[i] = best if found else zero


def places(  # type: ignore[no-untyped-def]
    n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, size, least, image, out
):
    """Where the first largest element of each window is, -1 for an empty window. A NaN is larger than nothing, and
    nothing is larger than a NaN: it is found where it comes first. Places count within the batch if `size` is 0, within
    an image if it is an image's size. What `least` is does not matter.
    """
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c, image_number, first_row, first_column = _window(i, channels, out_height, out_width, down, across, top, left)
        start = image_number * height
        best = least
        place = image_number * size - 1
        fresh = True
        for row in range(max(first_row, 0), min(first_row + rows, height)):
            for column in range(max(first_column, 0), min(first_column + columns, width)):
                at = ((start + row) * width + column) * channels + c
                value = image[at]
                if fresh or value > best:
                    best = value
                    place = at
                    fresh = False
        out[i] = place - image_number * size


def spread(  # type: ignore[no-untyped-def]
    n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, size, zero, gradient,
    found, out,
):  # fmt: skip
    """The gradient of an image: for each of its elements the sum of the gradients of those outputs whose `found` names
    it, among those whose window has it. `size` as in places.
    """
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c = i % channels
        pixel = i // channels
        row = pixel // width % height + top
        column = pixel % width + left
        image_number = pixel // (width * height)
        mine = i - image_number * size
        total = zero
        for y in range(max((row - rows) // down + 1, 0), min(row // down + 1, out_height)):
            for x in range(max((column - columns) // across + 1, 0), min(column // across + 1, out_width)):
                at = ((image_number * out_height + y) * out_width + x) * channels + c
                if found[at] == mine:
                    total += gradient[at]
        out[i] = total


def taken(n, per_image, size, limit, zero, source, found, out):  # type: ignore[no-untyped-def]
    """out[i] = source at found[i], of which each image has per_image; zero where that is not in 0 … limit - 1. `size`
    as in places.
    """
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        place = found[i]
        out[i] = source[i // per_image * size + place] if place >= 0 and place < limit else zero


def at_equal(  # type: ignore[no-untyped-def]
    n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, zero, image, wanted,
    given, out,
):  # fmt: skip
    """What is given at the first place of each window whose element equals what is wanted; zero where none does."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        c, image_number, first_row, first_column = _window(i, channels, out_height, out_width, down, across, top, left)
        start = image_number * height
        value = zero
        fresh = True
        for row in range(max(first_row, 0), min(first_row + rows, height)):
            for column in range(max(first_column, 0), min(first_column + columns, width)):
                at = ((start + row) * width + column) * channels + c
                if fresh and image[at] == wanted[i]:
                    value = given[at]
                    fresh = False
        out[i] = value


def average(element: Any) -> Callable[..., None]:
    """(…, zero, image, out): the mean of each window, of the elements within the image."""

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, zero, image, out
    ):
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c, image_number, first_row, first_column = _window(
                i, channels, out_height, out_width, down, across, top, left
            )
            start = image_number * height
            total = zero
            count = 0
            for row in range(max(first_row, 0), min(first_row + rows, height)):
                for column in range(max(first_column, 0), min(first_column + columns, width)):
                    total += image[((start + row) * width + column) * channels + c]
                    count += 1
            out[i] = total / element(count) if count > 1 else total

    return run


def average_gradient(element: Any) -> Callable[..., None]:
    """(…, zero, gradient, out): for each element of an image the sum of its shares of the outputs' gradients."""

    def run(  # type: ignore[no-untyped-def]
        n, height, width, channels, out_height, out_width, rows, columns, down, across, top, left, zero, gradient, out
    ):
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c = i % channels
            pixel = i // channels
            row = pixel // width % height + top
            column = pixel % width + left
            start = pixel // (width * height) * out_height
            total = zero
            for y in range(max((row - rows) // down + 1, 0), min(row // down + 1, out_height)):
                first_row = y * down - top
                tall = min(first_row + rows, height) - max(first_row, 0)
                for x in range(max((column - columns) // across + 1, 0), min(column // across + 1, out_width)):
                    first_column = x * across - left
                    wide = min(first_column + columns, width) - max(first_column, 0)
                    total += gradient[((start + y) * out_width + x) * channels + c] / element(tall * wide)
            out[i] = total

    return run
