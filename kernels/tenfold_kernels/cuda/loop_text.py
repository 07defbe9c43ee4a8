"""Elementwise loops as text, with broadcasting: one launch for one op or for a chain of them.

    def run(n, d1, a0, a1, o0):                 a0 of the loop's shape, a1 a row of it
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            c1 = i % d1
            t0 = a0[i] + a1[c1]
            o0[i] = t0

The expressions are the CPU's (tenfold_kernels/fusion/expressions.py) and EXTRA's. The text depends on the pattern of
broadcasting only, sizes are arguments: a Kernel serves all shapes of one pattern. _loops.py launches it; loop_sums.py
has the loops that end in sums.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold_kernels.fusion import expressions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np


@dataclass(frozen=True, slots=True)
class Operand:
    """How a loop reads one operand: for each of the loop's dimensions, whether the operand has it."""

    dtype: np.dtype[Any]
    has: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One op of the loop. Sources are an "input", a "step" or a "constant", by number.

    `reduce` is "all" or "rows" for one that adds up its source, see loop_sums.py: no step reads such a one.
    """

    op: str
    attrs: tuple[tuple[str, Any], ...]
    sources: tuple[tuple[str, int], ...]
    dtype: np.dtype[Any]
    reduce: str = ""


@dataclass(frozen=True, slots=True)
class Loop:
    operands: tuple[Operand, ...]
    steps: tuple[Step, ...]
    #: The steps whose values are written.
    outputs: tuple[int, ...]
    #: (value, type) of the scalars that are known beforehand.
    constants: tuple[tuple[Any, np.dtype[Any]], ...] = ()


def write(loop: Loop) -> str:
    """The text of `run`, of a loop without sums."""
    lines = [f"def run({', '.join(parameters(loop))}):", "    for i in range(cuda.grid(1), n, cuda.gridsize(1)):"]
    lines += [f"        {line}" for line in element(loop)]
    return "\n".join([*lines, ""])


def parameters(loop: Loop) -> list[str]:
    """The names of the arguments: the number of elements, dimensions but for the first, operands, outputs."""
    sizes = ["n", *(f"d{axis}" for axis in range(1, _rank(loop)))]
    return sizes + [f"a{i}" for i in range(len(loop.operands))] + [f"o{i}" for i in range(len(loop.outputs))]


def element(loop: Loop) -> list[str]:
    """The lines for element i: `t0`, `t1` and so on are the steps' values, but for sums; outputs are written."""
    rank = _rank(loop)
    lines = _coordinates(rank, loop.operands)
    lines += [f"x{i} = a{i}[{_index(each, rank)}]" for i, each in enumerate(loop.operands)]
    for number, step in enumerate(loop.steps):
        if not step.reduce:
            operands = [operand(loop, *source) for source in step.sources]
            given = [_type(loop, *source) for source in step.sources]
            lines.append(f"t{number} = {expression(step.op, dict(step.attrs), operands, given, step.dtype)}")
    written = [(i, number) for i, number in enumerate(loop.outputs) if not loop.steps[number].reduce]
    return lines + [f"o{i}[i] = t{number}" for i, number in written]


def _rank(loop: Loop) -> int:
    return max((len(operand.has) for operand in loop.operands), default=0)


def operand(loop: Loop, kind: str, number: int) -> str:
    """A step's source as text."""
    if kind == "constant":
        return expressions.literal(*loop.constants[number])
    return f"{'x' if kind == 'input' else 't'}{number}"


def _type(loop: Loop, kind: str, number: int) -> np.dtype[Any]:
    if kind == "constant":
        return loop.constants[number][1]
    return loop.operands[number].dtype if kind == "input" else loop.steps[number].dtype


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
        if is_test:
            return f"{operands[0]} != {expressions.literal(0, given[0])}"
        return expressions.cast(operands[0], dtype)
    extra = EXTRA.get(op)
    if extra is None or given[0].kind != "f":
        text = _CALL.sub(r"\1(", expressions.write(op, attrs, operands, given, dtype, single=False))
        # libdevice has a function for each, and Numba no common name
        return text.replace("rint(", "rintf(") if given[0].name == "float32" else text
    constants = {"zero": 0, "one": 1, **_CONSTANTS}
    literals = {name: expressions.literal(value, given[0]) for name, value in constants.items()}
    return expressions.cast(extra.format(*operands, **literals), dtype)


def has_expression(op: str, given: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    """Whether there is text for the op with these types."""
    if op in EXTRA and given[0].kind == "f":
        return all(each in expressions.ELEMENT_TYPES for each in (*given, dtype))
    return expressions.row_of(op, given, dtype) is not None
