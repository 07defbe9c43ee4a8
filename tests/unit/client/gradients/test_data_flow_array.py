"""Gradients of tensor arrays: each call of tf.gradients has an array of its own, known by the call's name."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.data_flow_array import gradient_source


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("gradients/x", "gradients"),
        ("gradients_1/f_grad/x", "gradients_1"),
        ("outer/gradients_2/while/x", "outer/gradients_2"),
        ("gradients/outer/gradients_3/x", "gradients/outer/gradients_3"),
        ("gradients_of_mine/x", "gradients_of_mine"),
    ],
)
def test_the_innermost_call(name: str, source: str) -> None:
    with tf.Graph().as_default():
        assert gradient_source(tf.constant(1.0, name=name)) == source


def test_a_call_of_another_name_is_refused() -> None:
    with tf.Graph().as_default():
        x = tf.constant([1.0, 2.0])
        y = tf.TensorArray(tf.float32, 2).unstack(x).stack()
        with pytest.raises(ValueError, match=r"to start with gradients .* got: mine/"):
            tf.gradients(y, x, name="mine")
        assert tf.gradients(y, x, name="gradients_of_mine")[0] is not None


def test_two_calls_do_not_add_up() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant([1.0, 2.0])
        y = tf.TensorArray(tf.float32, 2).unstack(x * x).stack()
        twice = [tf.gradients(y, x)[0] for _ in range(2)]

        assert [found.tolist() for found in session.run(twice)] == [[2, 4], [2, 4]]


def test_what_is_split_and_joined_gets_its_own_part_back() -> None:
    weights = np.arange(10.0).reshape(5, 2)
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float64, [5, 2])
        pieces = tf.TensorArray(tf.float64, 2, infer_shape=False).split(x, [2, 3])
        (found,) = session.run(tf.gradients(pieces.concat() * weights, x), {x: np.ones((5, 2))})
    assert found.tolist() == weights.tolist()
