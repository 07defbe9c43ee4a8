"""word2vec with noise-contrastive estimation, as in TensorFlow's tutorial: 50,000 words × 128, 64 negatives, batch 128.

The negatives come from a seeded sampler; the texts are drawn from Zipf's distribution.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from models import Model, same

if TYPE_CHECKING:
    from models import TF, Wrap

WORDS, SIZE, BATCH, NEGATIVES, TEXTS = 50_000, 128, 128, 64, 64


def word2vec(tf: TF, wrap: Wrap = same) -> Model:
    step = tf.train.get_or_create_global_step()
    inputs = tf.placeholder(tf.int32, [BATCH], name="inputs")
    labels = tf.placeholder(tf.int32, [BATCH, 1], name="labels")
    embeddings = tf.Variable(tf.random_uniform([WORDS, SIZE], -1.0, 1.0, seed=1), name="embeddings")
    embedded = tf.nn.embedding_lookup(embeddings, inputs)
    weights = tf.Variable(tf.truncated_normal([WORDS, SIZE], stddev=SIZE**-0.5, seed=2), name="nce/weights")
    biases = tf.Variable(tf.zeros([WORDS]), name="nce/biases")
    drawn = tf.nn.log_uniform_candidate_sampler(tf.cast(labels, tf.int64), 1, NEGATIVES, True, WORDS, seed=4)
    losses = tf.nn.nce_loss(weights, biases, labels, embedded, NEGATIVES, WORDS, sampled_values=drawn)
    loss = tf.reduce_mean(losses)
    train = wrap(tf.train.GradientDescentOptimizer(1.0)).minimize(loss, global_step=step)
    choose = np.random.default_rng(3)
    words = np.minimum(choose.zipf(1.3, [TEXTS, BATCH, 2]) - 1, WORDS - 1).astype(np.int32)
    return Model(loss, train, [{inputs: each[:, 0], labels: each[:, 1:]} for each in words])
