"""Gradients of the math ops, op by op: products in every position, values where a derivative is chosen, types, none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients import registry
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import dtypes

RNG = np.random.default_rng(11)


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape)


def positive(*shape: int) -> Any:
    return RNG.uniform(0.5, 2.0, shape)


def slopes(op: str, given: dict[str, Any], *, g: Any = None, **attrs: Any) -> list[Any]:
    """The gradients of an op for its inputs, None where there is none. `g` is that of its output, else ones."""
    with tf.Graph().as_default(), tf.Session() as session:
        inputs = {name: tf.constant(value) for name, value in given.items()}
        output = apply_op(op, **inputs, **attrs)
        found = tf.gradients(output, list(inputs.values()), None if g is None else tf.constant(g))
        known = iter(session.run([each for each in found if each is not None]))
        return [None if each is None else next(known) for each in found]


# ---- two operands ----------------------------------------------------------------------------------------------------

SHAPES = [((3, 4), (4,)), ((4,), (3, 1)), ((), (2, 3))]


@pytest.mark.parametrize(("left", "right"), SHAPES)
@pytest.mark.parametrize(
    "op", ["MulNoNan", "Xdivy", "Xlogy", "DivNoNan", "Div", "Atan2", "SquaredDifference", "Pow", "Maximum", "Minimum"]
)
def test_both_operands_have_their_slope_and_shape(op: str, left: Any, right: Any) -> None:
    values = [positive(*left), positive(*right) + 0.05]
    assert directional_error(lambda x, y: apply_op(op, x=x, y=y), values) < 1e-6


@pytest.mark.parametrize("op", ["Xlogy", "Xdivy", "DivNoNan", "MulNoNan"])
def test_a_zero_has_the_slope_that_keeps_training_finite(op: str) -> None:
    x, y, g = np.array([0.0, 0.0, 3.0]), np.array([2.0, 0.0, 4.0]), np.array([1.0, 10.0, 100.0])
    expected = {
        "Xlogy": ([0, 0, 100 * np.log(4)], [0, 0, 75]),
        "Xdivy": ([0, 0, 25], [0, 0, -100 * 3 / 16]),
        "DivNoNan": ([0.5, 0, 25], [0, 0, -100 * 3 / 16]),
        "MulNoNan": ([2, 0, 400], [0, 0, 300]),
    }[op]
    for ours, wanted in zip(slopes(op, {"x": x, "y": y}, g=g), expected, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-12)


def test_a_power_of_what_is_not_positive_gives_its_exponent_no_slope() -> None:
    x, y = np.array([-2.0, 0.0, 2.0]), np.array([3.0, 2.0, 3.0])
    of_x, of_y = slopes("Pow", {"x": x, "y": y}, g=np.array([1.0, 1.0, 10.0]))
    np.testing.assert_allclose(of_x, [12, 0, 120], rtol=1e-12)
    np.testing.assert_allclose(of_y, [0, 0, 80 * np.log(2)], rtol=1e-12)


def test_a_power_of_a_complex_zero_gives_its_exponent_no_slope() -> None:
    x, y = np.array([0j, -2 + 0j]), np.array([2 + 0j, 3 + 0j])
    _, of_y = slopes("Pow", {"x": x, "y": y}, g=np.ones(2, np.complex128))
    np.testing.assert_allclose(of_y, [0, np.conj(-8 * np.log(-2 + 0j))], rtol=1e-12)


@pytest.mark.parametrize(("op", "at_one"), [("Maximum", [1, 0, 100]), ("Minimum", [0, 10, 100])])
def test_where_both_are_the_same_the_first_has_the_slope(op: str, at_one: list[float]) -> None:
    of_x, of_y = slopes(op, {"x": np.array([2.0, 1, 3]), "y": np.array([1.0, 2, 3])}, g=np.array([1.0, 10, 100]))
    assert of_x.tolist() == at_one
    assert (of_x + of_y).tolist() == [1, 10, 100]


def test_a_remainder_goes_with_its_dividend_and_against_the_quotient() -> None:
    of_x, of_y = slopes("FloorMod", {"x": np.array([7.0, -7.0]), "y": np.array([2.0, 2.0])}, g=np.array([1.0, 10.0]))
    assert (of_x.tolist(), of_y.tolist()) == ([1, 10], [-3, 40])


def test_the_next_number_moves_with_the_first() -> None:
    of_x, of_y = slopes("NextAfter", {"x1": normal(2, 3), "x2": normal(3)}, g=np.full((2, 3), 5.0))
    assert of_x.tolist() == [[5.0] * 3] * 2
    assert of_y.tolist() == [0.0] * 3


def test_cross_products() -> None:
    assert directional_error(lambda a, b: apply_op("Cross", a=a, b=b), [normal(2, 3), normal(2, 3)]) < 1e-6


@pytest.mark.parametrize("op", ["FloorDiv", "TruncateDiv"])
def test_whole_quotients_have_no_slope(op: str) -> None:
    assert slopes(op, {"x": np.array([7.0, 8.0]), "y": np.array([2.0, 3.0])}) == [None, None]


@pytest.mark.parametrize("op", ["Mul", "RealDiv", "DivNoNan", "Pow", "MulNoNan", "Xlogy", "Xdivy"])
def test_complex_numbers_have_conjugate_slopes(op: str) -> None:
    """For a real g, the gradient of a holomorphic function of x is the conjugate of its derivative."""
    x, y = (value.astype(np.complex128) for value in (positive(3) + 1j * positive(3), positive(3) + 2j * positive(3)))
    derivative = {
        "Mul": (y, x),
        "RealDiv": (1 / y, -x / y**2),
        "DivNoNan": (1 / y, -x / y**2),
        "Pow": (y * x ** (y - 1), x**y * np.log(x)),
        "MulNoNan": (y, x),
        "Xlogy": (np.log(y), x / y),
        "Xdivy": (1 / y, -x / y**2),
    }[op]
    found = slopes(op, {"x": x, "y": y}, g=np.ones(3, np.complex128))
    for ours, wanted in zip(found, derivative, strict=True):
        np.testing.assert_allclose(ours, np.conj(wanted), rtol=1e-12)


# ---- many operands, choices, types -----------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["AddN", "AccumulateNV2"])
def test_every_summand_has_the_sums_slope(op: str) -> None:
    attrs = {"shape": [2]} if op == "AccumulateNV2" else {}
    error = directional_error(lambda a, b, c: apply_op(op, inputs=[a, b, c, a], **attrs), [normal(2)] * 3)
    assert error < 1e-6


@pytest.mark.parametrize("op", ["Select", "SelectV2"])
def test_what_was_not_chosen_has_no_slope(op: str) -> None:
    given = {"condition": np.array([True, False, True]), "t": normal(3), "e": normal(3)}
    of_condition, of_t, of_e = slopes(op, given, g=np.array([1.0, 10.0, 100.0]))
    assert of_condition is None
    assert (of_t.tolist(), of_e.tolist()) == ([1, 0, 100], [0, 10, 0])


def test_a_scalar_choice_of_rows() -> None:
    given = {"condition": np.array([True, False]), "t": normal(2, 3), "e": normal(2, 3)}
    _, of_t, of_e = slopes("Select", given, g=np.ones((2, 3)))
    assert (of_t.tolist(), of_e.tolist()) == ([[1] * 3, [0] * 3], [[0] * 3, [1] * 3])


@pytest.mark.parametrize(
    ("source", "target", "has_slope"),
    [
        (np.float32, dtypes.float64, True),
        (np.float64, dtypes.float16, True),
        (np.complex64, dtypes.complex128, True),
        (np.float32, dtypes.complex64, True),
        (np.int32, dtypes.float32, False),
        (np.bool_, dtypes.float32, False),
    ],
)
def test_a_cast_gives_its_slope_back_in_the_type_it_came_from(source: Any, target: Any, has_slope: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(np.ones(2, source))
        (found,) = tf.gradients(
            apply_op("Cast", x=x, DstT=target), [x], tf.constant(np.array([2, 3], target.as_numpy_dtype))
        )
        if not has_slope:
            assert found is None
            return
        value = session.run(found)
    assert (value.dtype, value.tolist()) == (source, [2, 3])


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_what_was_spread_is_summed(kind: Any) -> None:
    of_x, of_shape = slopes(
        "BroadcastTo", {"input": normal(2, 1), "shape": np.array([3, 2, 4], kind)}, g=np.arange(24.0).reshape(3, 2, 4)
    )
    assert of_x.tolist() == np.arange(24.0).reshape(3, 2, 4).sum(axis=(0, 2)).reshape(2, 1).tolist()
    assert of_shape is None


def test_a_gradient_is_checked_as_its_numbers_were() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([1.0, 2.0])
        checked = apply_op("CheckNumerics", tensor=x, message="of the value", name="checked")
        fine, broken = (tf.gradients(checked, [x], tf.constant([1.0, g]))[0] for g in (3.0, np.nan))
        assert session.run(fine).tolist() == [1, 3]
        with pytest.raises(
            tf.errors.InvalidArgumentError, match=r"NaN.*Inf.*values detected in gradient of checked\. : Tensor had NaN"
        ):
            session.run(broken)


# ---- products of matrices --------------------------------------------------------------------------------------------

TURNS = [(first, second) for first in (False, True) for second in (False, True)]


def factors(turn_a: bool, turn_b: bool, *, batches: Any = ((), ())) -> list[Any]:
    """Of a product [2, 3] x [3, 4]."""
    a, b = ((*batch, *shape) for batch, shape in zip(batches, ((2, 3), (3, 4)), strict=True))
    return [normal(*a[:-2], *(a[:-3:-1] if turn_a else a[-2:])), normal(*b[:-2], *(b[:-3:-1] if turn_b else b[-2:]))]


@pytest.mark.parametrize(("turn_a", "turn_b"), TURNS)
@pytest.mark.parametrize("batches", [((5,), (5,)), ((), ()), ((2, 1), (2, 1))], ids=str)
def test_products_of_batches(turn_a: bool, turn_b: bool, batches: Any) -> None:
    def build(x: Any, y: Any) -> Any:
        return apply_op("BatchMatMul", x=x, y=y, adj_x=turn_a, adj_y=turn_b)

    assert directional_error(build, factors(turn_a, turn_b, batches=batches)) < 1e-6


@pytest.mark.parametrize(("turn_a", "turn_b"), TURNS)
@pytest.mark.parametrize("op", ["BatchMatMulV2", "BatchMatMulV3"])
@pytest.mark.parametrize("batches", [((5, 1), (2,)), ((3,), (1,)), ((), (2,))], ids=str)
def test_products_of_batches_that_are_spread(turn_a: bool, turn_b: bool, op: str, batches: Any) -> None:
    def build(x: Any, y: Any) -> Any:
        attrs = {"Tout": dtypes.float64} if op == "BatchMatMulV3" else {}
        return apply_op(op, x=x, y=y, adj_x=turn_a, adj_y=turn_b, **attrs)

    assert directional_error(build, factors(turn_a, turn_b, batches=batches)) < 1e-6


@pytest.mark.parametrize(("turn_a", "turn_b"), TURNS)
@pytest.mark.parametrize("op", ["MatMul", "BatchMatMul", "BatchMatMulV2"])
def test_complex_products(turn_a: bool, turn_b: bool, op: str) -> None:
    """A sum of g times the product, differentiated in NumPy. Adjoint operands are conjugate, transposed ones not."""
    a, b = (real + 1j * other for real, other in zip(factors(turn_a, turn_b), factors(turn_a, turn_b), strict=True))
    g = normal(2, 4) + 1j * normal(2, 4)
    names, turns = ("a", "b"), ("transpose_a", "transpose_b")
    if op != "MatMul":
        names, turns = ("x", "y"), ("adj_x", "adj_y")
    turned = np.transpose if op == "MatMul" else lambda m: m.conj().T
    left, right = turned(a) if turn_a else a, turned(b) if turn_b else b
    of_left, of_right = g @ right.conj().T, left.conj().T @ g

    found = slopes(op, dict(zip(names, (a, b), strict=True)), g=g, **dict(zip(turns, (turn_a, turn_b), strict=True)))

    np.testing.assert_allclose(found[0], turned(of_left) if turn_a else of_left, rtol=1e-12)
    np.testing.assert_allclose(found[1], turned(of_right) if turn_b else of_right, rtol=1e-12)


@pytest.mark.parametrize(("turn_a", "turn_b"), TURNS)
@pytest.mark.parametrize("kinds", [(np.float32, np.float32), (dtypes.bfloat16.as_numpy_dtype, np.float32)])
def test_sparse_products(turn_a: bool, turn_b: bool, kinds: Any) -> None:
    a, b = (np.round(each * 4).astype(kind) for each, kind in zip(factors(turn_a, turn_b), kinds, strict=True))
    g = np.round(normal(2, 4) * 4).astype(np.float32)
    left, right = (each.astype(np.float64) for each in (a.T if turn_a else a, b.T if turn_b else b))
    of_left, of_right = g @ right.T, left.T @ g

    found = slopes("SparseMatMul", {"a": a, "b": b}, g=g, transpose_a=turn_a, transpose_b=turn_b, a_is_sparse=True)

    assert [each.dtype for each in found] == list(kinds)
    wanted = (of_left.T if turn_a else of_left), (of_right.T if turn_b else of_right)
    for ours, each in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours.astype(np.float64), each, rtol=1e-2)


def test_what_is_sparse_is_said_to_the_products_of_the_slopes() -> None:
    """A slope is sparse behind a Relu: most of it is zero."""
    with tf.Graph().as_default() as graph:
        a, b = tf.constant(np.ones((2, 3), np.float32)), tf.constant(np.ones((3, 4), np.float32))
        product = apply_op("SparseMatMul", a=a, b=b, a_is_sparse=True)
        for output, is_sparse in ((tf.nn.relu(product), True), (tf.exp(product), False)):
            before = set(graph.get_operations())
            tf.gradients(output, [a, b])
            made = [op for op in graph.get_operations() if op not in before and op.type == "SparseMatMul"]
            flags = {
                side: [op.get_attr(f"{side}_is_sparse") for op in made if op.inputs[side == "b"] is operand]
                for side, operand in (("a", a), ("b", b))
            }
            assert len(made) == 2
            assert flags["b"] in ([], [False])
            of_slope = [op.get_attr("a_is_sparse") for op in made if op.inputs[0] not in (a, b)] + [
                op.get_attr("b_is_sparse") for op in made if op.inputs[1] not in (a, b)
            ]
            assert of_slope == [is_sparse] * 2
            of_a = [op.get_attr(f"{side}_is_sparse") for op in made for side, x in zip("ab", op.inputs, strict=True)
                    if x is a]  # fmt: skip
            assert of_a == [True]


# ---- none ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["Less", "NotEqual", "LinSpace", "Bitcast", "RaggedRange", "BroadcastArgs", "Invert"])
def test_decisions_and_bits_have_no_slope(op: str) -> None:
    assert registry.lookup(op) is None


@pytest.mark.parametrize("op", ["Mod", "TruncateMod"])
def test_a_slope_that_nobody_has_written_is_an_error(op: str) -> None:
    with pytest.raises(LookupError, match=op):
        slopes(op, {"x": np.array([7.0]), "y": np.array([2.0])})
