"""1. The null step in process: what `Session.run` costs when the server is in the client's own process."""

from __future__ import annotations

import harness
from harness import ALONE, Case, Context, Measure, Subject


def constant(ctx: Context) -> Measure:
    """Fetch a constant."""
    tf = ctx.tf
    graph = tf.Graph()
    with ctx.building(graph):
        value = tf.constant(42.0, name="answer")
    sess = ctx.session(graph)
    return Measure(step=lambda: sess.run(value), result=lambda: {"value": sess.run(value)})


def feed_and_fetch(ctx: Context) -> Measure:
    """Feed a scalar, add one to it, fetch the sum."""
    tf = ctx.tf
    graph = tf.Graph()
    with ctx.building(graph):
        x = tf.placeholder(tf.float32, [], name="x")
        y = tf.add(x, 1.0, name="y")
    sess = ctx.session(graph)
    feed = {x: 2.5}
    return Measure(step=lambda: sess.run(y, feed), result=lambda: {"value": sess.run(y, feed)})


#: The demand is against the session on the server; the direct session is shown for comparison.
GRPC_SESSIONS = ("tensorflow", "tensorflow tuned")

SUBJECT = Subject(
    number="1",
    module="null_step",
    title="null step in process",
    sides=(
        harness.TENFOLD,
        harness.TENSORFLOW,
        harness.TENSORFLOW_TUNED,
        harness.TENSORFLOW_DIRECT,
        harness.TENSORFLOW_DIRECT_TUNED,
    ),
    cases=(
        Case("constant", ALONE, constant, {"tenfold": 10}, against=GRPC_SESSIONS),
        Case("feed and fetch of a scalar", ALONE, feed_and_fetch, {"tenfold": 10}, against=GRPC_SESSIONS),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
