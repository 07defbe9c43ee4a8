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
