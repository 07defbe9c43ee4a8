"""Special functions: known values, identities between them, and their gradients against finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op
from tenfold_core import errors

EULER = 0.57721566490153286


@pytest.mark.parametrize(
    ("op", "inputs", "expected"),
    [
        ("Digamma", [1.0], -EULER),
        ("Polygamma", [1.0, 1.0], math.pi**2 / 6),
        ("Zeta", [2.0, 1.0], math.pi**2 / 6),
        ("Igamma", [1.0, 2.0], 1 - math.exp(-2)),
        ("Betainc", [2.0, 1.0, 0.25], 0.0625),
        ("Erfinv", [math.erf(0.7)], 0.7),
        ("Ndtri", [0.5 * math.erfc(-1.5 / math.sqrt(2))], 1.5),
        ("Xlog1py", [3.0, 1.0], 3 * math.log(2)),
        ("Xlog1py", [0.0, -1.0], 0.0),
    ],
)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_known_values(ops: Any, op: str, inputs: list[float], expected: float, dtype: Any) -> None:
    value = ops.run(op, [np.array(x, dtype) for x in inputs])

    assert value == pytest.approx(expected, rel=1e-5 if dtype == np.float32 else 1e-12)


def test_the_two_halves_of_a_function_are_one(ops: Any) -> None:
    a, b, x = np.random.default_rng(5).uniform(0.2, 0.8, (3, 4, 5))

    np.testing.assert_allclose(ops.run("Igamma", [a, x]) + ops.run("Igammac", [a, x]), 1, rtol=1e-12)
    np.testing.assert_allclose(ops.run("Betainc", [a, b, x]) + ops.run("Betainc", [b, a, 1 - x]), 1, rtol=1e-12)


def test_two_inputs_broadcast_and_three_do_not(ops: Any) -> None:
    row, column = np.ones((1, 3)), np.ones((2, 1))

    assert ops.run("Igamma", [row, column]).shape == (2, 3)
    with pytest.raises(errors.InvalidArgumentError):
        ops.run("Betainc", [row, column, row])


@pytest.mark.parametrize("op", ["Digamma", "Erfinv", "Ndtri"])
def test_gradients(op: str) -> None:
    x = np.random.default_rng(6).uniform(0.2, 0.8, (3, 4))

    assert directional_error(lambda x: apply_op(op, x=x), [x]) < 1e-5


def test_the_gradient_of_xlog1py_reaches_both_inputs() -> None:
    x, y = np.random.default_rng(7).uniform(0.5, 2, (2, 3, 1))

    assert directional_error(lambda x, y: apply_op("Xlog1py", x=x, y=y), [x, y.reshape(1, 3)]) < 1e-5


def bessel(order: int, x: float) -> float:
    """I(x) by its integral, the trapezoidal rule, which is exact here to rounding."""
    t = (np.arange(400) + 0.5) * math.pi / 400
    return float(np.mean(np.exp(x * np.cos(t)) * np.cos(order * t)))


@pytest.mark.parametrize("x", [0.0, 1e-3, 0.7, 5.0, 29.9, 30.1, 80.0])
def test_bessel_functions(ops: Any, x: float) -> None:
    for order in (0, 1):
        expected = bessel(order, x)
        scaled = ops.run(f"BesselI{order}e", [np.array([x, -x])])
        assert ops.run(f"BesselI{order}", [np.array(x)]) == pytest.approx(expected, rel=1e-12)
        assert scaled[0] == pytest.approx(expected * math.exp(-x), rel=1e-12)
        assert scaled[1] == (-1) ** order * scaled[0]


@pytest.mark.parametrize("op", ["BesselI0", "BesselI0e", "BesselI1", "BesselI1e"])
def test_gradients_of_bessel_functions(op: str) -> None:
    x = np.array([[-3.0, -0.2, 0.4], [1.0, 8.0, 33.0 if op.endswith("e") else 2.0]])

    assert directional_error(lambda x: apply_op(op, x=x), [x]) < 1e-5


@pytest.mark.parametrize("op", ["Igamma", "Igammac"])
def test_gradients_of_the_incomplete_gamma_functions(op: str) -> None:
    a, x = np.random.default_rng(8).uniform(0.5, 2, (2, 3, 1))

    assert directional_error(lambda a, x: apply_op(op, a=a, x=x), [a, x.reshape(1, 3)]) < 1e-5


def test_gradients_by_the_last_input() -> None:
    x, q = np.array([2.5, 4.0]), np.array([0.5, 3.0])

    assert directional_error(lambda q: apply_op("Zeta", x=x, q=q), [q]) < 1e-5
    assert directional_error(lambda z: apply_op("Betainc", a=x, b=q, x=z), [np.array([0.3, 0.6])]) < 1e-5
    assert directional_error(lambda z: apply_op("Betainc", a=x, b=q, x=z), [np.array(0.3)]) < 1e-5


@pytest.mark.parametrize("alpha", [0.3, 1.0, 2.5, 40.0])
def test_a_gamma_sample_moves_with_its_parameter_so_that_its_rank_stays(ops: Any, alpha: float) -> None:
    a, step = np.full(5, alpha), 1e-5 * alpha
    x = alpha * np.array([0.2, 0.7, 1.0, 1.5, 2.5])

    slope = ops.run("RandomGammaGrad", [a, x])

    moved = ops.run("Igamma", [a + step, x + slope * step]) - ops.run("Igamma", [a - step, x - slope * step])
    np.testing.assert_allclose(moved, 0, atol=1e-9)
