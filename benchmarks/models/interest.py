"""A net of interests that change (DIEN): 128 users with up to 20 items of history, two recurrent nets over them.

A GRU reads the history, an auxiliary loss asks it which item comes next, attention compares its states with the item
that is shown, and a GRU whose update gate is scaled by that attention (AUGRU) reads the states once more. Adam,
gradients clipped one by one, batch normalization in the auxiliary net.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, bias, dense, weight
from models.recurrent import GRUCell

if TYPE_CHECKING:
    from models import TF, Wrap

BATCH, TURNS, ITEMS, SIZE = 128, 20, 5000, 36


class AttentionGRUCell(GRUCell):
    """As GRUCell; its inputs are (x, attention [B, 1])."""

    def __call__(self, inputs: Any, state: Any, scope: object = None) -> Any:
        tf, (x, attention) = self._tf, inputs
        both = tf.sigmoid(tf.nn.bias_add(tf.matmul(tf.concat([x, state], 1), self._gates_w), self._gates_b))
        r, u = tf.split(both, 2, 1)
        c = tf.tanh(tf.nn.bias_add(tf.matmul(tf.concat([x, r * state], 1), self._w), self._b))
        u = (1.0 - attention) * u
        h = u * state + (1.0 - u) * c
        return h, h


def _normalized(tf: TF, x: Any, name: str, size: int) -> Any:
    """Batch normalization of [N, size] by the batch's own moments."""
    mean, variance = tf.nn.moments(x, [0])
    return tf.nn.batch_normalization(
        x, mean, variance, bias(tf, f"{name}/beta", size), bias(tf, f"{name}/gamma", size, 1.0), 1e-3
    )


def _next_item_loss(tf: TF, choose: np.random.Generator, states: Any, clicked: Any, other: Any, mask: Any) -> Any:
    """How badly the states tell the item that was clicked next from one that was not."""
    inputs = tf.concat([tf.concat([states, clicked], 2), tf.concat([states, other], 2)], 0)
    y = _normalized(tf, tf.reshape(inputs, [-1, 2 * SIZE]), "next/norm", 2 * SIZE)
    y = tf.sigmoid(dense(tf, choose, y, "next/layer0", 2 * SIZE, 100))
    y = tf.sigmoid(dense(tf, choose, y, "next/layer1", 100, 50))
    y = tf.nn.softmax(dense(tf, choose, y, "next/layer2", 50, 2)) + 1e-8
    right, wrong = tf.split(tf.reshape(y[:, 0], [2, BATCH, -1]), 2, 0)
    return tf.reduce_mean(-(tf.log(right[0]) + tf.log(1.0 - wrong[0])) * mask)


def _attention(tf: TF, choose: np.random.Generator, shown: Any, states: Any, inside: Any) -> Any:
    """How much each state counts for the item that is shown, float32 [B, T]."""
    query = tf.nn.relu(dense(tf, choose, shown, "attention/query", SIZE, SIZE))
    queries = tf.reshape(tf.tile(query, [1, tf.shape(states)[1]]), tf.shape(states))
    y = tf.concat([queries, states, queries - states, queries * states], 2)
    y = tf.sigmoid(dense(tf, choose, tf.reshape(y, [-1, 4 * SIZE]), "attention/layer0", 4 * SIZE, 80))
    y = tf.sigmoid(dense(tf, choose, y, "attention/layer1", 80, 40))
    y = tf.reshape(dense(tf, choose, y, "attention/layer2", 40, 1), [BATCH, -1])
    return tf.nn.softmax(tf.where(inside, y, tf.ones_like(y) * (-(2.0**32) + 1.0)))


def dien(tf: TF, wrap: Wrap = same) -> Model:
    choose = np.random.default_rng(12)
    step = tf.train.get_or_create_global_step()
    history = tf.placeholder(tf.int64, [BATCH, None], name="history")
    others = tf.placeholder(tf.int64, [BATCH, None], name="others")
    lengths = tf.placeholder(tf.int32, [BATCH], name="lengths")
    item = tf.placeholder(tf.int64, [BATCH], name="item")
    t = tf.placeholder(tf.float32, [BATCH, 1], name="clicked")
    table = weight(tf, choose, "items", [ITEMS, SIZE], 0.1)
    seen, not_clicked = tf.nn.embedding_lookup(table, history), tf.nn.embedding_lookup(table, others)
    shown = tf.nn.embedding_lookup(table, item)
    inside = tf.sequence_mask(lengths, tf.shape(history)[1])
    mask = tf.cast(inside, tf.float32)
    with tf.variable_scope("reads"):
        cell = GRUCell(tf, choose, "reads", SIZE, SIZE)
        states, _ = tf.nn.dynamic_rnn(cell, seen, lengths, dtype=tf.float32)
    following = _next_item_loss(tf, choose, states[:, :-1], seen[:, 1:], not_clicked[:, 1:], mask[:, 1:])
    weights = _attention(tf, choose, shown, states, inside)
    with tf.variable_scope("evolves"):
        evolves = AttentionGRUCell(tf, choose, "evolves", SIZE, SIZE)
        _, interest = tf.nn.dynamic_rnn(evolves, (states, tf.expand_dims(weights, 2)), lengths, dtype=tf.float32)
    total = tf.reduce_sum(seen * tf.expand_dims(mask, 2), 1)
    y = tf.concat([shown, total, shown * total, interest], 1)
    y = tf.nn.relu(dense(tf, choose, y, "layer0", 4 * SIZE, 200))
    y = tf.nn.relu(dense(tf, choose, y, "layer1", 200, 80))
    y = dense(tf, choose, y, "layer2", 80, 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=y)) + following
    optimizer = wrap(tf.train.AdamOptimizer(0.001))
    clipped = [(tf.clip_by_norm(gradient, 5.0), each) for gradient, each in optimizer.compute_gradients(loss)]
    train = optimizer.apply_gradients(clipped, global_step=step)
    return Model(
        loss, train, [dict(zip((history, others, lengths, item, t), each, strict=True)) for each in batches(choose)]
    )


def batches(choose: np.random.Generator) -> list[tuple[Any, ...]]:
    """Items clicked and others, int64 [B, T]; lengths, int32 [B]; the item shown, int64 [B]; labels, float32 [B, 1].
    T is as long as the batch's longest history.
    """
    found = []
    for _ in range(BATCHES):
        lengths = choose.integers(2, TURNS + 1, BATCH).astype(np.int32)
        history, others = ((choose.power(0.4, [BATCH, lengths.max()]) * ITEMS).astype(np.int64) for _ in range(2))
        item = (choose.power(0.4, BATCH) * ITEMS).astype(np.int64)
        clicked = ((item + history[:, 0]) % 3 == 0).astype(np.float32)[:, None]
        found.append((history, others, lengths, item, clicked))
    return found
