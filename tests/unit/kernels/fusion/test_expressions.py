"""Ops as text: which types have a row, how numbers are written, what scalars have no expression for."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest

from tenfold_kernels.fusion import expressions
from tenfold_kernels.fusion.expressions import literal, row_of, write, write_scalar

F32, F64, I32, I8, U8, BOOL = map(np.dtype, ("float32", "float64", "int32", "int8", "uint8", "bool"))
HALF, I64 = np.dtype("float16"), np.dtype("int64")


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (0, BOOL, "False"),
        (2, BOOL, "True"),
        (-3, I32, "np.int32(-3)"),
        (2.9, U8, "np.uint8(2)"),
        (0.1, F64, "np.float64(0.1)"),
        (np.float32(0.1), F32, "np.float32(0.10000000149011612)"),
        (math.nan, F32, "np.float32(np.nan)"),
        (math.inf, F64, "np.float64(np.inf)"),
        (-math.inf, F64, "np.float64(-np.inf)"),
        (-0.0, F32, "np.float32(-0.0)"),
    ],
)
def test_constants_are_written_exactly(value: Any, dtype: Any, text: str) -> None:
    assert literal(value, dtype) == text


def test_casts() -> None:
    assert expressions.cast("x", I32) == "np.int32(x)"
    assert expressions.cast("x", BOOL) == "bool(x)"


def test_how_many_operands() -> None:
    for op, count in (("Add", 2), ("Neg", 1), ("Select", 3), ("ZerosLike", 1), ("ReluGrad", 2), ("Cast", 1)):
        assert expressions.arity(op) == count, op
    assert {expressions.arity(op) for op in expressions.OPS} == {1, 2, 3}


def test_which_types_have_a_row() -> None:
    for op, types, output, has in (
        ("Add", [F32, F32], F32, True),
        ("Add", [BOOL, BOOL], BOOL, False),
        ("Add", [I8, I8], I8, True),
        ("Add", [HALF, HALF], HALF, False),
        ("Add", [F32, HALF], F32, False),
        ("Add", [F32, F32], HALF, False),
        ("Add", [], F32, False),
        ("NoSuchOp", [F32], F32, False),
        ("Exp", [I32], I32, False),
        ("LogicalNot", [BOOL], BOOL, True),
        ("LogicalNot", [I32], BOOL, False),
        ("Equal", [BOOL, BOOL], BOOL, True),
        ("Abs", [U8], U8, False),
        ("Abs", [I8], I8, True),
        ("Cast", [F32], I32, False),
        ("Cast", [F32], U8, False),
        ("Cast", [F32], F64, True),
        ("Cast", [F32], BOOL, True),
        ("Cast", [I32], U8, True),
        ("Cast", [BOOL], F32, True),
        ("Select", [BOOL, F32, F32], F32, True),
        ("Select", [F32, F32, F32], F32, False),
    ):
        assert (row_of(op, types, output) is not None) is has, (op, types, output)
    # float32 has rows of its own where a library would be called
    assert row_of("Exp", [F32], F32).text == "exp_single({0})"  # type: ignore[union-attr]
    assert row_of("Exp", [F32], F32).libm is False  # type: ignore[union-attr]
    for other in (row_of("Exp", [F64], F64), row_of("Exp", [F32], F32, single=False)):
        assert (other.text, other.libm) == ("math.exp({0})", True)  # type: ignore[union-attr]
    assert row_of("Add", [F32, F32], F32) is row_of("Add", [F64, F64], F64)


@pytest.mark.parametrize(
    ("op", "attrs", "types", "output", "text"),
    [
        ("Add", {}, [F32, F32], F32, "a + b"),
        ("Add", {}, [I8, I8], I8, "np.int8(a + b)"),
        ("Less", {}, [I8, I8], BOOL, "a < b"),
        ("Floor", {}, [F32], F32, "np.float32(np.floor(a))"),
        ("Exp", {}, [F32], F32, "exp_single(a)"),
        ("Exp", {}, [F64], F64, "np.float64(math.exp(a))"),
        ("Relu", {}, [F64], F64, "np.float64(0.0) if a < np.float64(0.0) else a"),
        ("ZerosLike", {}, [I32], I32, "np.int32(np.int32(0))"),
        ("OnesLike", {}, [F32], F32, "np.float32(1.0)"),
        ("LeakyRelu", {}, [F64], F64, "a if a > np.float64(0.0) else a * np.float64(0.2)"),
        ("LeakyRelu", {"alpha": 0.5}, [F64], F64, "a if a > np.float64(0.0) else a * np.float64(0.5)"),
        (
            *("LeakyRelu", {}, [F32], F32),
            "a if a > np.float32(0.0) else a * np.float32(0.20000000298023224)",
        ),
        (
            *("SqrtGrad", {"half": 7.0}, [F64, F64], F64),
            "b * np.float64(0.5) / a if b != np.float64(0.0) else np.float64(0.0)",
        ),
        (
            *("RsqrtGrad", {}, [F64, F64], F64),
            "np.float64(-0.5) * (b * a) * (a * a) if b != np.float64(0.0) else np.float64(0.0)",
        ),
        ("Cast", {}, [I32], F32, "np.float32(a)"),
        ("Cast", {}, [F32], BOOL, "a != np.float32(0.0)"),
        ("Cast", {}, [BOOL], BOOL, "a != False"),
    ],
)
def test_an_op_is_written_for_its_types(op: str, attrs: Any, types: Any, output: Any, text: str) -> None:
    assert write(op, attrs, ["a", "b", "c"][: len(types)], types, output) == text


def test_a_selus_constants_are_its_own() -> None:
    text = write("Selu", {"scale": 9.0}, ["a"], [F64], F64)
    value = eval(text, {"math": math, "np": np, "a": 2.0})
    assert value == 2 * 1.0507009873554804934193349852946
    below = eval(text, {"math": math, "np": np, "a": -1.0})
    assert below == pytest.approx(1.7580993408473766 * math.expm1(-1.0), rel=1e-15)


def scalar(op: str, types: Any, output: Any, *, names: Any = ("a", "b"), attrs: Any = None) -> Any:
    return write_scalar(op, attrs or {}, names, types, output)


def test_scalars_that_have_an_expression() -> None:
    assert scalar("Add", [F32, F32], F32) == ("", "a + b")
    assert scalar("BiasAdd", [F32, F32], F32) is None
    assert scalar("BiasAddV1", [F32, F32], F32) is None
    assert scalar("MatMul", [F32, F32], F32) is None
    assert scalar("Add", [HALF, HALF], HALF) is None
    three = scalar("AddN", [F32] * 3, F32, names=("a", "b", "c"))
    assert three == ("", "((a) + b) + c")
    whole = scalar("AccumulateNV2", [I8] * 3, I8, names=("a", "b", "c"))
    assert whole == ("", "np.int8((np.int8((a) + b)) + c)")
    assert scalar("AddN", [F32], F32, names=("a",)) == ("", "a")
    # of floats, a division is a row; of integers it has a meaning for some
    assert scalar("Div", [F32, F32], F32) == ("", "a / b")
    assert scalar("FloorDiv", [F32, F32], F32) is None
    assert scalar("FloorDiv", [I32, I32], I32) == ("-1 <= b <= 0", "np.int32(a // b)")
    assert scalar("FloorDiv", [HALF, I32], I32) is None
    assert scalar("FloorDiv", [I32, I32], np.dtype("uint64")) is None
    assert scalar("Cast", [F32], I32, names=("a",)) == (
        "not (-2147483648.0 <= a < 2147483648.0)",
        "np.int32(a)",
    )
    assert scalar("Cast", [F64], U8, names=("a",)) == ("not (0.0 <= a < 256.0)", "np.uint8(a)")
    assert scalar("Cast", [I64], I32, names=("a",)) == ("", "np.int32(a)")


@pytest.mark.parametrize("op", ["FloorDiv", "FloorMod", "Div", "TruncateDiv", "Mod", "TruncateMod"])
def test_quotients_and_rests_of_integers(op: str) -> None:
    text = expressions.DIVISIONS[op]
    for x, y in itertools.product((7, -7, 6, -6, 0, 1, -1, 127), (2, -2, 3, -3, 7, -7, -128)):
        found = eval(text.format("x", "y"), {"x": x, "y": y})
        quotient = x // y if op.startswith("Floor") else math.trunc(x / y)
        assert found == (quotient if op.endswith("Div") else x - quotient * y), (x, y)


def test_what_else_the_table_says() -> None:
    assert expressions.MULTIPLIED_POWERS == (2.0, 3.0)
    assert {"AddN", "AccumulateNV2"} == expressions.SUMS_OF_MANY
    grads = {op for op in expressions.OPS if op.endswith("Grad")}
    assert expressions.SUMS_OF_MANY | grads == expressions.NO_BROADCAST
    assert set(expressions.OPS) > expressions.SEVERAL_PASSES
    libm = {op for op in expressions.OPS if expressions._ROWS[op].libm}
    singles = {"Exp", "Log", "Log1p", "Tanh", "Sigmoid", "Softplus", "SoftplusGrad"}
    assert libm == singles | {"Pow", "Expm1", "Sin", "Cos", "Elu", "Selu"}
    assert expressions._SINGLES.keys() == singles
    assert not any(row.libm for row in expressions._SINGLES.values())
    power = write("Pow", {}, ["a", "b"], [F64, F64], F64)
    for base, exponent in itertools.product((1.5, -2.0, 3.0), (0.0, 1.0, 2.0, 3.0, 4.0)):
        assert eval(power, {"np": np, "a": base, "b": exponent}) == base**exponent
