"""Which axes a gradient is summed over, by static shapes alone, and when they do not tell."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.broadcast import broadcast_axes

#: x, y → the axes along which each was repeated; None where only a step knows.
SHAPES: list[tuple[Any, Any, tuple[list[int], list[int]] | None]] = [
    ([2, 3], [2, 3], ([], [])),
    ([2, 3], [3], ([], [0])),
    ([3], [2, 3], ([0], [])),
    ([2, 3], [], ([], [0, 1])),
    ([1, 3], [2, 1], ([0], [1])),
    ([3], [1, 3], ([0], [])),
    ([1, 1], [1, 1], ([], [])),
    ([4, 1, 2], [3, 1], ([1], [0, 2])),
    ([2, 0], [1, 1], ([], [0, 1])),
    ([None, 3], [3], ([], [0])),
    ([3], [None, None, 3], ([0, 1], [])),
    ([None, 3], [None, 3], None),
    ([None, 3], [2, 3], None),
    ([None, 3], [1, 3], None),
    ([2], [None, 3, None], None),
    (None, [3], None),
    ([3], None, None),
]


@pytest.mark.parametrize(("x", "y", "axes"), SHAPES)
def test_axes(x: Any, y: Any, axes: Any) -> None:
    assert broadcast_axes(tf.TensorShape(x), tf.TensorShape(y)) == axes


def test_batches_of_known_shapes_are_summed_by_what_the_graph_knows() -> None:
    rng = np.random.default_rng(7)
    x, y = rng.standard_normal((4, 1, 2, 3)), rng.standard_normal((5, 3, 2))
    for x_shape, y_shape, asks in (
        (x.shape, y.shape, False),
        (None, y.shape, True),
        (x.shape, None, True),
        ([None, None, 2, 3], y.shape, True),
    ):
        with tf.Graph().as_default() as graph, tf.Session() as session:
            a, b = tf.placeholder(tf.float64, x_shape), tf.placeholder(tf.float64, y_shape)
            of_a, of_b = session.run(tf.gradients(tf.raw_ops.BatchMatMulV2(x=a, y=b) * 2.0, [a, b]), {a: x, b: y})
            assert any(op.type == "BroadcastGradientArgs" for op in graph.get_operations()) is asks
        back = np.full((4, 5, 2, 2), 2.0)
        np.testing.assert_allclose(of_a, (back @ np.swapaxes(y, -1, -2)).sum(1, keepdims=True))
        np.testing.assert_allclose(of_b, (np.swapaxes(x, -1, -2) @ back).sum(0))


def test_what_comes_in_with_another_shape_takes_the_inputs() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.constant(2.0), tf.constant(3.0)
        of_x, of_y = session.run(tf.gradients(x * y, [x, y], grad_ys=tf.constant([10.0])))
    assert (of_x.shape, of_x, of_y.shape, of_y) == ((), 30, (), 20)


def test_a_dimension_of_one_stays_one() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        x, y = tf.ones([1, 3]), tf.ones([2, 3])
        of_x, of_y = session.run(tf.gradients(x + y, [x, y]))
    assert (of_x.tolist(), of_y.tolist()) == ([[2, 2, 2]], [[1, 1, 1]] * 2)
