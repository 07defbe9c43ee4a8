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

from tenfold_kernels.cuda.narrow_text import narrowed, rounded, wide, widened
from tenfold_kernels.fusion import expressions

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np

    from tenfold_kernels.fusion.runs import FusedOp


@dataclass(frozen=True, slots=True)
class Operand:
    """How a loop reads one operand: for each of the loop's dimensions, whether the operand has it."""

    dtype: np.dtype[Any]
    has: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Loop:
    operands: tuple[Operand, ...]
    steps: tuple[FusedOp, ...]
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
    for i, each in enumerate(loop.operands):
        lines.append(f"x{i} = {widened(f'a{i}[{_index(each, rank)}]', each.dtype)}")
    for number, step in enumerate(loop.steps):
        if not step.reduce:
            operands = [operand(loop, *source) for source in step.sources]
            given = [_type(loop, *source) for source in step.sources]
            text = expression(step.op, dict(step.attrs), operands, given, wide(step.dtype))
            lines.append(f"t{number} = {rounded(text, step.dtype)}")
    written = [(i, number) for i, number in enumerate(loop.outputs) if not loop.steps[number].reduce]
    return lines + [f"o{i}[i] = {narrowed(f't{number}', loop.steps[number].dtype)}" for i, number in written]


def _rank(loop: Loop) -> int:
    return max((len(operand.has) for operand in loop.operands), default=0)


def operand(loop: Loop, kind: str, number: int) -> str:
    """A step's source as text."""
    if kind == "constant":
        value, dtype = loop.constants[number]
        return _literal(value, wide(dtype))
    return f"{'x' if kind == 'input' else 't'}{number}"


def _literal(value: Any, dtype: np.dtype[Any]) -> str:
    if dtype.kind != "c":
        return expressions.literal(value, dtype)
    parts = (expressions.literal(part, value.real.dtype) for part in (value.real, value.imag))
    return expressions.cast(f"complex({', '.join(parts)})", dtype)


def _type(loop: Loop, kind: str, number: int) -> np.dtype[Any]:
    if kind == "constant":
        return wide(loop.constants[number][1])
    return wide(loop.operands[number].dtype if kind == "input" else loop.steps[number].dtype)


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
    "Xdivy": "{zero} if {0} == {zero} else {0} / {1}",
    "Xlogy": "{zero} if {0} == {zero} else {0} * log({1})",
    "FloorDiv": "floor({0} / {1})",
}
#: Of integers; by 0 it is 0, because a kernel raises no error.
WHOLE = {op: f"({text}) if {{1}} != {{zero}} else {{zero}}" for op, text in expressions.DIVISIONS.items()}
#: Of complex numbers, or what makes them of others or others of them.
_COMPLEX = {
    **dict.fromkeys(("Add", "AddV2", "AddN", "AccumulateNV2"), "{0} + {1}"),
    "Sub": "{0} - {1}",
    "Mul": "{0} * {1}",
    **dict.fromkeys(("Div", "RealDiv"), "{0} / {1}"),
    "Neg": "-{0}",
    "Square": "{0} * {0}",
    "Equal": "{0} == {1}",
    "NotEqual": "{0} != {1}",
    **dict.fromkeys(("Select", "SelectV2"), "{1} if {0} else {2}"),
    "Cast": "{0}",
    "Conj": "{0}.conjugate()",
    "Real": "{0}.real",
    "Imag": "{0}.imag",
    "ComplexAbs": "abs({0})",
    "Complex": "complex({0}, {1})",
}
_CALL = re.compile(r"\b(?:math|np)\.(exp|expm1|log|log1p|sqrt|tanh|sin|cos|floor|ceil|rint|isfinite|isinf)\(")


def expression(
    op: str,
    attrs: dict[str, Any],
    operands: Sequence[str],
    given: Sequence[np.dtype[Any]],
    dtype: np.dtype[Any],
) -> str:
    """One op as text; functions go by their bare names, which _code/elementwise.py gives a meaning."""
    if _has_complex(given, dtype):
        return expressions.cast(_COMPLEX[op].format(*operands), dtype)
    if op == "Cast":
        is_test = dtype.kind == "b"
        if is_test:
            return f"{operands[0]} != {expressions.literal(0, given[0])}"
        return expressions.cast(operands[0], dtype)
    extra = _extra(op, given)
    if extra is None:
        text = _CALL.sub(r"\1(", expressions.write(op, attrs, operands, given, dtype, single=False))
        # libdevice has a function for each, and Numba no common name
        return text.replace("rint(", "rintf(") if given[0].name == "float32" else text
    literals = {name: expressions.literal(value, given[0]) for name, value in (("zero", 0), ("one", 1))}
    return expressions.cast(extra.format(*operands, **literals), dtype)


def has_expression(op: str, given: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    """Whether there is text for the op with these types."""
    given, dtype = [wide(each) for each in given], wide(dtype)
    if _has_complex(given, dtype):
        return op in _COMPLEX and not (op == "Cast" and dtype.kind != "c")
    if _extra(op, given) is not None:
        return all(each in expressions.ELEMENT_TYPES for each in (*given, dtype))
    return expressions.row_of(op, given, dtype) is not None


def _extra(op: str, given: Sequence[np.dtype[Any]]) -> str | None:
    return (EXTRA if given[0].kind == "f" else WHOLE if given[0].kind in "iu" else {}).get(op)


def _has_complex(given: Sequence[np.dtype[Any]], dtype: np.dtype[Any]) -> bool:
    return any(each.kind == "c" for each in (*given, dtype))
