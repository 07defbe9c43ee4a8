"""Elementwise ops of every kind of type, at poles, zeros and NaN; the usual cases are in test_math.py."""

from __future__ import annotations

import cmath
import math
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.registry import KernelNode, lookup
from tenfold_kernels.resources.state import ResourceManager

INF, NAN = math.inf, math.nan
FLOATS = (np.float16, np.float32, np.float64)
COMPLEX = (np.complex64, np.complex128)
SIGNED = (np.int8, np.int16, np.int32, np.int64)
UNSIGNED = (np.uint8, np.uint16, np.uint32, np.uint64)

#: Op, types, two operands, what they give.
BINARY: list[tuple[str, tuple[Any, ...], Any, Any, Any]] = [
    ("Add", (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED), [1, 2], [3, 5], [4, 7]),
    ("AddV2", (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED), [1, 2], [3, 5], [4, 7]),
    ("Sub", (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED), [7, 2], [3, 2], [4, 0]),
    ("Mul", (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED), [7, 2], [3, 5], [21, 10]),
    ("RealDiv", (*FLOATS, *COMPLEX), [7, 3], [2, -4], [3.5, -0.75]),
    ("Div", (*FLOATS, *COMPLEX), [7, 3], [2, -4], [3.5, -0.75]),
    ("Div", SIGNED, [7, -7, 7, -7, 0], [2, 2, -2, -2, 3], [3, -3, -3, 3, 0]),
    ("Div", UNSIGNED, [7, 6, 0], [2, 2, 9], [3, 3, 0]),
    ("TruncateDiv", SIGNED, [7, -7, 7, -7, 0], [2, 2, -2, -2, 3], [3, -3, -3, 3, 0]),
    ("TruncateDiv", UNSIGNED, [7, 6, 0], [2, 2, 9], [3, 3, 0]),
    ("TruncateDiv", FLOATS, [7, -7, 7, -7], [2, 2, -2, -2], [3, -3, -3, 3]),
    ("FloorDiv", SIGNED, [7, -7, 7, -7], [2, 2, -2, -2], [3, -4, -4, 3]),
    ("FloorDiv", UNSIGNED, [7, 6], [2, 2], [3, 3]),
    ("FloorDiv", FLOATS, [7, -7, 7, -7], [2, 2, -2, -2], [3, -4, -4, 3]),
    ("FloorMod", SIGNED, [7, -7, 7, -7], [3, 3, -3, -3], [1, 2, -2, -1]),
    ("FloorMod", SIGNED, [7, -7, 6], 3, [1, 2, 0]),
    ("FloorMod", SIGNED, [7, -7, 6], -3, [-2, -1, 0]),
    ("FloorMod", UNSIGNED, [7, 6, 2], 3, [1, 0, 2]),
    ("FloorMod", FLOATS, [7, -7, 7, -7], [3, 3, -3, -3], [1, 2, -2, -1]),
    ("Mod", SIGNED, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
    ("Mod", FLOATS, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
    ("TruncateMod", SIGNED, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
    ("TruncateMod", FLOATS, [7, -7, 7, -7], [3, 3, -3, -3], [1, -1, 1, -1]),
    ("Maximum", (*FLOATS, *SIGNED, *UNSIGNED), [1, 7], [3, 5], [3, 7]),
    ("Minimum", (*FLOATS, *SIGNED, *UNSIGNED), [1, 7], [3, 5], [1, 5]),
    ("Pow", (*FLOATS, *COMPLEX), [2, 3], [3, 2], [8, 9]),
    ("Pow", (*FLOATS, *COMPLEX), [2, 3], 4, [16, 81]),
    ("Pow", (*FLOATS, *COMPLEX), [2, 3], 3, [8, 27]),
    ("Pow", (*FLOATS, *COMPLEX), [2, 3], 2, [4, 9]),
    ("Pow", (*FLOATS, *COMPLEX), [2, 3], 1, [2, 3]),
    ("Pow", SIGNED, [2, -3, 5], [3, 2, 0], [8, 9, 1]),
    ("Pow", UNSIGNED, [2, 3, 5], [3, 2, 0], [8, 9, 1]),
    ("SquaredDifference", (*FLOATS, *SIGNED, *UNSIGNED), [5, 7], [3, 7], [4, 0]),
    ("SquaredDifference", COMPLEX, [5 + 1j, 7], [3, 7 + 2j], [5, 4]),
    ("DivNoNan", (*FLOATS, *COMPLEX), [7, 3, 0, 1], [2, 0, 0, 1], [3.5, 0, 0, 1]),
    ("MulNoNan", (*FLOATS, *COMPLEX), [7, INF, NAN, 1], [2, 0, 0, 1], [14, 0, 0, 1]),
    ("Xlogy", (*FLOATS, *COMPLEX), [2, 0, 0, 1], [1, 0, INF, 1], [0, 0, 0, 0]),
    ("Xdivy", (*FLOATS, *COMPLEX), [2, 0, 0, 1], [4, 0, NAN, 1], [0.5, 0, 0, 1]),
    ("Atan2", FLOATS, [0, 0], [1, 2], [0, 0]),
    ("NextAfter", (np.float32, np.float64), [1, 2], [1, 2], [1, 2]),
    ("Less", (*FLOATS, *SIGNED, *UNSIGNED), [1, 2, 3], 2, [True, False, False]),
    ("LessEqual", (*FLOATS, *SIGNED, *UNSIGNED), [1, 2, 3], 2, [True, True, False]),
    ("Greater", (*FLOATS, *SIGNED, *UNSIGNED), [1, 2, 3], 2, [False, False, True]),
    ("GreaterEqual", (*FLOATS, *SIGNED, *UNSIGNED), [1, 2, 3], 2, [False, True, True]),
    ("LogicalAnd", (np.bool_,), [0, 0, 1, 1], [0, 1, 0, 1], [False, False, False, True]),
    ("LogicalOr", (np.bool_,), [0, 0, 1, 1], [0, 1, 0, 1], [False, True, True, True]),
    ("Equal", (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED, np.bool_), [0, 1], [1, 1], [False, True]),
    ("NotEqual", (*FLOATS, *COMPLEX, *SIGNED, *UNSIGNED, np.bool_), [0, 1], [1, 1], [True, False]),
    ("ApproximateEqual", (*FLOATS, *COMPLEX, *SIGNED), [1, 2], [1, 1], [True, False]),
]


@pytest.mark.parametrize(("op", "types", "x", "y", "expected"), BINARY)
def test_two_operands(ops: Any, op: str, types: tuple[Any, ...], x: Any, y: Any, expected: Any) -> None:
    for dtype in types:
        one, other = np.array(x, dtype), np.array(y, dtype)
        found = ops.run(op, [one, other])
        assert found.tolist() == pytest.approx(expected), dtype
        assert ops.run(op, [np.asarray(one[0]), np.asarray(other.reshape(-1)[0])]).tolist() == pytest.approx(
            expected[0]
        ), dtype
        assert ops.run(op, [one[:0], other.reshape(-1)[:1]]).shape == (0,)


@pytest.mark.parametrize("op", sorted({row[0] for row in BINARY}))
def test_operands_that_do_not_go_together(ops: Any, op: str) -> None:
    dtype = np.bool_ if op.startswith("Logical") else np.float32

    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, [np.ones((2, 3), dtype), np.ones(4, dtype)])
    assert refused.value.message == "Incompatible shapes: [2,3] vs. [4]"


def test_functions_of_two_numbers(ops: Any) -> None:
    x, y = np.float64([[0.5, -2, 3]]), np.float64([[1.5], [-0.25]])
    for op, function in (("Atan2", math.atan2), ("NextAfter", math.nextafter)):
        expected = [[function(a, b) for a in x[0].tolist()] for b in y[:, 0].tolist()]
        np.testing.assert_allclose(ops.run(op, [x, y]), expected, rtol=0 if op == "NextAfter" else 1e-12)
    z = np.float64([2, 3])
    np.testing.assert_allclose(ops.run("Xlogy", [z, np.float64([5, 0.5])]), [2 * math.log(5), 3 * math.log(0.5)])
    found = ops.run("Xlogy", [z + 1j, np.complex128([5, 0.5j])])
    np.testing.assert_allclose(found, [(2 + 1j) * cmath.log(5), (3 + 1j) * cmath.log(0.5j)])
    np.testing.assert_allclose(ops.run("Pow", [np.float64([4, 9]), np.array(0.5)]), [2, 3])
    np.testing.assert_allclose(ops.run("Pow", [np.complex128([2j, 3]), np.array(2 + 0j)]), [-4, 9])


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *((op, np.uint8) for op in ("Div", "TruncateDiv", "FloorDiv", "FloorMod")),
        *((op, np.int32) for op in ("Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod")),
    ],
)
def test_no_integer_is_divided_by_zero(ops: Any, op: str, dtype: Any) -> None:
    for divisor in (0, [2, 0], [0, 0]):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Integer division by zero$"):
            ops.run(op, [np.array([4, 5], dtype), np.array(divisor, dtype)])


def test_powers_of_integers(ops: Any) -> None:
    for exponent in (-1, [2, -1]):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Integers to negative integer powers are not allowed$"):
            ops.run("Pow", [np.int32([2, 3]), np.int32(exponent)])
    assert ops.run("Pow", [np.uint8([3, 2]), np.uint8([5, 255])]).tolist() == [243, 0]


def test_strings_are_joined(ops: Any) -> None:
    assert ops.run("Add", [[b"a", b"b"], b"c"]).tolist() == [b"ac", b"bc"]
    assert ops.run("Add", [b"a", b"c"]).tolist() == b"ac"


def bare(op: str, types: tuple[Any, ...], output: Any, **attrs: Any) -> Any:
    """The compute of a node that leaves its other attrs to their defaults."""
    node = KernelNode("n", op, {"T": types[0], **attrs}, types, (output,), "/device:CPU:0", ResourceManager())
    return lookup(node, "CPU")(node)


def test_numbers_nearer_than_a_tolerance(ops: Any) -> None:
    x, y = np.float32([1, 1.25, 1.5, 1.75, -1]), np.float32(1)

    assert ops.run("ApproximateEqual", [x, y], tolerance=0.5).tolist() == [True, True, False, False, False]
    assert ops.run("ApproximateEqual", [y, x], tolerance=0.5).tolist() == [True, True, False, False, False]
    assert ops.run("ApproximateEqual", [y, y]).tolist() is True
    plain = bare("ApproximateEqual", (dtypes.float64, dtypes.float64), dtypes.bool_)
    assert plain(np.float64([1, 1]), np.float64([1 + 0.9e-5, 1 + 1.1e-5])).tolist() == [True, False]


@pytest.mark.parametrize(("op", "answer"), [("Equal", False), ("NotEqual", True)])
def test_shapes_that_do_not_broadcast_may_be_unequal(ops: Any, op: str, answer: bool) -> None:
    x, y = np.float32([[1, 2, 3]]), np.float32([1, 2])

    found = ops.run(op, [x, y], incompatible_shape_error=False)
    assert (found.tolist(), found.shape) == (answer, ())
    assert ops.run(op, [x, y[:1]], incompatible_shape_error=False).tolist() == [[not answer, answer, answer]]
    assert ops.run(op, [y[0], y[1]], incompatible_shape_error=False).tolist() is answer
    assert ops.run(op, [[b"a", b"b"], b"b"], incompatible_shape_error=False).tolist() == [answer, not answer]
    plain = bare(op, (dtypes.float32, dtypes.float32), dtypes.bool_)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Incompatible shapes: \[1,3\] vs\. \[2\]$"):
        plain(x, y)
    assert plain(x, y[:1]).tolist() == [[not answer, answer, answer]]


#: Op, types, an operand, what it gives.
UNARY: list[tuple[str, tuple[Any, ...], Any, Any]] = [
    ("Neg", (*FLOATS, *COMPLEX, *SIGNED), [1, -2, 0], [-1, 2, 0]),
    ("Abs", (*FLOATS, *SIGNED), [1, -2, 0], [1, 2, 0]),
    ("Sign", (*FLOATS, *SIGNED), [3, -2, 0, 1], [1, -1, 0, 1]),
    ("Sign", UNSIGNED, [3, 0, 1], [1, 0, 1]),
    ("Sign", FLOATS, [INF, -INF], [1, -1]),
    ("Sign", COMPLEX, [3 + 4j, -2, 0, 1, 1j], [0.6 + 0.8j, -1, 0, 1, 1j]),
    ("Square", (*FLOATS, *SIGNED), [3, -2], [9, 4]),
    ("Square", COMPLEX, [3j, -2], [-9, 4]),
    ("Sqrt", (*FLOATS, *COMPLEX), [4, 0, 9], [2, 0, 3]),
    ("Rsqrt", (*FLOATS, *COMPLEX), [4, 0.25], [0.5, 2]),
    ("Exp", (*FLOATS, *COMPLEX), [0, 1], [1, math.e]),
    ("Expm1", (*FLOATS, *COMPLEX), [0, 1], [0, math.e - 1]),
    ("Log", (*FLOATS, *COMPLEX), [1, 2], [0, math.log(2)]),
    ("Log1p", (*FLOATS, *COMPLEX), [0, 1], [0, math.log(2)]),
    ("Reciprocal", (*FLOATS, *COMPLEX), [4, -0.5], [0.25, -2]),
    ("Inv", (*FLOATS, *COMPLEX), [4, -0.5], [0.25, -2]),
    ("Reciprocal", SIGNED, [1, -1, 2, -3], [1, -1, 0, 0]),
    ("Inv", UNSIGNED, [1, 2, 200], [1, 0, 0]),
    ("Floor", FLOATS, [1.5, -1.5, 2], [1, -2, 2]),
    ("Ceil", FLOATS, [1.5, -1.5, 2], [2, -1, 2]),
    ("Round", FLOATS, [0.5, 1.5, -0.5, 2.7], [0, 2, 0, 3]),
    ("Rint", FLOATS, [0.5, 1.5, -0.5, 2.7], [0, 2, 0, 3]),
    ("Round", SIGNED, [1, -2], [1, -2]),
    ("Sigmoid", (*FLOATS, *COMPLEX), [0, 1], [0.5, 1 / (1 + math.exp(-1))]),
    ("Tanh", (*FLOATS, *COMPLEX), [0, 1], [0, math.tanh(1)]),
    ("Sin", (*FLOATS, *COMPLEX), [0, 1], [0, math.sin(1)]),
    ("Cos", (*FLOATS, *COMPLEX), [0, 1], [1, math.cos(1)]),
    ("Tan", (*FLOATS, *COMPLEX), [0, 1], [0, math.tan(1)]),
    ("Asin", (*FLOATS, *COMPLEX), [0, 0.5], [0, math.asin(0.5)]),
    ("Acos", (*FLOATS, *COMPLEX), [0, 0.5], [math.pi / 2, math.acos(0.5)]),
    ("Atan", (*FLOATS, *COMPLEX), [0, 0.5], [0, math.atan(0.5)]),
    ("Asinh", (*FLOATS, *COMPLEX), [0, 0.5], [0, math.asinh(0.5)]),
    ("Acosh", (*FLOATS, *COMPLEX), [1, 2], [0, math.acosh(2)]),
    ("Atanh", (*FLOATS, *COMPLEX), [0, 0.5], [0, math.atanh(0.5)]),
    ("Sinh", (*FLOATS, *COMPLEX), [0, 1], [0, math.sinh(1)]),
    ("Cosh", (*FLOATS, *COMPLEX), [0, 1], [1, math.cosh(1)]),
    ("Erf", FLOATS, [0, 0.5, INF], [0, math.erf(0.5), 1]),
    ("Erfc", FLOATS, [0, 0.5, INF], [1, math.erfc(0.5), 0]),
    ("Lgamma", FLOATS, [1, 2, 3, 0.5], [0, 0, math.log(2), math.lgamma(0.5)]),
    ("Lgamma", FLOATS, [0, -1, -2, INF, -INF], [INF] * 5),
    ("Lgamma", FLOATS, [-0.5, -2.5], [math.lgamma(-0.5), math.lgamma(-2.5)]),
    ("IsFinite", FLOATS, [1, INF, -INF, NAN], [True, False, False, False]),
    ("IsNan", FLOATS, [1, INF, -INF, NAN], [False, False, False, True]),
    ("IsInf", FLOATS, [1, INF, -INF, NAN], [False, True, True, False]),
    ("LogicalNot", (np.bool_,), [0, 1], [True, False]),
    ("Conj", COMPLEX, [1 + 2j, -1j], [1 - 2j, 1j]),
]  # fmt: skip


@pytest.mark.parametrize(("op", "types", "x", "expected"), UNARY)
def test_one_operand(ops: Any, op: str, types: tuple[Any, ...], x: Any, expected: Any) -> None:
    for dtype in types:
        given = np.array(x, dtype)
        tolerance = {np.float16: 3e-3, np.float32: 1e-5, np.complex64: 1e-5}.get(dtype, 1e-12)
        np.testing.assert_allclose(ops.run(op, [given]), expected, rtol=tolerance, atol=tolerance, err_msg=str(dtype))
        found = ops.run(op, [np.asarray(given[1])])
        assert found.shape == ()
        np.testing.assert_allclose(found, expected[1], rtol=tolerance, atol=tolerance)
        assert ops.run(op, [given[:0].reshape(2, 0)]).shape == (2, 0)
        matrix = ops.run(op, [np.stack([given, given]).T])
        np.testing.assert_allclose(matrix[:, 1], expected, rtol=tolerance, atol=tolerance)


def test_no_integer_has_a_reciprocal_at_zero(ops: Any) -> None:
    for op, dtype in (("Reciprocal", np.int32), ("Inv", np.int64)):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Integer division by zero$"):
            ops.run(op, [np.array([2, 0], dtype)])


@pytest.mark.parametrize(("whole", "part"), [("complex64", "float32"), ("complex128", "float64")])
def test_parts_of_complex_numbers(ops: Any, whole: str, part: str) -> None:
    x, out = np.array([3 + 4j, -2j, -1], whole), dtypes.as_dtype(part)

    for op, expected in (
        ("ComplexAbs", [5, 2, 1]),
        ("Real", [3, 0, -1]),
        ("Imag", [4, -2, 0]),
        ("Angle", [math.atan2(4, 3), -math.pi / 2, math.pi]),
    ):
        found = ops.run(op, [x], Tout=out)
        np.testing.assert_allclose(found, expected, rtol=1e-6)
        assert ops.run(op, [x[0]], Tout=out).shape == ()
    made = ops.run("Complex", [np.array([[1], [2]], part), np.array([3, 4], part)], Tout=dtypes.as_dtype(whole))
    assert (made.tolist(), made.dtype) == ([[1 + 3j, 1 + 4j], [2 + 3j, 2 + 4j]], whole)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Incompatible shapes: \[2\] vs\. \[3\]$"):
        ops.run("Complex", [np.zeros(2, part), np.zeros(3, part)], Tout=dtypes.as_dtype(whole))


# -- gradients

#: Op → the gradient of (y, dy), y of a complex one conjugated.
GRADIENTS: dict[str, Any] = {
    "TanhGrad": lambda y, dy: dy * (1 - y * y),
    "SigmoidGrad": lambda y, dy: dy * y * (1 - y),
    "SqrtGrad": lambda y, dy: dy * 0.5 / y,
    "RsqrtGrad": lambda y, dy: dy * -0.5 * y**3,
    "ReciprocalGrad": lambda y, dy: -dy * y * y,
    "InvGrad": lambda y, dy: -dy * y * y,
}


@pytest.mark.parametrize("op", GRADIENTS)
@pytest.mark.parametrize("dtype", [*FLOATS, *COMPLEX])
def test_gradients_of_what_was_computed(ops: Any, op: str, dtype: Any) -> None:
    y, dy = np.array([[0.5, -2], [0.75, 1.5]]), np.array([[3, 1], [-2, 0.25]])
    if np.dtype(dtype).kind == "c":
        y, dy = y + 0.25j, dy - 2j
    y, dy = y.astype(dtype), dy.astype(dtype)
    conjugated = op not in ("TanhGrad", "SigmoidGrad")
    expected = GRADIENTS[op](np.conj(y) if conjugated else y, dy)

    np.testing.assert_allclose(ops.run(op, [y, dy]), expected, rtol=5e-3 if dtype is np.float16 else 1e-5)
    np.testing.assert_allclose(ops.run(op, [y.T, dy.T]), expected.T, rtol=5e-3 if dtype is np.float16 else 1e-5)
    one = ops.run(op, [np.asarray(y[0, 0]), dy[0, :1]])
    assert one.shape == ()
    np.testing.assert_allclose(one, expected[0, 0], rtol=5e-3)
    assert ops.run(op, [y[0, :1], np.asarray(dy[0, 0])]).shape == (1,)
    assert ops.run(op, [y[:0], dy[:0]]).shape == (0, 2)
    np.testing.assert_allclose(ops.run(op, [y, dy.reshape(4)]), expected, rtol=5e-3)
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, [y, dy[0]])
    text = "The two arguments to a cwise op must have same number of elements, got 4 and 2"
    assert refused.value.message == text


@pytest.mark.parametrize("dtype", [np.float32, np.float64, *COMPLEX])
@pytest.mark.parametrize(
    ("op", "pole"), [("SqrtGrad", 0), ("RsqrtGrad", INF), ("ReciprocalGrad", INF), ("InvGrad", INF)]
)
def test_nothing_flows_back_at_a_pole_where_nothing_comes(ops: Any, op: str, pole: float, dtype: Any) -> None:
    y, dy = np.array([pole, 2, 2], dtype), np.array([0, 0, 1], dtype)

    found = ops.run(op, [y, dy])

    assert found.tolist()[:2] == [0, 0]
    assert found[2] == GRADIENTS[op](2, 1)
    assert not np.isfinite(ops.run(op, [y[:1], dy[2:]])).all()


# -- Cast

VALUES = [0, 1, 2, 5]


@pytest.mark.parametrize("source", [np.bool_, np.int8, np.uint16, np.int64, *FLOATS, *COMPLEX])
@pytest.mark.parametrize("target", ["bool", "int8", "uint16", "int64", "float16", "float32", "float64", "complex64"])
def test_types_of_numbers(ops: Any, source: Any, target: str) -> None:
    values = [0, 1, 1, 1] if source is np.bool_ or target == "bool" else VALUES
    x = np.array(VALUES, source)

    found = ops.run("Cast", [x], DstT=dtypes.as_dtype(target))

    assert found.tolist() == values
    assert ops.run("Cast", [x[1]], DstT=dtypes.as_dtype(target)).shape == ()


def test_complex_numbers_lose_their_imaginary_part(ops: Any) -> None:
    x = np.complex64([1.75 + 9j, -2j, 0, -3.5])

    assert ops.run("Cast", [x], DstT=dtypes.int32).tolist() == [1, 0, 0, -3]
    assert ops.run("Cast", [x], DstT=dtypes.bool_).tolist() == [True, False, False, True]
    assert ops.run("Cast", [x], DstT=dtypes.complex128).tolist() == x.tolist()
    assert ops.run("Cast", [x], DstT=dtypes.float64).tolist() == [1.75, 0, 0, -3.5]


def test_what_has_the_type_is_passed_on(ops: Any) -> None:
    for x in (np.float32([1, 2]), np.array([b"x"], object)):
        compute, _ = ops.build("Cast", [x], {"DstT": dtypes.string if x.dtype == object else dtypes.float32})
        assert compute(x) is x


@pytest.mark.parametrize(
    ("value", "target", "text"),
    [
        (np.array([b"1"], object), dtypes.int32, "Cast string to int32 is not supported"),
        (np.float32([1]), dtypes.string, "Cast float to string is not supported"),
        (np.float32([1]), dtypes.resource, "Cast float to resource is not supported"),
    ],
)
def test_what_is_no_number_is_not_cast(ops: Any, value: Any, target: Any, text: str) -> None:
    with pytest.raises(errors.UnimplementedError) as refused:
        ops.run("Cast", [value], DstT=target)
    assert refused.value.message == text


# -- Select

THEN, ELSE = np.arange(12.0).reshape(2, 3, 2), -np.arange(12.0).reshape(2, 3, 2)


def test_a_condition_picks_all_rows_or_elements(ops: Any) -> None:
    rows, each = np.array([True, False]), np.arange(12).reshape(2, 3, 2) % 3 == 0

    assert ops.run("Select", [rows, THEN, ELSE]).tolist() == [THEN[0].tolist(), ELSE[1].tolist()]
    assert ops.run("Select", [rows, THEN[:, 0, 0], ELSE[:, 0, 0]]).tolist() == [0, -6]
    assert ops.run("Select", [each, THEN, ELSE]).tolist() == np.where(each, THEN, ELSE).tolist()
    for one, picked in ((True, THEN), (False, ELSE)):
        compute, _ = ops.build("Select", [np.array(one), THEN, ELSE], {})
        assert compute(np.array(one), THEN, ELSE) is picked
    assert ops.run("Select", [np.array(True), THEN[0, 0, 1], ELSE[0, 0, 1]]).tolist() == 1
    assert ops.run("Select", [rows[:0], THEN[:0], ELSE[:0]]).shape == (0, 3, 2)


@pytest.mark.parametrize(
    ("condition", "then", "other", "text"),
    [
        ((), (2, 3), (3, 2), "'then' and 'else' must have the same size. but received: [2, 3] vs. [3, 2]"),
        ((3,), (2, 3), (2, 3), "Number of batches of 'then' must match size of 'cond', but saw: 2 vs. 3"),
        ((1,), (2, 3), (2, 3), "Number of batches of 'then' must match size of 'cond', but saw: 2 vs. 1"),
        ((1,), (), (), "'cond' must be a vector, but saw shape: [1]"),
        ((1, 1), (), (), "'cond' must be a vector, but saw shape: [1, 1]"),
        ((2, 1), (2,), (2,), "'cond' must be a vector, but saw shape: [2, 1]"),
        ((2, 1), (2, 3), (2, 3), "'cond' must be a vector, but saw shape: [2, 1]"),
    ],
)
def test_what_a_condition_does_not_fit(ops: Any, condition: Any, then: Any, other: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("Select", [np.zeros(condition, bool), np.zeros(then, np.float32), np.zeros(other, np.float32)])
    assert refused.value.message == text


def test_all_three_broadcast(ops: Any) -> None:
    condition = np.array([[True], [False]])

    assert ops.run("SelectV2", [condition, np.float32([1, 2]), np.float32(3)]).tolist() == [[1, 2], [3, 3]]
    assert ops.run("SelectV2", [np.array(False), np.float32(1), np.float32(2)]).tolist() == 2
    assert ops.run("SelectV2", [np.array(True), [b"x", b"y"], b"z"]).tolist() == [b"x", b"y"]
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run("SelectV2", [np.zeros(4, bool), np.zeros((2, 3), np.float32), np.zeros((), np.float32)])
    text = "condition [4], then [2,3], and else [] must be broadcastable"
    assert refused.value.message == text
