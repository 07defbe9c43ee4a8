"""Depthwise convolutions in register tiles: each channel is summed over its own windows, several columns at a time.

Images are N images × H rows × W columns × C channels, filters window rows × window columns × C. A tile (tiles.py)
holds the sums of a few columns and two vectors of channels; a window that hangs over an edge is cut to what lies
inside. Plans are laid out by cpu/_depthwise.py, which also says how a gradient of the input is such a sum.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import MOST_ROWS, window_tile

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.arrays import Array

#: Of rows and of columns: how many outputs; where the first window begins, and the next one; from a place of a window
#: to the next, how many there are, and the size of what they lie in; the place of the filter for the first of them, and
#: for the next; the first output, and the next one; the size of the output.
AXIS = ("count", "at", "per", "step", "places", "size", "weight", "weight_step", "to", "to_step", "to_size")
#: What a plan holds besides the two axes, after them.
REST = ("channels", "lanes", "weight_columns")
_COLUMNS, _REST = len(AXIS), 2 * len(AXIS)
#: Elements of the image whose rows are summed before the next row of the window has its turn: they stay in the cache.
_BLOCK = 1 << 15


@inline
def _first_inside(at, step, places, size):  # type: ignore[no-untyped-def]
    # Of the places at, at + step, …: the first one that is ≥ 0 and < size.
    i = 0
    while i < places and (at + i * step < 0 or at + i * step >= size):
        i += 1
    return i


@inline
def _end_inside(first, at, step, places, size):  # type: ignore[no-untyped-def]
    i = places
    while i > first and (at + (i - 1) * step < 0 or at + (i - 1) * step >= size):
        i -= 1
    return i


@inline
def _is_whole(at, step, places, size):  # type: ignore[no-untyped-def]
    last = at + (places - 1) * step
    return places > 0 and at >= 0 and at < size and last >= 0 and last < size


def _sums(source, weights, plan, first, last, out):  # type: ignore[no-untyped-def]
    # Lines first ≤ line < last of images × rows of outputs.
    rows, at_h, per_h, step_h, places_h, size_h = plan[0], plan[1], plan[2], plan[3], plan[4], plan[5]
    weight_h, weight_step_h, to_h, to_step_h, to_size_h = plan[6], plan[7], plan[8], plan[9], plan[10]
    columns, at_w, per_w, step_w, places_w, size_w = plan[11], plan[12], plan[13], plan[14], plan[15], plan[16]
    weight_w, weight_step_w, to_w, to_step_w, to_size_w = plan[17], plan[18], plan[19], plan[20], plan[21]
    channels, lanes, weight_columns = plan[22], plan[23], plan[24]
    # The columns whose windows do not hang over an edge.
    begin = 0
    while begin < columns and not _is_whole(at_w + begin * per_w, step_w, places_w, size_w):
        begin += 1
    end = columns
    while end > begin and not _is_whole(at_w + (end - 1) * per_w, step_w, places_w, size_w):
        end -= 1
    for line in range(first, last):
        image, q_h = line // rows, line % rows
        h = at_h + q_h * per_h
        h_0 = _first_inside(h, step_h, places_h, size_h)
        h_1 = _end_inside(h_0, h, step_h, places_h, size_h)
        source_line = (image * size_h + h + h_0 * step_h) * size_w
        weight_line = (weight_h + h_0 * weight_step_h) * weight_columns
        to_line = (image * to_size_h + to_h + q_h * to_step_h) * to_size_w + to_w
        q = 0
        while q < columns:
            w = at_w + q * per_w
            w_0, w_1, count = 0, places_w, 1
            if begin <= q and q < end:
                # so that the last tile is not much smaller than the others
                count = (end - q + (end - q + MOST_ROWS - 1) // MOST_ROWS - 1) // (
                    (end - q + MOST_ROWS - 1) // MOST_ROWS
                )
            else:
                w_0 = _first_inside(w, step_w, places_w, size_w)
                w_1 = _end_inside(w_0, w, step_w, places_w, size_w)
            a_at = (source_line + w + w_0 * step_w) * channels
            b_at = (weight_line + weight_w + w_0 * weight_step_w) * channels
            c_at = (to_line + q * to_step_w) * channels
            c = 0
            while c < channels:
                width = 2 * lanes if channels - c >= 2 * lanes else min(lanes, channels - c)
                # fmt: off
                window_tile(
                    count, width, source, a_at + c, per_w * channels, step_h * size_w * channels, step_w * channels,
                    weights, b_at + c, weight_step_h * weight_columns * channels, weight_step_w * channels,
                    h_1 - h_0, w_1 - w_0, out, c_at + c, to_step_w * channels, False,
                )
                # fmt: on
                c += width
            q += count


def _of_filter(image, gradient, plan, first, last, out):  # type: ignore[no-untyped-def]
    # Adds the sums over images first ≤ n < last: the tile's columns are places of the window, and what is summed over
    # are the outputs, here a plan's counts.
    rows, at_h, per_h, step_h, places_h, size_h = plan[0], plan[1], plan[2], plan[3], plan[4], plan[5]
    columns, at_w, per_w, step_w, places_w, size_w = plan[11], plan[12], plan[13], plan[14], plan[15], plan[16]
    channels, lanes = plan[22], plan[23]
    block = max(1, _BLOCK // max(1, size_w * channels * per_h))
    for n in range(first, last):
        for top in range(0, rows, block):
            for i in range(places_h):
                # the rows of the block of which this row of the window is inside
                h = at_h + top * per_h + i * step_h
                count = min(block, rows - top)
                q_0 = _first_inside(h, per_h, count, size_h)
                q_1 = _end_inside(q_0, h, per_h, count, size_h)
                if q_0 == q_1:
                    continue
                source_line = (n * size_h + h + q_0 * per_h) * size_w
                given_line = (n * rows + top + q_0) * columns
                for j in range(0, places_w, MOST_ROWS):
                    places = min(MOST_ROWS, places_w - j)
                    begin = 0
                    while begin < columns and not _is_whole(at_w + begin * per_w + j * step_w, step_w, places, size_w):
                        begin += 1
                    q = 0
                    while q < columns:
                        w = at_w + q * per_w + j * step_w
                        w_0, w_1, count = 0, places, 1
                        if q == begin:
                            while q + count < columns and _is_whole(w + count * per_w, step_w, places, size_w):
                                count += 1
                        else:
                            w_0 = _first_inside(w, step_w, places, size_w)
                            w_1 = _end_inside(w_0, w, step_w, places, size_w)
                        c = 0
                        while c < channels and w_0 < w_1:
                            width = 2 * lanes if channels - c >= 2 * lanes else min(lanes, channels - c)
                            # fmt: off
                            window_tile(
                                w_1 - w_0, width, image, (source_line + w + w_0 * step_w) * channels + c,
                                step_w * channels, per_h * size_w * channels, per_w * channels,
                                gradient, (given_line + q) * channels + c, columns * channels, channels,
                                q_1 - q_0, count, out, (i * places_w + j + w_0) * channels + c, channels, True,
                            )
                            # fmt: on
                            c += width
                        q += count


def _inside(first: int, last: int, at: int, per: int, size: int) -> tuple[slice, slice]:
    # Of first ≤ q < last: those for which at + q·per is inside, from `first` on, and where they are.
    begin, end = max(first, -(at // per)), min(last, (size - 1 - at) // per + 1)
    if begin >= end:
        return slice(0, 0), slice(0, 0)
    return slice(begin - first, end - first), slice(at + begin * per, at + (end - 1) * per + 1, per)


def _axes(plan: Array) -> tuple[dict[str, int], dict[str, int], dict[str, int]]:
    values = plan.tolist()
    names: Sequence[Sequence[str]] = (AXIS, AXIS, REST)
    starts = (0, _COLUMNS, _REST)
    h, w, rest = (
        dict(zip(each, values[start : start + len(each)], strict=True))
        for each, start in zip(names, starts, strict=True)
    )
    return h, w, rest


def _sums_in_numpy(source: Array, weights: Array, plan: Array, first: int, last: int, out: Array) -> None:
    h, w, rest = _axes(plan)
    images = source.reshape(-1, h["size"], w["size"], rest["channels"])
    row = rest["weight_columns"] * rest["channels"]
    filters = weights.reshape(weights.size // max(row, 1), rest["weight_columns"], rest["channels"])
    outs = out.reshape(-1, h["to_size"], w["to_size"], rest["channels"])
    for n in range(first // h["count"], -(-last // h["count"])):
        begin, end = max(first - n * h["count"], 0), min(last - n * h["count"], h["count"])
        to = outs[n, h["to"] :: h["to_step"], w["to"] :: w["to_step"]][begin:end]
        to[...] = 0
        for i, j in np.ndindex(h["places"], w["places"]):
            rows, from_rows = _inside(begin, end, h["at"] + i * h["step"], h["per"], h["size"])
            columns, from_columns = _inside(0, w["count"], w["at"] + j * w["step"], w["per"], w["size"])
            weight = filters[h["weight"] + i * h["weight_step"], w["weight"] + j * w["weight_step"]]
            to[rows, columns] += images[n, from_rows, from_columns] * weight


def _of_filter_in_numpy(image: Array, gradient: Array, plan: Array, first: int, last: int, out: Array) -> None:
    h, w, rest = _axes(plan)
    images = image.reshape(-1, h["size"], w["size"], rest["channels"])[first:last]
    given = gradient.reshape(-1, h["count"], w["count"], rest["channels"])[first:last]
    outs = out.reshape(h["places"], w["places"], rest["channels"])
    for i, j in np.ndindex(h["places"], w["places"]):
        rows, from_rows = _inside(0, h["count"], h["at"] + i * h["step"], h["per"], h["size"])
        columns, from_columns = _inside(0, w["count"], w["at"] + j * w["step"], w["per"], w["size"])
        outs[i, j] += np.einsum("nhwc,nhwc->c", images[:, from_rows, from_columns], given[:, rows, columns])


def sums(element: Any) -> Callable[..., None]:
    """(source, weights, plan, first line, last line, out), vectors: each sum of a window"""
    return compile_loop(_sums, "r1 r1 i1 n n w1", element, stand_in=_sums_in_numpy, heavy=True)


def of_filter(element: Any) -> Callable[..., None]:
    """(image, gradient, plan, first image, last image, out, added to), vectors"""
    return compile_loop(_of_filter, "r1 r1 i1 n n w1", element, stand_in=_of_filter_in_numpy, heavy=True)
