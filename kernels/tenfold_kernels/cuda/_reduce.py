"""Launches reductions over any axes: reduction_text.py has the rows and says what a launch does.

Axes are taken in runs of neighbours, the last run first, so that nothing is transposed: each run is a launch, and two
where results are so few that one block or thread each would leave most of the GPU idle. How many depends on shapes and
on the GPU only, so a result is the same each time.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace
from typing import TYPE_CHECKING

from tenfold_kernels.cuda._launch import Kernel, blocks_for, pointer, type_name
from tenfold_kernels.cuda.narrow_text import wide
from tenfold_kernels.cuda.reduction_text import Pass, write_by_block, write_by_thread

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._runtime import Runtime

#: Elements that a thread of many is worth launching for, when results are few.
_LEAST = {False: 32, True: 8}
#: Blocks that a GPU has room for, at least.
_LEAST_BLOCKS = 8


def runs(shape: Sequence[int], axes: Collection[int]) -> list[tuple[int, int, int]]:
    """(outer, reduced, inner) for each run of neighbouring axes, the last first, as the array is when the runs before
    are gone. At least one, which may reduce a dimension of size 1.
    """
    sizes: list[tuple[bool, int]] = []
    for axis, size in enumerate(shape):
        if size == 1:
            continue
        if sizes and sizes[-1][0] == (axis in axes):
            sizes[-1] = sizes[-1][0], sizes[-1][1] * size
        else:
            sizes.append((axis in axes, size))
    found = []
    inner = 1
    for place in range(len(sizes) - 1, -1, -1):
        is_reduced, size = sizes[place]
        if is_reduced:
            found.append((math.prod(each for _, each in sizes[:place]), size, inner))
        else:
            inner *= size
    return found or [(inner, 1, 1)]


def reduced_shape(shape: Sequence[int], axes: Collection[int], keep: bool) -> tuple[int, ...]:
    """What is left of the shape."""
    return tuple(1 if axis in axes else size for axis, size in enumerate(shape) if keep or axis not in axes)


def reduce(
    op: str,
    x: DeviceArray,
    axes: Collection[int],
    keep: bool = False,
    more: Sequence[DeviceArray] = (),
    as_wide: bool = False,
) -> DeviceArray:
    """`op`, a row of reduction_text.py, of x over the axes, counted from the front. `more` are the arrays besides x
    that the row reads: y of x's shape and type, m a vector of the channels that are left, of what x is computed with;
    that the result is too, of half float32, if `as_wide`.
    """
    passes = runs(x.shape, axes)
    as_wide = as_wide and wide(x.dtype) != x.dtype
    count = math.prod(x.shape[axis] for axis in axes)
    value = x
    for number, sizes in enumerate(passes):
        is_first, is_last = number == 0, number == len(passes) - 1
        value = one_run(Pass(op, x.dtype, is_first, is_last, as_wide), value, more if is_first else (), sizes, count)
    return value.reshape(reduced_shape(x.shape, axes, keep))


def one_run(
    made: Pass, value: DeviceArray, more: Sequence[DeviceArray], sizes: tuple[int, int, int], count: int
) -> DeviceArray:
    """The results, in a vector, of a pass over [outer, reduced, inner] elements; `count` is the divisor of a mean."""
    outer, reduced, inner = sizes
    by_block = inner == 1 and reduced > value.runtime.reduce_threads // 4
    chunks = chunks_of(value.runtime, outer * inner, reduced, by_block)
    if chunks > 1:
        half = replace(made, last=False)
        value = _launch(half, by_block, value, more, sizes, chunks, count)
        return one_run(replace(made, first=False), value, (), (outer, chunks, inner), count)
    return _launch(made, by_block, value, more, sizes, 1, count)


def chunks_of(runtime: Runtime, results: int, reduced: int, by_block: bool) -> int:
    """How many parts the reduced dimension is cut into: 1 where the results alone keep the GPU busy."""
    least = _LEAST[by_block] * (runtime.reduce_threads if by_block else 1)
    wanted = max(_LEAST_BLOCKS, runtime.most_threads // (runtime.reduce_threads if by_block else 1))
    if not results or results * 2 > wanted or reduced < 2 * least:
        return 1
    return min(-(-wanted // results), reduced // least)


def _launch(
    made: Pass,
    by_block: bool,
    value: DeviceArray,
    more: Sequence[DeviceArray],
    sizes: tuple[int, int, int],
    chunks: int,
    count: int,
) -> DeviceArray:
    outer, reduced, inner = sizes
    runtime = value.runtime
    results = outer * chunks * inner
    out = runtime.empty((results,), made.result)
    if not results:
        return out
    channels = more[-1].size if "m" in made.operands else 1
    # Of whole numbers, whose neutral element is 0, the mean of nothing is 0.
    total = count if made.count.kind == "f" else max(count, 1)
    arguments = (results, inner, reduced, chunks, -(-reduced // chunks), channels, total, value, *more, out)
    kernel = compiled(made, by_block)
    if by_block:
        threads = runtime.reduce_threads
        blocks = block_count(runtime, results)
        runtime.launch(kernel, blocks, threads, arguments, threads * made.partial.itemsize)
    else:
        threads = runtime.block_threads
        runtime.launch(kernel, blocks_for(results, threads, runtime.most_threads), threads, arguments)
    return out


def block_count(runtime: Runtime, rows: int) -> int:
    """How many blocks a kernel is launched with that takes a block a row."""
    return max(1, min(rows, max(_LEAST_BLOCKS, runtime.most_threads // runtime.reduce_threads)))


def row_threads(runtime: Runtime, length: int) -> int:
    """How many threads, a power of two, a row of that length is worth."""
    threads = runtime.reduce_threads
    while threads > 32 and threads // 2 >= length:
        threads //= 2
    return threads


@functools.lru_cache(1024)
def compiled(made: Pass, by_block: bool) -> Kernel:
    """The kernel of a launch; the same object for the same one, so that it is compiled once."""
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import elementwise

    text = write_by_block(made) if by_block else write_by_thread(made)
    of_operands = {"x": made.given, "y": made.dtype, "m": wide(made.dtype)}
    arrays = [pointer(of_operands[name]) for name in made.operands]
    types = ("int64",) * 6 + (type_name(made.count), *arrays, pointer(made.result))
    return Kernel(elementwise.function(text), types)
