"""Elementwise loops launched: shapes broadcast, dimensions made few, the kernel of loop_text.py's text.

Dimensions that all operands treat alike are one in the loop, so that most loops have one or two.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.cuda._launch import Kernel, blocks_for, pointer
from tenfold_kernels.cuda.loop_text import Loop, Operand, write

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray

Shape = tuple[int, ...]


def broadcast_shape(shapes: Sequence[Shape]) -> Shape:
    """The shape that all of them are broadcast to. Raises InvalidArgumentError in TensorFlow's words."""
    rank = max(map(len, shapes))
    full = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    out = []
    for sizes in zip(*full, strict=True):
        wanted = {size for size in sizes if size != 1}
        if len(wanted) > 1:
            raise invalid("Incompatible shapes: " + " vs. ".join(map(shape_text, shapes)))
        out.append(wanted.pop() if wanted else 1)
    return tuple(out)


def collapse(shapes: Sequence[Shape], out: Shape) -> tuple[list[int], list[tuple[bool, ...]]]:
    """(the loop's dimensions, for each operand which of them it has): neighbours that all treat alike become one."""
    full = [(1,) * (len(out) - len(shape)) + tuple(shape) for shape in shapes]
    dims: list[int] = []
    patterns: list[tuple[bool, ...]] = []
    for axis, size in enumerate(out):
        if size == 1:
            continue
        pattern = tuple(shape[axis] == size for shape in full)
        if patterns and patterns[-1] == pattern:
            dims[-1] *= size
        else:
            dims.append(size)
            patterns.append(pattern)
    return dims, [tuple(pattern[i] for pattern in patterns) for i in range(len(shapes))]


def run_loop(
    loop_of: Callable[[tuple[Operand, ...]], Loop],
    inputs: Sequence[DeviceArray],
    into: Sequence[DeviceArray] | None = None,
) -> Sequence[DeviceArray]:
    """Launches the loop over the shape that `inputs` are broadcast to; an array for each of its outputs: `into` where
    they are given, of that shape, which may be among the inputs that have it too.
    """
    shapes = [each.shape for each in inputs]
    out = shapes[0] if all(shape == shapes[0] for shape in shapes[1:]) else broadcast_shape(shapes)
    dims, has = collapse(shapes, out)
    loop = loop_of(tuple(Operand(each.dtype, flags) for each, flags in zip(inputs, has, strict=True)))
    runtime = inputs[0].runtime
    results = into or [runtime.empty(out, loop.steps[number].dtype) for number in loop.outputs]
    count = math.prod(out)
    if count:
        kernel = compiled(loop)
        threads = runtime.block_threads
        blocks = blocks_for(count, threads, runtime.most_threads)
        runtime.launch(kernel, blocks, threads, (count, *dims[1:], *inputs, *results))
    return results


@functools.lru_cache(4096)
def compiled(loop: Loop) -> Kernel:
    """The loop's kernel; the same object for the same loop, so that it is compiled once."""
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import elementwise

    dims = max((len(operand.has) for operand in loop.operands), default=0)
    sizes = ("int64",) * max(1, dims)
    pointers = [pointer(operand.dtype) for operand in loop.operands]
    pointers += [pointer(loop.steps[number].dtype) for number in loop.outputs]
    return Kernel(elementwise.function(write(loop)), (*sizes, *pointers))
