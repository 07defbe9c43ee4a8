"""Compiled gradients of a convolution for a gradient of its output that is zero nearly everywhere.

Each element that is not zero is multiplied with one window. Images, lines and `geometry` are windows.py's; `outputs`
are the output channels, and filters lie [output channel, window place × input channel], so that what one element needs
lies side by side. Used by cpu/_sparse_gradients.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.windows import _index, _places_in_numpy

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


#: Elements that are passed over at once where all of them are zero.
_LOOK = 16


@inline
def _are_zero(gradient, at, left):  # type: ignore[no-untyped-def]
    # Whether the next elements are zero; False where fewer are left.
    found = 0
    if left >= _LOOK:
        for j in range(_index(_LOOK)):
            found += gradient[at + j] != 0
    return left >= _LOOK and found == 0


def _of_filter(image, gradient, geometry, first, last, outputs, out):  # type: ignore[no-untyped-def]
    # Adds to out [outputs · K] the windows of lines first ≤ line < last, times what each was given.
    in_d, in_h, in_w = geometry[0], geometry[1], geometry[2]
    k_d, k_h, k_w = geometry[3], geometry[4], geometry[5]
    out_d, out_h, out_w = geometry[6], geometry[7], geometry[8]
    channels, apart_w = geometry[18], geometry[14]
    run = k_w * channels
    depth = k_d * k_h * run
    for line in range(first, last):
        image_at = line // (out_d * out_h)
        at_d = (line // out_h) % out_d * geometry[9] - geometry[15]
        at_h = line % out_h * geometry[10] - geometry[16]
        for o in range(out_w):
            w = o * geometry[11] - geometry[17]
            whole = apart_w == 1 and w >= 0 and w + k_w <= in_w
            source = _index((line * out_w + o) * outputs)
            output = -1
            while output + 1 < outputs:
                output += 1
                if output % _LOOK == 0 and _are_zero(gradient, source + _index(output), outputs - output):
                    output += _LOOK - 1
                    continue
                value = gradient[source + _index(output)]
                if value == 0:
                    continue
                for i_d in range(k_d):
                    d = at_d + i_d * geometry[12]
                    if d < 0 or d >= in_d:
                        continue
                    for i_h in range(k_h):
                        h = at_h + i_h * geometry[13]
                        if h < 0 or h >= in_h:
                            continue
                        base = ((image_at * in_d + d) * in_h + h) * in_w + w
                        column = output * depth + (i_d * k_h + i_h) * run
                        if whole:
                            to, start = _index(column), _index(base * channels)
                            for j in range(_index(run)):
                                out[to + j] += value * image[start + j]
                            continue
                        for i_w in range(k_w):
                            x = w + i_w * apart_w
                            if x < 0 or x >= in_w:
                                continue
                            to, start = _index(column + i_w * channels), _index((base + i_w * apart_w) * channels)
                            for j in range(_index(channels)):
                                out[to + j] += value * image[start + j]


def _of_input(gradient, filters, geometry, first, last, outputs, image):  # type: ignore[no-untyped-def]
    # Adds to the windows of lines first ≤ line < last the filters, times what each was given.
    in_d, in_h, in_w = geometry[0], geometry[1], geometry[2]
    k_d, k_h, k_w = geometry[3], geometry[4], geometry[5]
    out_d, out_h, out_w = geometry[6], geometry[7], geometry[8]
    channels, apart_w = geometry[18], geometry[14]
    run = k_w * channels
    depth = k_d * k_h * run
    for line in range(first, last):
        image_at = line // (out_d * out_h)
        at_d = (line // out_h) % out_d * geometry[9] - geometry[15]
        at_h = line % out_h * geometry[10] - geometry[16]
        for o in range(out_w):
            w = o * geometry[11] - geometry[17]
            whole = apart_w == 1 and w >= 0 and w + k_w <= in_w
            source = _index((line * out_w + o) * outputs)
            output = -1
            while output + 1 < outputs:
                output += 1
                if output % _LOOK == 0 and _are_zero(gradient, source + _index(output), outputs - output):
                    output += _LOOK - 1
                    continue
                value = gradient[source + _index(output)]
                if value == 0:
                    continue
                for i_d in range(k_d):
                    d = at_d + i_d * geometry[12]
                    if d < 0 or d >= in_d:
                        continue
                    for i_h in range(k_h):
                        h = at_h + i_h * geometry[13]
                        if h < 0 or h >= in_h:
                            continue
                        base = ((image_at * in_d + d) * in_h + h) * in_w + w
                        column = output * depth + (i_d * k_h + i_h) * run
                        if whole:
                            start, to = _index(column), _index(base * channels)
                            for j in range(_index(run)):
                                image[to + j] += value * filters[start + j]
                            continue
                        for i_w in range(k_w):
                            x = w + i_w * apart_w
                            if x < 0 or x >= in_w:
                                continue
                            start, to = _index(column + i_w * channels), _index((base + i_w * apart_w) * channels)
                            for j in range(_index(channels)):
                                image[to + j] += value * filters[start + j]


def _windows_in_numpy(geometry: Array, first: int, last: int) -> tuple[Array, Array]:
    # Of each window, a row: where its elements are in the image, and which of them are within.
    rows = (last - first) * int(geometry[8])
    places, inside = _places_in_numpy(geometry, first, last)
    return places.reshape(rows, -1), inside.reshape(rows, -1)


def _of_filter_in_numpy(
    image: Array, gradient: Array, geometry: Array, first: int, last: int, outputs: int, out: Array
) -> None:
    places, inside = _windows_in_numpy(geometry, first, last)
    start = first * int(geometry[8]) * outputs
    given = gradient[start : start + len(places) * outputs].reshape(-1, outputs)
    windows = np.where(inside, image[np.where(inside, places, 0)], 0)
    out += (given.T @ windows).reshape(-1)


def _of_input_in_numpy(
    gradient: Array, filters: Array, geometry: Array, first: int, last: int, outputs: int, image: Array
) -> None:
    places, inside = _windows_in_numpy(geometry, first, last)
    start = first * int(geometry[8]) * outputs
    given = gradient[start : start + len(places) * outputs].reshape(-1, outputs)
    np.add.at(image, places[inside], (given @ filters.reshape(outputs, -1))[inside])


def of_filter(element: Any) -> Callable[..., None]:
    """(image, gradient, geometry, first line, last line, outputs, out, added to), vectors"""
    return compile_loop(_of_filter, "r1 r1 i1 n n n w1", element, stand_in=_of_filter_in_numpy, heavy=True)


def of_input(element: Any) -> Callable[..., None]:
    """(gradient, filters, geometry, first line, last line, outputs, image, added to), vectors"""
    return compile_loop(_of_input, "r1 r1 i1 n n n w1", element, stand_in=_of_input_in_numpy, heavy=True)
