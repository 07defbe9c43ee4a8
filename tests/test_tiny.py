"""The smoke test that everyone reads first: what Tenfold does, in a few seconds, in one process.

Each test builds a graph, runs it on real servers that listen on loopback, and looks at the values. tests/cluster and
tests/process do the same at length; what belongs where is in CONTRIBUTING.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.ports import free_addresses

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    """A graph of its own for every test."""
    with tf.Graph().as_default() as graph:
        yield graph


@pytest.fixture
def server() -> Iterator[tf.train.Server]:
    """A cluster of one task, /job:local/task:0."""
    server = tf.train.Server.create_local_server()
    yield server
    server.stop(grace=1.0)


@pytest.fixture
def cluster() -> Iterator[tf.train.ClusterSpec]:
    """A parameter server and two workers, each listening on a port of its own."""
    ps, *workers = free_addresses(3)
    spec = tf.train.ClusterSpec({"ps": [ps], "worker": workers})
    servers = [tf.train.Server(spec, job, index) for job, index in (("ps", 0), ("worker", 0), ("worker", 1))]
    yield spec
    for server in servers:
        server.stop(grace=1.0)


def test_hello(server: tf.train.Server) -> None:
    hello = tf.constant("Hello, distributed TensorFlow!")

    with tf.Session(server.target) as sess:
        assert sess.run(hello) == b"Hello, distributed TensorFlow!"


def test_feed_and_fetch(server: tf.train.Server) -> None:
    x = tf.placeholder(tf.float32, [None, 2])
    y = tf.matmul(x, [[1.0], [10.0]])

    with tf.Session(server.target) as sess:
        fetched = sess.run({"y": y, "both": [x, y]}, feed_dict={x: [[1, 2], [3, 4]]})

    np.testing.assert_array_equal(fetched["y"], [[21.0], [43.0]])
    np.testing.assert_array_equal(fetched["both"][0], [[1.0, 2.0], [3.0, 4.0]])


def test_gradient_descent_finds_a_line(server: tf.train.Server) -> None:
    x = np.linspace(-1, 1, 20, dtype=np.float32)
    slope, offset = tf.Variable(0.0), tf.Variable(0.0)
    loss = tf.reduce_mean(tf.square(slope * x + offset - (3 * x + 2)))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)

    with tf.Session(server.target) as sess:
        sess.run(tf.global_variables_initializer())
        for _ in range(60):
            sess.run(train)
        found = sess.run([slope, offset])

    np.testing.assert_allclose(found, [3.0, 2.0], atol=1e-3)


def test_a_variable_on_the_ps_is_shared_by_two_workers(cluster: tf.train.ClusterSpec) -> None:
    with tf.device(tf.train.replica_device_setter(cluster=cluster)):
        counter = tf.Variable(0, name="counter")
    with tf.device("/job:worker/task:1"):
        add = tf.assign_add(counter, 1)
    assert counter.device == "/job:ps/task:0"

    for index in range(2):
        with tf.Session("grpc://" + cluster.task_address("worker", index)) as sess:
            if index == 0:
                sess.run(tf.global_variables_initializer())
            assert sess.run(add) == index + 1


def test_split_over_the_workers_and_reduce(cluster: tf.train.ClusterSpec) -> None:
    with tf.device("/job:ps/task:0"):
        numbers = tf.placeholder(tf.int32, [100])
        shards = tf.split(numbers, 2)
    sums = []
    for index, shard in enumerate(shards):
        with tf.device(f"/job:worker/task:{index}"):
            sums.append(tf.reduce_sum(shard))
    total = tf.add_n(sums)

    with tf.Session("grpc://" + cluster.task_address("worker", 0)) as sess:
        assert sess.run(total, feed_dict={numbers: np.arange(100)}) == 4950


def test_an_error_names_the_node_and_the_task(server: tf.train.Server) -> None:
    x = tf.placeholder(tf.float32, [2], name="x")
    y = tf.identity(x, name="y")

    with tf.Session(server.target) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="x") as caught:
        sess.run(y)

    assert "You must feed a value for placeholder tensor 'x'" in caught.value.message


def test_an_impossible_device_says_what_there_is(server: tf.train.Server) -> None:
    with tf.device("/job:local/task:0/device:GPU:7"):
        w = tf.constant(1.0, name="w")

    with tf.Session(server.target) as sess, pytest.raises(tf.errors.InvalidArgumentError, match="Cannot place 'w'"):
        sess.run(w)
