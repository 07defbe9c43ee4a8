"""Gradients of segment sums with a given number of segments."""

from __future__ import annotations

import numpy as np

import tenfold as tf


def test_rows_take_the_gradient_of_their_segment() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        data = tf.placeholder(tf.float64, [4, 2])
        total = tf.raw_ops.SegmentSumV2(data=data, segment_ids=[0, 0, 2, 3], num_segments=5)
        weights = np.arange(10.0).reshape(5, 2)
        (found,) = tf.gradients(total, data, tf.constant(weights))
        assert session.run(found, {data: np.ones((4, 2))}).tolist() == weights[[0, 0, 2, 3]].tolist()
