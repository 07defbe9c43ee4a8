"""3. Small work across tasks: the latency of a step that needs a parameter server. The session is on the worker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import harness
from harness import PS_WORKER, TWO_PS_WORKER, Case, Context, Measure, Subject

if TYPE_CHECKING:
    from collections.abc import Callable

CHAIN = 400


def remote_op(ctx: Context) -> Measure:
    """One op on the ps, fed and fetched by the worker's client."""
    tf = ctx.tf
    graph = tf.Graph()
    with ctx.building(graph):
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [], name="x")
        with tf.device("/job:ps/task:0"):
            y = tf.add(x, 1.0, name="y")
    sess = ctx.session(graph)
    feed = {x: 2.5}
    return Measure(step=lambda: sess.run(y, feed), result=lambda: {"value": sess.run(y, feed)})


def pull_from(tasks: int) -> Callable[[Context], Measure]:
    """A tiny variable on each of `tasks` parameter servers, summed on the worker."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        graph = tf.Graph()
        with ctx.building(graph):
            variables, touches = [], []
            for task in range(tasks):
                with tf.device(f"/job:ps/task:{task}"):
                    variables.append(tf.Variable([1.0, 2.0, 3.0 + task], name=f"v{task}"))
                    touches.append(tf.assign_add(variables[-1], [1.0, 1.0, 1.0]))
            with tf.device("/job:worker/task:0"):
                total = variables[0] + variables[1] if tasks == 2 else variables[0] + 1.0
            touch = tf.group(*touches)
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        sess.run(init)

        def result() -> dict[str, object]:
            sess.run(init)
            first = sess.run(total)
            sess.run(touch)
            return {"first": first, "after a write": sess.run(total)}

        return Measure(step=lambda: sess.run(total), result=result)

    return build


def pull_and_push(ctx: Context) -> Measure:
    """Pull a tiny variable, and add the worker's result to it: the smallest training step."""
    tf = ctx.tf
    graph = tf.Graph()
    with ctx.building(graph):
        with tf.device("/job:ps/task:0"):
            v = tf.Variable([1.0, 2.0, 3.0], name="v")
        with tf.device("/job:worker/task:0"):
            gradient = v * -0.001
        with tf.device("/job:ps/task:0"):
            update = tf.assign_add(v, gradient).op
        init = tf.global_variables_initializer()
    sess = ctx.session(graph)
    sess.run(init)

    def result() -> dict[str, object]:
        sess.run(init)
        for _ in range(5):
            sess.run(update)
        return {"v": sess.run(v)}

    return Measure(step=lambda: sess.run(update), result=result)


def chain_on_ps(ctx: Context) -> Measure:
    """A chain of 400 scalar ops on the ps, between a feed and a fetch on the worker."""
    tf = ctx.tf
    graph = tf.Graph()
    with ctx.building(graph):
        with tf.device("/job:worker/task:0"):
            x = tf.placeholder(tf.float32, [], name="x")
            # Fed, so that no graph rewriter folds the chain into a constant.
            a = tf.placeholder(tf.float32, [], name="a")
            b = tf.placeholder(tf.float32, [], name="b")
        with tf.device("/job:ps/task:0"):
            y = x
            for _ in range(CHAIN // 2):
                y = y * a + b
        with tf.device("/job:worker/task:0"):
            y = tf.identity(y)
    sess = ctx.session(graph)
    feed = {x: 2.5, a: 0.5, b: 1.0}
    return Measure(step=lambda: sess.run(y, feed), result=lambda: {"value": sess.run(y, feed)})


SUBJECT = Subject(
    number="3",
    module="cross_task",
    title="a step that needs another task",
    sides=(harness.TENFOLD, harness.TENFOLD_TCP, harness.TENFOLD_GRPC, harness.TENSORFLOW, harness.TENSORFLOW_TUNED),
    cases=(
        Case("op on the ps", PS_WORKER, remote_op, {"tenfold": 4}),
        Case("tiny variable ps → worker", PS_WORKER, pull_from(1), {"tenfold": 6}, stretch=8),
        Case("tiny variable, pull and push", PS_WORKER, pull_and_push),
        Case("chain of 400 scalar ops on the ps", PS_WORKER, chain_on_ps, {"tenfold": 3}, warm_up_s=1.5),
        Case("two ps → worker", TWO_PS_WORKER, pull_from(2), {"tenfold": 6}),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
