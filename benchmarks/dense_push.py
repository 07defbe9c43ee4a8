"""5. Pushing a dense 64 MB gradient from the worker to the parameter server, which applies it: SGD and Adam.

The gradient is a variable of the worker, of which one row is written between two timed steps, so that it has to travel.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import harness
import numpy as np
from dense_pull import COLUMNS, rows_of
from harness import PS_WORKER, Case, Context, Measure, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

MEGABYTES = 64


def push(optimizer: str, megabytes: int = MEGABYTES) -> Callable[[Context], Measure]:
    rows = rows_of(megabytes)

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        with ctx.building(graph):
            with tf.device("/job:ps/task:0"):
                v = tf.Variable(tf.fill([rows, COLUMNS], 0.5), name="v")
                corner = tf.slice(v, [0, 0], [2, 4])
            with tf.device("/job:worker/task:0"):
                made = tf.Variable(tf.fill([rows, COLUMNS], 0.001), name="gradient", trainable=False)
                touch = tf.scatter_add(made, [0], np.full([1, COLUMNS], 0.001, np.float32)).op
                gradient = tf.identity(made)
            chosen = {
                "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
                "adam": lambda: tf.train.AdamOptimizer(0.001),
            }[optimizer]()
            with tf.device("/job:ps/task:0"):
                train = chosen.apply_gradients([(gradient, v)])
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init)

        def result() -> dict[str, object]:
            found = {}
            for count in range(3):
                sess.run(touch)
                sess.run(train)
                found[f"corner after {count + 1} steps"] = sess.run(corner)
            return found

        return Measure(step=lambda: sess.run(train), result=result, between=lambda: sess.run(touch))

    return build


BYTES = rows_of(MEGABYTES) * COLUMNS * 4
SUBJECT = Subject(
    number="5",
    module="dense_push",
    title="dense push and apply, worker → ps, 64 MB",
    sides=(harness.TENFOLD, harness.TENFOLD_TCP, harness.TENSORFLOW, harness.TENSORFLOW_TUNED),
    cases=(
        Case("SGD", PS_WORKER, push("sgd"), {"tenfold": 5}, work=BYTES, unit="B", rtol=1e-5),
        Case("Adam", PS_WORKER, push("adam"), {"tenfold": 5}, work=BYTES, unit="B", rtol=1e-5, warm_up_s=1.0),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
