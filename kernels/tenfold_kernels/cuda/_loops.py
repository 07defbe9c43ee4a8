"""Elementwise loops as text, with broadcasting: one launch for one op or for a chain of them.

    def run(n, d1, a0, a1, o0):                 a0 of the loop's shape, a1 a row of it
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c1 = i % d1
            t0 = a0[i] + a1[c1]
            o0[i] = t0

The expressions are the CPU's (tenfold_kernels/fusion/expressions.py) and EXTRA's. Dimensions that all operands treat
alike are one in the loop, so that most loops have one or two. The text depends on the pattern only, sizes are
arguments: a Kernel serves all shapes of one pattern.
"""

from __future__ import annotations

import functools
import math
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._launch import Kernel, blocks_for, pointer
from tenfold_kernels.fusion import expressions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Operand:
    """How a loop reads one operand: for each of the loop's dimensions, whether the operand has it."""

    dtype: np.dtype[Any]
    has: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One op of the loop. Sources are ("input", number) or ("step", number)."""

    op: str
    attrs: tuple[tuple[str, Any], ...]
    sources: tuple[tuple[str, int], ...]
    dtype: np.dtype[Any]


@dataclass(frozen=True, slots=True)
class Loop:
    operands: tuple[Operand, ...]
    steps: tuple[Step, ...]
    #: The steps whose values are written.
    outputs: tuple[int, ...]


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


def write(loop: Loop) -> str:
    """The text of `run`."""
    rank = max((len(operand.has) for operand in loop.operands), default=0)
    names = ["n", *(f"d{axis}" for axis in range(1, rank))]
    names += [f"a{i}" for i in range(len(loop.operands))] + [f"o{i}" for i in range(len(loop.outputs))]
    lines = [f"def run({', '.join(names)}):", "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):"]
    lines += [f"        {line}" for line in _coordinates(rank, loop.operands)]
    lines += [f"        x{i} = a{i}[{_index(each, rank)}]" for i, each in enumerate(loop.operands)]
    for number, step in enumerate(loop.steps):
        operands = [f"{'x' if kind == 'input' else 't'}{source}" for kind, source in step.sources]
        given = [
            loop.operands[source].dtype if kind == "input" else loop.steps[source].dtype
            for kind, source in step.sources
        ]
        lines.append(f"        t{number} = {expression(step.op, dict(step.attrs), operands, given, step.dtype)}")
    lines += [f"        o{i}[i] = t{number}" for i, number in enumerate(loop.outputs)]
    return "\n".join([*lines, ""])


def _coordinates(rank: int, operands: Sequence[Operand]) -> list[str]:
    """Lines that work out where in each dimension element i is; none where every operand has all or no dimensions."""
    if rank < 2 or all(all(each.has) or not any(each.has) for each in operands):
        return []
    lines = []
    rest = "i"
    for axis in range(rank - 1, 0, -1):
        lines.append(f"c{axis} = {rest} % d{axis}")
        lines.append(f"q{axis} = {rest} // d{axis}")
        rest = f"q{axis}"
    return [*lines, f"c0 = {rest}"]


def _index(operand: Operand, rank: int) -> str:
    if not any(operand.has):
        return "0"
    if all(operand.has):
        return "i"
    text = ""
    for axis in range(rank):
        if operand.has[axis]:
            text = f"({text}) * d{axis} + c{axis}" if text else f"c{axis}"
    return text


#: What expressions.py has no row for: no CPU loop does these better than NumPy.
EXTRA: dict[str, str] = {
    "Tan": "tan({0})",
    "Asin": "asin({0})",
    "Acos": "acos({0})",
    "Atan": "atan({0})",
    "Atan2": "atan2({0}, {1})",
    "Sinh": "sinh({0})",
    "Cosh": "cosh({0})",
    "Asinh": "asinh({0})",
    "Acosh": "acosh({0})",
    "Atanh": "atanh({0})",
    "Erf": "erf({0})",
    "Erfc": "erfc({0})",
    "Lgamma": "lgamma({0})",
    "Relu6": "{zero} if {0} < {zero} else ({six} if {0} > {six} else {0})",
    "Relu6Grad": "{0} if {1} > {zero} and {1} < {six} else {0} * {zero}",
    "SeluGrad": "{0} * ({1} + {scale_alpha}) if {1} < {zero} else {0} * {scale}",
    "SoftplusGrad": "{0} / (exp(-{1}) + {one})",
    "SoftsignGrad": "{0} / (({one} + abs({1})) * ({one} + abs({1})))",
    "Xdivy": "{zero} if {0} == {zero} else {0} / {1}",
    "Xlogy": "{zero} if {0} == {zero} else {0} * log({1})",
    "FloorDiv": "floor({0} / {1})",
    "Conj": "{0}",
}
_CONSTANTS = {"six": 6.0, "scale": 1.0507009873554804934193349852946, "scale_alpha": 1.7580993408473768599402175208123}
_CALL = re.compile(r"\b(?:math|np)\.(exp|expm1|log|log1p|sqrt|tanh|sin|cos|floor|ceil|rint|isfinite|isinf)\(")


def expression(
    op: str,
    attrs: dict[str, Any],
    operands: Sequence[str],
    given: Sequence[np.dtype[Any]],
    dtype: np.dtype[Any],
) -> str:
    """One op as text; functions go by their bare names, which _code/elementwise.py gives a meaning."""
    if op == "Cast":
        is_test = dtype.kind == "b"
        return f"{operands[0]} != {expressions.literal(0, given[0])}" if is_test else expressions.cast(operands[0], dtype)
    extra = EXTRA.get(op)
    if extra is None or given[0].kind != "f":
        return _CALL.sub(r"\1(", expressions.write(op, attrs, operands, given, dtype, single=False))
    constants = {"zero": 0, "one": 1, **_CONSTANTS}
    literals = {name: expressions.literal(value, given[0]) for name, value in constants.items()}
    return expressions.cast(extra.format(*operands, **literals), dtype)


def has_expression(op: str, given: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    """Whether there is text for the op with these types."""
    if op in EXTRA and given[0].kind == "f":
        return all(each in expressions.ELEMENT_TYPES for each in (*given, dtype))
    return expressions.row_of(op, given, dtype) is not None
