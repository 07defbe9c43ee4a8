"""The net of the "MNIST mechanics" tutorial: two hidden layers of ReLUs, softmax cross-entropy, gradient descent.

`inference`, `loss`, `training` and `evaluation` build the four parts of its graph, as TensorFlow 1.15's
examples/tutorials/mnist/mnist.py, with its names of scopes and variables.
"""

from __future__ import annotations

import math
from typing import Any

import tenfold as tf

NUM_CLASSES = 10
IMAGE_SIZE = 28
IMAGE_PIXELS = IMAGE_SIZE * IMAGE_SIZE


def inference(images: Any, hidden1_units: int, hidden2_units: int) -> Any:
    """Images float32 [batch, 784] → logits [batch, 10], over hidden layers of these sizes."""
    hidden1 = _layer("hidden1", images, IMAGE_PIXELS, hidden1_units, tf.nn.relu)
    hidden2 = _layer("hidden2", hidden1, hidden1_units, hidden2_units, tf.nn.relu)
    return _layer("softmax_linear", hidden2, hidden2_units, NUM_CLASSES, None)


def loss(logits: Any, labels: Any) -> Any:
    """The mean cross-entropy of logits [batch, 10] with labels int32 or int64 [batch]: a scalar."""
    return tf.losses.sparse_softmax_cross_entropy(labels=tf.to_int64(labels), logits=logits)


def training(loss: Any, learning_rate: float) -> Any:
    """The op that makes one step of gradient descent, counts it in `global_step`, and summarizes the loss."""
    tf.summary.scalar("loss", loss)
    global_step = tf.Variable(0, name="global_step", trainable=False)
    return tf.train.GradientDescentOptimizer(learning_rate).minimize(loss, global_step=global_step)


def evaluation(logits: Any, labels: Any) -> Any:
    """How many of a batch are classified right: int32 scalar."""
    return tf.reduce_sum(tf.cast(tf.nn.in_top_k(logits, labels, 1), tf.int32))


def _layer(scope: str, inputs: Any, rows: int, columns: int, activation: Any) -> Any:
    with tf.name_scope(scope):
        start = tf.truncated_normal([rows, columns], stddev=1.0 / math.sqrt(float(rows)))
        weights = tf.Variable(start, name="weights")
        biases = tf.Variable(tf.zeros([columns]), name="biases")
        sums = tf.matmul(inputs, weights) + biases
        return sums if activation is None else activation(sums)
