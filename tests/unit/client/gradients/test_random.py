"""Gradients through samples: those of a gamma distribution move with its parameter."""

from __future__ import annotations

import numpy as np

import tenfold as tf


def test_the_mean_of_gamma_samples_moves_as_their_parameter() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        alpha = tf.constant([0.5, 3.0])
        samples = tf.random_gamma([20000], alpha, seed=7)
        (moved,) = tf.gradients(tf.reduce_mean(samples, 0), alpha)
        found = session.run(moved)

    # the mean is the parameter itself
    np.testing.assert_allclose(found, [1, 1], atol=0.05)
