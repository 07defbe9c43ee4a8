"""Convolutional nets of other kinds than images.py: separable convolutions as in MobileNet, a U-Net, a DCGAN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from models import Model, same
from models.parts import BATCHES, bias, cross_entropy, dense, labelled, weight

if TYPE_CHECKING:
    from models import TF, Wrap

#: The separable net: (channels, stride) of each block.
BLOCKS = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1))
#: The U-Net: channels of each level.
LEVELS = (16, 32, 64)
#: The DCGAN.
PAIRS, NOISE = 32, 64


def separable(tf: TF, wrap: Wrap = same) -> Model:
    """32 × 32 × 3, batch 32: a full convolution, then depthwise and pointwise ones, each with fused batch norm."""
    choose = np.random.default_rng(16)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [32, 32, 32, 3], name="images")
    t = tf.placeholder(tf.int32, [32], name="labels")

    def normalized(y: Any, name: str, channels: int) -> Any:
        scale, offset = bias(tf, f"{name}/gamma", channels, 1.0), bias(tf, f"{name}/beta", channels)
        return tf.nn.relu6(tf.nn.fused_batch_norm(y, scale, offset, epsilon=1e-3, is_training=True)[0])

    kernel = weight(tf, choose, "first/kernel", [3, 3, 3, 32], (2 / 27) ** 0.5)
    y, rows = normalized(tf.nn.conv2d(x, kernel, [1, 1, 1, 1], padding="SAME"), "first", 32), 32
    for number, (columns, stride) in enumerate(BLOCKS):
        name = f"block{number}"
        kernel = weight(tf, choose, f"{name}/depthwise", [3, 3, rows, 1], (2 / 9) ** 0.5)
        y = normalized(tf.nn.depthwise_conv2d(y, kernel, [1, stride, stride, 1], padding="SAME"), f"{name}/a", rows)
        kernel = weight(tf, choose, f"{name}/pointwise", [1, 1, rows, columns], (2 / rows) ** 0.5)
        y = normalized(tf.nn.conv2d(y, kernel, [1, 1, 1, 1], padding="SAME"), f"{name}/b", columns)
        rows = columns
    loss = cross_entropy(tf, t, dense(tf, choose, tf.reduce_mean(y, [1, 2]), "logits", rows, 10))
    train = wrap(tf.train.MomentumOptimizer(0.002, 0.9)).minimize(loss, global_step=step)
    data = labelled(choose, 32, [32, 32, 3], 10)
    return Model(loss, train, [{x: 2 * images - 1, t: labels} for images, labels in data])


def unet(tf: TF, wrap: Wrap = same) -> Model:
    """64 × 64 × 3, batch 8: two convolutions a level, max pool down, transposed convolutions up, skips; Adam."""
    choose = np.random.default_rng(17)
    step = tf.train.get_or_create_global_step()
    x = tf.placeholder(tf.float32, [8, 64, 64, 3], name="images")
    t = tf.placeholder(tf.float32, [8, 64, 64, 1], name="masks")

    def twice(y: Any, name: str, rows: int, columns: int) -> Any:
        for which, inputs in (("a", rows), ("b", columns)):
            kernel = weight(tf, choose, f"{name}/{which}/kernel", [3, 3, inputs, columns], (2 / (9 * inputs)) ** 0.5)
            y = tf.nn.conv2d(y, kernel, [1, 1, 1, 1], padding="SAME")
            y = tf.nn.relu(tf.nn.bias_add(y, bias(tf, f"{name}/{which}/bias", columns)))
        return y

    y, rows, skips = x, 3, []
    for level, columns in enumerate(LEVELS):
        y = twice(y, f"down{level}", rows, columns)
        rows = columns
        if columns != LEVELS[-1]:
            skips.append(y)
            y = tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], padding="SAME")
    for level, columns in reversed(list(enumerate(LEVELS[:-1]))):
        kernel = weight(tf, choose, f"up{level}/kernel", [2, 2, columns, rows], (1 / rows) ** 0.5)
        size = 64 >> level
        y = tf.nn.conv2d_transpose(y, kernel, [8, size, size, columns], [1, 2, 2, 1], padding="SAME")
        y = tf.nn.bias_add(y, bias(tf, f"up{level}/bias", columns))
        y = twice(tf.concat([skips[level], y], 3), f"join{level}", 2 * columns, columns)
        rows = columns
    kernel = weight(tf, choose, "mask/kernel", [1, 1, rows, 1], (1 / rows) ** 0.5)
    logits = tf.nn.bias_add(tf.nn.conv2d(y, kernel, [1, 1, 1, 1], padding="SAME"), bias(tf, "mask/bias", 1))
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=t, logits=logits))
    train = wrap(tf.train.AdamOptimizer(0.001)).minimize(loss, global_step=step)
    return Model(loss, train, [{x: images, t: masks} for images, masks in blots(choose)])


def blots(choose: np.random.Generator) -> list[tuple[Any, Any]]:
    """Noisy pictures float32 [8, 64, 64, 3] of a round blot each, and where it is, float32 [8, 64, 64, 1]."""
    rows, columns = np.mgrid[0:64, 0:64]
    found = []
    for _ in range(BATCHES):
        centres, sizes = choose.uniform(12, 52, [8, 2, 1, 1]), choose.uniform(4, 12, [8, 1, 1])
        inside = ((rows - centres[:, 0]) ** 2 + (columns - centres[:, 1]) ** 2 < sizes**2)[..., None]
        images = choose.normal(0, 0.5, [8, 64, 64, 3]) + inside
        found.append((images.astype(np.float32), inside.astype(np.float32)))
    return found


def dcgan(tf: TF, wrap: Wrap = same) -> Model:
    """28 × 28 × 1, batch 32: a step trains the discriminator on real and made pictures, then the generator; Adam."""
    choose = np.random.default_rng(18)
    step = tf.train.get_or_create_global_step()
    noise = tf.placeholder(tf.float32, [PAIRS, NOISE], name="z")
    real = tf.placeholder(tf.float32, [PAIRS, 28, 28, 1], name="images")

    def batch_norm(y: Any, of: Any) -> Any:
        return tf.nn.fused_batch_norm(y, *of, epsilon=1e-3, is_training=True)[0]

    def norm(name: str, channels: int) -> Any:
        return bias(tf, f"{name}/gamma", channels, 1.0), bias(tf, f"{name}/beta", channels)

    first = weight(tf, choose, "g/dense", [NOISE, 7 * 7 * 64], 0.05)
    first_norm, second_norm = norm("g/norm0", 64), norm("g/norm1", 32)
    up0 = weight(tf, choose, "g/up0", [5, 5, 32, 64], 0.05)
    up1 = weight(tf, choose, "g/up1", [5, 5, 1, 32], 0.05)
    y = tf.nn.relu(batch_norm(tf.reshape(tf.matmul(noise, first), [PAIRS, 7, 7, 64]), first_norm))
    y = tf.nn.conv2d_transpose(y, up0, [PAIRS, 14, 14, 32], [1, 2, 2, 1], padding="SAME")
    y = tf.nn.relu(batch_norm(y, second_norm))
    made = tf.nn.tanh(tf.nn.conv2d_transpose(y, up1, [PAIRS, 28, 28, 1], [1, 2, 2, 1], padding="SAME"))

    down0, down0_bias = weight(tf, choose, "d/down0", [5, 5, 1, 32], 0.05), bias(tf, "d/down0/bias", 32)
    down1, down1_bias = weight(tf, choose, "d/down1", [5, 5, 32, 64], 0.05), bias(tf, "d/down1/bias", 64)
    last, last_bias = weight(tf, choose, "d/dense", [7 * 7 * 64, 1], 0.05), bias(tf, "d/dense/bias", 1)

    def judged(pictures: Any) -> Any:
        y = tf.nn.conv2d(pictures, down0, [1, 2, 2, 1], padding="SAME")
        y = tf.nn.leaky_relu(tf.nn.bias_add(y, down0_bias))
        y = tf.nn.conv2d(y, down1, [1, 2, 2, 1], padding="SAME")
        y = tf.nn.leaky_relu(tf.nn.bias_add(y, down1_bias))
        return tf.matmul(tf.reshape(y, [PAIRS, 7 * 7 * 64]), last) + last_bias

    def loss_of(logits: Any, value: float) -> Any:
        labels = tf.fill([PAIRS, 1], value)
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))

    found_real, found_made = judged(real), judged(made)
    judge_loss = loss_of(found_real, 1.0) + loss_of(found_made, 0.0)
    maker_loss = loss_of(found_made, 1.0)
    judge = [down0, down0_bias, down1, down1_bias, last, last_bias]
    maker = [first, *first_norm, *second_norm, up0, up1]
    adam = tf.train.AdamOptimizer
    train_judge = wrap(adam(0.0002, 0.5)).minimize(judge_loss, var_list=judge, global_step=step)
    train_maker = wrap(adam(0.0002, 0.5)).minimize(maker_loss, var_list=maker)
    batches = pairs(choose)

    def play(run: Any, number: int) -> Any:
        z, pictures = batches[number % len(batches)]
        loss = run([judge_loss, train_judge], {noise: z, real: pictures})[0]
        run([maker_loss, train_maker], {noise: z})
        return loss

    return Model(judge_loss, None, (), play)


def pairs(choose: np.random.Generator) -> list[tuple[Any, Any]]:
    """Noise float32 [PAIRS, NOISE] and pictures of bright spots float32 [PAIRS, 28, 28, 1]."""
    rows, columns = np.mgrid[0:28, 0:28]
    found = []
    for _ in range(BATCHES):
        z, centres = choose.standard_normal([PAIRS, NOISE]), choose.uniform(4, 24, [PAIRS, 2, 1, 1])
        far = (rows - centres[:, 0]) ** 2 + (columns - centres[:, 1]) ** 2
        found.append((z.astype(np.float32), (2 * np.exp(-far / 12.0) - 1).astype(np.float32)[..., None]))
    return found
