"""Convolutional nets: the one of TensorFlow's CIFAR-10 tutorial, ResNet-20 and ResNet-50 with fused batch norm."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import bias, cross_entropy, dense, labelled, weight

if TYPE_CHECKING:
    from models import TF, Wrap


def tutorial(tf: TF, wrap: Wrap = same) -> Model:
    """24 × 24 × 3, batch 128: two 5 × 5 × 64 convolutions with max pool and LRN, then 384, 192, 10; SGD with a decaying
    rate, weight decay, moving averages of all variables and of the losses.
    """
    choose = np.random.default_rng(4)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [128, 24, 24, 3], name="images")
    t = tf.placeholder(tf.int32, [128], name="labels")
    decays = []

    def convolve(y: Any, name: str, channels: int, start: float) -> Any:
        kernel = weight(tf, choose, f"{name}/kernel", [5, 5, channels, 64], 0.05)
        y = tf.nn.conv2d(y, kernel, [1, 1, 1, 1], padding="SAME")
        return tf.nn.relu(tf.nn.bias_add(y, bias(tf, f"{name}/biases", 64, start)))

    def pool(y: Any) -> Any:
        return tf.nn.max_pool(y, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")

    def normal(y: Any) -> Any:
        return tf.nn.lrn(y, 4, bias=1.0, alpha=0.001 / 9.0, beta=0.75)

    def local(y: Any, name: str, rows: int, columns: int) -> Any:
        w = weight(tf, choose, f"{name}/weights", [rows, columns], 0.04)
        decays.append(tf.nn.l2_loss(w) * 0.004)
        return tf.nn.relu(tf.matmul(y, w) + bias(tf, f"{name}/biases", columns, 0.1))

    y = normal(pool(convolve(x, "conv1", 3, 0.0)))
    y = pool(normal(convolve(y, "conv2", 64, 0.1)))
    y = tf.reshape(y, [128, 6 * 6 * 64])
    y = local(local(y, "local3", 6 * 6 * 64, 384), "local4", 384, 192)
    w = weight(tf, choose, "softmax/weights", [192, 10], 1 / 192.0)
    logits = tf.matmul(y, w) + bias(tf, "softmax/biases", 10)
    data_loss = cross_entropy(tf, t, logits)
    loss = tf.add_n([data_loss, *decays])
    averages_of_losses = tf.train.ExponentialMovingAverage(0.9).apply([data_loss, *decays, loss])
    rate = tf.train.exponential_decay(0.1, step, 136_000, 0.1, staircase=True)
    with tf.control_dependencies([averages_of_losses]):
        optimizer = wrap(tf.train.GradientDescentOptimizer(rate))
        gradients = optimizer.compute_gradients(loss)
    applied = optimizer.apply_gradients(gradients, global_step=step)
    averages = tf.train.ExponentialMovingAverage(0.9999, step)
    with tf.control_dependencies([applied]):
        train = averages.apply(tf.trainable_variables())
    data = labelled(choose, 128, [24, 24, 3], 10)
    return Model(loss, train, [{x: 2 * images - 1, t: labels} for images, labels in data])


class _Layers:
    """Convolutions, batch norms with moving averages, and what a loss and a step add for them."""

    def __init__(self, tf: TF, choose: np.random.Generator) -> None:
        self._tf, self._choose = tf, choose
        self.updates: list[Any] = []
        self._kernels: list[Any] = []

    def convolve(self, y: Any, name: str, size: int, rows: int, columns: int, stride: int) -> Any:
        scale = (2.0 / (size * size * rows)) ** 0.5
        kernel = weight(self._tf, self._choose, f"{name}/kernel", [size, size, rows, columns], scale)
        self._kernels.append(kernel)
        return self._tf.nn.conv2d(y, kernel, [1, stride, stride, 1], padding="SAME")

    def normalized(self, y: Any, name: str, channels: int) -> Any:
        tf = self._tf
        scale, offset = bias(tf, f"{name}/gamma", channels, 1.0), bias(tf, f"{name}/beta", channels)
        moving = [
            tf.Variable(np.full([channels], value, np.float32), trainable=False, name=f"{name}/{what}")
            for what, value in (("moving_mean", 0.0), ("moving_variance", 1.0))
        ]
        y, *found = tf.nn.fused_batch_norm(y, scale, offset, epsilon=1e-3, is_training=True)
        self.updates.extend(tf.assign_sub(old, (old - new) * 0.1) for old, new in zip(moving, found, strict=True))
        return y

    def both(self, y: Any, name: str, size: int, rows: int, columns: int, stride: int = 1) -> Any:
        """The convolution and its batch norm."""
        return self.normalized(self.convolve(y, name, size, rows, columns, stride), name, columns)

    def decay(self) -> Any:
        return 1e-4 * self._tf.add_n([self._tf.nn.l2_loss(each) for each in self._kernels])


def resnet20(tf: TF, wrap: Wrap = same) -> Model:
    """32 × 32 × 3, batch 32, momentum: three stages of three blocks, 16, 32 and 64 channels.

    The rate is low for its curve to be comparable: at 0.02 TensorFlow's own curves, with oneDNN and without, differ by
    8 % within 100 steps, at 0.002 by 0.1 %.
    """
    choose = np.random.default_rng(6)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [32, 32, 32, 3], name="images")
    t = tf.placeholder(tf.int32, [32], name="labels")
    layers = _Layers(tf, choose)
    y = tf.nn.relu(layers.both(x, "first", 3, 3, 16))
    rows = 16
    for stage, columns in enumerate((16, 32, 64)):
        for block in range(3):
            name = f"stage{stage}/block{block}"
            stride = 2 if stage and not block else 1
            shortcut = y if rows == columns else layers.convolve(y, f"{name}/shortcut", 1, rows, columns, stride)
            y = tf.nn.relu(layers.both(y, f"{name}/a", 3, rows, columns, stride))
            y = tf.nn.relu(layers.both(y, f"{name}/b", 3, columns, columns) + shortcut)
            rows = columns
    logits = dense(tf, choose, tf.reduce_mean(y, [1, 2]), "logits", 64, 10)
    loss = cross_entropy(tf, t, logits) + layers.decay()
    with tf.control_dependencies(layers.updates):
        train = wrap(tf.train.MomentumOptimizer(0.002, 0.9)).minimize(loss, global_step=step)
    data = labelled(choose, 32, [32, 32, 3], 10)
    return Model(loss, train, [{x: 2 * images - 1, t: labels} for images, labels in data])


#: Of ResNet-50: the blocks of a stage, and the channels of their middle.
BOTTLENECKS = ((3, 64), (4, 128), (6, 256), (3, 512))


def resnet50(tf: TF, wrap: Wrap = same) -> Model:
    """96 × 96 × 3, batch 8, momentum: four stages of bottlenecks, whose 3 × 3 convolution has the stride."""
    choose = np.random.default_rng(18)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [8, 96, 96, 3], name="images")
    t = tf.placeholder(tf.int32, [8], name="labels")
    layers = _Layers(tf, choose)
    y = tf.nn.relu(layers.both(x, "first", 7, 3, 64, 2))
    y = tf.nn.max_pool(y, ksize=[1, 3, 3, 1], strides=[1, 2, 2, 1], padding="SAME")
    rows = 64
    for stage, (blocks, middle) in enumerate(BOTTLENECKS):
        for block in range(blocks):
            name = f"stage{stage}/block{block}"
            stride = 2 if stage and not block else 1
            shortcut = y if block else layers.both(y, f"{name}/shortcut", 1, rows, 4 * middle, stride)
            y = tf.nn.relu(layers.both(y, f"{name}/a", 1, rows, middle))
            y = tf.nn.relu(layers.both(y, f"{name}/b", 3, middle, middle, stride))
            y = tf.nn.relu(layers.both(y, f"{name}/c", 1, middle, 4 * middle) + shortcut)
            rows = 4 * middle
    logits = dense(tf, choose, tf.reduce_mean(y, [1, 2]), "logits", rows, 100)
    loss = cross_entropy(tf, t, logits) + layers.decay()
    with tf.control_dependencies(layers.updates):
        train = wrap(tf.train.MomentumOptimizer(0.0005, 0.9)).minimize(loss, global_step=step)
    data = labelled(choose, 8, [96, 96, 3], 100)
    return Model(loss, train, [{x: 2 * images - 1, t: labels} for images, labels in data])
