"""11. TensorFlow's own client: its time per step with a Tenfold server, and with TensorFlow's server.

The client is the same on both sides, and so are the programs; only the server process differs. Once with a deadline for
each step (operation_timeout_in_ms) and once without, as most programs have it.
"""

from __future__ import annotations

import harness
import numpy as np
from harness import REMOTE, Case, Context, Measure, Side, Subject
from null_step import constant, feed_and_fetch


def feed_and_fetch_of(megabytes: float) -> Case:
    """Feeds an array and fetches it, changed."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        with ctx.building(graph):
            x = tf.placeholder(tf.float32, [None], name="x")
            y = tf.add(x, 1.0, name="y")
        sess = ctx.session(graph)
        feed = {x: np.arange(int(megabytes * (1 << 18)), dtype=np.float32)}
        return Measure(step=lambda: sess.run(y, feed), result=lambda: {"value": sess.run(y, feed)[:100]})

    return Case(f"feed and fetch of {megabytes:g} MB", REMOTE, build, {"tenfold": 1})


def train_step(ctx: Context) -> Measure:
    """A dense layer of 64 × 10 on a batch of 32, gradient descent: fed, trained, the loss fetched."""
    tf = ctx.tf
    random = np.random.default_rng(0)
    graph = tf.Graph()
    with ctx.building(graph):
        x = tf.placeholder(tf.float32, [32, 64], name="x")
        y = tf.placeholder(tf.int32, [32], name="y")
        w = tf.get_variable("w", [64, 10], initializer=tf.zeros_initializer(), use_resource=False)
        b = tf.get_variable("b", [10], initializer=tf.zeros_initializer(), use_resource=False)
        logits = tf.matmul(x, w) + b
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
        init = tf.global_variables_initializer()
    sess = ctx.session(graph)
    sess.run(init)
    feed = {x: random.random((32, 64), np.float32), y: random.integers(0, 10, 32).astype(np.int32)}
    return Measure(
        step=lambda: sess.run([train, loss], feed),
        result=lambda: {"losses": np.array([sess.run([train, loss], feed)[1] for _ in range(5)])},
    )


THEIRS = ("tensorflow", "tensorflow tuned")

SUBJECT = Subject(
    number="11",
    module="foreign_client",
    title="TensorFlow's client, on a Tenfold server and on TensorFlow's",
    sides=(
        Side("tenfold", "tenfold", client="tensorflow", step_seconds=0),
        Side("tensorflow", "tensorflow", client="tensorflow", step_seconds=0),
        Side("tensorflow tuned", "tensorflow", client="tensorflow", single_thread=True, grappler=False, step_seconds=0),
        Side("tenfold with deadline", "tenfold", client="tensorflow"),
        Side("tensorflow with deadline", "tensorflow", client="tensorflow"),
    ),
    cases=(
        Case("constant", REMOTE, constant, {"tenfold": 1}, against=THEIRS),
        Case("feed and fetch of a scalar", REMOTE, feed_and_fetch, {"tenfold": 1}, against=THEIRS),
        Case("training step", REMOTE, train_step, {"tenfold": 1}, against=THEIRS, rtol=1e-5),
        feed_and_fetch_of(1),
        feed_and_fetch_of(16),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
