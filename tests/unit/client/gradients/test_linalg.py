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
