"""Elementwise ops as text: one row an op, what runs.py writes into its loops.

{0} {1} {2} are operands, {T} casts to the output's type, {zero} and {one} are of that type, other names are attributes
or the constants of a row. The text is compiled by Numba with IEEE arithmetic and no contraction, so a row gives what
the kernel in cpu/ gives, bit for bit, unless it calls the C library (`libm`) or vector_math.py (`single`): NumPy has
functions of its own there, and they differ in the last places (see docs/decisions/0010-fusion.md). No row can raise:
an op that can (an integer division, a Cast of floats to integers that has no meaning out of range) has none. Loops of
scalars (loops.py) can do these too: `write_scalar` says for which operands the kernel is asked instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Kinds of NumPy types a row is for, by the type of its first operand.
_FLOAT, _NUMBER, _BOOL, _ANY = "f", "fiu", "b", "fiub"

#: Element types that fusion knows. No half and no complex: Numba has no arithmetic for the one, and a fused loop of the
#: other is no faster than NumPy's.
ELEMENT_TYPES = frozenset(
    np.dtype(name) for name in ("float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16", "bool")
)


@dataclass(frozen=True, slots=True)
class Row:
    """How one op is written."""

    text: str
    kinds: str = _FLOAT
    #: Uses the C library: a few units in the last place away from NumPy, and not vectorised.
    libm: bool = False
    #: What float32 has instead: arithmetic of vector_math.py, as near to NumPy as that, and vectorised.
    single: str = ""
    #: Names of attributes that the text uses, with their defaults; written as constants of the output's type.
    attrs: tuple[tuple[str, float], ...] = ()


_SELU_SCALE = 1.0507009873554804934193349852946
_SELU_SCALE_ALPHA = _SELU_SCALE * 1.6732632423543772848170429916717
_SELU = (("scale", _SELU_SCALE), ("scale_alpha", _SELU_SCALE_ALPHA))
_SIX = (("six", 6.0),)

_ROWS: dict[str, Row] = {
    "Add": Row("{0} + {1}", _NUMBER),
    "AddV2": Row("{0} + {1}", _NUMBER),
    # Of two; a run of more is a chain of Adds.
    "AddN": Row("{0} + {1}", _NUMBER),
    "AccumulateNV2": Row("{0} + {1}", _NUMBER),
    "BiasAdd": Row("{0} + {1}", _NUMBER),
    "BiasAddV1": Row("{0} + {1}", _NUMBER),
    "Sub": Row("{0} - {1}", _NUMBER),
    "Mul": Row("{0} * {1}", _NUMBER),
    "RealDiv": Row("{0} / {1}"),
    "Div": Row("{0} / {1}"),
    "DivNoNan": Row("{zero} if {1} == {zero} else {0} / {1}"),
    "MulNoNan": Row("{zero} if {1} == {zero} else {0} * {1}"),
    "Maximum": Row("{0} if {0} >= {1} or {0} != {0} else {1}", _NUMBER),
    "Minimum": Row("{0} if {0} <= {1} or {0} != {0} else {1}", _NUMBER),
    "SquaredDifference": Row("({0} - {1}) * ({0} - {1})", _NUMBER),
    # The exponents that programs write most are a few multiplications, which are vectorised.
    "Pow": Row("{0} * {0} * {0} if {1} == 3 else ({0} * {0} if {1} == 2 else {0} ** {1})", libm=True),
    "Less": Row("{0} < {1}", _NUMBER),
    "LessEqual": Row("{0} <= {1}", _NUMBER),
    "Greater": Row("{0} > {1}", _NUMBER),
    "GreaterEqual": Row("{0} >= {1}", _NUMBER),
    "Equal": Row("{0} == {1}", _ANY),
    "NotEqual": Row("{0} != {1}", _ANY),
    "LogicalAnd": Row("{0} & {1}", _BOOL),
    "LogicalOr": Row("{0} | {1}", _BOOL),
    "LogicalNot": Row("not {0}", _BOOL),
    "Select": Row("{1} if {0} else {2}", _BOOL),
    "SelectV2": Row("{1} if {0} else {2}", _BOOL),
    "Neg": Row("-{0}", _NUMBER),
    "Abs": Row("abs({0})", "fi"),
    "Sign": Row("{one} if {0} > {zero} else (-{one} if {0} < {zero} else ({zero} if {0} == {zero} else {0}))"),
    "Square": Row("{0} * {0}", _NUMBER),
    "Sqrt": Row("math.sqrt({0})"),
    "Rsqrt": Row("{one} / math.sqrt({0})"),
    "Reciprocal": Row("{one} / {0}"),
    "Inv": Row("{one} / {0}"),
    "Floor": Row("np.floor({0})"),
    "Ceil": Row("np.ceil({0})"),
    "Rint": Row("np.rint({0})"),
    "Round": Row("np.rint({0})"),
    "IsNan": Row("{0} != {0}"),
    "IsFinite": Row("math.isfinite({0})"),
    "IsInf": Row("math.isinf({0})"),
    "Exp": Row("math.exp({0})", libm=True, single="exp_single({0})"),
    "Expm1": Row("math.expm1({0})", libm=True),
    "Log": Row("np.log({0})", libm=True, single="log_single({0})"),
    "Log1p": Row("np.log1p({0})", libm=True, single="log1p_single({0})"),
    "Tanh": Row("math.tanh({0})", libm=True, single="tanh_single({0})"),
    "Sin": Row("math.sin({0})", libm=True),
    "Cos": Row("math.cos({0})", libm=True),
    "Sigmoid": Row("{one} / (math.exp(-{0}) + {one})", libm=True, single="sigmoid_single({0})"),
    "Softplus": Row(
        "max({0}, {zero}) + np.log1p(math.exp(-abs({0})))",
        libm=True,
        single="max({0}, {zero}) + log1p_single(exp_single(-abs({0})))",
    ),
    "Softsign": Row("{0} / ({one} + abs({0}))"),
    "Relu": Row("{zero} if {0} < {zero} else {0}"),
    "Relu6": Row("{zero} if {0} < {zero} else ({six} if {0} > {six} else {0})", attrs=_SIX),
    "LeakyRelu": Row("{0} if {0} > {zero} else {0} * {alpha}", attrs=(("alpha", 0.2),)),
    "Elu": Row("math.expm1({0}) if {0} < {zero} else {0}", libm=True),
    "Selu": Row("{scale_alpha} * math.expm1({0}) if {0} < {zero} else {scale} * {0}", libm=True, attrs=_SELU),
    # The gradients, as the kernels of cpu/math.py and cpu/nn.py write them.
    "ReluGrad": Row("{0} if {1} > {zero} else {0} * {zero}"),
    "Relu6Grad": Row("{0} if {1} > {zero} and {1} < {six} else {0} * {zero}", attrs=_SIX),
    "LeakyReluGrad": Row("{0} if {1} > {zero} else {0} * {alpha}", attrs=(("alpha", 0.2),)),
    "EluGrad": Row("{0} * ({1} + {one}) if {1} < {zero} else {0}"),
    "SeluGrad": Row("{0} * ({1} + {scale_alpha}) if {1} < {zero} else {0} * {scale}", attrs=_SELU),
    "SoftplusGrad": Row("{0} / (math.exp(-{1}) + {one})", libm=True, single="{0} / (exp_single(-{1}) + {one})"),
    "SoftsignGrad": Row("{0} / (({one} + abs({1})) * ({one} + abs({1})))"),
    "SigmoidGrad": Row("{1} * {0} * ({one} - {0})"),
    "TanhGrad": Row("{1} * ({one} - {0} * {0})"),
    "SqrtGrad": Row("{1} * {half} / {0} if {1} != {zero} else {zero}", attrs=(("half", 0.5),)),
    "RsqrtGrad": Row(
        "{minus_half} * ({1} * {0}) * ({0} * {0}) if {1} != {zero} else {zero}", attrs=(("minus_half", -0.5),)
    ),
    "ReciprocalGrad": Row("-{0} * {0} * {1} if {1} != {zero} else {zero}"),
    "InvGrad": Row("-{0} * {0} * {1} if {1} != {zero} else {zero}"),
    "ZerosLike": Row("{zero}", _NUMBER),
    "OnesLike": Row("{one}", _NUMBER),
    "Cast": Row("{0}", _ANY),
}

#: The rows of float32 that differ.
_SINGLES = {op: replace(row, text=row.single, libm=False) for op, row in _ROWS.items() if row.single}
#: Every op that has a row.
OPS = tuple(_ROWS)
#: Rows whose attributes are constants of the row, not of the node.
_OWN_CONSTANTS = frozenset(("Relu6", "Relu6Grad", "Selu", "SeluGrad", "SqrtGrad", "RsqrtGrad"))
#: Operands must have the output's shape: the kernels refuse to broadcast here.
NO_BROADCAST = (
    frozenset(("AddN", "AccumulateNV2"))
    | frozenset(("ReluGrad", "Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SigmoidGrad", "TanhGrad"))
    | frozenset(("SoftplusGrad", "SoftsignGrad"))
    | frozenset(("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"))
)
#: Ops that are several functions of NumPy's where they run alone, each with an array for what it gives.
SEVERAL_PASSES = frozenset(
    (
        *("Relu6", "LeakyRelu", "Elu", "Selu", "Softplus", "Softsign", "Sigmoid", "DivNoNan", "MulNoNan"),
        *("Relu6Grad", "LeakyReluGrad", "EluGrad", "SeluGrad", "SoftplusGrad", "SoftsignGrad", "TanhGrad"),
        *("SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad"),
    )
)
#: Exponents, constants of the graph, for which the row of Pow calls nothing.
MULTIPLIED_POWERS = (2.0, 3.0)
#: Written as a chain of Adds, in the order in which their kernel adds.
SUMS_OF_MANY = frozenset(("AddN", "AccumulateNV2"))
#: Wants rows.
_NO_SCALARS = frozenset(("BiasAdd", "BiasAddV1"))


def arity(op: str) -> int:
    """How many operands the op's row has."""
    return 1 + max(number for number in range(3) if f"{{{number}}}" in _ROWS[op].text or not number)


def row_of(
    op: str, input_types: Sequence[np.dtype[Any]], output_type: np.dtype[Any], single: bool = True
) -> Row | None:
    """The row of an op for these types, or None when it cannot be fused. Without `single`, float32 has no row of its
    own.
    """
    row = _ROWS.get(op)
    if row is None or not input_types or output_type not in ELEMENT_TYPES:
        return None
    if any(dtype not in ELEMENT_TYPES for dtype in input_types) or input_types[0].kind not in row.kinds:
        return None
    if op == "Cast" and input_types[0].kind == "f" and output_type.kind in "iu":
        return None
    return _SINGLES.get(op, row) if single and output_type == np.float32 else row


_DIFFERENT_SIGNS = "({0} < 0) != ({1} < 0) and {0} % {1} != 0"
#: Of integers, where the divisor is neither 0, an error, nor -1, which the smallest number has no quotient for.
DIVISIONS = {
    "FloorDiv": "{0} // {1}",
    "FloorMod": "{0} % {1}",
    **dict.fromkeys(("Div", "TruncateDiv"), f"{{0}} // {{1}} + (1 if {_DIFFERENT_SIGNS} else 0)"),
    **dict.fromkeys(("Mod", "TruncateMod"), f"{{0}} % {{1}} - ({{1}} if {_DIFFERENT_SIGNS} else 0)"),
}


def _write_checked(
    op: str, operands: Sequence[str], input_types: Sequence[np.dtype[Any]], output_type: np.dtype[Any]
) -> tuple[str, str] | None:
    if any(dtype not in ELEMENT_TYPES for dtype in (*input_types, output_type)) or output_type.kind not in "iu":
        return None
    if op == "Cast" and input_types[0].kind == "f":
        bounds = np.iinfo(output_type)
        fits = f"{float(bounds.min)!r} <= {operands[0]} < {float(bounds.max) + 1!r}"
        return f"not ({fits})", cast(operands[0], output_type)
    text = DIVISIONS.get(op)
    return None if text is None else (f"-1 <= {operands[1]} <= 0", cast(text.format(*operands), output_type))


def write_scalar(
    op: str,
    attrs: Mapping[str, Any],
    operands: Sequence[str],
    input_types: Sequence[np.dtype[Any]],
    output_type: np.dtype[Any],
) -> tuple[str, str] | None:
    """(for which operands it has no meaning, or "" for none, the expression) of a node on scalars; None for one that
    has no expression.
    """
    checked = _write_checked(op, operands, input_types, output_type)
    if checked is not None:
        return checked
    if op in _NO_SCALARS or row_of(op, input_types, output_type) is None:
        return None
    if op not in SUMS_OF_MANY:
        return "", write(op, attrs, operands, input_types, output_type)
    text = operands[0]
    for operand in operands[1:]:
        text = write(op, attrs, [f"({text})", operand], input_types[:2], output_type)
    return "", text


def literal(value: Any, dtype: np.dtype[Any]) -> str:
    """`value` as source text of a constant of type `dtype`, exactly."""
    if dtype.kind == "b":
        return "True" if value else "False"
    if dtype.kind in "iu":
        return f"np.{dtype.name}({int(value)})"
    number = float(value)
    if number != number:
        return f"np.{dtype.name}(np.nan)"
    if number in (float("inf"), float("-inf")):
        return f"np.{dtype.name}({'-' if number < 0 else ''}np.inf)"
    return f"np.{dtype.name}({number!r})"


def write(
    op: str,
    attrs: Mapping[str, Any],
    operands: Sequence[str],
    input_types: Sequence[np.dtype[Any]],
    output_type: np.dtype[Any],
    single: bool = True,
) -> str:
    """The expression of one node as source text, cast to its output's type. `operands` are names or literals; without
    `single`, float32 is written as float64 is.
    """
    row = row_of(op, input_types, output_type, single)
    assert row is not None, f"{op} has no row for {input_types}"
    # Constants in a comparison have the type of what they are compared with, the operand's.
    constants = {"zero": literal(0, input_types[0]), "one": literal(1, input_types[0])}
    if op in ("ZerosLike", "OnesLike"):
        constants = {"zero": literal(0, output_type), "one": literal(1, output_type)}
    for name, default in row.attrs:
        value = default if op in _OWN_CONSTANTS else attrs.get(name, default)
        # through the type, as the kernels round it
        constants[name] = literal(output_type.type(value), output_type)
    text = row.text.format(*operands, **constants)
    if op == "Cast":
        if output_type.kind == "b":
            return f"{operands[0]} != {literal(0, input_types[0])}"
        return cast(text, output_type)
    # Arithmetic on one floating type stays in it and a comparison gives a bool; a cast would only cost compile time.
    if output_type.kind == "b" or (output_type.kind == "f" and "np." not in row.text and not row.libm):
        return text
    return cast(text, output_type)


def cast(text: str, dtype: np.dtype[Any]) -> str:
    """`text` as source text of a value of the type."""
    return f"bool({text})" if dtype.kind == "b" else f"np.{dtype.name}({text})"
