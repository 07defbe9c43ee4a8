"""Gradients of functions of one number: first and second derivatives, of real and of complex numbers, at the edges."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

REAL = np.array([[-1.3, -0.4, 0.7], [0.2, 2.1, -2.2]])
POSITIVE = np.abs(REAL)
SMALL = REAL / 3
LARGE = POSITIVE + 1

#: op → where it is smooth.
SMOOTH: dict[str, np.ndarray] = {
    **dict.fromkeys(
        ("Neg", "Abs", "Square", "Exp", "Expm1", "Sigmoid", "Tanh", "Sin", "Cos", "Tan", "Atan", "Sinh", "Cosh",
         "Asinh", "Erf", "Erfc"), REAL,
    ),
    **dict.fromkeys(("Sqrt", "Rsqrt", "Reciprocal", "Inv", "Log", "Log1p", "Lgamma"), POSITIVE),
    **dict.fromkeys(("Asin", "Acos", "Atanh"), SMALL),
    "Acosh": LARGE,
}  # fmt: skip


@pytest.mark.parametrize("op", SMOOTH)
def test_first_derivative(op: str) -> None:
    assert directional_error(lambda x: apply_op(op, x=x), [SMOOTH[op]]) < 1e-6


@pytest.mark.parametrize("op", ["SqrtGrad", "RsqrtGrad", "ReciprocalGrad", "InvGrad", "SigmoidGrad", "TanhGrad"])
def test_the_slope_moves_with_the_value_and_with_what_comes_in(op: str) -> None:
    """Each of its two inputs is differentiated, which have no value in common."""
    y, dy = POSITIVE, REAL[::-1] + 0.1
    assert directional_error(lambda y, dy: apply_op(op, y=y, dy=dy), [y, dy]) < 1e-6


@pytest.mark.parametrize(
    "op", ["Square", "Sqrt", "Rsqrt", "Reciprocal", "Exp", "Log", "Sigmoid", "Tanh", "Sin", "Acosh", "Erf", "Erfc"]
)
def test_second_derivative(op: str) -> None:
    def slope(x: Any) -> Any:
        return tf.gradients(apply_op(op, x=x), x)[0]

    assert directional_error(slope, [SMOOTH[op]]) < 1e-6


#: Functions of complex numbers that have a derivative, with where it is asked for.
HOLOMORPHIC = (
    "Square", "Sqrt", "Rsqrt", "Reciprocal", "Inv", "Exp", "Expm1", "Log", "Log1p", "Sigmoid", "Tanh", "Sin", "Cos",
    "Tan", "Atan", "Asin", "Acos", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh", "Neg",
)  # fmt: skip


def test_complex_numbers_have_the_conjugate_of_the_slope() -> None:
    """The gradient of a real loss through a holomorphic f is g times the conjugate of its derivative."""
    x = np.array([0.4 + 0.7j, -0.3 - 0.2j, 0.6 - 0.5j])
    g = np.array([1.5 - 0.5j, -0.7 + 2.0j, 0.3 + 1.1j])
    step = 1e-6
    with tf.Graph().as_default(), tf.Session() as session:
        given = tf.placeholder(tf.complex128, [3])
        made = {op: apply_op(op, x=given) for op in HOLOMORPHIC}
        slopes = {op: tf.gradients(y, given, grad_ys=tf.constant(g))[0] for op, y in made.items()}
        found = session.run(slopes, {given: x})
        ahead, behind = (session.run(made, {given: x + shift}) for shift in (step, -step))

    for op in HOLOMORPHIC:
        derivative = (ahead[op] - behind[op]) / (2 * step)
        np.testing.assert_allclose(found[op], g * np.conj(derivative), rtol=1e-6, err_msg=op)


def test_steps_and_decisions_pass_nothing_on() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([0.5, -2.0])
        for op in ("Floor", "Ceil", "Rint", "Round"):
            assert tf.gradients(apply_op(op, x=x), x) == [None], op
        for op in ("IsFinite", "IsInf", "IsNan"):
            assert tf.gradients(tf.cast(apply_op(op, x=x), tf.float32), x) == [None], op
        assert session.run(tf.gradients(tf.sign(x), x)[0]).tolist() == [0, 0]


def test_where_another_value_is_chosen_the_pole_gives_nothing() -> None:
    """Programs choose another value where x is 0: a gradient of 0 through the pole stays 0 there."""
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([0.0, 4.0], tf.float64)
        safe = tf.constant([0.0, 1.0], tf.float64)
        found = session.run(
            {op: tf.gradients(apply_op(op, x=x), x, grad_ys=safe)[0] for op in ("Sqrt", "Rsqrt", "Reciprocal")}
        )
    np.testing.assert_allclose(found["Sqrt"], [0, 0.25])
    np.testing.assert_allclose(found["Rsqrt"], [0, -1 / 16])
    np.testing.assert_allclose(found["Reciprocal"], [0, -1 / 16])


def test_known_slopes() -> None:
    """At points whose derivative everybody knows, with the size of what comes in."""
    known = [
        ("Abs", [-2.0, 0.0, 3.0], [-1, 0, 1]),
        ("Erf", [0.0], [2 / math.sqrt(math.pi)]),
        ("Erfc", [0.0], [-2 / math.sqrt(math.pi)]),
        ("Atan", [1.0], [0.5]),
        ("Lgamma", [1.0], [-0.5772156649015329]),
        ("Square", [3.0], [6]),
    ]
    with tf.Graph().as_default(), tf.Session() as session:
        for op, at, slopes in known:
            x = tf.constant(at, tf.float64)
            found = session.run(
                tf.gradients(apply_op(op, x=x), x, grad_ys=tf.fill([len(at)], tf.constant(3.0, tf.float64)))
            )
            np.testing.assert_allclose(found[0], 3 * np.array(slopes), err_msg=op)
