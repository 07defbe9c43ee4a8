"""8. Training: asynchronous with a parameter server and two workers, and in a single task; the loss curve is compared.

Data and initial values come from NumPy with a fixed seed, so that every side starts from the same point and a single
worker must get the same losses.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import harness
import numpy as np
from harness import ALONE, Case, Context, Measure, Subject, Topology

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BATCHES, CURVE = 8, 30
#: No pinning: three busy processes, and the machine may have two cores.
ASYNC = Topology(servers=("ps:0",), clients=("worker:0", "worker:1"), pinned=False)
ONE_WORKER = Topology(servers=("ps:0",), clients=("worker:0",))


def make_data(inputs: int, classes: int, batch: int) -> list[tuple[Any, Any]]:
    """Some batches of float32 [batch, inputs] and int32 [batch], labelled by a random linear rule."""
    choose = np.random.default_rng(7)
    rule = choose.standard_normal([inputs, classes])
    images = choose.random([BATCHES, batch, inputs]).astype(np.float32)
    return [(each, np.argmax((each - 0.5) @ rule, 1).astype(np.int32)) for each in images]


def mlp(layers: Sequence[int], batch: int, optimizer: str, rate: float) -> Callable[[Context], Measure]:
    """An MLP with ReLUs; variables on the parameter servers where the cluster has some."""

    def build(ctx: Context) -> Measure:
        tf = ctx.tf
        choose = np.random.default_rng(1)
        data = make_data(layers[0], layers[-1], batch)
        graph = tf.Graph()
        setter = None
        if "ps" in ctx.cluster:
            worker = f"/job:worker/task:{ctx.index}"
            setter = tf.train.replica_device_setter(worker_device=worker, cluster=tf.train.ClusterSpec(ctx.cluster))
        with ctx.building(graph), tf.device(setter):
            step_counter = tf.train.get_or_create_global_step()
            x = tf.placeholder(tf.float32, [None, layers[0]], name="x")
            t = tf.placeholder(tf.int32, [None], name="t")
            y = x
            for number, (rows, columns) in enumerate(itertools.pairwise(layers)):
                start = (choose.standard_normal([rows, columns]) * rows**-0.5).astype(np.float32)
                w = tf.Variable(start, name=f"w{number}")
                b = tf.Variable(np.zeros([columns], np.float32), name=f"b{number}")
                y = tf.matmul(y, w) + b
                if number + 2 < len(layers):
                    y = tf.nn.relu(y)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=t, logits=y))
            chosen = {
                "adagrad": lambda: tf.train.AdagradOptimizer(rate),
                "adam": lambda: tf.train.AdamOptimizer(rate),
                "sgd": lambda: tf.train.GradientDescentOptimizer(rate),
                "momentum": lambda: tf.train.MomentumOptimizer(rate, 0.9),
            }[optimizer]()
            train = chosen.minimize(loss, global_step=step_counter)
            init = tf.global_variables_initializer()
        sess = ctx.session(graph)
        if ctx.index == 0:
            sess.run(init)
        count = 0

        def step() -> Any:
            nonlocal count
            count += 1
            images, labels = data[count % BATCHES]
            return sess.run([train, loss], {x: images, t: labels})[1]

        def result() -> dict[str, object]:
            # Runs before the other workers come: the curve of one worker.
            nonlocal count
            sess.run(init)
            count = 0
            return {"losses": np.array([step() for _ in range(CURVE)]), "global step": sess.run(step_counter)}

        return Measure(step=step, result=result)

    return build


SUBJECT = Subject(
    number="8",
    module="training",
    title="training",
    sides=(harness.TENFOLD, harness.TENSORFLOW, harness.TENSORFLOW_TUNED, harness.TENSORFLOW_DIRECT),
    cases=(
        Case(
            "async MLP 784-256-10, batch 128, Adagrad, 1 ps + 2 workers",
            ASYNC,
            mlp((784, 256, 10), 128, "adagrad", 0.05),
            {"tenfold": 3},
            sides=("tenfold", "tensorflow", "tensorflow tuned"),
            metric="throughput",
            rtol=1e-4,
            warm_up_s=2.0,
            note="global steps of both workers",
        ),
        Case(
            "MLP 784-256-10, batch 128, Adagrad, 1 ps + 1 worker",
            ONE_WORKER,
            mlp((784, 256, 10), 128, "adagrad", 0.05),
            sides=("tenfold", "tensorflow", "tensorflow tuned"),
            rtol=1e-4,
            warm_up_s=2.0,
        ),
        Case(
            "small net 64-64-10, batch 32, Adagrad, 1 ps + 1 worker",
            ONE_WORKER,
            mlp((64, 64, 10), 32, "adagrad", 0.05),
            {"tenfold": 6},
            sides=("tenfold", "tensorflow", "tensorflow tuned"),
            rtol=1e-4,
            warm_up_s=2.0,
        ),
        Case(
            "single task, MLP 784-256-256-10, batch 128, Adam",
            ALONE,
            mlp((784, 256, 256, 10), 128, "adam", 0.001),
            {"tenfold": 1.5},
            rtol=1e-4,
            warm_up_s=2.0,
        ),
        Case(
            "single task, small net 64-64-10, batch 32, SGD",
            ALONE,
            mlp((64, 64, 10), 32, "sgd", 0.05),
            {"tenfold": 6},
            against=("tensorflow", "tensorflow tuned"),
            rtol=1e-4,
            warm_up_s=2.0,
        ),
    ),
)

if __name__ == "__main__":
    harness.main(SUBJECT)
