"""Second derivatives of fused batch normalisation, as a gradient penalty takes them: those of the composed form."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("training", [True, False])
def test_second_derivatives_are_those_of_the_composed_form(layout: str, training: bool) -> None:
    values = np.random.default_rng(0).normal(size=(3, 4, 5, 2)).astype(np.float32)
    image = values if layout == "NHWC" else values.transpose(0, 3, 1, 2)
    axes, row = ([0, 1, 2], [1, 1, 1, 2]) if layout == "NHWC" else ([0, 2, 3], [1, 2, 1, 1])
    with tf.Graph().as_default(), tf.Session() as session:
        x, scale, offset = tf.constant(image), tf.constant([1.5, 0.7]), tf.constant([0.1, 0.2])
        mean, variance = (None, None) if training else (tf.constant([0.1, -0.2]), tf.constant([0.9, 1.4]))
        fused, _, _ = tf.nn.fused_batch_norm(x, scale, offset, mean, variance, 0.001, layout, training)
        if training:
            mean, variance = tf.nn.moments(x, axes, keep_dims=True)
        statistics = [tf.reshape(each, row) for each in (mean, variance, offset, scale)]
        composed = tf.nn.batch_normalization(x, *statistics, 0.001)

        found = []
        for y in (fused, composed):
            first = tf.gradients(tf.reduce_sum(tf.sin(y) * y), [x, scale, offset])
            penalty = tf.add_n([tf.reduce_sum(tf.square(each)) for each in first])
            found.append(session.run(tf.gradients(penalty, [x, scale, offset])))

    for ours, expected in zip(*found, strict=True):
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4 * np.abs(expected).max())
