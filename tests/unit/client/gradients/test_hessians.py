"""Second derivatives: a matrix for each x, in the shape of its two sides."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


def test_of_several_xs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.constant([1.0, 2.0, 3.0], tf.float64), tf.constant([[2.0], [5.0]], tf.float64)
        loss = tf.reduce_sum(x * x * x) + x[0] * x[2] * 7.0 + tf.reduce_sum(y) * tf.reduce_prod(y)
        of_x, of_y = tf.hessians(loss, [x, y])
        assert session.run(of_x).tolist() == [[6, 0, 7], [0, 12, 0], [7, 0, 18]]
        found = session.run(of_y)
    # (a + b) a b: 2 b, 2 a + 2 b, 2 a
    assert found.shape == (2, 1, 2, 1)
    assert found.reshape(2, 2).tolist() == [[10, 14], [14, 4]]


def test_of_one_x_that_is_no_list_and_sizes_of_a_step() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.placeholder(tf.float32, [None])
        (found,) = tf.hessians([x**3, x * 5.0], x)
        assert session.run(found, {x: [1, 2]}).tolist() == np.diag([6, 12]).tolist()
        (found,) = tf.hessians(x[0] * x[0], (x,))
        assert session.run(found, {x: [1, 2]}).tolist() == [[2, 0], [0, 0]]


def test_an_x_that_nothing_depends_on() -> None:
    with tf.Graph().as_default():
        x, other = tf.constant(1.0), tf.constant(2.0, name="other")
        with pytest.raises(ValueError, match=r"No y depends on .*other.*: it has no Hessian"):
            tf.hessians(x * x, [other])


def test_options_reach_both_derivatives_ways() -> None:
    with tf.Graph().as_default() as graph:
        x = tf.constant([[1.0]])
        with tf.device("/job:worker"):
            y = tf.matmul(x, x) + x * x
        tf.hessians(y, x, colocate_gradients_with_ops=True, gate_gradients=True, aggregation_method=1)
        first = [op for op in graph.get_operations() if op.name.startswith("gradients/")]
        assert {op.device for op in first if op.type == "MatMul"} == {"/job:worker"}
        assert any(op.name.endswith("tuple/group_deps") for op in first)
        assert [len(op.inputs) for op in first if op.type == "AddN"] == [2] * 3
        with pytest.raises(ValueError, match="aggregation_method"):
            tf.hessians(y, x, aggregation_method=9)
