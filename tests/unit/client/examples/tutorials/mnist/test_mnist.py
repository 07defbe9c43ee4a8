"""The tutorial's net learns what it is shown, and its nodes have the names that programs ask for."""

from __future__ import annotations

import numpy as np

import tenfold as tf
from tenfold.examples.tutorials.mnist import mnist


def test_the_net_learns_what_it_is_shown() -> None:
    with tf.Graph().as_default() as graph:
        tf.set_random_seed(1)
        images = tf.placeholder(tf.float32, [6, mnist.IMAGE_PIXELS])
        labels = tf.placeholder(tf.int32, [6])
        logits = mnist.inference(images, 16, 8)
        loss = mnist.loss(logits, labels)
        train = mnist.training(loss, 0.2)
        right = mnist.evaluation(logits, labels)
        feeds = {images: np.random.RandomState(0).rand(6, mnist.IMAGE_PIXELS), labels: [0, 1, 2, 3, 8, 9]}

        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            first = session.run(loss, feeds)
            for _ in range(60):
                session.run(train, feeds)

            assert session.run(loss, feeds) < first / 2
            assert session.run(right, feeds) > 3
        assert [v.op.name for v in tf.trainable_variables()] == [
            f"{layer}/{kind}" for layer in ("hidden1", "hidden2", "softmax_linear") for kind in ("weights", "biases")
        ]
        assert graph.get_operation_by_name("hidden2/Relu")
