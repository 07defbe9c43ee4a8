"""The loops of max and average pooling, and of their gradients. Layout and geometry as in windows.py.

Every loop runs over lines first ≤ line < last of output positions; the innermost loop runs over channels, so that it
is vectorised. Where a window lies is worked out in one place, `_along_line` and `_along_row`, which LLVM inlines. A
place outside the image counts for nothing. Follows pooling_ops_common.h, maxpooling_op.cc and pooling_ops_3d.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import spread_to_largest
from tenfold_kernels.cpu._compiled.windows import _index

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


@inline
def _bounds(at, window, size):  # type: ignore[no-untyped-def]
    # The part of a window at `at` that lies within 0 … size. Pools have no dilation.
    first = 0 if at >= 0 else -at
    last = window if at + window <= size else size - at
    return first, last


@inline
def _along_line(geometry, line):  # type: ignore[no-untyped-def]
    # The first pixel's row of a line's windows (as a depth and a height, all images counted), and the places in range.
    out_d, out_h = geometry[6], geometry[7]
    at_d = (line // out_h) % out_d * geometry[9] - geometry[15]
    at_h = line % out_h * geometry[10] - geometry[16]
    d0, d1 = _bounds(at_d, geometry[3], geometry[0])
    h0, h1 = _bounds(at_h, geometry[4], geometry[1])
    return line // (out_d * out_h) * geometry[0] + at_d, at_h, d0, d1, h0, h1


@inline
def _along_row(geometry, line, o):  # type: ignore[no-untyped-def]
    # The first column of output o's window, the places in range, and where the output's channels begin.
    at_w = o * geometry[11] - geometry[17]
    w0, w1 = _bounds(at_w, geometry[5], geometry[2])
    return at_w, w0, w1, _index((line * geometry[8] + o) * geometry[18])


@inline
def _pixel(geometry, d, h, w):  # type: ignore[no-untyped-def]
    # Where the channels of a pixel begin.
    return _index(((d * geometry[1] + h) * geometry[2] + w) * geometry[18])


@inline
def _max_rows(image, geometry, at_d, at_h, d0, d1, h0, h1, least, row):  # type: ignore[no-untyped-def]
    # The largest of the rows of a line's windows, pixel by pixel; not less than `least`, so that a NaN is passed over.
    width = _index(geometry[2] * geometry[18])
    for i in range(width):
        row[i] = least
    for i_d in range(d0, d1):
        for i_h in range(h0, h1):
            start = _pixel(geometry, at_d + i_d, at_h + i_h, 0)
            for i in range(width):
                x, y = image[start + i], row[i]
                row[i] = x if x > y else y


def _max(image, geometry, first, last, least, row, out):  # type: ignore[no-untyped-def]
    # row [columns · channels] is scratch: first the largest down the columns, then along the row, each pixel read once.
    channels = _index(geometry[18])
    for line in range(first, last):
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        _max_rows(image, geometry, at_d, at_h, d0, d1, h0, h1, least, row)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            if w1 <= w0 or h1 <= h0 or d1 <= d0:
                for c in range(channels):
                    out[to + c] = 0
                continue
            start = _index((at_w + w0) * geometry[18])
            if w1 - w0 == 3:
                second, third = start + channels, start + channels + channels
                for c in range(channels):
                    x, y, z = row[start + c], row[second + c], row[third + c]
                    y = y if y > x else x
                    out[to + c] = z if z > y else y
                continue
            for c in range(channels):
                out[to + c] = row[start + c]
            for _ in range(w0 + 1, w1):
                start += channels
                for c in range(channels):
                    x, y = row[start + c], out[to + c]
                    out[to + c] = x if x > y else y


@inline
def _find(image, geometry, at_d, at_h, at_w, d0, d1, h0, h1, w0, w1, best, place):  # type: ignore[no-untyped-def]
    # Of each channel the first largest element of a window, and where it is; whether there is one. A NaN is larger
    # than nothing, and nothing is larger than a NaN: it is found where it comes first.
    channels = _index(geometry[18])
    fresh = True
    for i_d in range(d0, d1):
        for i_h in range(h0, h1):
            for i_w in range(w0, w1):
                start = _pixel(geometry, at_d + i_d, at_h + i_h, at_w + i_w)
                at = np.int64(start)
                if fresh:
                    for c in range(channels):
                        best[c] = image[start + c]
                        place[c] = at
                    fresh = False
                else:
                    for c in range(channels):
                        x = image[start + c]
                        larger = x > best[c]
                        best[c] = x if larger else best[c]
                        place[c] = at if larger else place[c]
    return not fresh


def _max_place(image, geometry, first, last, best, place, out):  # type: ignore[no-untyped-def]
    # Where the first largest element of every window is, within the batch. best and place [channels] are scratch.
    channels = _index(geometry[18])
    for line in range(first, last):
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            found = _find(image, geometry, at_d, at_h, at_w, d0, d1, h0, h1, w0, w1, best, place)
            for c in range(channels):
                out[to + c] = place[c] + np.int64(c) if found else 0


@inline
def _clear_image(geometry, line, image_gradient):  # type: ignore[no-untyped-def]
    # Zeros for the image that a line begins, just before it is added to: in the cache still.
    if line % (geometry[6] * geometry[7]) == 0:
        size = geometry[0] * geometry[1] * geometry[2] * geometry[18]
        start = _index(line // (geometry[6] * geometry[7]) * size)
        for i in range(_index(size)):
            image_gradient[start + i] = 0


def _max_gradient(image, gradient, geometry, first, last, best, place, image_gradient):  # type: ignore[no-untyped-def]
    # Each output's gradient at the first place of its window that holds the maximum. Lines of whole images. Scratch as
    # in _max_place.
    channels = _index(geometry[18])
    for line in range(first, last):
        _clear_image(geometry, line, image_gradient)
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            if _find(image, geometry, at_d, at_h, at_w, d0, d1, h0, h1, w0, w1, best, place):
                for c in range(channels):
                    image_gradient[_index(place[c]) + c] += gradient[to + c]


def _max_gradient_wide(image, gradient, geometry, first, last, lanes, image_gradient):  # type: ignore[no-untyped-def]
    # The same in two dimensions, for channels that fill vectors.
    channels = geometry[18]
    row = geometry[2] * channels
    for line in range(first, last):
        _clear_image(geometry, line, image_gradient)
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            if d1 > d0 and h1 > h0 and w1 > w0:
                start = np.int64(_pixel(geometry, at_d + d0, at_h + h0, at_w + w0))
                for c in range(0, channels, lanes):
                    spread_to_largest(
                        image, start + c, row, channels, h1 - h0, w1 - w0, gradient, np.int64(to) + c, image_gradient
                    )


def _equal_place(image, out, given, geometry, first, last, found):  # type: ignore[no-untyped-def]
    # What is given at the first place of each output's window that equals the output; nothing where none does.
    channels = _index(geometry[18])
    for line in range(first, last):
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            for c in range(channels):
                found[to + c] = 0
            # from the last place to the first, which wins
            for i_d in range(d1 - 1, d0 - 1, -1):
                for i_h in range(h1 - 1, h0 - 1, -1):
                    for i_w in range(w1 - 1, w0 - 1, -1):
                        start = _pixel(geometry, at_d + i_d, at_h + i_h, at_w + i_w)
                        for c in range(channels):
                            is_it = image[start + c] == out[to + c]
                            found[to + c] = given[start + c] if is_it else found[to + c]


def _max_gradient_3d(image, out, gradient, geometry, first, last, image_gradient):  # type: ignore[no-untyped-def]
    # Adds each output's gradient to every place of its window that is near its maximum, as pooling_ops_3d.cc has it.
    channels = _index(geometry[18])
    for line in range(first, last):
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            for i_d in range(d0, d1):
                for i_h in range(h0, h1):
                    for i_w in range(w0, w1):
                        start = _pixel(geometry, at_d + i_d, at_h + i_h, at_w + i_w)
                        for c in range(channels):
                            below = out[to + c] - image[start + c]
                            near = below < 1e-5 and below > -1e-5
                            image_gradient[start + c] += gradient[to + c] if near else 0


def _average(image, geometry, first, last, out):  # type: ignore[no-untyped-def]
    channels = _index(geometry[18])
    for line in range(first, last):
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            for c in range(channels):
                out[to + c] = 0
            for i_d in range(d0, d1):
                for i_h in range(h0, h1):
                    for i_w in range(w0, w1):
                        start = _pixel(geometry, at_d + i_d, at_h + i_h, at_w + i_w)
                        for c in range(channels):
                            out[to + c] += image[start + c]
            count = max(d1 - d0, 0) * max(h1 - h0, 0) * max(w1 - w0, 0)
            if count > 1:
                for c in range(channels):
                    out[to + c] = out[to + c] / count


def _average_gradient(gradient, geometry, first, last, image):  # type: ignore[no-untyped-def]
    channels = _index(geometry[18])
    for line in range(first, last):
        at_d, at_h, d0, d1, h0, h1 = _along_line(geometry, line)
        for o in range(geometry[8]):
            at_w, w0, w1, to = _along_row(geometry, line, o)
            count = max(d1 - d0, 0) * max(h1 - h0, 0) * max(w1 - w0, 0)
            for i_d in range(d0, d1):
                for i_h in range(h0, h1):
                    for i_w in range(w0, w1):
                        start = _pixel(geometry, at_d + i_d, at_h + i_h, at_w + i_w)
                        for c in range(channels):
                            image[start + c] += gradient[to + c] / count


def _across_in_numpy(geometry: list[int], i_w: int) -> tuple[slice, slice]:
    # The outputs of a row whose windows have column i_w within the image, and those pixels; both may be empty.
    across, stride = i_w - geometry[17], geometry[11]
    low, high = max(0, -(across // stride)), min(geometry[8], (geometry[2] - 1 - across) // stride + 1)
    if low >= high:
        return slice(0), slice(0)
    return slice(low, high), slice(low * stride + across, (high - 1) * stride + across + 1, stride)


def _max_in_numpy(image: Array, geometry: Array, first: int, last: int, least: Any, row: Array, out: Array) -> None:
    g = geometry.tolist()
    images, outs = image.reshape(-1, *g[:3], g[18]), out.reshape(-1, g[8], g[18])
    columns = [_across_in_numpy(g, i_w) for i_w in range(g[5])]
    for line in range(first, last):
        at_d, at_h = line // g[7] % g[6] * g[9] - g[15], line % g[7] * g[10] - g[16]
        depths, rows = slice(max(at_d, 0), max(at_d + g[3], 0)), slice(max(at_h, 0), max(at_h + g[4], 0))
        seen = images[line // (g[6] * g[7]), depths, rows]
        down = np.fmax.reduce(seen, axis=(0, 1), initial=least)
        reached = np.zeros(g[8], bool)
        outs[line] = least
        for some, pixels in columns:
            np.fmax(outs[line, some], down[pixels], out=outs[line, some])
            reached[some] = seen.size > 0
        outs[line, ~reached] = 0


def _max_gradient_in_numpy(image: Array, gradient: Array, geometry: Array, first: int, last: int, *others: Any) -> None:
    g = geometry.tolist()
    per_image = g[6] * g[7]
    some = slice(first // per_image, last // per_image)
    images, sums = (each.reshape(-1, *g[:3], g[18])[some] for each in (image, others[-1]))
    given = gradient.reshape(-1, *g[6:9], g[18])[some]
    sums[...] = 0
    for o_d, o_h in np.ndindex(g[6], g[7]):
        # Of each output of these rows: the largest yet, whether there is one, and the number of its place.
        shape = given[:, o_d, o_h].shape
        best, place, seen = np.zeros(shape, image.dtype), np.full(shape, -1), np.zeros((1, shape[1], 1), bool)
        places = [
            each for each in np.ndindex(*g[3:6]) if 0 <= o_d * g[9] - g[15] + each[0] < g[0]
            and 0 <= o_h * g[10] - g[16] + each[1] < g[1]
        ]  # fmt: skip
        views: list[tuple[slice, Any]] = []
        for i_d, i_h, i_w in places:
            outs, columns = _across_in_numpy(g, i_w)
            at = slice(None), o_d * g[9] - g[15] + i_d, o_h * g[10] - g[16] + i_h, columns
            larger = (images[at] > best[:, outs]) | ~seen[:, outs]
            best[:, outs] = np.where(larger, images[at], best[:, outs])
            place[:, outs][larger] = len(views)
            seen[:, outs] = True
            views.append((outs, at))
        for number, (outs, at) in enumerate(views):
            sums[at] += np.where(place[:, outs] == number, given[:, o_d, o_h, outs], image.dtype.type(0))


def largest(element: Any) -> Callable[..., None]:
    """(image, geometry, first line, last line, least element, scratch of an image's row, out), vectors"""
    return compile_loop(_max, "r1 i1 n n s w1 w1", element, stand_in=_max_in_numpy, heavy=True)


def largest_place(element: Any) -> Callable[..., None]:
    """(image, geometry, first line, last line, scratch [C], int64 scratch [C], place int64), vectors"""
    return compile_loop(_max_place, "r1 i1 n n w1 x1 x1", element)


def at_equal(element: Any) -> Callable[..., None]:
    """(image, out, given for each element of image, geometry, first line, last line, found), vectors"""
    return compile_loop(_equal_place, "r1 r1 r1 i1 n n w1", element)


def largest_gradient(element: Any) -> Callable[..., None]:
    """(image, gradient, geometry, first line, last line, scratch [C], int64 scratch [C], image_gradient)"""
    return compile_loop(_max_gradient, "r1 r1 i1 n n w1 x1 w1", element, stand_in=_max_gradient_in_numpy, heavy=True)


def largest_gradient_wide(element: Any) -> Callable[..., None]:
    """(image, gradient, geometry, first line, last line, lanes, image_gradient), for floats"""
    return compile_loop(_max_gradient_wide, "r1 r1 i1 n n n w1", element, stand_in=_max_gradient_in_numpy, heavy=True)


def largest_gradient_3d(element: Any) -> Callable[..., None]:
    """(image, out, gradient, geometry, first line, last line, image_gradient, added to), vectors"""
    return compile_loop(_max_gradient_3d, "r1 r1 r1 i1 n n w1", element)


def average(element: Any) -> Callable[..., None]:
    """(image, geometry, first line, last line, out), vectors"""
    return compile_loop(_average, "r1 i1 n n w1", element)


def average_gradient(element: Any) -> Callable[..., None]:
    """(gradient, geometry, first line, last line, image_gradient, added to), vectors"""
    return compile_loop(_average_gradient, "r1 i1 n n w1", element)
