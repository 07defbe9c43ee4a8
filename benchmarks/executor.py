"""7. The executor: the cost of an op with almost no work, in process, with fusion and without."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import ALONE, Case, Context, Measure, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

CHAIN, WIDTH = 1000, 500


def chain(elements: int) -> Callable[[Context], Measure]:
    """1,000 elementwise ops, one after the other, over a scalar or a vector."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        shape = [] if elements == 1 else [elements]
        with ctx.building(graph):
            x = tf.placeholder(tf.float32, shape, name="x")
            # Fed, so that no graph rewriter folds the chain into a constant.
            a = tf.placeholder(tf.float32, [], name="a")
            b = tf.placeholder(tf.float32, [], name="b")
            y = x
            for _ in range(CHAIN // 2):
                y = y * a + b
        sess = ctx.session(graph)
        feed = {x: np.full(shape, 2.5, np.float32), a: np.float32(0.5), b: np.float32(1.0)}
        return Measure(step=lambda: sess.run(y, feed), result=lambda: {"value": sess.run(y, feed)})

    return build


def wide(ctx: Context) -> Measure:
    """500 ops that do not depend on each other, and a sum over them."""
    tf = ctx.tf
    graph = tf.Graph()
    with ctx.building(graph):
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.add_n([tf.maximum(x, 0.001 * index) for index in range(WIDTH)])
    sess = ctx.session(graph)
    feed = {x: 0.25}
    return Measure(step=lambda: sess.run(y, feed), result=lambda: {"value": sess.run(y, feed)})


def training_step(ctx: Context) -> Measure:
    """With reference variables, which TensorFlow's single-threaded executor does not take."""
    return small_training(ctx, resource=False)


def resource_training_step(ctx: Context) -> Measure:
    return small_training(ctx, resource=True)


def small_training(ctx: Context, *, resource: bool) -> Measure:
    """A step of about 150 ops whose arithmetic is negligible: MLP 8-16-4, batch 4, Adam."""
    tf = ctx.tf

    def variable(value: object, name: str) -> Any:
        return tf.Variable(value, name=name, use_resource=resource)

    choose = np.random.default_rng(3)
    images = choose.standard_normal([4, 8]).astype(np.float32)
    labels = np.array([0, 1, 2, 3], np.int32)
    graph = tf.Graph()
    with ctx.building(graph):
        x = tf.placeholder(tf.float32, [4, 8], name="x")
        t = tf.placeholder(tf.int32, [4], name="t")
        w1 = variable(choose.standard_normal([8, 16]).astype(np.float32) * 0.3, "w1")
        b1 = variable(np.zeros([16], np.float32), "b1")
        w2 = variable(choose.standard_normal([16, 4]).astype(np.float32) * 0.3, "w2")
        b2 = variable(np.zeros([4], np.float32), "b2")
        logits = tf.matmul(tf.tanh(tf.matmul(x, w1) + b1), w2) + b2
        penalty = tf.add_n([tf.reduce_sum(tf.square(w)) for w in (w1, w2)]) * 0.001
        data_loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=logits))
        loss = data_loss + penalty
        train = tf.train.AdamOptimizer(0.01).minimize(loss)
        init = tf.global_variables_initializer()
    sess = ctx.session(graph)
    sess.run(init)
    feed = {x: images, t: labels}

    def result() -> dict[str, object]:
        sess.run(init)
        return {"losses": np.array([sess.run([loss, train], feed)[0] for _ in range(20)])}

    return Measure(step=lambda: sess.run([loss, train], feed), result=result)


#: The demand is against TensorFlow's tuned executor.
TUNED = ("tensorflow direct", "tensorflow direct one thread", "tensorflow direct tuned")
NO_TUNED = ("tenfold", "tenfold unfused", "tensorflow", "tensorflow direct", "tensorflow direct one thread")
ONE_THREAD = replace(harness.TENSORFLOW_DIRECT_TUNED, name="tensorflow direct one thread", executor="")

SUBJECT = Subject(
    number="7",
    module="executor",
    title="executor: the cost of an op",
    sides=(
        harness.TENFOLD,
        harness.TENFOLD_UNFUSED,
        harness.TENSORFLOW,
        harness.TENSORFLOW_DIRECT,
        ONE_THREAD,
        harness.TENSORFLOW_DIRECT_TUNED,
    ),
    cases=(
        Case(
            "chain of 1,000 scalar ops",
            ALONE,
            chain(1),
            {"tenfold": 2},
            limits_us={"tenfold": 40},
            against=TUNED,
            work=CHAIN,
            unit="op",
            warm_up_s=3.0,
            note="limit: 40 ns an op",
        ),
        Case(
            "chain of 1,000 ops over 1,000 elements",
            ALONE,
            chain(1000),
            {"tenfold": 2},
            limits_us={"tenfold": 40},
            against=TUNED,
            work=CHAIN,
            unit="op",
            warm_up_s=3.0,
            note="limit: 40 ns an op",
        ),
        Case("500 ops side by side", ALONE, wide, {"tenfold": 2}, against=TUNED, work=WIDTH, unit="op", warm_up_s=2.0),
        *(
            Case(
                name,
                ALONE,
                build,
                {"tenfold": 2},
                against=TUNED,
                sides=sides,
                work=150,
                unit="op",
                rtol=1e-4,
                warm_up_s=3.0,
            )
            for name, build, sides in (
                ("training step of 150 ops", training_step, NO_TUNED),
                ("training step of 150 ops, resource variables", resource_training_step, ()),
            )
        ),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
