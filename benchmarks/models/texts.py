"""A convolutional net over words (Kim's): 128-wide embeddings, filters of 3, 4 and 5 words, dropout, Adam."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, bias, cross_entropy, dense, weight

if TYPE_CHECKING:
    from models import TF, Wrap

SENTENCES, TOKENS, WORDS, WIDTH, FILTERS, SIZES = 64, 56, 18000, 128, 128, (3, 4, 5)


def text_cnn(tf: TF, wrap: Wrap = same) -> Model:
    choose = np.random.default_rng(15)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.int32, [None, TOKENS], name="input_x")
    t = tf.placeholder(tf.int32, [None], name="input_y")
    embedded = tf.expand_dims(tf.nn.embedding_lookup(weight(tf, choose, "embedding", [WORDS, WIDTH], 0.5), x), -1)
    pooled = []
    for size in SIZES:
        kernel = weight(tf, choose, f"conv{size}/W", [size, WIDTH, 1, FILTERS], 0.1)
        y = tf.nn.conv2d(embedded, kernel, [1, 1, 1, 1], padding="VALID")
        y = tf.nn.relu(tf.nn.bias_add(y, bias(tf, f"conv{size}/b", FILTERS, 0.1)))
        pooled.append(tf.nn.max_pool(y, [1, TOKENS - size + 1, 1, 1], [1, 1, 1, 1], padding="VALID"))
    features = tf.reshape(tf.concat(pooled, 3), [-1, FILTERS * len(SIZES)])
    # a dropout that keeps all: one that drops would be drawn differently by every side
    features = tf.nn.dropout(features, rate=tf.placeholder_with_default(0.0, [], name="dropout_rate"))
    loss = cross_entropy(tf, t, dense(tf, choose, features, "output", FILTERS * len(SIZES), 2))
    train = wrap(tf.train.AdamOptimizer(0.001)).minimize(loss, global_step=step)
    return Model(loss, train, [{x: words, t: label} for words, label in batches(choose)])


def batches(choose: np.random.Generator) -> list[tuple[Any, Any]]:
    """Words int32 [B, T] by Zipf's law, and labels int32 [B] by a rule on them."""
    words = np.minimum(choose.zipf(1.3, [BATCHES, SENTENCES, TOKENS]), WORDS - 1).astype(np.int32)
    return [(each, (each.sum(1) % 5 < 2).astype(np.int32)) for each in words]
