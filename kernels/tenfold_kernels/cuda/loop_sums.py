"""Elementwise loops that end in sums, over all elements ("all") or over all but the last dimension ("rows").

    def run(n, width, a0, o0, o1):                      o0 the sums of columns, o1 the sum of all
        s2 = 0
        for p in range(cuda.grid(1), width, cuda.gridsize(1)):
            r1 = 0
            for i in range(p, n, width):
                t0 = a0[i] * a0[i]
                r1 = r1 + t0
                s2 = s2 + t0
            o0[p] = r1
        …                                               the s2 of a block's threads meet in a tree, in o1[block]

`width` is a number of whole rows, so that all elements of one p are of one column, and neighbours are read together.
Where a column has several p, and where there are several blocks, a launch of reduction_text.py's adds up what they
leave. All of that depends on shapes and on the GPU only, so a result is the same each time.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

from tenfold_kernels.cuda import _loops, _reduce
from tenfold_kernels.cuda._launch import Kernel, blocks_for, pointer
from tenfold_kernels.cuda.loop_text import Loop, Operand, element, operand, parameters
from tenfold_kernels.cuda.reduction_text import Pass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np

    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.fusion.runs import FusedOp

#: The rows of reduction_text.py that ops are made of.
_ROWS = {"BiasAddGrad": "Sum"}


def run_loop(
    loop_of: Callable[[tuple[Operand, ...]], Loop], inputs: Sequence[DeviceArray], shape: tuple[int, ...]
) -> list[DeviceArray]:
    """Launches the loop over `shape`, which has elements, and what its sums want besides; an array an output."""
    runtime = inputs[0].runtime
    dims, has = _loops.collapse([each.shape for each in inputs], shape)
    loop = loop_of(tuple(Operand(each.dtype, flags) for each, flags in zip(inputs, has, strict=True)))
    outputs = [loop.steps[number] for number in loop.outputs]
    count, columns = math.prod(shape), shape[-1]
    threads = runtime.reduce_threads
    if any(step.reduce == "rows" for step in outputs):
        width = columns * _reduce.chunks_of(runtime, columns, count // columns, False)
        blocks = blocks_for(width, threads, runtime.most_threads)
    else:
        blocks = _reduce.chunks_of(runtime, 1, count, True)
        width = blocks * threads
    shapes = {"": shape, "all": (blocks,), "rows": (width,)}
    results = [runtime.empty(shapes[step.reduce], _written(step)) for step in outputs]
    kernel, shared = compiled(loop)
    runtime.launch(kernel, blocks, threads, (count, *dims[1:], width, *inputs, *results), threads * shared)
    for i, step in enumerate(outputs):
        if step.reduce:
            parts, inner = (blocks, 1) if step.reduce == "all" else (width // columns, columns)
            last = _pass(step)
            if parts > 1 or last.partial != last.result:
                results[i] = _reduce.one_run(last, results[i], (), (1, parts, inner), count)
            results[i] = results[i].reshape(() if step.reduce == "all" else (columns,))
    return results


def _pass(step: FusedOp) -> Pass:
    return Pass(_ROWS.get(step.op, step.op), step.dtype, False, True)


def _written(step: FusedOp) -> np.dtype[np.generic]:
    return _pass(step).partial if step.reduce else step.dtype


@functools.lru_cache(4096)
def compiled(loop: Loop) -> tuple[Kernel, int]:
    """(the loop's kernel, bytes of shared memory that it wants a thread); the same object for the same loop."""
    # Numba, whose import takes half a second
    from tenfold_kernels.cuda._code import elementwise

    sizes = sum(not name.startswith(("a", "o")) for name in parameters(loop)) + 1
    outputs = [loop.steps[number] for number in loop.outputs]
    arrays = [*(each.dtype for each in loop.operands), *map(_written, outputs)]
    shared = max((_written(step).itemsize for step in outputs if step.reduce == "all"), default=0)
    return Kernel(elementwise.function(write(loop)), (*("int64",) * sizes, *map(pointer, arrays))), shared


def write(loop: Loop) -> str:
    """The text of `run`."""
    names = parameters(loop)
    names.insert(next(i for i, name in enumerate(names) if name.startswith("a")), "width")
    sums = [(i, number, loop.steps[number]) for i, number in enumerate(loop.outputs) if loop.steps[number].reduce]
    of_all, of_rows = ([each for each in sums if each[2].reduce == kind] for kind in ("all", "rows"))
    lines = [f"def run({', '.join(names)}):"]
    lines += [f"    s{number} = {_pass(step).neutral()}" for _, number, step in of_all]
    lines.append("    for p in range(cuda.grid(1), width, cuda.gridsize(1)):")
    lines += [f"        r{number} = {_pass(step).neutral()}" for _, number, step in of_rows]
    lines.append("        for i in range(p, n, width):")
    lines += [f"            {line}" for line in element(loop)]
    for _, number, step in sums:
        total, made = f"{'s' if step.reduce == 'all' else 'r'}{number}", _pass(step)
        lines.append(f"            {total} = {made.combine(total, made.loaded(operand(loop, *step.sources[0])))}")
    lines += [f"        o{i}[p] = r{number}" for i, number, _ in of_rows]
    if of_all:
        lines.append("    t = cuda.threadIdx.x")
    for i, number, step in of_all:
        lines += [f"    {line}" for line in _tree(_pass(step), f"s{number}", f"o{i}", f"part{number}")]
    return "\n".join([*lines, ""])


def _tree(made: Pass, total: str, out: str, part: str) -> list[str]:
    """Adds up a block's totals; who is alone has the result."""
    is_whole = made.partial == made.result
    return [
        f"{part} = cuda.shared.array(0, types.{made.partial.name})",
        f"{part}[t] = {total}",
        "cuda.syncthreads()",
        "half = cuda.blockDim.x // 2",
        "while half > 0:",
        "    if t < half:",
        f"        {part}[t] = {made.combine(f'{part}[t]', f'{part}[t + half]')}",
        "    cuda.syncthreads()",
        "    half = half // 2",
        "if t == 0:",
        f"    {total} = {part}[0]",
        *([f"    if cuda.gridDim.x == 1: {total} = {made.finish(total, f'np.{made.partial.name}(n)')}"] * is_whole),
        f"    {out}[cuda.blockIdx.x] = {total}",
        "cuda.syncthreads()",
    ]
