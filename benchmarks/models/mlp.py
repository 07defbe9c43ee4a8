"""Fully connected nets: digits with Adam, a small one with SGD, and an autoencoder."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, cross_entropy, dense, labelled

if TYPE_CHECKING:
    from collections.abc import Sequence

    from models import TF, Wrap


def _classifier(tf: TF, layers: Sequence[int], batch: int, optimizer: Any) -> Model:
    choose = np.random.default_rng(1)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None, layers[0]], name="x")
    t = tf.placeholder(tf.int32, [None], name="t")
    y = x
    for number, (rows, columns) in enumerate(pairwise(layers)):
        y = dense(tf, choose, y, f"layer{number}", rows, columns)
        if number + 2 < len(layers):
            y = tf.nn.relu(y)
    loss = cross_entropy(tf, t, y)
    data = labelled(choose, batch, [layers[0]], layers[-1], 64)
    return Model(loss, optimizer.minimize(loss, global_step=step), [{x: images, t: labels} for images, labels in data])


def digits(tf: TF, wrap: Wrap = same) -> Model:
    """784-256-256-10, batch 128, Adam."""
    return _classifier(tf, (784, 256, 256, 10), 128, wrap(tf.train.AdamOptimizer(0.001)))


def small(tf: TF, wrap: Wrap = same) -> Model:
    """64-64-10, batch 32, SGD: hardly any arithmetic."""
    return _classifier(tf, (64, 64, 10), 32, wrap(tf.train.GradientDescentOptimizer(0.05)))


def autoencoder(tf: TF, wrap: Wrap = same) -> Model:
    """784-256-64-256-784, batch 128, Adam; blurred bright spots."""
    choose = np.random.default_rng(2)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [None, 784], name="x")
    code = tf.nn.relu(dense(tf, choose, x, "encode0", 784, 256))
    code = dense(tf, choose, code, "encode1", 256, 64)
    y = tf.nn.relu(dense(tf, choose, code, "decode0", 64, 256))
    y = dense(tf, choose, y, "decode1", 256, 784)
    pixels = tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=y)
    loss = tf.reduce_mean(tf.reduce_sum(pixels, 1))
    train = wrap(tf.train.AdamOptimizer(0.001)).minimize(loss, global_step=step)
    rows, columns = np.mgrid[0:28, 0:28]
    centres = choose.random([BATCHES, 128, 2, 1, 1]) * 28
    far = (rows - centres[:, :, 0]) ** 2 + (columns - centres[:, :, 1]) ** 2
    images = np.exp(-far / 20.0).astype(np.float32).reshape(BATCHES, 128, 784)
    return Model(loss, train, [{x: each} for each in images])
