"""Gradients of samples by the parameters of their distributions: a sample moves so that its rank stays."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


@pytest.mark.parametrize("shape", [[2], [3, 2], []])
def test_stateless_gamma_samples_move_as_their_parameter_does(shape: list[int]) -> None:
    weights = np.random.default_rng(3).standard_normal((4, 3, 2))
    with tf.Graph().as_default(), tf.Session() as session:
        alpha = tf.constant(np.linspace(0.5, 3.0, int(np.prod(shape))).reshape(shape))
        samples = tf.raw_ops.StatelessRandomGammaV2(shape=[4, 3, 2], seed=[1, 2], alpha=alpha)
        slope = tf.raw_ops.RandomGammaGrad(alpha=alpha + tf.zeros_like(samples), sample=samples)
        found, each = session.run([*tf.gradients(samples * weights, alpha), slope])
    whole = weights * each
    expected = {1: whole.sum((0, 1)), 2: whole.sum(0), 0: whole.sum()}[len(shape)]
    np.testing.assert_allclose(found, expected, rtol=1e-10)
