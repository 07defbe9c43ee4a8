"""Gradients of reductions whose rank or axes only a step knows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error

VALUES = np.arange(1.0, 25.0).reshape(2, 3, 4)


@pytest.mark.parametrize("reduce", [tf.reduce_sum, tf.reduce_mean, tf.reduce_max, tf.reduce_prod])
@pytest.mark.parametrize("axes", [[1], [0, 2], [-1]])
def test_what_is_not_known_before(reduce: Any, axes: list[int]) -> None:
    small = VALUES / 8
    reduced = [axis % 3 for axis in axes]
    with tf.Graph().as_default(), tf.Session() as session:
        at_once = tf.constant(small)
        (expected,) = tf.gradients(reduce(at_once, axes), at_once)
        unknown, given = tf.placeholder(tf.float64), tf.placeholder(tf.int32)
        known = tf.placeholder(tf.float64, [2, 3, 4])
        found = [
            tf.gradients(reduce(unknown, axes), unknown),
            tf.gradients(reduce(known, given), known),
            tf.gradients(reduce(unknown, given), unknown),
        ]
        wanted, *others = session.run([expected, *found], {unknown: small, known: small, given: reduced})

    for (other,) in others:
        np.testing.assert_allclose(other, wanted, rtol=1e-12)


def test_finite_differences_agree() -> None:
    assert directional_error(lambda x: tf.reduce_mean(x * x, [0, 2]), [VALUES], static_shapes=False) < 1e-6
