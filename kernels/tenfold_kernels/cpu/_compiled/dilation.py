"""The loops of grey-scale dilation and of its gradients: images [N, H, W, C], filters [kh, kw, C].

An output is the largest of image + filter over its window; its gradient goes to the first place that gives it, or,
where none does, to the window's first pixel within the image and the filter's first element. `sizes` holds strides,
rates and the padding before, rows first. Follows dilation_ops.cc. Used by cpu/nn_dilation.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline

if TYPE_CHECKING:
    from collections.abc import Callable


@inline
def _find(image, filter_, sizes, n, r, s, c, least):  # type: ignore[no-untyped-def]
    # The largest sum of a window and its place in the filter, −1 without one.
    best, place = least, -1
    for i in range(filter_.shape[0]):
        h = r * sizes[0] - sizes[4] + i * sizes[2]
        if h < 0 or h >= image.shape[1]:
            continue
        for j in range(filter_.shape[1]):
            w = s * sizes[1] - sizes[5] + j * sizes[3]
            if w < 0 or w >= image.shape[2]:
                continue
            value = image[n, h, w, c] + filter_[i, j, c]
            if value > best:
                best, place = value, i * filter_.shape[1] + j
    return best, place


def _dilate(image, filter_, sizes, least, out):  # type: ignore[no-untyped-def]
    for n in range(out.shape[0]):
        for r in range(out.shape[1]):
            for s in range(out.shape[2]):
                for c in range(out.shape[3]):
                    out[n, r, s, c], _ = _find(image, filter_, sizes, n, r, s, c, least)


def _to_image(image, filter_, gradient, sizes, least, out):  # type: ignore[no-untyped-def]
    # Adds to `out`, of the image's shape.
    for n in range(gradient.shape[0]):
        for r in range(gradient.shape[1]):
            for s in range(gradient.shape[2]):
                for c in range(gradient.shape[3]):
                    _, place = _find(image, filter_, sizes, n, r, s, c, least)
                    h, w = max(r * sizes[0] - sizes[4], 0), max(s * sizes[1] - sizes[5], 0)
                    if place >= 0:
                        h = r * sizes[0] - sizes[4] + place // filter_.shape[1] * sizes[2]
                        w = s * sizes[1] - sizes[5] + place % filter_.shape[1] * sizes[3]
                    out[n, h, w, c] += gradient[n, r, s, c]


def _to_filter(image, filter_, gradient, sizes, least, out):  # type: ignore[no-untyped-def]
    # Adds to `out`, of the filter's shape.
    for n in range(gradient.shape[0]):
        for r in range(gradient.shape[1]):
            for s in range(gradient.shape[2]):
                for c in range(gradient.shape[3]):
                    _, place = _find(image, filter_, sizes, n, r, s, c, least)
                    place = max(place, 0)
                    out[place // filter_.shape[1], place % filter_.shape[1], c] += gradient[n, r, s, c]


def dilate(element: Any) -> Callable[..., None]:
    """(image, filter, sizes, least element, out)"""
    return compile_loop(_dilate, "r4 r3 i1 s w4", element)


def to_image(element: Any) -> Callable[..., None]:
    """(image, filter, gradient, sizes, least element, gradient of the image, added to)"""
    return compile_loop(_to_image, "r4 r3 r4 i1 s w4", element)


def to_filter(element: Any) -> Callable[..., None]:
    """(image, filter, gradient, sizes, least element, gradient of the filter, added to)"""
    return compile_loop(_to_filter, "r4 r3 r4 i1 s w3", element)
