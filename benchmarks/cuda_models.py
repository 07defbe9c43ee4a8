"""Three training steps for benchmarks/cuda_speed.py: an MLP with Adam, a small convolutional net, an unrolled LSTM.

Each builder makes a graph whose inputs are variables of the GPU, so that a step is the GPU's work, and gives the op of
a step and its loss. cuda_torch.py has the same models. Shapes are in the arguments; `small` is for a look.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import tenfold as tf

#: Model → sizes, large and small.
SIZES: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "mlp": (
        {"batch": 256, "inputs": 784, "hidden": 1024, "classes": 10},
        {"batch": 2, "inputs": 4, "hidden": 3, "classes": 2},
    ),
    "cnn": (
        {"batch": 128, "size": 24, "channels": 64, "classes": 10},
        {"batch": 1, "size": 4, "channels": 2, "classes": 2},
    ),
    "lstm": (
        {"batch": 64, "steps": 20, "units": 256, "classes": 10},
        {"batch": 1, "steps": 2, "units": 2, "classes": 2},
    ),
}


def constant(*shape: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """The same numbers on both sides."""
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32) * np.float32(0.1)


def labels(batch: int, classes: int) -> np.ndarray[Any, np.dtype[np.float32]]:
    """One-hot, in turn."""
    return np.eye(classes, dtype=np.float32)[np.arange(batch) % classes]


def _variable(value: Any) -> Any:
    return tf.Variable(value, trainable=False)


def _weights(*shape: int) -> Any:
    return tf.Variable(constant(*shape))


def _loss(logits: Any, batch: int, classes: int) -> Any:
    targets = _variable(labels(batch, classes))
    return tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=targets, logits=logits))


def mlp(batch: int, inputs: int, hidden: int, classes: int) -> tuple[Any, Any]:
    value = _variable(constant(batch, inputs))
    for before, after in ((inputs, hidden), (hidden, hidden)):
        value = tf.nn.relu(tf.matmul(value, _weights(before, after)) + _weights(after))
    loss = _loss(tf.matmul(value, _weights(hidden, classes)) + _weights(classes), batch, classes)
    return tf.train.AdamOptimizer(1e-3).minimize(loss), loss


def cnn(batch: int, size: int, channels: int, classes: int) -> tuple[Any, Any]:
    value = _variable(constant(batch, size, size, 3))
    for before in (3, channels):
        filters = _weights(3, 3, before, channels)
        value = tf.nn.relu(tf.nn.conv2d(value, filters, [1, 1, 1, 1], "SAME") + _weights(channels))
        value = tf.nn.max_pool(value, [1, 2, 2, 1], [1, 2, 2, 1], "SAME")
    flat = channels * (size // 4) ** 2
    logits = tf.matmul(tf.reshape(value, [batch, flat]), _weights(flat, classes))
    loss = _loss(logits, batch, classes)
    return tf.train.MomentumOptimizer(1e-2, 0.9).minimize(loss), loss


def lstm(batch: int, steps: int, units: int, classes: int) -> tuple[Any, Any]:
    inputs = _variable(constant(steps, batch, units))
    weights, bias = _weights(2 * units, 4 * units), _weights(4 * units)
    state = output = _variable(np.zeros((batch, units), np.float32))
    for step in range(steps):
        gates = tf.matmul(tf.concat([inputs[step], output], 1), weights) + bias
        i, j, f, o = tf.split(gates, 4, 1)
        state = state * tf.sigmoid(f) + tf.sigmoid(i) * tf.tanh(j)
        output = tf.tanh(state) * tf.sigmoid(o)
    loss = _loss(tf.matmul(output, _weights(units, classes)), batch, classes)
    return tf.train.GradientDescentOptimizer(1e-2).minimize(loss), loss


BUILDERS = {"mlp": mlp, "cnn": cnn, "lstm": lstm}
