"""Second derivatives of fused batch normalisation, as a gradient penalty takes them: those of the composed form."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.nn_norm import _composed


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


def test_images_of_any_rank_and_of_an_unknown_one() -> None:
    rng = np.random.default_rng(1)
    x, g = rng.normal(size=(2, 3, 2, 2, 2)).astype(np.float32), rng.normal(size=(2, 3, 2, 2, 2)).astype(np.float32)
    flat = (2, 6, 2, 2)
    with tf.Graph().as_default(), tf.Session() as session:

        def composed(image: object, back: object, layout: str) -> list[object]:
            row = tf.constant([1.5, 0.7])
            op = tf.raw_ops.FusedBatchNormGradV3(
                y_backprop=back, x=image, scale=row, reserve_space_1=row, reserve_space_2=row, reserve_space_3=row,
                epsilon=0.001, data_format=layout, is_training=True,
            )[0].op  # fmt: skip
            return list(_composed(op, *op.inputs[:3]))

        unknown, back = tf.placeholder(tf.float32), tf.placeholder(tf.float32)
        found = [
            composed(tf.constant(x.reshape(flat)), tf.constant(g.reshape(flat)), "NHWC"),
            composed(unknown, back, "NHWC"),
            composed(tf.constant(x), tf.constant(g), "NDHWC"),
            composed(tf.constant(np.moveaxis(x, -1, 1)), tf.constant(np.moveaxis(g, -1, 1)), "NCDHW"),
        ]
        first, *others = session.run(found, {unknown: x.reshape(flat), back: g.reshape(flat)})
    others[-1][0] = np.moveaxis(others[-1][0], 1, -1)
    for other in others:
        np.testing.assert_allclose(other[0].reshape(flat), first[0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(other[1:], first[1:], rtol=1e-4, atol=1e-5)
