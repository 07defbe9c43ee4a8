"""Our client's loops and conditionals over two tasks, and their gradients: frames, stacks, arrays cross processes."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator

PS, WORKER = "/job:ps/task:0", "/job:worker/task:0"


@pytest.fixture(scope="module")
def target() -> Iterator[str]:
    """The worker of a ps and a worker."""
    with contextlib.ExitStack() as stack:
        empty = {"ps": {0: ""}, "worker": {0: ""}}
        servers = {job: stack.enter_context(BackgroundServer(TaskServer(empty, job, 0))) for job in empty}
        for server in servers.values():
            server.update_cluster({job: {0: f"localhost:{each.port}"} for job, each in servers.items()})
        yield f"grpc://localhost:{servers['worker'].port}"


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def run(target: str, fetches: Any, feeds: Any = None) -> Any:
    config = tf.ConfigProto(operation_timeout_in_ms=30_000)
    with tf.Session(target, config=config) as session:
        if tf.global_variables():
            session.run(tf.global_variables_initializer())
        return session.run(fetches, feeds)


@pytest.mark.parametrize("colocated", [False, True])
def test_a_body_on_two_tasks_and_its_gradient(target: str, colocated: bool) -> None:
    x = tf.placeholder(tf.float32, [2])

    def body(i: Any, a: Any) -> Any:
        with tf.device(PS):
            scaled = a * x
        with tf.device(WORKER):
            return i + 1, tf.sin(scaled) + a

    _, y = tf.while_loop(lambda i, a: i < 4, body, (0, x))
    (g,) = tf.gradients(y, x, colocate_gradients_with_ops=colocated)

    values = np.array([0.3, 1.1], np.float32)
    value, gradient = run(target, [y, g], {x: values})

    a, da = values.astype(np.float64), np.ones(2)
    for _ in range(4):
        da = np.cos(a * values) * (da * values + a) + da
        a = np.sin(a * values) + a
    np.testing.assert_allclose(value, a, rtol=1e-5)
    np.testing.assert_allclose(gradient, da, rtol=1e-5)


def test_nested_loops_and_branches_on_two_tasks(target: str) -> None:
    x = tf.placeholder(tf.float32, [])

    def inner(j: Any, b: Any) -> Any:
        with tf.device(PS):
            bigger = b > 2.0
        return j + 1, tf.cond(bigger, lambda: b + x, lambda: b * x)

    def outer(i: Any, a: Any) -> Any:
        with tf.device(WORKER):
            start = a + 0.0
        with tf.device(PS):
            return i + 1, tf.while_loop(lambda j, b: j < 2, inner, (0, start))[1]

    _, y = tf.while_loop(lambda i, a: i < 3, outer, (0, x))

    # 1.5 → 2.25 → 3.75 → 5.25 → 6.75 → 8.25 → 9.75: one product, five sums
    assert run(target, [y, tf.gradients(y, x)[0]], {x: 1.5}) == [9.75, 2 * 1.5 + 5]


def test_an_array_filled_on_the_other_task(target: str) -> None:
    x = tf.placeholder(tf.float32, [3])
    inputs = tf.TensorArray(tf.float32, 3).unstack(x)

    def body(i: Any, out: Any) -> Any:
        with tf.device(PS):
            return i + 1, out.write(i, tf.square(inputs.read(i)))

    _, filled = tf.while_loop(lambda i, _: i < 3, body, (0, tf.TensorArray(tf.float32, 3)))
    y = filled.stack()
    value, gradient = run(target, [y, tf.gradients(y, x)[0]], {x: [1.0, 2.0, 3.0]})

    assert value.tolist() == [1.0, 4.0, 9.0]
    assert gradient.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("use_resource", [False, True])
def test_an_rnn_trains_with_its_variables_on_a_ps(target: str, use_resource: bool) -> None:
    data = np.cos(np.arange(24)).reshape(2, 4, 3).astype(np.float32)
    tf.set_random_seed(3)
    x = tf.placeholder(tf.float32, [2, 4, 3])
    setter = tf.train.replica_device_setter(ps_tasks=1, worker_device=WORKER)
    with tf.device(setter), tf.variable_scope("net", use_resource=use_resource):
        outputs, _ = tf.nn.dynamic_rnn(tf.nn.rnn_cell.BasicLSTMCell(3), x, dtype=tf.float32)
        loss = tf.reduce_mean(tf.square(outputs - 0.25))
        train = tf.train.GradientDescentOptimizer(1.0).minimize(loss)
    assert {v.device for v in tf.trainable_variables()} == {"/job:ps/task:0"}
    config = tf.ConfigProto(operation_timeout_in_ms=30_000, isolate_session_state=True)
    with tf.Session(target, config=config) as session:
        session.run(tf.global_variables_initializer())
        curve = [session.run([loss, train], {x: data})[0] for _ in range(20)]

    assert curve[-1] < curve[0] / 2
