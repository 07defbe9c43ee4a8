"""Copies between strided places of two arrays: what every op that only moves elements is made of.

    target[b, j, i] = source[b, i, j]        dims (B, J, I), source's strides (I·J, 1, J), target's (I·J, I, 1)

Places are in bytes, so that one kernel serves all types of one size. Dimensions that both sides walk through alike
become one; a run of bytes that is contiguous on both is copied by the widest unit that divides all strides. What is one
run is left to the driver's copy, a swap of two dimensions goes through shared memory, the rest is a loop over units.
The text of a loop depends on its rank only, and there is one for every rank.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._launch import Kernel, launch_over, pointer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.arrays import Array

#: Bytes that a thread copies at once → the type that it copies.
UNITS: dict[int, np.dtype[Any]] = {size: np.dtype(f"uint{8 * size}") for size in (8, 4, 2, 1)}


@dataclass(frozen=True, slots=True)
class Place:
    """Where the elements of a part of an array are: in bytes, from the array's first element."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    begin: int = 0

    def is_contiguous(self, itemsize: int) -> bool:
        """Whether they follow each other in C order."""
        step = itemsize
        for size, stride in zip(reversed(self.shape), reversed(self.strides), strict=True):
            if size != 1 and stride != step:
                return 0 in self.shape
            step *= size
        return True


@dataclass(frozen=True, slots=True)
class Move:
    """A copy as it is launched, all in units: the last dimension is the target's innermost."""

    unit: int
    dims: tuple[int, ...]
    source_strides: tuple[int, ...]
    target_strides: tuple[int, ...]
    source_begin: int
    target_begin: int


def whole(array: DeviceArray | Array) -> Place:
    """The place of all elements of a contiguous array."""
    return whole_of(array.shape, array.dtype.itemsize)


def whole_of(shape: tuple[int, ...], itemsize: int) -> Place:
    """The place of all elements of a contiguous array of that shape."""
    strides, step = [], itemsize
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return Place(shape, tuple(reversed(strides)))


def take(source: DeviceArray, place: Place) -> DeviceArray:
    """The elements of `source` at `place`: a view where they are contiguous there, else a copy."""
    if place.is_contiguous(source.dtype.itemsize):
        offset = source.offset + place.begin if 0 not in place.shape else source.offset
        return DeviceArray(source.runtime, source.buffer, place.shape, source.dtype, offset)
    out = source.runtime.empty(place.shape, source.dtype)
    move(source, place, out, whole(out))
    return out


def put(source: DeviceArray, target: DeviceArray, place: Place) -> None:
    """Writes all elements of `source` to `place` of `target`; nothing else changes."""
    move(source, whole(source), target, place)


def move(source: DeviceArray, at: Place, target: DeviceArray, to: Place) -> None:
    """Copies the elements of `source` at `at` to those of `target` at `to`, both of one shape.

    In one array the two places must have no element in common. A stride of 0 in `at` repeats.
    """
    itemsize = source.dtype.itemsize
    assert (at.shape, itemsize) == (to.shape, target.dtype.itemsize), (at, to)
    if 0 in at.shape:
        return
    found = _planned(at, to, itemsize, source.offset % 8, target.offset % 8)
    runtime = source.runtime
    given, out = in_units(source, found.unit), in_units(target, found.unit)
    rank = len(found.dims)
    if rank == 1 and found.source_strides == found.target_strides == (1,):
        length, begin, end = found.dims[0], found.source_begin, found.target_begin
        runtime.copy(given.rows(begin, begin + length), out.rows(end, end + length))
        return
    bounds = (found.source_begin, found.target_begin, *found.dims, *found.source_strides, *found.target_strides)
    if _is_swap(found, _side(runtime.reduce_threads)):
        side = _side(runtime.reduce_threads)
        tiles = -(-found.dims[-2] // side), -(-found.dims[-1] // side)
        count = math.prod(found.dims[:-2]) * math.prod(tiles)
        blocks = min(count, max(1, runtime.most_threads // runtime.reduce_threads))
        kernel = _swap(UNITS[found.unit], rank, runtime.reduce_threads)
        runtime.launch(kernel, blocks, runtime.reduce_threads, (count, *tiles, *bounds, given, out))
        return
    launch_over(_loop(UNITS[found.unit], rank), math.prod(found.dims), bounds, (given, out))


def fill(target: DeviceArray, value: DeviceArray) -> None:
    """Sets all elements to a scalar of the same type."""
    place = Place(target.shape, (0,) * target.ndim)
    move(value, place, target, whole(target))


def in_units(array: DeviceArray, unit: int) -> DeviceArray:
    """The array's bytes as one row of units; what is left at its end is of no unit."""
    return DeviceArray(array.runtime, array.buffer, (array.nbytes // unit,), UNITS[unit], array.offset)


@functools.lru_cache(4096)
def _planned(at: Place, to: Place, itemsize: int, source_offset: int, target_offset: int) -> Move:
    dims, sources, targets = [1], [1], [1]
    # the bytes of an element are a dimension like the others
    every = zip((*at.shape, itemsize), (*at.strides, 1), (*to.strides, 1), strict=True)
    for size, source, target in every:
        if size == 1:
            continue
        if dims[-1] == 1:
            dims[-1], sources[-1], targets[-1] = size, source, target
        elif sources[-1] == source * size and targets[-1] == target * size:
            dims[-1], sources[-1], targets[-1] = dims[-1] * size, source, target
        else:
            dims.append(size)
            sources.append(source)
            targets.append(target)
    run = dims[-1] if sources[-1] == targets[-1] == 1 else 1
    unit = math.gcd(8, run, *sources[:-1], *targets[:-1])
    unit = math.gcd(unit, at.begin + source_offset, to.begin + target_offset, source_offset, target_offset)
    if run == 1:
        unit = 1
    elif run == unit and len(dims) > 1:
        del dims[-1], sources[-1], targets[-1]
    else:
        dims[-1], sources[-1], targets[-1] = run // unit, unit, unit
    if targets[-1] == unit and unit in sources[:-2]:
        # what the source is contiguous along comes next to last
        at_last = sources.index(unit)
        for each in (dims, sources, targets):
            each.insert(len(each) - 2, each.pop(at_last))
    units = [tuple(stride // unit for stride in strides) for strides in (sources, targets)]
    return Move(unit, tuple(dims), units[0], units[1], at.begin // unit, to.begin // unit)


def _side(threads: int) -> int:
    """Rows and columns of a tile for blocks of so many threads: a warp reads a row."""
    return 32 if threads >= 32 else threads


def _is_swap(found: Move, side: int) -> bool:
    """Whether the source is contiguous along the last dimension but one, the target along the last, both not small."""
    return (
        len(found.dims) > 1
        and found.source_strides[-2] == 1
        and found.target_strides[-1] == 1
        and found.source_strides[-1] != 1
        and min(found.dims[-2:]) >= max(2, side // 4)
    )


@functools.cache
def _loop(unit: np.dtype[Any], rank: int) -> Kernel:
    """(n, bounds, source, target): a thread copies unit after unit."""
    lines = [
        f"def run(n, {_bounds(rank)}, a, o):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        *(f"        {line}" for line in _coordinates("i", rank)),
        f"        o[{_index('ob', 't', rank)}] = a[{_index('ab', 's', rank)}]",
    ]
    return _kernel(lines, 3 + 3 * rank, unit)


@functools.cache
def _swap(unit: np.dtype[Any], rank: int, threads: int) -> Kernel:
    """(tiles, those of the last dimensions, bounds, source, target): a block moves tile after tile by shared memory.

    Both reads and writes are of neighbours by neighbouring threads; a row of the tile has a place more than it needs,
    so that a column is spread over all banks.
    """
    side = _side(threads)
    rows, row = threads // side, side + 1
    last, before = rank - 1, rank - 2
    lines = [
        f"def run(n, m0, m1, {_bounds(rank)}, a, o):",
        f"    tile = cuda.shared.array({side * row}, np.{unit.name})",
        f"    x, y = cuda.threadIdx.x % {side}, cuda.threadIdx.x // {side}",
        "    for i in range(cuda.blockIdx.x, n, cuda.gridDim.x):",
        "        right = i % m1",
        "        rest = i // m1",
        "        down = rest % m0",
        "        rest = rest // m0",
        *(f"        {line}" for line in _coordinates("rest", before)),
        f"        c{before} = down * {side} + x",
        f"        for k in range(y, {side}, {rows}):",
        f"            c{last} = right * {side} + k",
        f"            if c{before} < d{before} and c{last} < d{last}:",
        f"                tile[k * {row} + x] = a[{_index('ab', 's', rank)}]",
        "        cuda.syncthreads()",
        f"        c{last} = right * {side} + x",
        f"        for k in range(y, {side}, {rows}):",
        f"            c{before} = down * {side} + k",
        f"            if c{before} < d{before} and c{last} < d{last}:",
        f"                o[{_index('ob', 't', rank)}] = tile[x * {row} + k]",
        "        cuda.syncthreads()",
    ]
    return _kernel(lines, 5 + 3 * rank, unit)


def _bounds(rank: int) -> str:
    return ", ".join(["ab", "ob", *(f"{letter}{axis}" for letter in "dst" for axis in range(rank))])


def _coordinates(number: str, rank: int) -> list[str]:
    """Lines that give c0, c1, … of an element's number."""
    lines = []
    for axis in range(rank - 1, 0, -1):
        lines += [f"c{axis} = {number} % d{axis}", f"q{axis} = {number} // d{axis}"]
        number = f"q{axis}"
    return [*lines, f"c0 = {number}"] if rank else []


def _index(begin: str, letter: str, rank: int) -> str:
    return " + ".join([begin, *(f"c{axis} * {letter}{axis}" for axis in range(rank))])


def _kernel(lines: Sequence[str], numbers: int, unit: np.dtype[Any]) -> Kernel:
    return Kernel(function_of(lines), (*("int64",) * numbers, pointer(unit), pointer(unit)))


def function_of(lines: Sequence[str]) -> Any:
    """The function `run` of those lines of text."""
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import elementwise

    return elementwise.function("\n".join([*lines, ""]))


def add(source: DeviceArray, at: Place, target: DeviceArray, to: Place) -> None:
    """Adds the elements of `source` at `at` to those of `target` at `to`, both of one shape and number type.

    In one array the two places must have no element in common; each element of the target occurs once.
    """
    itemsize = source.dtype.itemsize
    strides = [stride // itemsize for stride in (*at.strides, *to.strides)]
    bounds = (at.begin // itemsize, to.begin // itemsize, *at.shape, *strides)
    launch_over(_sum(source.dtype, len(at.shape)), math.prod(at.shape), bounds, (source, target))


@functools.cache
def _sum(dtype: np.dtype[Any], rank: int) -> Kernel:
    # the text of an addition, which imports more than moves need
    from tenfold_kernels.cuda.loop_text import expression
    from tenfold_kernels.cuda.narrow_text import narrowed, wide, widened

    both, number = [widened(each, dtype) for each in ("o[j]", f"a[{_index('ab', 's', rank)}]")], wide(dtype)
    total = narrowed(expression("Add", {}, both, [number, number], number), dtype)
    lines = [
        f"def run(n, {_bounds(rank)}, a, o):",
        "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):",
        *(f"        {line}" for line in _coordinates("i", rank)),
        f"        j = {_index('ob', 't', rank)}",
        f"        o[j] = {total}",
    ]
    return _kernel(lines, 3 + 3 * rank, dtype)
