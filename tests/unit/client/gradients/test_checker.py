"""The check against finite differences: what it measures, and what it refuses to call a gradient."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error

X, Y = np.array([[1.0, -2.0, 0.5]]), np.array([3.0, 4.0, -1.0])


def scaled(factor: float) -> Any:
    """A square whose gradient is `factor` times what it should be."""

    @tf.custom_gradient
    def square(x: Any) -> Any:
        return x * x, lambda g: factor * 2.0 * x * g

    return square


def test_a_right_gradient_has_no_error() -> None:
    assert directional_error(lambda x, y: x * x * y, [X, Y]) < 1e-8
    assert directional_error(lambda x, y: x * x * y, [X, Y], static_shapes=False, seed=3) < 1e-8


@pytest.mark.parametrize("factor", [0.0, 0.9, 1.1, 2.0])
def test_a_wrong_one_has_the_error_of_its_size(factor: float) -> None:
    large = np.array([100.0, -70.0])

    # the derivative is far above 1, so that the error is a share of it
    assert directional_error(scaled(factor), [large]) == pytest.approx(abs(1 - factor), rel=1e-5, abs=1e-6)


def test_a_small_derivative_is_measured_against_one() -> None:
    small = np.array([1e-3])

    assert directional_error(scaled(2.0), [small]) < 1e-2


def test_what_is_differentiated() -> None:
    seen: list[Any] = []

    def build(x: Any, i: Any, y: Any) -> Any:
        seen.append([x.shape.as_list(), i.dtype, y.shape.as_list()])
        return x[0] * tf.stop_gradient(y) * tf.cast(i, x.dtype)

    inputs = [X, np.array([1, 2, 3]), Y]
    assert directional_error(build, inputs, differentiate=[0]) < 1e-8
    with pytest.raises(ValueError, match="no gradient for input 2"):
        directional_error(build, inputs)
    assert directional_error(lambda x, i, y: x[0] * y * tf.cast(i, x.dtype), inputs, static_shapes=False) < 1e-8
    assert seen[0] == [[1, 3], tf.int64, [3]]


def test_a_gradient_of_another_shape_is_refused() -> None:
    @tf.custom_gradient
    def wide(x: Any) -> Any:
        return tf.identity(x), lambda g: tf.concat([g, g], 0)

    with pytest.raises(ValueError, match=r"gradient of input 0 has shape \(6,\), the input \(3,\)"):
        directional_error(wide, [Y], static_shapes=False)
