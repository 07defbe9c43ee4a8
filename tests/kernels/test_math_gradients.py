"""Gradients of the math ops against finite differences, with known and with unknown static shapes."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import dtypes

RNG = np.random.default_rng(7)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape)


def positive(*shape: int) -> np.ndarray:
    return RNG.uniform(0.5, 2.0, shape)


def unary(op_type: str):
    return lambda x: apply_op(op_type, x=x)


def binary(op_type: str):
    return lambda x, y: apply_op(op_type, x=x, y=y)


BROADCASTS = [
    pytest.param((3, 4), (3, 4), id="same"),
    pytest.param((3, 4), (4,), id="row"),
    pytest.param((3, 1), (3, 4), id="column"),
    pytest.param((2, 1, 4), (3, 1), id="both"),
    pytest.param((), (2, 3), id="scalar"),
    pytest.param((0, 4), (4,), id="empty"),
]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(("left", "right"), BROADCASTS)
@pytest.mark.parametrize("op_type", ["Add", "AddV2", "Sub", "Mul", "RealDiv", "Maximum", "Minimum"])
def test_broadcasting_op(op_type, left, right, static):
    error = directional_error(binary(op_type), [normal(*left), positive(*right)], static_shapes=static)

    assert error < 1e-6


@pytest.mark.parametrize("op_type", ["DivNoNan", "SquaredDifference", "Pow", "FloorMod", "Atan2"])
def test_more_broadcasting_ops(op_type):
    error = directional_error(binary(op_type), [positive(3, 4), positive(4)])

    assert error < 1e-6


SMOOTH = [
    "Neg",
    "Abs",
    "Square",
    "Exp",
    "Expm1",
    "Sigmoid",
    "Tanh",
    "Sin",
    "Cos",
    "Tan",
    "Atan",
    "Erf",
    "Erfc",
    "Sinh",
    "Cosh",
]
OF_POSITIVE = ["Sqrt", "Rsqrt", "Reciprocal", "Log", "Log1p", "Lgamma", "Asinh"]
OF_UNIT = ["Asin", "Acos", "Atanh"]


@pytest.mark.parametrize("op_type", [*SMOOTH, *OF_POSITIVE, *OF_UNIT])
def test_function_of_one_input(op_type):
    value = {"p": positive(3, 4), "u": positive(3, 4) / 4}.get(
        "p" if op_type in OF_POSITIVE else "u" if op_type in OF_UNIT else "", normal(3, 4)
    )

    error = directional_error(unary(op_type), [value])

    assert error < 1e-6


def test_second_derivatives_of_sigmoid_and_tanh():
    def slope(op_type: str):
        return lambda y, dy: apply_op(op_type, y=y, dy=dy)

    for op_type in ("SigmoidGrad", "TanhGrad"):
        assert directional_error(slope(op_type), [normal(3), normal(3)]) < 1e-6


AXES = [
    pytest.param([0], id="rows"),
    pytest.param([-1], id="columns"),
    pytest.param([0, 1], id="all"),
    pytest.param([], id="none"),
]


@pytest.mark.parametrize("static", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize("keep_dims", [False, True])
@pytest.mark.parametrize("axes", AXES)
@pytest.mark.parametrize("op_type", ["Sum", "Mean", "Max", "Min"])
def test_reduction(op_type, axes, keep_dims, static):
    def build(x):
        return apply_op(op_type, input=x, reduction_indices=np.array(axes, np.int32), keep_dims=keep_dims)

    assert directional_error(build, [normal(3, 4)], static_shapes=static) < 1e-6


@pytest.mark.parametrize("axes", AXES)
def test_product_with_a_zero_factor(axes):
    value = normal(3, 4)
    value[1, 2] = 0.0

    def build(x):
        return apply_op("Prod", input=x, reduction_indices=np.array(axes, np.int32))

    assert directional_error(build, [value]) < 1e-6


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_matmul(transpose_a, transpose_b):
    a = normal(3, 2) if transpose_a else normal(2, 3)
    b = normal(4, 3) if transpose_b else normal(3, 4)

    def build(x, y):
        return apply_op("MatMul", a=x, b=y, transpose_a=transpose_a, transpose_b=transpose_b)

    assert directional_error(build, [a, b]) < 1e-6


@pytest.mark.parametrize("adj_x", [False, True])
@pytest.mark.parametrize("adj_y", [False, True])
def test_batch_matmul_broadcasts_batches(adj_x, adj_y):
    x = normal(5, 1, 3, 2) if adj_x else normal(5, 1, 2, 3)
    y = normal(2, 4, 3) if adj_y else normal(2, 3, 4)

    error = directional_error(lambda a, b: apply_op("BatchMatMulV2", x=a, y=b, adj_x=adj_x, adj_y=adj_y), [x, y])

    assert error < 1e-6


def test_add_n():
    assert (
        directional_error(lambda a, b, c: apply_op("AddN", inputs=[a, b, c, a]), [normal(2, 3) for _ in "abc"]) < 1e-6
    )


def test_select():
    condition = np.array([[True, False, True]])

    def build(c, x, y):
        return apply_op("Select", condition=c, t=x, e=y)

    assert directional_error(build, [condition, normal(1, 3), normal(1, 3)]) < 1e-6


def test_select_v2_broadcasts_three_ways():
    condition = np.array([[True], [False]])

    def build(c, x, y):
        return apply_op("SelectV2", condition=c, t=x, e=y)

    assert directional_error(build, [condition, normal(3), normal(2, 1)]) < 1e-6


def test_cast_between_floating_types():
    def build(x):
        return apply_op("Cast", x=apply_op("Cast", x=x, DstT=dtypes.float32), DstT=dtypes.float64)

    assert directional_error(build, [normal(3)], step=1e-2) < 1e-2


def test_unsorted_segment_sum_drops_negative_ids():
    ids = np.array([0, 2, -1, 0], np.int32)

    def build(data, segments):
        return apply_op("UnsortedSegmentSum", data=data, segment_ids=segments, num_segments=3)

    assert directional_error(build, [normal(4, 2), ids]) < 1e-6


@pytest.mark.parametrize("exclusive", [False, True])
@pytest.mark.parametrize("reverse", [False, True])
def test_cumsum(exclusive, reverse):
    error = directional_error(
        lambda x: apply_op("Cumsum", x=x, axis=1, exclusive=exclusive, reverse=reverse), [normal(3, 4)]
    )

    assert error < 1e-6


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_squared_difference_of_complex_numbers_has_the_gradients_of_its_square(dtype: str) -> None:
    """It is the square of the distance, a real number, as is what comes in."""
    x, y = (tf.constant((normal(3) + 1j * normal(3)).astype(dtype)) for _ in range(2))
    g = tf.constant(normal(3).astype(dtype))
    wanted = tf.gradients((x - y) * tf.conj(x - y), [x, y], grad_ys=g)
    found = tf.gradients(apply_op("SquaredDifference", x=x, y=y), [x, y], grad_ys=g)

    with tf.Session() as session:
        for ours, theirs in zip(*session.run((found, wanted)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)
