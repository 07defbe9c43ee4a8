"""A click-through net: 26 ids of 200,000 rows × 16, MLP 416-256-128-1, batch 512, Adagrad with sparse gradients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, dense

if TYPE_CHECKING:
    from models import TF, Wrap

ROWS, SIZE, IDS, BATCH = 200_000, 16, 26, 512


def clicks(tf: TF, wrap: Wrap = same) -> Model:
    choose = np.random.default_rng(10)
    step = tf.train.get_or_create_global_step()
    ids = tf.placeholder(tf.int64, [None, IDS], name="ids")
    t = tf.placeholder(tf.float32, [None, 1], name="clicked")
    table = tf.Variable(tf.random_uniform([ROWS, SIZE], -0.05, 0.05, seed=1), name="table")
    y = tf.reshape(tf.nn.embedding_lookup(table, ids), [-1, IDS * SIZE])
    y = tf.nn.relu(dense(tf, choose, y, "layer0", IDS * SIZE, 256))
    y = tf.nn.relu(dense(tf, choose, y, "layer1", 256, 128))
    y = dense(tf, choose, y, "layer2", 128, 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=y))
    train = wrap(tf.train.AdagradOptimizer(0.05)).minimize(loss, global_step=step)
    return Model(loss, train, [{ids: each, t: label} for each, label in batches(choose)])


def batches(choose: np.random.Generator) -> list[tuple[Any, Any]]:
    """Ids, int64 [BATCH, IDS], and labels, float32 [BATCH, 1]."""
    # ids of a field follow a power law within its share of the table
    share = ROWS // IDS
    drawn = (choose.power(0.3, [BATCHES, BATCH, IDS]) * share).astype(np.int64) + np.arange(IDS) * share
    clicked = (drawn.sum(2, keepdims=True) % 7 < 2).astype(np.float32)
    return list(zip(drawn, clicked, strict=True))
