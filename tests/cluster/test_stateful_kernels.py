"""What a kernel keeps from step to step belongs to the session, not to one run signature."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


def test_a_random_op_goes_on_in_its_sequence_under_another_signature() -> None:
    with tf.Graph().as_default():
        numbers = tf.random_uniform([4], seed=7)
        doubled = numbers * 2.0
        with tf.Session() as alone:
            first, second = alone.run(numbers), alone.run(numbers)
        with tf.Session() as mixed:
            assert mixed.run(numbers) == pytest.approx(first)
            assert mixed.run(doubled) == pytest.approx(second * 2.0)


def test_no_warning_comes_out_of_a_step() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.float32, [2])
        quotient, logarithm = sess.run([x / 0.0, tf.log(x)], {x: [1.0, -1.0]})

    assert quotient.tolist() == [np.inf, -np.inf]
    assert np.isnan(logarithm[1])
