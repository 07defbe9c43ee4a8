"""Images and filters in the layouts that libraries take, by own kernels: transposed, with more borders or fewer.

Elements are only moved, so that types of one size share a kernel. Used by nn_conv.py and nn_depthwise.py.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray

#: What elements are moved as, by their size in bytes.
_BITS: dict[int, np.dtype[Any]] = {
    1: np.dtype(np.uint8),
    2: np.dtype(np.uint16),
    4: np.dtype(np.uint32),
    8: np.dtype(np.uint64),
}
_BITS[16] = np.dtype(np.complex128)
#: Side of a tile of shared memory: a warp's threads, fewer where a block has few.
_EDGE, _SMALL_EDGE = 32, 4

Borders = tuple[tuple[int, int], tuple[int, int]]


def transposed(x: DeviceArray, rows: int, columns: int) -> DeviceArray:
    """[…, rows, columns] → [batches, columns, rows]; a view where nothing moves."""
    batches = x.size // max(1, rows * columns)
    shape = (batches, columns, rows)
    if rows == 1 or columns == 1 or not x.size:
        return x.reshape(shape)
    runtime, bits = x.runtime, _BITS[x.dtype.itemsize]
    out = runtime.empty(shape, x.dtype)
    edge = _EDGE if runtime.reduce_threads >= _EDGE else _SMALL_EDGE
    tiles = batches * -(-rows // edge) * -(-columns // edge)
    kernel = _transposer(runtime.reduce_threads, edge, bits)
    blocks = max(1, min(tiles, runtime.most_threads // runtime.reduce_threads))
    given = (batches, rows, columns, x.view(bits), out.view(bits))
    runtime.launch(kernel, blocks, runtime.reduce_threads, given)
    return out


@functools.lru_cache
def _transposer(threads: int, edge: int, bits: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import transpose

    return Kernel(transpose.transposer(threads, edge, bits.type), ("int64",) * 3 + (pointer(bits),) * 2)


def channels_first(x: DeviceArray) -> DeviceArray:
    """[N, H, W, C] → [N, C, H, W]"""
    images, height, width, channels = x.shape
    return transposed(x, height * width, channels).reshape((images, channels, height, width))


def channels_last(x: DeviceArray) -> DeviceArray:
    """[N, C, H, W] → [N, H, W, C]"""
    images, channels, height, width = x.shape
    return transposed(x, channels, height * width).reshape((images, height, width, channels))


def filters_for_library(filters: DeviceArray, last: bool) -> DeviceArray:
    """[R, S, C, O] → [O, R, S, C] where channels are last, else [O, C, R, S]."""
    rows, columns, channels, outputs = filters.shape
    by_output = transposed(filters, rows * columns * channels, outputs)
    if last:
        return by_output.reshape((outputs, rows, columns, channels))
    return transposed(by_output, rows * columns, channels).reshape((outputs, channels, rows, columns))


def filters_of_library(filters: DeviceArray, last: bool) -> DeviceArray:
    """The reverse of filters_for_library."""
    if last:
        outputs, rows, columns, channels = filters.shape
    else:
        outputs, channels, rows, columns = filters.shape
        filters = transposed(filters, channels, rows * columns)
    return transposed(filters, outputs, rows * columns * channels).reshape((rows, columns, channels, outputs))


def with_borders(x: DeviceArray, borders: Borders, last: bool) -> DeviceArray:
    """Images with so many more rows and columns before and after, which hold zeros; fewer for a negative number."""
    if borders == ((0, 0), (0, 0)):
        return x
    first, second = (1, 2) if last else (2, 3)
    shape = list(x.shape)
    shape[first] += sum(borders[0])
    shape[second] += sum(borders[1])
    runtime, bits = x.runtime, _BITS[x.dtype.itemsize]
    out = runtime.empty(tuple(shape), x.dtype)
    depth = x.shape[3] if last else 1
    numbers = (shape[first], shape[second], depth, x.shape[first], x.shape[second], borders[0][0], borders[1][0], 0)
    launch_over(_bordered(bits), out.size, numbers, (x.view(bits), out.view(bits)))
    return out


@functools.lru_cache
def _bordered(bits: np.dtype[Any]) -> Kernel:
    from tenfold_kernels.cuda._code import images

    return Kernel(images.bordered, (*("int64",) * 8, bits.name, pointer(bits), pointer(bits)))
