"""Gradients of what is one number a matrix, for batches of more than one dimension."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error

#: Two by three matrices, far enough from singular ones.
MATRICES = np.random.default_rng(41).standard_normal((2, 3, 2, 2)) + 3 * np.eye(2)


@pytest.mark.parametrize(
    "build", [tf.linalg.det, lambda x: tf.linalg.slogdet(x).log_abs_determinant], ids=["det", "slogdet"]
)
def test_numbers_of_a_batch_of_batches(build: Any) -> None:
    assert directional_error(build, [MATRICES]) < 1e-6


def test_singular_values_alone_need_no_known_sizes() -> None:
    """What comes in for vectors that nobody uses is nothing, and asks for nothing."""
    matrix = np.diag([3.0, 2.0])
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [None, None])
        values, u, _ = tf.linalg.svd(x)
        (found,) = tf.gradients(values * [1.0, 10.0], x)
        np.testing.assert_allclose(session.run(found, {x: matrix}), np.diag([1.0, 10.0]), atol=1e-12)
        with pytest.raises(NotImplementedError, match="unknown inner matrix shape"):
            tf.gradients(u, x)
