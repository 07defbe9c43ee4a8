"""Whole programs learn on a GPU what they learn on the CPU: models, towers on two GPUs, clusters, checkpoints.

Shapes are tiny, because the simulator runs each of a kernel's threads as one of Python's.
"""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import ran_on, same_training, with_gpus
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

RNG = np.random.RandomState


@pytest.fixture(autouse=True)
def gpus() -> Iterator[None]:
    with with_gpus(2), tf.Graph().as_default():
        yield


def numbers(seed: int, *shape: int) -> Any:
    return RNG(seed).uniform(-1, 1, shape).astype(np.float32)


def batches(count: int, rows: int, columns: int, classes: int) -> list[dict[str, Any]]:
    """Points around a centre for each class, so that there is something to learn."""
    random, centres = RNG(1), RNG(0).uniform(-1, 1, (classes, columns))
    found = []
    for _ in range(count):
        y = random.randint(0, classes, rows)
        x = centres[y] + random.uniform(-0.2, 0.2, (rows, columns))
        found.append({"x": x.astype(np.float32), "y": y.astype(np.int64)})
    return found


def test_linear_regression() -> None:
    feeds = [{"x": numbers(i, 5, 2), "y": numbers(i, 5, 2) @ np.float32([[2.0], [-1.0]]) + 0.5} for i in range(6)]

    def build() -> tuple[Any, Any]:
        x, y = tf.placeholder(tf.float32, [None, 2], name="x"), tf.placeholder(tf.float32, [None, 1], name="y")
        w, b = tf.Variable([[0.1], [0.2]]), tf.Variable([0.0])
        loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
        return [tf.train.GradientDescentOptimizer(0.2).minimize(loss), loss], [w, b]

    *steps, (w, _) = same_training(build, feeds, ["MatMul", "Square", "ApplyGradientDescent"])

    assert steps[-1][1] < steps[0][1]
    assert np.abs(w - [[2.0], [-1.0]]).max() < 1.5


@pytest.mark.parametrize("use_resource", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_a_classifier_with_adam(use_resource: bool) -> None:
    def build() -> tuple[Any, Any]:
        x, y = tf.placeholder(tf.float32, [None, 9], name="x"), tf.placeholder(tf.int64, [None], name="y")
        with tf.variable_scope("model", use_resource=use_resource):
            w1 = tf.get_variable("w1", initializer=numbers(1, 9, 5))
            b1 = tf.get_variable("b1", initializer=np.zeros(5, np.float32))
            w2 = tf.get_variable("w2", initializer=numbers(2, 5, 3))
            hidden = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w1), b1))
            logits = tf.matmul(hidden, w2)
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
            right = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(logits, 1), y), tf.float32))
            step = tf.train.get_or_create_global_step()
            train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
        return [train, loss, right], [w1, b1, w2, step]

    update = "ResourceApplyAdam" if use_resource else "ApplyAdam"
    *steps, end = same_training(build, batches(8, 6, 9, 3), ["MatMul", update])

    assert steps[-1][1] < steps[0][1]
    assert end[-1] == 8


def test_a_small_convolutional_net() -> None:
    feeds = [{"x": numbers(i, 2, 6, 6, 1), "y": np.int64([0, 1])} for i in range(3)]

    def build() -> tuple[Any, Any]:
        x, y = tf.placeholder(tf.float32, [None, 6, 6, 1], name="x"), tf.placeholder(tf.int64, [None], name="y")
        filters, dense = tf.Variable(numbers(1, 3, 3, 1, 2)), tf.Variable(numbers(2, 18, 2))
        image = tf.nn.relu(tf.nn.conv2d(x, filters, [1, 1, 1, 1], "SAME"))
        image = tf.nn.max_pool(image, [1, 2, 2, 1], [1, 2, 2, 1], "VALID")
        logits = tf.matmul(tf.reshape(image, [-1, 18]), dense)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return [tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss), loss], [filters, dense]

    ops = ["Conv2D", "Conv2DBackpropFilter", "MaxPool", "MaxPoolGrad", "MatMul", "ApplyMomentum"]
    same_training(build, feeds, ops)


@pytest.mark.parametrize("dynamic", [False, pytest.param(True, marks=pytest.mark.thorough)])
def test_an_lstm(dynamic: bool) -> None:
    feeds = [{"x": numbers(i, 2, 3, 2), "y": numbers(i + 9, 2, 3)} for i in range(2)]

    def build() -> tuple[Any, Any]:
        x, y = tf.placeholder(tf.float32, [2, 3, 2], name="x"), tf.placeholder(tf.float32, [2, 3], name="y")
        cell = tf.nn.rnn_cell.BasicLSTMCell(3)
        with tf.variable_scope("rnn", initializer=tf.constant_initializer(0.3)):
            if dynamic:
                outputs, _ = tf.nn.dynamic_rnn(cell, x, dtype=tf.float32)
                last = outputs[:, -1]
            else:
                last = tf.nn.static_rnn(cell, tf.unstack(x, axis=1), dtype=tf.float32)[0][-1]
        loss = tf.reduce_mean(tf.square(last - y))
        return [tf.train.GradientDescentOptimizer(0.5).minimize(loss), loss], tf.trainable_variables()

    same_training(build, feeds, ["MatMul", "Sigmoid", "Tanh", "TanhGrad", "ApplyGradientDescent"])


def test_embeddings_with_a_sparse_update() -> None:
    feeds = [{"word": np.int64([4, 2, 2]), "near": np.int64([1, 3, 0])}] * 4

    def build() -> tuple[Any, Any]:
        word, near = (tf.placeholder(tf.int64, [3], name=name) for name in ("word", "near"))
        table, out = tf.Variable(numbers(1, 5, 4)), tf.Variable(numbers(2, 5, 4))
        score = tf.reduce_sum(tf.nn.embedding_lookup(table, word) * tf.nn.embedding_lookup(out, near), axis=1)
        loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.ones_like(score), logits=score))
        return [tf.train.AdagradOptimizer(0.5).minimize(loss), loss], [table, out]

    *steps, _ = same_training(build, feeds, ["GatherV2", "SparseApplyAdagrad", "Mul"])

    assert steps[-1][1] < steps[0][1]


# -- towers --------------------------------------------------------------------------------------------------------


def test_towers_on_two_gpus_share_variables_on_the_cpu() -> None:
    x, y = tf.placeholder(tf.float32, [4, 2], name="x"), tf.placeholder(tf.float32, [4, 1], name="y")
    with tf.device("/cpu:0"):
        w = tf.get_variable("w", initializer=[[0.5], [-0.5]])
        optimizer = tf.train.GradientDescentOptimizer(0.1)
        halves = list(zip(tf.split(x, 2), tf.split(y, 2), strict=True))
    found, losses = [], []
    for number, (given, wanted) in enumerate(halves):
        with tf.device(f"/gpu:{number}"), tf.name_scope(f"tower_{number}"):
            error = tf.matmul(given, w) - wanted
            losses.append(tf.reduce_mean(tf.multiply(error, error, name="square")))
            found.append(optimizer.compute_gradients(losses[-1], [w])[0][0])
    with tf.device("/cpu:0"):
        average = tf.reduce_mean(tf.stack(found), axis=0)
        train = optimizer.apply_gradients([(average, w)])
    data, target = numbers(1, 4, 2), numbers(2, 4, 1)
    wanted = np.float32([[0.5], [-0.5]])
    with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            session.run(train, {x: data, y: target})
            wanted = wanted - 0.1 * 2 / 4 * data.T @ (data @ wanted - target)
        np.testing.assert_allclose(session.run(w), wanted, rtol=1e-5)
        metadata = tf.RunMetadata()
        options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
        session.run([train, losses], {x: data, y: target}, options=options, run_metadata=metadata)
    places = ran_on(metadata)
    assert (places["tower_0/square"], places["tower_1/square"]) == ("GPU:0", "GPU:1")
    assert places["w"] == "CPU:0"


# -- clusters and checkpoints --------------------------------------------------------------------------------------


def cluster(stack: ExitStack) -> str:
    """A ps without GPUs and a worker with two, in this process; the worker's target."""
    no_gpu = tf.ConfigProto(device_count={"GPU": 0})
    empty = {"ps": {0: ""}, "worker": {0: ""}}
    ps = stack.enter_context(BackgroundServer(TaskServer(empty, "ps", 0, config=no_gpu)))
    worker = stack.enter_context(BackgroundServer(TaskServer(empty, "worker", 0)))
    addresses = {"ps": {0: f"localhost:{ps.port}"}, "worker": {0: f"localhost:{worker.port}"}}
    for server in (ps, worker):
        server.update_cluster(addresses)
    return f"grpc://localhost:{worker.port}"


def test_a_worker_with_a_gpu_learns_with_a_ps_on_the_cpu(tmp_path: Path) -> None:
    x, y = tf.placeholder(tf.float32, [None, 2], name="x"), tf.placeholder(tf.float32, [None, 1], name="y")
    with tf.device("/job:ps/task:0"):
        w = tf.get_variable("w", initializer=[[0.1], [0.2]])
        step = tf.train.get_or_create_global_step()
    with tf.device("/job:worker/task:0/gpu:0"):
        error = tf.subtract(tf.matmul(x, w), y, name="error")
        loss = tf.reduce_mean(error * error)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    train = optimizer.minimize(loss, global_step=step)
    on_ps = tf.device("/job:ps/task:0")
    with on_ps:
        saver = tf.train.Saver()
    feeds = [{x: numbers(i, 4, 2), y: numbers(i + 5, 4, 1)} for i in range(4)]
    found = []
    with ExitStack() as stack:
        target = cluster(stack)
        with tf.Session(target, config=tf.ConfigProto(allow_soft_placement=True)) as session:
            names = sorted(each.name.rpartition("job:")[2] for each in session.list_devices())
            session.run(tf.global_variables_initializer())
            for feed in feeds[:2]:
                found.append(session.run([loss, train], feed)[0])
            path = saver.save(session, str(tmp_path / "model"), global_step=step)
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            for feed in feeds[2:]:
                found.append(session.run([loss, train], feed, options=options, run_metadata=metadata)[0])
            end = session.run(w)
            saver.restore(session, path)
            assert session.run(step) == 2
    assert names == [
        "ps/replica:0/task:0/device:CPU:0",
        "worker/replica:0/task:0/device:CPU:0",
        "worker/replica:0/task:0/device:GPU:0",
        "worker/replica:0/task:0/device:GPU:1",
    ]
    assert ran_on(metadata)["error"] == "GPU:0"
    assert ran_on(metadata)["w"] == "CPU:0"
    # the same on a CPU alone
    with tf.Graph().as_default(), tf.device("/cpu:0"):
        x2, y2 = tf.placeholder(tf.float32, [None, 2]), tf.placeholder(tf.float32, [None, 1])
        w2 = tf.get_variable("w", initializer=[[0.1], [0.2]])
        error2 = tf.matmul(x2, w2) - y2
        loss2 = tf.reduce_mean(error2 * error2)
        train2 = tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss2)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            fed = [dict(zip((x2, y2), feed.values(), strict=True)) for feed in feeds]
            wanted = [session.run([loss2, train2], feed)[0] for feed in fed]
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            np.testing.assert_allclose(end, session.run(w2), rtol=1e-5)


def test_variables_of_a_workers_gpu_are_read_by_another_task() -> None:
    with tf.device("/job:worker/task:0/gpu:1"):
        v = tf.get_variable("v", initializer=[1.0, 2.0])
        r = tf.get_variable("r", initializer=[3.0, 4.0], use_resource=True)
    with tf.device("/job:ps/task:0"):
        total = v + r + 1.0
    with tf.device("/job:worker/task:0/gpu:0"):
        back = total * 2.0
        changed = [tf.assign_add(v, total), tf.assign_add(r, total)]
    with ExitStack() as stack, tf.Session(cluster(stack)) as session:
        session.run(tf.global_variables_initializer())
        assert session.run(back).tolist() == [10, 14]
        session.run([each.op if hasattr(each, "op") else each for each in changed])
        assert [each.tolist() for each in session.run([v, r])] == [[6, 9], [8, 11]]


def test_training_goes_on_on_a_cpu_where_a_gpu_left_it(tmp_path: Path) -> None:
    feeds = batches(6, 5, 4, 2)

    def build() -> tuple[Any, Any]:
        x, y = tf.placeholder(tf.float32, [None, 4], name="x"), tf.placeholder(tf.int64, [None], name="y")
        w = tf.get_variable("w", initializer=numbers(1, 4, 2))
        logits = tf.matmul(x, w)
        loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))
        return [tf.train.AdamOptimizer(0.1).minimize(loss), loss], w

    def run(device: str, part: list[dict[str, Any]], restore: str = "", save: bool = False) -> tuple[Any, str]:
        with tf.Graph().as_default() as graph:
            with tf.device(device):
                step, end = build()
            saver = tf.train.Saver()
            with tf.Session(config=tf.ConfigProto(allow_soft_placement=True)) as session:
                if restore:
                    saver.restore(session, restore)
                else:
                    session.run(tf.global_variables_initializer())
                for feed in part:
                    session.run(step, {graph.get_tensor_by_name(f"{name}:0"): value for name, value in feed.items()})
                path = saver.save(session, str(tmp_path / device.strip("/"))) if save else ""
                return session.run(end), path

    _, path = run("/gpu:0", feeds[:3], save=True)
    ours, _ = run("/cpu:0", feeds[3:], restore=path)
    theirs, _ = run("/cpu:0", feeds)

    np.testing.assert_allclose(ours, theirs, rtol=1e-4)
