"""The graphs that simulated clients run, made once for a process with Tenfold's own client.

Counters are int64 variables to which request i adds 4**i: the digits of a value tell how often each was applied.
"""

from __future__ import annotations

import functools
from typing import Any

import tenfold as tf

#: Of one variable: more would not fit into an int64.
MOST_REQUESTS = 30
#: Name → its ps; the two of `pair` are written by one step.
COUNTERS = {"counter": 0, "pair0": 0, "pair1": 1}


def prepare() -> None:
    """Makes all that there may be, so that no world has to."""
    for ps in (1, 2):
        tasks = [f"/job:worker/replica:0/task:{index}" for index in range(2)]
        tasks += [f"/job:ps/replica:0/task:{index}" for index in range(ps)]
        for master in tasks:
            for other in tasks:
                if other != master:
                    graph_def(master, other, ps)


@functools.cache
def graph_def(master: str, other: str, ps: int) -> Any:
    """For a client of the task `master`, which also computes on the task `other`; with `ps` parameter servers."""
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.int64, [], name="x")
        added = {}
        for name, index in COUNTERS.items():
            with tf.device(f"/job:ps/task:{index % ps}"):
                variable = tf.Variable(0, dtype=tf.int64, trainable=False, name=name)
                added[name] = tf.assign_add(variable, x, name=f"add_{name}")
                tf.identity(variable, name=f"read_{name}")
        with tf.device(other):
            tf.identity(added["counter"] - x, name="before")
            total = tf.add(added["pair0"], added["pair1"], name="sum_there")
        with tf.device(master):
            tf.add(total, x, name="sum")
        with tf.device("/job:ps/task:0"):
            queue = tf.FIFOQueue(8, [tf.int64], [[]], shared_name="queue", name="queue")
            queue.enqueue(x, name="enqueue")
            tf.identity(queue.dequeue(), name="dequeued")
            gradient = tf.placeholder(tf.float64, [], name="gradient")
            sums = tf.ConditionalAccumulator(tf.float64, [], shared_name="sums", name="sums", reduction_type="SUM")
            sums.apply_grad(gradient, local_step=1 << 30, name="apply")
            tf.identity(sums.take_grad(2), name="taken")
        with tf.device(other):
            first = tf.placeholder(tf.int64, [], name="first")
            doubled = tf.add(first, first, name="doubled")
        with tf.device("/job:ps/task:0"):
            second = tf.placeholder(tf.int64, [], name="second")
            tf.add(doubled, second, name="both")
    return graph.as_graph_def()
