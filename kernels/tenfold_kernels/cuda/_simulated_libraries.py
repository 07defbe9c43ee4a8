"""What libraries compute on a GPU, by NumPy on the memory of a simulated one.

Products and convolutions, as the protocol Libraries of _runtime.py has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda._precision import allows_tf32
from tenfold_kernels.cuda._simulated_memory import host_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._runtime import Convolution


class SimulatedLibraries:
    """NumPy in place of cuBLAS and cuDNN."""

    def __init__(self) -> None:
        self._tf32 = allows_tf32()

    def _wide(self, array: DeviceArray) -> Any:
        """Its elements, of what sums are computed in, rounded as they are there."""
        view = host_view(array)
        if array.dtype.itemsize == 2:
            return view.astype(np.float32)
        return _rounded_to_tf32(view) if self._tf32 and array.dtype.name in ("float32", "complex64") else view

    def matmul(
        self,
        a: DeviceArray,
        b: DeviceArray,
        out: DeviceArray,
        transpose_a: bool = False,
        transpose_b: bool = False,
        accumulate: bool = False,
        conjugate: bool = False,
    ) -> None:
        x, y = (
            _turned(self._wide(each), conjugate) if transpose else self._wide(each)
            for each, transpose in ((a, transpose_a), (b, transpose_b))
        )
        target = host_view(out)
        with np.errstate(all="ignore"):
            product = x @ y
            target[...] = target.astype(product.dtype) + product if accumulate else product

    def conv2d(self, x: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        image, weights, total = _padded(_image(x, how), how), _filters(filters, how), _image(out, how)
        total[...] = 0
        for tap, window, channels, kernels in _taps(image, weights, total, how):
            total[..., kernels] += window[..., channels] @ weights[tap][:, kernels]
        _image_view(out, how)[...] = total

    def conv2d_input_gradient(
        self, gradient: DeviceArray, filters: DeviceArray, out: DeviceArray, how: Convolution
    ) -> None:
        padded = _padded(_image(out, how), how)
        padded[...] = 0
        given, weights = _image(gradient, how), _filters(filters, how)
        for tap, window, channels, kernels in _taps(padded, weights, given, how):
            window[..., channels] += given[..., kernels] @ weights[tap][:, kernels].T
        down, across = how.pads
        target = _image_view(out, how)
        target[...] = padded[:, down : down + target.shape[1], across : across + target.shape[2]]

    def conv2d_filter_gradient(self, x: DeviceArray, gradient: DeviceArray, out: DeviceArray, how: Convolution) -> None:
        image, given, total = _padded(_image(x, how), how), _image(gradient, how), _filters(out, how)
        for tap, window, channels, kernels in _taps(image, total, given, how):
            rows = window[..., channels].reshape(-1, total.shape[2])
            total[tap][:, kernels] = rows.T @ given[..., kernels].reshape(rows.shape[0], -1)
        _filters_view(out, how)[...] = total


def _rounded_to_tf32(x: Any) -> Any:
    """float32, or both parts of complex64, to 10 bits behind the leading one, halves to even."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    kept = (bits + (np.uint32(0xFFF) + (bits >> 13 & 1))) & np.uint32(0xFFFFE000)
    return kept.view(x.dtype).reshape(x.shape)


def _turned(x: Any, conjugate: bool) -> Any:
    turned = x.swapaxes(-1, -2)
    return turned.conj() if conjugate else turned


def _image_view(array: DeviceArray, how: Convolution) -> Any:
    """An image, channels last whatever the layout."""
    view = host_view(array)
    return view if how.channels_last else view.transpose(0, 2, 3, 1)


def _image(array: DeviceArray, how: Convolution) -> Any:
    """The same as a copy, of what sums are computed in."""
    return _image_view(array, how).astype(np.float32 if array.dtype.itemsize == 2 else array.dtype)


def _filters_view(array: DeviceArray, how: Convolution) -> Any:
    """Filters as [R, S, C / groups, O]."""
    return host_view(array).transpose((1, 2, 3, 0) if how.channels_last else (2, 3, 1, 0))


def _filters(array: DeviceArray, how: Convolution) -> Any:
    return _filters_view(array, how).astype(np.float32 if array.dtype.itemsize == 2 else array.dtype)


def _padded(image: Any, how: Convolution) -> Any:
    down, across = how.pads
    return np.pad(image, ((0, 0), (down, down), (across, across), (0, 0)))


def _taps(image: Any, filters: Any, out: Any, how: Convolution) -> Iterator[tuple[Any, Any, slice, slice]]:
    """For each element of a filter and each group: its place, the elements of the image that it meets, the channels of
    the image and the kernels of that group.
    """
    rows, columns, depth, count = filters.shape
    _, height, width, _ = out.shape
    for r in range(rows):
        for s in range(columns):
            top, left = r * how.dilations[0], s * how.dilations[1]
            bottom, right = top + (height - 1) * how.strides[0] + 1, left + (width - 1) * how.strides[1] + 1
            window = image[:, top : bottom : how.strides[0], left : right : how.strides[1]]
            for group in range(how.groups):
                channels = slice(group * depth, (group + 1) * depth)
                kernels = slice(group * (count // how.groups), (group + 1) * (count // how.groups))
                yield (r, s), window, channels, kernels
