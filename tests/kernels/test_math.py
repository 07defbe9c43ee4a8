"""Elementwise math, reductions and products against twins that work on Python numbers."""

from __future__ import annotations

import itertools
import math
import operator
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

RNG = np.random.default_rng(3)
FLOATS = ("float16", "float32", "float64")
INTS = ("int8", "int16", "int32", "int64", "uint8")
COMPLEX = ("complex64", "complex128")
TOLERANCE = {"float16": 4e-3, "float32": 2e-6, "complex64": 2e-6}

#: Shapes of two operands: equal, broadcast both ways, scalars, empty.
PAIRS = [((2, 3), (2, 3)), ((2, 3), (3,)), ((2, 1), (1, 3)), ((), (2,)), ((), ()), ((0, 3), (1, 3)), ((3, 0), ())]
SHAPES = [(2, 3), (), (0,), (2, 0, 3)]


def sample(shape: tuple[int, ...], dtype: str, low: float = -3, high: float = 3, nonzero: bool = False) -> np.ndarray:
    kind = np.dtype(dtype).kind
    if kind == "b":
        return RNG.integers(0, 2, shape).astype(bool)
    if kind in "iu":
        values = RNG.integers(0 if kind == "u" else -9, 10, shape)
        return (np.where(values == 0, 1, values) if nonzero else values).astype(dtype)
    values = RNG.uniform(low, high, shape)
    return (values + 1j * RNG.uniform(low, high, shape)).astype(dtype) if kind == "c" else values.astype(dtype)


def twin(function: Any, arrays: list[np.ndarray], dtype: Any) -> np.ndarray:
    """`function` of Python numbers, element by element."""
    arrays = np.broadcast_arrays(*arrays)
    flat = [function(*(a.reshape(-1)[i].item() for a in arrays)) for i in range(arrays[0].size)]
    if np.dtype(dtype).kind in "iu":
        flat = [v & (1 << 64) - 1 for v in map(int, flat)]
        return np.array(flat, dtype=np.uint64).astype(dtype).reshape(arrays[0].shape)
    return np.array(flat, dtype=dtype).reshape(arrays[0].shape)


def same(actual: np.ndarray, expected: np.ndarray) -> None:
    assert actual.shape == expected.shape
    assert actual.dtype == expected.dtype
    tolerance = TOLERANCE.get(actual.dtype.name, 1e-12)
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


def truncated(x: int, y: int) -> int:
    return int(math.copysign(abs(x) // abs(y), x * y)) if x * y else 0


#: op, twin, types, what the second operand must be.
BINARY = [
    ("Add", operator.add, FLOATS + INTS + COMPLEX, ""),
    ("AddV2", operator.add, FLOATS + INTS + COMPLEX, ""),
    ("Sub", operator.sub, (*FLOATS, "int32", "int64", *COMPLEX), ""),
    ("Mul", operator.mul, (*FLOATS, "int32", "int64", *COMPLEX), ""),
    ("RealDiv", operator.truediv, FLOATS + COMPLEX, "nonzero"),
    ("Div", operator.truediv, FLOATS, "nonzero"),
    ("Div", truncated, ("int32", "int64"), "nonzero"),
    ("Div", operator.floordiv, ("uint8",), "nonzero"),
    ("TruncateDiv", truncated, ("int32", "int64"), "nonzero"),
    ("TruncateMod", math.fmod, ("int32", "float32"), "nonzero"),
    ("FloorDiv", operator.floordiv, ("int8", "int32", "int64", "uint8"), "nonzero"),
    ("FloorDiv", lambda x, y: math.floor(x / y), ("float32", "float64"), "nonzero"),
    ("FloorMod", operator.mod, ("int32", "int64", "float32", "float64"), "nonzero"),
    ("Maximum", max, (*FLOATS, "int32", "int64"), ""),
    ("Minimum", min, (*FLOATS, "int32", "int64"), ""),
    ("Pow", operator.pow, ("float32", "float64"), "positive"),
    ("SquaredDifference", lambda x, y: (x - y) ** 2, ("float32", "int32"), ""),
    ("DivNoNan", lambda x, y: x / y if y else 0.0, ("float32", "float64"), ""),
    ("MulNoNan", lambda x, y: x * y if y else 0.0, ("float32",), ""),
]

COMPARISONS = [
    ("Less", operator.lt),
    ("LessEqual", operator.le),
    ("Greater", operator.gt),
    ("GreaterEqual", operator.ge),
    ("Equal", operator.eq),
    ("NotEqual", operator.ne),
]


@pytest.mark.parametrize(("op", "function", "types", "kind"), BINARY, ids=lambda v: v if isinstance(v, str) else None)
def test_binary(ops: Any, op: str, function: Any, types: tuple[str, ...], kind: str) -> None:
    for dtype, (a, b) in itertools.product(types, PAIRS):
        low = 0.5 if kind == "positive" else -3
        x, y = sample(a, dtype, low), sample(b, dtype, low, nonzero=kind == "nonzero")
        same(ops.run(op, [x, y]), twin(function, [x, y], dtype))


@pytest.mark.parametrize(("op", "function"), COMPARISONS)
def test_comparison(ops: Any, op: str, function: Any) -> None:
    for dtype, (a, b) in itertools.product(("float32", "int32", "int64"), PAIRS):
        x, y = sample(a, dtype), sample(b, dtype)
        same(ops.run(op, [x, y]), twin(function, [x, y], bool))


@pytest.mark.parametrize("exponent", [2.0, 3.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_square_and_a_cube_are_multiplied(ops: Any, exponent: float, dtype: Any) -> None:
    x = np.array([0.0, -0.0, 1.5, -1.1, 3e-5, -7e8, np.inf, -np.inf, np.nan, np.finfo(dtype).max], dtype)
    with np.errstate(all="ignore"):
        expected = np.power(x.astype(np.longdouble), exponent).astype(dtype)

    found = ops.run("Pow", [x, np.array(exponent, dtype)])

    assert found.dtype == dtype
    np.testing.assert_array_equal(np.signbit(found), np.signbit(expected))
    np.testing.assert_allclose(found, expected, rtol=2 * np.finfo(dtype).eps)
    np.testing.assert_array_equal(ops.run("Pow", [x[:2], np.full(2, exponent, dtype)]), [0, 0])


def test_equal_compares_strings_and_bools(ops: Any) -> None:
    assert ops.run("Equal", [[b"a", b"b"], b"a"]).tolist() == [True, False]
    assert ops.run("NotEqual", [np.array(True), np.array(False)]).tolist() is True


def test_equal_of_shapes_that_do_not_fit_can_be_an_answer(ops: Any) -> None:
    x, y = sample((2, 3), "float32"), sample((4,), "float32")

    assert not ops.run("Equal", [x, y], incompatible_shape_error=False)
    assert ops.run("NotEqual", [x, y], incompatible_shape_error=False)
    with pytest.raises(errors.InvalidArgumentError, match=r"Incompatible shapes: \[2,3\] vs\. \[4\]"):
        ops.run("Equal", [x, y])


def sigmoid(v: Any) -> Any:
    return 1 / (1 + math.exp(-v))


#: op, twin, lowest and highest argument.
UNARY = [
    ("Neg", operator.neg, -3, 3),
    ("Abs", abs, -3, 3),
    ("Sign", lambda v: (v > 0) - (v < 0), -3, 3),
    ("Square", lambda v: v * v, -3, 3),
    ("Sqrt", math.sqrt, 0, 3),
    ("Rsqrt", lambda v: 1 / math.sqrt(v), 0.5, 3),
    ("Exp", math.exp, -3, 3),
    ("Expm1", math.expm1, -3, 3),
    ("Log", math.log, 0.5, 3),
    ("Log1p", math.log1p, -0.5, 3),
    ("Reciprocal", lambda v: 1 / v, 0.5, 3),
    ("Floor", math.floor, -3, 3),
    ("Ceil", math.ceil, -3, 3),
    ("Round", round, -3, 3),
    ("Sigmoid", sigmoid, -3, 3),
    ("Tanh", math.tanh, -3, 3),
    ("Sin", math.sin, -3, 3),
    ("Cos", math.cos, -3, 3),
    ("Atan", math.atan, -3, 3),
    ("Erf", math.erf, -3, 3),
    ("Lgamma", math.lgamma, 0.5, 3),
    ("IsFinite", math.isfinite, -3, 3),
    ("IsNan", math.isnan, -3, 3),
]


@pytest.mark.parametrize(("op", "function", "low", "high"), UNARY, ids=lambda v: v if isinstance(v, str) else None)
def test_unary(ops: Any, op: str, function: Any, low: float, high: float) -> None:
    for dtype, shape in itertools.product(FLOATS, SHAPES):
        x = sample(shape, dtype, low, high)
        result = ops.run(op, [x])
        expected = twin(function, [x], result.dtype)
        tolerance = 1e-2 if dtype == "float16" else 5e-6 if dtype == "float32" else 1e-12
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)
        assert result.shape == shape


def test_round_takes_halves_to_even(ops: Any) -> None:
    assert ops.run("Round", [[0.5, 1.5, 2.5, -0.5, -1.5]]).tolist() == [0, 2, 2, 0, -2]


def test_extremes_do_not_warn(ops: Any) -> None:
    assert ops.run("Exp", [[1000.0]]).tolist() == [math.inf]
    assert ops.run("Sigmoid", [[-1000.0, 1000.0]]).tolist() == [0, 1]
    assert ops.run("RealDiv", [[1.0, 0.0], [0.0, 0.0]])[0] == math.inf
    assert math.isnan(ops.run("Log", [[-1.0]])[0])


#: op, operands, text.
WRONG = [
    ("Add", [[[1.0, 2, 3], [4, 5, 6]], [1.0, 2, 3, 4]], r"^Incompatible shapes: \[2,3\] vs\. \[4\]$"),
    ("FloorDiv", [[1, 2], [1, 0]], "^Integer division by zero$"),
    ("FloorMod", [1, 0], "^Integer division by zero$"),
    ("Div", [1, 0], "^Integer division by zero$"),
    ("TruncateMod", [1, 0], "^Integer division by zero$"),
    ("Pow", [2, -1], "^Integers to negative integer powers are not allowed$"),
    ("SigmoidGrad", [[1.0, 2], [1.0, 2, 3]], "must have same number of elements, got 2 and 3$"),
    (
        "MatMul",
        [np.zeros((2, 3), "f"), np.zeros((4, 5), "f")],
        r"^Matrix size-incompatible: In\[0\]: \[2,3\], In\[1\]: \[4,5\]$",
    ),
    ("MatMul", [np.zeros(2, "f"), np.zeros((4, 5), "f")], r"^In\[0\] is not a matrix\. Instead it has shape \[2\]$"),
    ("AddN", [[1.0, 2], [1.0]], r"Input 0: \[2\] != input 1: \[1\]$"),
    ("Mean", [np.zeros((2, 3), "f"), [2]], r"^Invalid reduction dimension \(2 for input with 2 dimension\(s\)$"),
    ("Sum", [np.zeros((2, 3), "f"), [0, -2]], "Axes contains duplicate dimension: 0$"),
    ("ArgMax", [np.zeros((2, 3), "f"), 2], r"^Expected dimension in the range \[-2, 2\), but got 2$"),
    ("ArgMax", [np.zeros((2, 0), "f"), 1], r"^Reduction axis 1 is empty in shape \[2,0\]$"),
    ("Range", [0, 3, 0], "^Requires delta != 0: 0$"),
    ("Range", [0, 3, -1], "^Requires start >= limit when delta < 0: 0/3$"),
    ("BroadcastGradientArgs", [[2, 3], [4]], r"^Incompatible shapes: \[2,3\] vs\. \[4\]$"),
    ("BroadcastTo", [np.zeros((2, 3), "f"), [4, 3]], r"^Incompatible shapes: \[2,3\] vs\. \[4,3\]$"),
    ("BroadcastTo", [np.zeros((2, 3), "f"), [3]], r"^Rank of input \(2\) must be no greater"),
    ("UnsortedSegmentSum", [[1.0, 2], [0, 5], 2], r"^segment_ids\[1\] = 5 is out of range \[0, 2\)$"),
    ("SegmentSum", [[1.0, 2], [1, 0]], "^segment ids are not increasing$"),
    ("CheckNumerics", [[math.nan, math.inf]], "^m : Tensor had Inf and NaN values$"),
    ("MatrixInverse", [np.zeros((2, 2), "f")], r"^Input is not invertible\.$"),
    ("SelectV2", [np.zeros(4, bool), np.zeros((2, 3), "f"), np.zeros((2, 3), "f")], r"^condition \[4\], then \[2,3\]"),
    ("Select", [np.zeros(3, bool), np.zeros((2, 3), "f"), np.zeros((2, 3), "f")], "must match size of 'cond'.*2 vs. 3"),
]


@pytest.mark.parametrize(("op", "inputs", "text"), WRONG, ids=lambda v: v if isinstance(v, str) else None)
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    attrs = {"message": b"m"} if op == "CheckNumerics" else {}
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **attrs)


def test_cast(ops: Any) -> None:
    def cast(value: Any, target: dtypes.DType) -> Any:
        return ops.run("Cast", [value], DstT=target).tolist()

    assert cast([1.9, -1.9], dtypes.int32) == [1, -1]
    assert cast([0.0, 0.5, -2.0], dtypes.bool_) == [False, True, True]
    assert cast(np.array([True, False]), dtypes.float32) == [1.0, 0.0]
    assert cast([300, -1], dtypes.uint8) == [44, 255]
    assert cast([1, 2], dtypes.complex64) == [1 + 0j, 2 + 0j]
    assert cast(np.array([3 + 4j], "complex64"), dtypes.float32) == [3.0]
    assert cast(np.float16(1.5).reshape(()), dtypes.float64) == 1.5
    with pytest.raises(errors.UnimplementedError, match=r"^Cast string to float is not supported$"):
        cast([b"1"], dtypes.float32)


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize(
    ("op", "function"),
    [("Sum", np.sum), ("Prod", np.prod), ("Mean", np.mean), ("Max", np.max), ("Min", np.min)],
)
def test_reductions(ops: Any, op: str, function: Any, keep: bool) -> None:
    for dtype, axes in itertools.product(("float16", "float32", "float64"), ([0], [-1], [0, 2], [], [0, 1, 2], 1)):
        x = sample((2, 3, 4), dtype)
        where = tuple(axes) if isinstance(axes, list) else axes
        expected = function(x.astype(np.float64), axis=where, keepdims=keep)
        result = ops.run(op, [x, np.array(axes, np.int32)], keep_dims=keep)
        tolerance = 2e-2 if dtype == "float16" else 1e-5
        np.testing.assert_allclose(result, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((300, 37), [1]),
        ((300, 37), [0]),
        ((5, 9001), [1]),
        ((3, 9001), [0]),
        ((6, 1, 40, 50), [1, 2, 3]),
        ((6, 40, 50), [1]),
        ((6, 40, 50), [0, 1]),
        ((6, 40, 50), [0, 2]),
        ((6, 40, 50), [0, 1, 2]),
        ((6, 40, 50), []),
        ((2000, 3), [0]),
        ((2000, 3), [1]),
        ((1, 5000), [0]),
    ],
)
def test_sums_of_large_arrays(ops: Any, shape: tuple[int, ...], axes: list[int], dtype: str) -> None:
    x = np.random.default_rng(1).normal(size=shape).astype(dtype)
    for op, function in (("Sum", np.sum), ("Mean", np.mean)):
        for keep, given in itertools.product((False, True), (x, np.asfortranarray(x))):
            expected = function(x.astype(np.float64), axis=tuple(axes), keepdims=keep)
            result = ops.run(op, [given, np.array(axes, np.int32)], keep_dims=keep)
            assert result.dtype == x.dtype
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-4)


def test_what_is_no_number_stays_in_its_sum(ops: Any) -> None:
    x = np.ones((80, 70), np.float32)
    x[3, 5], x[7, 6], x[8, 6] = np.nan, np.inf, -np.inf
    for axis, odd in ((1, {3: np.nan, 7: np.inf, 8: -np.inf}), (0, {5: np.nan, 6: np.nan})):
        expected = np.full(x.shape[1 - axis], x.shape[axis], np.float32)
        expected[list(odd)] = list(odd.values())
        with np.errstate(invalid="ignore"):
            np.testing.assert_array_equal(ops.run("Sum", [x, [axis]]), expected)


def test_reductions_of_integers(ops: Any) -> None:
    x = np.array([[1, -2], [4, -7]], np.int32)

    assert ops.run("Sum", [x, [0, 1]]).tolist() == -4
    assert ops.run("Mean", [x, [0]]).tolist() == [2, -4]  # truncated, not floored
    assert ops.run("Prod", [x, [1]]).tolist() == [-2, -28]
    assert ops.run("Sum", [np.array([200, 100], np.uint8), [0]]).tolist() == 44


def test_reductions_of_nothing(ops: Any) -> None:
    x = np.zeros((0, 3), np.float32)

    assert ops.run("Sum", [x, [0]]).tolist() == [0, 0, 0]
    assert ops.run("Prod", [x, [0]]).tolist() == [1, 1, 1]
    assert ops.run("Max", [x, [0]]).tolist() == [-math.inf] * 3
    assert ops.run("Min", [x.astype(np.int32), [0]]).tolist() == [2**31 - 1] * 3
    assert np.isnan(ops.run("Mean", [x, [0]])).all()
    assert ops.run("All", [np.zeros((0,), bool), [0]]).tolist() is True
    assert ops.run("Any", [np.zeros((0,), bool), [0]]).tolist() is False


def test_arg_max(ops: Any) -> None:
    x = np.array([[1, 5, 5], [7, 0, 7]], np.float32)

    assert ops.run("ArgMax", [x, 1]).tolist() == [1, 0]
    assert ops.run("ArgMax", [x, -2]).dtype == np.int64
    assert ops.run("ArgMax", [x, 0], output_type=dtypes.int32).dtype == np.int32
    assert ops.run("ArgMin", [x, 1]).tolist() == [0, 1]
    assert ops.run("ArgMax", [np.zeros((0, 3), np.float32), 1]).shape == (0,)
    assert ops.run("ArgMax", [np.zeros(3, np.float32), 0]).shape == ()


@pytest.mark.parametrize(("exclusive", "reverse"), list(itertools.product([False, True], repeat=2)))
def test_cumulative(ops: Any, exclusive: bool, reverse: bool) -> None:
    def loop(values: list[float], start: float, step: Any) -> list[float]:
        out, total = [], start
        for v in reversed(values) if reverse else values:
            out.append(total if exclusive else step(total, v))
            total = step(total, v)
        return out[::-1] if reverse else out

    for op, start, step in (("Cumsum", 0, operator.add), ("Cumprod", 1, operator.mul)):
        result = ops.run(op, [[1.0, 2, 3, 4], 0], exclusive=exclusive, reverse=reverse)
        assert result.tolist() == loop([1, 2, 3, 4], start, step)


@pytest.mark.parametrize(("a", "b"), list(itertools.product([False, True], repeat=2)))
def test_matmul(ops: Any, a: bool, b: bool) -> None:
    for dtype, (m, k, n) in itertools.product(
        ("float16", "float32", "float64", "int32", "complex64"), ((2, 3, 4), (1, 1, 1), (2, 0, 3), (0, 3, 2))
    ):
        x, y = sample((k, m) if a else (m, k), dtype), sample((n, k) if b else (k, n), dtype)
        left, right = (x.T if a else x), (y.T if b else y)
        expected = np.zeros((m, n), np.result_type(dtype, "float32"))
        for i, j, p in itertools.product(range(m), range(n), range(k)):
            expected[i, j] += left[i, p].item() * right[p, j].item()
        result = ops.run("MatMul", [x, y], transpose_a=a, transpose_b=b)
        np.testing.assert_allclose(result, expected, rtol=1e-2 if dtype == "float16" else 1e-5, atol=1e-2)


def test_batch_matmul_broadcasts_from_v2_on(ops: Any) -> None:
    x, y = sample((2, 3, 4), "float32"), sample((4, 5), "float32")

    np.testing.assert_allclose(ops.run("BatchMatMulV2", [x, y]), x @ y, rtol=1e-5)
    np.testing.assert_allclose(ops.run("BatchMatMulV2", [x, sample((5, 4), "f")], adj_y=True).shape, (2, 3, 5))
    with pytest.raises(errors.InvalidArgumentError, match="compatible batch dimensions"):
        ops.run("BatchMatMul", [x, y])
    narrow = np.ones((2, 3, 0), dtypes.bfloat16.as_numpy_dtype)
    assert ops.run("BatchMatMulV2", [narrow, narrow], adj_y=True).tolist() == np.zeros((2, 3, 3)).tolist()


def test_products_of_two_types_are_computed_in_the_results(ops: Any) -> None:
    x, y = np.full((1, 2, 300), 100, np.int8), np.full((300, 1), 100, np.int8)

    assert ops.run("BatchMatMulV3", [x, y], Tout=dtypes.int32).tolist() == [[[3_000_000], [3_000_000]]]
    with pytest.raises(errors.InvalidArgumentError, match="no product of float16 and complex64 in float16"):
        ops.run("BatchMatMulV3", [np.ones((1, 1), np.float16), np.ones((1, 1), np.complex64)], Tout=dtypes.float16)


def test_select(ops: Any) -> None:
    t, e = np.ones((2, 2), np.float32), np.zeros((2, 2), np.float32)

    assert ops.run("Select", [np.array([True, False]), t, e]).tolist() == [[1, 1], [0, 0]]
    assert ops.run("Select", [np.array(False), t, e]).tolist() == [[0, 0], [0, 0]]
    assert ops.run("Select", [np.eye(2, dtype=bool), t, e]).tolist() == [[1, 0], [0, 1]]
    assert ops.run("SelectV2", [np.array([True, False]), t, e]).tolist() == [[1, 0], [1, 0]]
    assert ops.run("Select", [np.array([True]), [b"x"], [b"y"]]).tolist() == [b"x"]


@pytest.mark.parametrize(
    ("a", "b", "first", "second"),
    [
        ([2, 3], [2, 3], [], []),
        ([2, 3], [3], [], [0]),
        ([2, 1], [1, 3], [1], [0]),
        ([], [2, 3], [0, 1], []),
        ([1], [1], [], []),
        ([2, 1], [1], [1], [0, 1]),
        ([0], [1], [], [0]),
    ],
)
def test_broadcast_gradient_args(ops: Any, a: list[int], b: list[int], first: list[int], second: list[int]) -> None:
    r0, r1 = ops.run("BroadcastGradientArgs", [np.array(a, np.int32), np.array(b, np.int32)])

    assert (r0.tolist(), r1.tolist()) == (first, second)


def test_parts_of_complex_numbers_stay_apart(ops: Any) -> None:
    found = ops.run("Complex", [np.float32([2, np.inf]), np.float32([[np.inf], [1]])], Tout=dtypes.complex64)

    assert found.real.tolist() == [[2, np.inf]] * 2
    assert found.imag.tolist() == [[np.inf] * 2, [1, 1]]


def test_making_and_adding(ops: Any) -> None:
    assert ops.run("Range", [1, 7, 2]).tolist() == [1, 3, 5]
    assert ops.run("Range", [5, 0, -2]).tolist() == [5, 3, 1]
    assert ops.run("Range", [0.0, 1.0, 0.25]).tolist() == [0, 0.25, 0.5, 0.75]
    bfloat16 = np.array([0, 1, 0.25], dtypes.bfloat16.as_numpy_dtype)
    assert ops.run("Range", [*bfloat16]).tolist() == [0, 0.25, 0.5, 0.75]
    assert ops.run("LinSpace", [0.0, 1.0, 3]).tolist() == [0, 0.5, 1]
    assert ops.run("AddN", [[1.0, 2], [3.0, 4], [5.0, 6]]).tolist() == [9, 12]
    assert ops.run("AddN", [np.float32(1).reshape(())] * 2).tolist() == 2
    assert ops.run("BroadcastTo", [[1, 2], [2, 2]]).tolist() == [[1, 2], [1, 2]]
    assert ops.run("Add", [[b"a"], [b"b"]]).tolist() == [b"ab"]
    assert ops.run("Einsum", [sample((2, 3), "f"), sample((4, 3), "f")], equation=b"ij,kj->ik").shape == (2, 4)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Expected dimension 3 at axis 1 of the input shaped"):
        ops.run("Einsum", [sample((2, 3), "f"), sample((4, 1), "f")], equation=b"ij,kj->ik")


def test_segments(ops: Any) -> None:
    rows = np.array([[1, 2], [3, 4], [5, 6]], np.float32)

    assert ops.run("SegmentSum", [rows, [0, 0, 2]]).tolist() == [[4, 6], [0, 0], [5, 6]]
    assert ops.run("SegmentMean", [rows, [0, 0, 1]]).tolist() == [[2, 3], [5, 6]]
    assert ops.run("UnsortedSegmentSum", [rows, [1, -1, 1], 3]).tolist() == [[0, 0], [6, 8], [0, 0]]
    assert ops.run("UnsortedSegmentMax", [[1, 2], [0, 0], 1]).tolist() == [2]
    assert ops.run("SparseSegmentMean", [rows, [0, 2], [0, 0]]).tolist() == [[3, 4]]


def test_bitcast(ops: Any) -> None:
    assert ops.run("Bitcast", [[1.0]], type=dtypes.int32).tolist() == [0x3F800000]
    assert ops.run("Bitcast", [[1.0]], type=dtypes.uint8).tolist() == [[0, 0, 0x80, 0x3F]]
    assert ops.run("Bitcast", [np.array([0, 0, 0x80, 0x3F], np.uint8)], type=dtypes.float32).tolist() == 1.0


@pytest.mark.parametrize("op", ["SegmentMean", "SparseSegmentMeanWithNumSegments", "SparseSegmentMeanGrad"])
def test_counts_of_empty_rows_are_tensors_too(ops: Any, op: str) -> None:
    """Rows without elements take no memory, but how many of them a segment has is counted."""
    data, ids, most = np.zeros((1, 0), np.float32), np.int64([0]), 1 << 45
    inputs = {
        "SegmentMean": [data, np.int64([most])],
        "SparseSegmentMeanWithNumSegments": [data, ids, ids, np.int64(most)],
        "SparseSegmentMeanGrad": [np.zeros((most, 0), np.float32), ids, ids, np.int32(1)],
    }[op]

    with pytest.raises(errors.ResourceExhaustedError):
        ops.run(op, inputs)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([0, 2, 1, 2], "^segment ids are not increasing$"),
        ([0, 1, 2, 0], r"^Segment id 1 out of range \[0, 1\), possibly because"),
        ([-1, 0, 0, 1], r"^Segment id -1 out of range \[0, 2\), possibly because"),
        ([0, 0, 0, -2], "^segment ids must be >= 0$"),
    ],
)
def test_segments_that_are_not_sorted(ops: Any, ids: list[int], text: str) -> None:
    data, rows = np.ones((4, 2), np.float32), np.zeros(4, np.int32)

    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SegmentMax", [data, ids])
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run("SparseSegmentMean", [data, rows, ids])


def test_bounds_of_a_clip(ops: Any) -> None:
    x = np.array([-2 + 2j, 0.5 - 2j], np.complex64)

    assert ops.run("ClipByValue", [x, np.complex64(-1 - 1j), np.complex64(1 + 1j)]).tolist() == [-1 + 1j, 0.5 - 1j]
    assert ops.run("ClipByValue", [np.float32([5]), np.float32(3), np.float32(1)]).tolist() == [3]
    with pytest.raises(errors.InvalidArgumentError, match=r"^clip_value_min and clip_value_max must be either"):
        ops.run("ClipByValue", [np.float32([5]), np.float32([3, 4]), np.float32(1)])


def test_a_segment_without_rows_has_bfloat16s_own_limits(ops: Any) -> None:
    bfloat16 = dtypes.bfloat16.as_numpy_dtype
    inputs = [np.array([1, 2], bfloat16), [0, 0], 2]

    assert ops.run("UnsortedSegmentMax", inputs).tolist() == [2, dtypes.bfloat16.min]
    assert ops.run("UnsortedSegmentMin", inputs).tolist() == [1, dtypes.bfloat16.max]
