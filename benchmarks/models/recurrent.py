"""Language models of 20 sentences × 20 words × 200 units, Adam with clipped gradients: an LSTM unrolled in the graph,
LSTM and GRU in tf.nn.dynamic_rnn.

The cells are written from ops, because TensorFlow 2's compat.v1 has none without another package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, bias, cross_entropy, weight

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import TF, Wrap

SENTENCES, TURNS, UNITS, WORDS = 20, 20, 200, 1000


class LSTMCell:
    """What tf.nn.dynamic_rnn asks of a cell. The state is (c, h), each float32 [B, units]."""

    def __init__(self, tf: TF, choose: np.random.Generator, name: str, inputs: int, units: int) -> None:
        self.state_size: Any = (units, units)
        self.output_size = units
        self._tf = tf
        self._w = weight(tf, choose, f"{name}/kernel", [inputs + units, 4 * units], (inputs + units) ** -0.5)
        self._b = bias(tf, f"{name}/bias", 4 * units)

    def zero_state(self, batch: Any, dtype: Any) -> Any:
        return tuple(self._tf.zeros([batch, self.output_size], dtype) for _ in range(2))

    def __call__(self, x: Any, state: Any, scope: object = None) -> Any:
        tf, (c, h) = self._tf, state
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), self._w), self._b)
        i, j, f, o = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


class GRUCell:
    """As LSTMCell, with one state of float32 [B, units]."""

    def __init__(self, tf: TF, choose: np.random.Generator, name: str, inputs: int, units: int) -> None:
        self.state_size: Any = units
        self.output_size = units
        self._tf = tf
        scale = (inputs + units) ** -0.5
        self._gates_w = weight(tf, choose, f"{name}/gates/kernel", [inputs + units, 2 * units], scale)
        self._gates_b = bias(tf, f"{name}/gates/bias", 2 * units, 1.0)
        self._w = weight(tf, choose, f"{name}/candidate/kernel", [inputs + units, units], scale)
        self._b = bias(tf, f"{name}/candidate/bias", units)

    def zero_state(self, batch: Any, dtype: Any) -> Any:
        return self._tf.zeros([batch, self.output_size], dtype)

    def __call__(self, x: Any, state: Any, scope: object = None) -> Any:
        tf = self._tf
        both = tf.sigmoid(tf.nn.bias_add(tf.matmul(tf.concat([x, state], 1), self._gates_w), self._gates_b))
        r, u = tf.split(both, 2, 1)
        c = tf.tanh(tf.nn.bias_add(tf.matmul(tf.concat([x, r * state], 1), self._w), self._b))
        h = u * state + (1.0 - u) * c
        return h, h


def clipped(tf: TF, optimizer: Any, loss: Any, step: Any, norm: float = 5.0) -> Any:
    """The op that trains with gradients clipped by their global norm."""
    variables = tf.trainable_variables()
    gradients, _ = tf.clip_by_global_norm(tf.gradients(loss, variables), norm)
    return optimizer.apply_gradients(list(zip(gradients, variables, strict=True)), global_step=step)


def sentences(choose: np.random.Generator, count: int, turns: int, words: int) -> Any:
    """int32 [BATCHES, count, turns]: each word depends on the one before, so that there is something to learn."""
    text = np.empty([BATCHES, count, turns], np.int32)
    text[..., 0] = choose.integers(words, size=[BATCHES, count])
    for turn in range(1, turns):
        text[..., turn] = (text[..., turn - 1] * 7 + choose.integers(5, size=[BATCHES, count])) % words
    return text


def _language_model(tf: TF, wrap: Wrap, make_cell: Any, unroll: Callable[[Any, Any], Any]) -> Model:
    choose = np.random.default_rng(8)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.int32, [SENTENCES, TURNS], name="x")
    t = tf.placeholder(tf.int32, [SENTENCES, TURNS], name="t")
    embedding = weight(tf, choose, "embedding", [WORDS, UNITS], 0.1)
    cell = make_cell(tf, choose, "cell", UNITS, UNITS)
    outputs = unroll(cell, tf.nn.embedding_lookup(embedding, x))
    w, b = weight(tf, choose, "softmax/w", [UNITS, WORDS], UNITS**-0.5), bias(tf, "softmax/b", WORDS)
    logits = tf.matmul(tf.reshape(outputs, [-1, UNITS]), w) + b
    loss = cross_entropy(tf, tf.reshape(t, [-1]), logits)
    train = clipped(tf, wrap(tf.train.AdamOptimizer(0.001)), loss, step)
    text = sentences(choose, SENTENCES, TURNS + 1, WORDS)
    return Model(loss, train, [{x: each[:, :-1], t: each[:, 1:]} for each in text])


def unrolled_lstm(tf: TF, wrap: Wrap = same) -> Model:
    def unroll(cell: Any, inputs: Any) -> Any:
        state, outputs = cell.zero_state(SENTENCES, tf.float32), []
        for turn in range(TURNS):
            output, state = cell(inputs[:, turn, :], state)
            outputs.append(output)
        return tf.stack(outputs, 1)

    return _language_model(tf, wrap, LSTMCell, unroll)


def dynamic_lstm(tf: TF, wrap: Wrap = same) -> Model:
    def unroll(cell: Any, inputs: Any) -> Any:
        return tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0]

    return _language_model(tf, wrap, LSTMCell, unroll)


def dynamic_gru(tf: TF, wrap: Wrap = same) -> Model:
    def unroll(cell: Any, inputs: Any) -> Any:
        return tf.nn.dynamic_rnn(cell, inputs, dtype=tf.float32)[0]

    return _language_model(tf, wrap, GRUCell, unroll)
