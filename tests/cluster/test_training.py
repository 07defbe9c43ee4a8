"""Training on a cluster: variables on parameter servers, steps on workers, over gRPC on loopback.

Between-graph and asynchronous, as the examples do it: every worker has a graph and a session of its own, and they
meet in the variables.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.background_cluster import background_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_services.background import BackgroundServer

JOBS = {"ps": 2, "worker": 2}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[tuple[str, int], BackgroundServer]]:
    """Two parameter servers and two workers on ports that the system chose."""
    with background_cluster(JOBS) as servers:
        yield servers


@dataclass
class Model:
    """Softmax regression over two classes: x [B, 2], y [B]."""

    x: tf.Tensor
    y: tf.Tensor
    loss: tf.Tensor
    train_op: tf.Operation
    step: tf.Variable


def build(prefix: str, worker: int, optimizer: tf.train.Optimizer, use_resource: bool = False) -> Model:
    cluster_spec = {job: [f"unused:{i + 1}" for i in range(count)] for job, count in JOBS.items()}
    setter = tf.train.replica_device_setter(cluster=cluster_spec, worker_device=f"/job:worker/task:{worker}")
    with tf.device(setter), tf.variable_scope(prefix, use_resource=use_resource):
        x = tf.placeholder(tf.float32, [None, 2])
        y = tf.placeholder(tf.int64, [None])
        weights = tf.get_variable("weights", [2, 2], initializer=tf.zeros_initializer())
        bias = tf.get_variable("bias", [2], initializer=tf.zeros_initializer())
        step = tf.get_variable("step", [], tf.int64, trainable=False, initializer=tf.zeros_initializer())
        logits = tf.nn.bias_add(tf.matmul(x, weights), bias)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        train_op = optimizer.minimize(loss, global_step=step)
    return Model(x, y, loss, train_op, step)


def batch(seed: int) -> tuple[np.ndarray, np.ndarray]:
    points = np.random.default_rng(seed).standard_normal((64, 2)).astype(np.float32)
    return points, (points[:, 0] > points[:, 1]).astype(np.int64)


OPTIMIZERS = {
    "GradientDescent": lambda: tf.train.GradientDescentOptimizer(0.5),
    "Momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "Adagrad": lambda: tf.train.AdagradOptimizer(0.5),
    "Adam": lambda: tf.train.AdamOptimizer(0.1),
}


@pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_loss_falls_with_variables_on_parameter_servers(cluster, name, use_resource):
    with tf.Graph().as_default():
        model = build(f"{name}_{use_resource}", 0, OPTIMIZERS[name](), use_resource)
        placed = {v.op.name.split("/")[-1]: v.device for v in tf.global_variables() if v.op.name.count("/") == 1}
        init = tf.global_variables_initializer()
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(init)
            losses = []
            for seed in range(20):
                x, y = batch(seed)
                losses.append(session.run([model.loss, model.train_op], {model.x: x, model.y: y})[0])
            steps = session.run(model.step)

    assert placed["weights"] == "/job:ps/task:0"
    assert placed["bias"] == "/job:ps/task:1"
    assert losses[0] == pytest.approx(np.log(2.0), rel=1e-3)
    assert losses[-1] < 0.6 * losses[0]
    assert steps == 20


def test_two_workers_train_the_same_variables(cluster):
    steps_each = 25
    initialized = threading.Event()
    losses: dict[int, list[float]] = {0: [], 1: []}
    failures: list[BaseException] = []

    def work(worker: int) -> None:
        try:
            with tf.Graph().as_default():
                model = build("shared", worker, tf.train.GradientDescentOptimizer(0.3))
                init = tf.global_variables_initializer()
                with tf.Session(cluster["worker", worker].target) as session:
                    if worker == 0:
                        session.run(init)
                        initialized.set()
                    assert initialized.wait(30)
                    for seed in range(steps_each):
                        x, y = batch(1000 * worker + seed)
                        losses[worker].append(session.run([model.loss, model.train_op], {model.x: x, model.y: y})[0])
        except BaseException as error:  # shown below, on the test's thread
            failures.append(error)
            initialized.set()

    threads = [threading.Thread(target=work, args=(worker,), name=f"worker-{worker}") for worker in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)

    assert failures == []
    assert all(trace[-1] < 0.6 * np.log(2.0) for trace in losses.values())
    with tf.Graph().as_default():
        model = build("shared", 0, tf.train.GradientDescentOptimizer(0.3))
        with tf.Session(cluster["ps", 0].target) as session:
            assert session.run(model.step) == 2 * steps_each


def test_only_the_rows_that_were_read_change(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:1"):
            table = tf.Variable(np.ones((6, 3), np.float32), name="table")
        with tf.device("/job:worker/task:0"):
            rows = tf.gather(table, [4, 1, 4])
            loss = tf.reduce_sum(rows)
        train_op = tf.train.AdagradOptimizer(1.0, initial_accumulator_value=1.0).minimize(loss)
        with tf.Session(cluster["worker", 0].target) as session:
            session.run(tf.global_variables_initializer())
            session.run(train_op)
            value = session.run(table)

    expected = np.ones((6, 3))
    expected[1] -= 1.0 / np.sqrt(2.0)
    expected[4] -= 2.0 / np.sqrt(5.0)
    np.testing.assert_allclose(value, expected, rtol=1e-5)


def test_uninitialized_variable_names_itself_and_its_task(cluster):
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0"):
            variable = tf.Variable(1.0, name="never_initialized")
        doubled = variable * 2.0
        with (
            tf.Session(cluster["worker", 1].target) as session,
            pytest.raises(tf.errors.FailedPreconditionError, match=r"/job:ps/replica:0/task:0[\s\S]*never_initialized"),
        ):
            session.run(doubled)
