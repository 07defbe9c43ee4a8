"""Launches of the kernels of _code/arrays.py, which pick elements by numbers in the GPU's memory.

A number that is out of range is no error, as on TensorFlow's GPUs: what is picked by it is 0. To say so would mean to
wait for the GPU.
"""

from __future__ import annotations

import functools
import importlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray

#: Bytes of an element → a type of that size, where an element is looked at as one thing.
_WHOLE: dict[int, np.dtype[Any]] = {**_moves.UNITS, 16: np.dtype(np.complex128)}


@functools.cache
def _kernel(name: str, numbers: int, *arrays: np.dtype[Any]) -> Kernel:
    module, _, body = name.partition(".")
    # imports Numba, which takes half a second
    bodies = importlib.import_module(f"tenfold_kernels.cuda._code.{module}")
    return Kernel(getattr(bodies, body), (*("int64",) * numbers, *map(pointer, arrays)))


def launch(name: str, count: int, numbers: Sequence[int], arrays: Sequence[DeviceArray]) -> None:
    """Launches a body of _code/, such as "sorting.count", over `count` elements: with that, the numbers, the arrays."""
    launch_over(_kernel(name, 1 + len(numbers), *[each.dtype for each in arrays]), count, numbers, arrays)


def as_whole(array: DeviceArray) -> DeviceArray:
    """The elements as things of their size."""
    return array.view(_WHOLE[array.dtype.itemsize])


def gather(params: DeviceArray, indices: DeviceArray, axis: int, batch: int = 0) -> DeviceArray:
    """params[b…, m…, indices[b…, i…], w…], shape [b…, m…, i…, w…]; `batch` leading dimensions are b."""
    lead, middle, row = params.shape[:batch], params.shape[batch:axis], params.shape[axis + 1 :]
    out = params.runtime.empty((*lead, *middle, *indices.shape[batch:], *row), params.dtype)
    if not out.size:
        return out
    row_bytes = math.prod(row) * params.dtype.itemsize
    unit = math.gcd(8, row_bytes, params.offset)
    width, limit = row_bytes // unit, params.shape[axis]
    given, target = _moves.in_units(params, unit), _moves.in_units(out, unit)
    if math.prod(params.shape[:axis]) == 1:
        launch("arrays.gather_rows", target.size, (width, limit), (indices, given, target))
    else:
        count = math.prod(indices.shape[batch:])
        launch("arrays.gather_inner", target.size, (width, count, limit, math.prod(middle)), (indices, given, target))
    return out


def row_numbers(indices: DeviceArray, dims: Sequence[int]) -> DeviceArray:
    """Index tuples [N…, len(dims)] as numbers of rows, int64 [N…]; -1 for a tuple that is out of range."""
    out = indices.runtime.empty(indices.shape[:-1], np.dtype(np.int64))
    launch_over(_row_numbers(len(dims), indices.dtype), out.size, dims, (indices, out))
    return out


@functools.cache
def _row_numbers(depth: int, index: np.dtype[Any]) -> Kernel:
    sizes = "".join(f"d{axis}, " for axis in range(depth))
    row = "0"
    for axis in range(depth):
        row = f"({row}) * d{axis} + c{axis}" if axis else "c0"
    inside = " and ".join(["True", *(f"0 <= c{axis} < d{axis}" for axis in range(depth))])
    lines = [
        f"def run(n, {sizes}a, o):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        *(f"        c{axis} = np.int64(a[i * {depth} + {axis}])" for axis in range(depth)),
        f"        if {inside}:",
        f"            o[i] = {row}",
        "        else:",
        "            o[i] = -1",
    ]
    return Kernel(_moves.function_of(lines), (*("int64",) * (1 + depth), pointer(index), pointer(np.dtype(np.int64))))
