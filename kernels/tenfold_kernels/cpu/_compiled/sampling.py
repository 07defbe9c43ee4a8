"""Loops that sample images: sums of weighted pixels along an axis and their gradients, bilinear sampling, and crops.

An axis of P outputs and S inputs, A elements before it and B after it, K weights an output; images [N, H, W, C], crops
[M, h, w, C]. Places in an image are computed in float, as TensorFlow does. Follows image_resizer_state.h and
crop_and_resize_op.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import once, once_2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _gather(x_ASB, places_PK, weights_PK, out_APB):  # type: ignore[no-untyped-def]
    for a in range(x_ASB.shape[0]):
        for p in range(places_PK.shape[0]):
            for b in range(x_ASB.shape[2]):
                out_APB[a, p, b] = 0
            for k in range(places_PK.shape[1]):
                place, weight = places_PK[p, k], weights_PK[p, k]
                if weight != 0:
                    for b in range(x_ASB.shape[2]):
                        out_APB[a, p, b] += weight * x_ASB[a, place, b]


def _spread(given_APB, places_PK, weights_PK, out_ASB):  # type: ignore[no-untyped-def]
    for a in range(given_APB.shape[0]):
        for s in range(out_ASB.shape[1]):
            for b in range(out_ASB.shape[2]):
                out_ASB[a, s, b] = 0
        for p in range(places_PK.shape[0]):
            for k in range(places_PK.shape[1]):
                place, weight = places_PK[p, k], weights_PK[p, k]
                for b in range(given_APB.shape[2]):
                    out_ASB[a, place, b] += weight * given_APB[a, p, b]


def _bilinear(  # type: ignore[no-untyped-def]
    image_NHWC, top_h, bottom_h, dy_h, left_w, right_w, dx_w, first, last, out_NhwC
):
    # Rows first ≤ row < last of the output, all images counted.
    height, width, channels = top_h.size, left_w.size, image_NHWC.shape[3]
    for row in range(first, last):
        n, y = row // height, row % height
        top, bottom, dy = top_h[y], bottom_h[y], dy_h[y]
        for x in range(width):
            left, right, dx = left_w[x], right_w[x], dx_w[x]
            for c in range(channels):
                a, b = image_NHWC[n, top, left, c], image_NHWC[n, top, right, c]
                d, e = image_NHWC[n, bottom, left, c], image_NHWC[n, bottom, right, c]
                upper, lower = a + (b - a) * dx, d + (e - d) * dx
                out_NhwC[n, y, x, c] = upper + (lower - upper) * dy


@inline
def _place(first, last, size, count, i):  # type: ignore[no-untyped-def]
    # Where sample i of `count` between two ends of a box (in 0 … 1) lies in pixels.
    reach = np.float32(size - 1)
    if count > 1:
        step = (last - first) * reach / np.float32(count - 1)
        return first * reach + np.float32(i) * step
    return np.float32(0.5) * (first + last) * reach


def _crop(image_NHWC, boxes_M4, index_M, nearest, outside, first, last, out_MhwC):  # type: ignore[no-untyped-def]
    # Boxes first ≤ box < last.
    height, width, channels = image_NHWC.shape[1], image_NHWC.shape[2], image_NHWC.shape[3]
    for m in range(first, last):
        n = once(index_M, m)
        if n < 0 or n >= image_NHWC.shape[0]:
            return m
        from_y, from_x = once_2(boxes_M4, m, 0), once_2(boxes_M4, m, 1)
        to_y, to_x = once_2(boxes_M4, m, 2), once_2(boxes_M4, m, 3)
        for y in range(out_MhwC.shape[1]):
            at_y = _place(from_y, to_y, height, out_MhwC.shape[1], y)
            for x in range(out_MhwC.shape[2]):
                at_x = _place(from_x, to_x, width, out_MhwC.shape[2], x)
                if not (at_y >= 0 and at_y <= height - 1 and at_x >= 0 and at_x <= width - 1):
                    for c in range(channels):
                        out_MhwC[m, y, x, c] = outside
                elif nearest:
                    near_y, near_x = math.floor(at_y + 0.5), math.floor(at_x + 0.5)
                    for c in range(channels):
                        out_MhwC[m, y, x, c] = image_NHWC[n, near_y, near_x, c]
                else:
                    top, left = math.floor(at_y), math.floor(at_x)
                    bottom, right = math.ceil(at_y), math.ceil(at_x)
                    dy, dx = at_y - np.float32(top), at_x - np.float32(left)
                    for c in range(channels):
                        a, b = image_NHWC[n, top, left, c], image_NHWC[n, top, right, c]
                        d, e = image_NHWC[n, bottom, left, c], image_NHWC[n, bottom, right, c]
                        upper, lower = a + (b - a) * dx, d + (e - d) * dx
                        out_MhwC[m, y, x, c] = upper + (lower - upper) * dy
    return -1


def _crop_gradient(given_MhwC, boxes_M4, index_M, nearest, image_NHWC):  # type: ignore[no-untyped-def]
    # Adds to the image, which is zero before.
    height, width, channels = image_NHWC.shape[1], image_NHWC.shape[2], image_NHWC.shape[3]
    for m in range(given_MhwC.shape[0]):
        n = once(index_M, m)
        if n < 0 or n >= image_NHWC.shape[0]:
            return m
        from_y, from_x = once_2(boxes_M4, m, 0), once_2(boxes_M4, m, 1)
        to_y, to_x = once_2(boxes_M4, m, 2), once_2(boxes_M4, m, 3)
        for y in range(given_MhwC.shape[1]):
            at_y = _place(from_y, to_y, height, given_MhwC.shape[1], y)
            for x in range(given_MhwC.shape[2]):
                at_x = _place(from_x, to_x, width, given_MhwC.shape[2], x)
                if not (at_y >= 0 and at_y <= height - 1 and at_x >= 0 and at_x <= width - 1):
                    continue
                if nearest:
                    near_y, near_x = math.floor(at_y + 0.5), math.floor(at_x + 0.5)
                    for c in range(channels):
                        image_NHWC[n, near_y, near_x, c] += given_MhwC[m, y, x, c]
                    continue
                top, left = math.floor(at_y), math.floor(at_x)
                bottom, right = math.ceil(at_y), math.ceil(at_x)
                dy, dx = at_y - np.float32(top), at_x - np.float32(left)
                for c in range(channels):
                    upper, lower = (1 - dy) * given_MhwC[m, y, x, c], dy * given_MhwC[m, y, x, c]
                    image_NHWC[n, top, left, c] += (1 - dx) * upper
                    image_NHWC[n, top, right, c] += dx * upper
                    image_NHWC[n, bottom, left, c] += (1 - dx) * lower
                    image_NHWC[n, bottom, right, c] += dx * lower
    return -1


def _bilinear_in_numpy(
    image_NHWC: Array,
    top_h: Array,
    bottom_h: Array,
    dy_h: Array,
    left_w: Array,
    right_w: Array,
    dx_w: Array,
    first: int,
    last: int,
    out_NhwC: Array,
) -> None:
    n, y = np.divmod(np.arange(first, last), top_h.size)

    def across(rows_h: Array) -> Array:
        rows = image_NHWC[n, rows_h[y]]
        made: Array = rows[:, left_w] + (rows[:, right_w] - rows[:, left_w]) * dx_w[:, None]
        return made

    upper, lower = across(top_h), across(bottom_h)
    out_NhwC[n, y] = upper + (lower - upper) * dy_h[y][:, None, None]


def gather() -> Callable[..., None]:
    """(x_ASB, places_PK int64, weights_PK, out_APB): float32 sums of K weighted inputs an output."""
    return compile_loop(_gather, "r3 i2 r2 w3", np.float32)


def spread() -> Callable[..., None]:
    """(given_APB, places_PK int64, weights_PK, out_ASB): the gradient of `gather`."""
    return compile_loop(_spread, "r3 i2 r2 w3", np.float32)


def bilinear() -> Callable[..., None]:
    """(image_NHWC, top_h, bottom_h, dy_h, left_w, right_w, dx_w, first row, last row, out_NhwC), float32 and int64."""
    return compile_loop(_bilinear, "r4 i1 i1 r1 i1 i1 r1 n n w4", np.float32, stand_in=_bilinear_in_numpy)


def crop() -> Callable[..., int]:
    """(image_NHWC, boxes_M4, index_M int32, whether nearest, what is outside, first, last box, out_MhwC), float32 → the
    first box of no image, or −1.
    """
    return compile_loop(_crop, "r4 r2 i1 b s n n w4", np.float32, np.int32, result="n")


def crop_gradient() -> Callable[..., int]:
    """(given_MhwC, boxes_M4, index_M int32, whether nearest, image_NHWC of zeros), float32"""
    return compile_loop(_crop_gradient, "r4 r2 i1 b w4", np.float32, np.int32, result="n")
