"""Hot steps on a GPU: elementwise ops in one launch, stretches of the step recorded and launched at once."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import fused_programs
from support.ports import free_addresses
from tenfold_compiler.fuse import captures
from tenfold_compiler.fuse.captures import Capture
from tenfold_kernels.cuda import _replaying
from tenfold_kernels.cuda.fused_runs import DeviceRun

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_compiler.fuse.fusion import Fusion

#: Steps after which a program is fused and its stretches are recorded.
SOME = 12


@pytest.fixture(autouse=True)
def hot() -> Iterator[list[Fusion]]:
    """Programs are hot at once; what they are fused to."""
    with fused_programs() as found, tf.Graph().as_default():
        yield found


def counted(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each call of a stretch was one of a recording."""
    calls: list[bool] = []
    replay = _replaying.Replayed._replay

    def noted(self: Any, found: Any, inputs: Any) -> Any:
        given = replay(self, found, inputs)
        calls.append(given is not None)
        return given

    monkeypatch.setattr(_replaying.Replayed, "_replay", noted)
    return calls


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_training_step_is_launched_at_once(
    hot: list[Fusion], monkeypatch: pytest.MonkeyPatch, use_resource: bool
) -> None:
    launched = counted(monkeypatch)
    monkeypatch.setattr(captures, "LEAST", 2)
    with tf.device("/gpu:0"), tf.variable_scope("model", use_resource=use_resource):
        x = tf.placeholder(tf.float32, [3], name="x")
        w = tf.get_variable("w", initializer=np.float32([1.0, 2.0, 3.0]))
        y = tf.tanh(x * w + 2.0) * 3.0 - w
        z = tf.exp(-y * y) + x
        train = w.assign_sub(0.1 * z)
    expected = np.float32([1.0, 2.0, 3.0])
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for number in range(SOME):
            fed = np.float32([0.1, 0.2, 0.3]) * np.float32(number)
            found = session.run([y, train.op], {x: fed})[0]
            wanted = np.tanh(fed * expected + 2) * 3 - expected
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            expected = expected - np.float32(0.1) * (np.exp(-wanted * wanted) + fed)
        np.testing.assert_allclose(session.run(w), expected, rtol=1e-5)

    runs = [group.run for fusion in hot for group in fusion.groups]
    assert any(isinstance(run, DeviceRun) for run in runs)
    assert any(isinstance(run, Capture) for run in runs)
    assert launched
    assert all(launched)


OPTIMIZERS = {
    "sgd": lambda: tf.train.GradientDescentOptimizer(0.1),
    "momentum": lambda: tf.train.MomentumOptimizer(0.1, 0.9),
    "adam": lambda: tf.train.AdamOptimizer(0.1),
    "rmsprop": lambda: tf.train.RMSPropOptimizer(0.1),
    "ftrl": lambda: tf.train.FtrlOptimizer(0.1),
}


@pytest.mark.parametrize("use_resource", [pytest.param(False, marks=pytest.mark.thorough), True])
@pytest.mark.parametrize(
    "name", ["adam", *(pytest.param(each, marks=pytest.mark.thorough) for each in OPTIMIZERS if each != "adam")]
)
def test_weights_are_read_and_updated_where_they_are(
    hot: list[Fusion], monkeypatch: pytest.MonkeyPatch, name: str, use_resource: bool
) -> None:
    launched = counted(monkeypatch)

    def build() -> tuple[Any, Any]:
        with tf.variable_scope("model", use_resource=use_resource):
            w = tf.get_variable("w", initializer=np.float32([[1.0, 2.0], [3.0, 4.0]]))
            b = tf.get_variable("b", initializer=np.float32([0.5, -0.5]))
        x = tf.placeholder(tf.float32, [1, 2], name="x")
        loss = tf.reduce_sum(tf.tanh(tf.matmul(x, w) + b))
        return [loss, OPTIMIZERS[name]().minimize(loss)], [w, b]

    found: list[list[Any]] = []
    for least in (captures.LEAST, 10**6):
        monkeypatch.setattr(captures, "LEAST", least)
        with tf.Graph().as_default() as graph, tf.device("/gpu:0"):
            step, made = build()
            x = graph.get_tensor_by_name("x:0")
            with tf.Session() as session:
                session.run(tf.global_variables_initializer())
                losses = [session.run(step, {x: [[0.1 * number, 0.2]]})[0] for number in range(SOME)]
                found.append([losses, *session.run(made)])

    for ours, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)
    assert launched
    assert all(launched)
    captured = [group for fusion in hot for group in fusion.groups if isinstance(group.run, Capture)]
    # what is fed, not the weights
    assert [len(group.inputs) for group in captured] == [1]


def test_a_fetched_value_does_not_see_a_later_assignment(hot: list[Fusion], monkeypatch: pytest.MonkeyPatch) -> None:
    launched = counted(monkeypatch)
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=np.float32([0.0, 0.0]), use_resource=True)
        before = w.read_value()
        product = tf.matmul(tf.reshape(before, [1, 2]), tf.constant(np.float32([[1.0], [2.0]])))
        with tf.control_dependencies([product]):
            done = w.assign_add(x, read_value=False)
        with tf.control_dependencies([done]):
            after = w.read_value() * 1.0
            # of what was read before the update, once it is made
            later = before * 3.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kept = [session.run([before, product, after, later], {x: np.float32([1.0, 2.0])}) for _ in range(SOME)]

    for number, (was, made, became, tripled) in enumerate(kept):
        np.testing.assert_allclose(was, [number, 2 * number])
        np.testing.assert_allclose(made, [[5 * number]])
        np.testing.assert_allclose(became, [number + 1, 2 * number + 2])
        np.testing.assert_allclose(tripled, [3 * number, 6 * number])
    assert launched
    assert all(launched)


def test_another_shape_falls_back_and_is_recorded_too(hot: list[Fusion], monkeypatch: pytest.MonkeyPatch) -> None:
    launched = counted(monkeypatch)
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.float32, [None, 2], name="x")
        value = x
        for _ in range(3):
            # products are no elementwise ops: each is a launch of its own
            value = tf.tanh(tf.matmul(value, tf.constant(np.float32([[0.5, 0.2], [0.1, 0.4]]))))
    with tf.Session() as session:
        for number in range(3 * SOME):
            fed = np.full((1 + number % 2, 2), number, np.float32)
            wanted = fed
            for _ in range(3):
                wanted = np.tanh(wanted @ np.float32([[0.5, 0.2], [0.1, 0.4]]))
            np.testing.assert_allclose(session.run(value, {x: fed}), wanted, rtol=1e-5)

    assert any(isinstance(group.run, Capture) for fusion in hot for group in fusion.groups)
    assert sum(launched) > SOME


def test_what_is_kept_of_a_step_is_not_written_by_the_next(hot: list[Fusion]) -> None:
    with tf.device("/gpu:0"):
        x = tf.placeholder(tf.float32, [2], name="x")
        w = tf.get_variable("w", initializer=np.float32([0.0, 0.0]), use_resource=True)
        with tf.control_dependencies([w.assign_add(x)]):
            read = w.read_value()
            value = tf.sqrt(tf.abs(read)) + read * 2.0
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        kept = [session.run([read, value], {x: np.float32([1.0, 2.0])}) for _ in range(SOME)]

    for number, (total, result) in enumerate(kept, 1):
        np.testing.assert_allclose(total, [number, 2 * number])
        np.testing.assert_allclose(result, np.sqrt(total) + 2 * total, rtol=1e-6)


@pytest.mark.thorough
def test_a_step_with_dropout_and_batches_of_any_size_is_one_launch(
    hot: list[Fusion], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sizes and axes that the host computes from shapes are recorded with it, and draws go on as on the CPU."""
    launched = counted(monkeypatch)

    def losses(device: str) -> list[Any]:
        with tf.Graph().as_default(), tf.device(device):
            x = tf.placeholder(tf.float32, [None, 2], name="x")
            w = tf.get_variable("w", initializer=np.float32([[0.5, -0.25, 1.0], [0.1, 0.7, -0.6]]))
            hidden = tf.nn.dropout(tf.matmul(x, w), keep_prob=0.5, seed=3)
            loss = tf.reduce_mean(tf.square(hidden - 1.0))
            step = [loss, tf.train.GradientDescentOptimizer(0.1).minimize(loss)]
            with tf.Session() as session:
                session.run(w.initializer)
                # a smaller batch in between
                return [session.run(step, {x: np.full((1 + (n != 5), 2), n)})[0] for n in range(SOME)]

    ours = losses("/gpu:0")
    captured = [group for fusion in hot for group in fusion.groups if isinstance(group.run, Capture)]

    np.testing.assert_allclose(ours, losses("/cpu:0"), rtol=1e-4)
    assert len(captured) == 1
    assert {"RandomUniform", "Tile", "Sum", "ApplyGradientDescent"} <= {node.op for node in captured[0].members}
    # what is fed
    assert len(captured[0].inputs) == 1
    assert launched
    assert all(launched)


def test_a_step_of_many_feeds_is_recorded(hot: list[Fusion], monkeypatch: pytest.MonkeyPatch) -> None:
    count = 70
    launched = counted(monkeypatch)
    monkeypatch.setattr(captures, "LEAST", 2)
    with tf.device("/gpu:0"):
        # of several sizes, of which some are no whole words
        types = [tf.float32, tf.float32, tf.half]
        fed = [tf.placeholder(types[number % 3], [1 + number % 2]) for number in range(count)]
        whole = tf.concat([tf.cast(each, tf.float32) for each in fed], 0)
        total = tf.matmul(tf.reshape(whole, [1, -1]), tf.reshape(whole, [-1, 1]))
    with tf.Session() as session:
        for step in range(SOME // 2 + 1):
            values = [np.full(1 + number % 2, number + step) for number in range(count)]
            found = session.run([whole, total], dict(zip(fed, values, strict=True)))
            wanted = np.concatenate(values)
            np.testing.assert_array_equal(found[0], wanted)
            np.testing.assert_allclose(found[1], [[wanted @ wanted]], rtol=1e-6)

    captured = [group for fusion in hot for group in fusion.groups if isinstance(group.run, Capture)]
    assert [len(group.inputs) for group in captured] == [count]
    assert launched
    assert all(launched)


def test_gradients_begin_their_way_to_another_task_inside_a_recording(
    hot: list[Fusion], monkeypatch: pytest.MonkeyPatch
) -> None:
    launched = counted(monkeypatch)
    ps, worker = free_addresses(2)
    cluster = tf.train.ClusterSpec({"ps": [ps], "worker": [worker]})
    starts = [np.float32([[0.5, 0.1], [0.2, -0.3]]), np.float32([[0.4], [-0.6]])]
    with tf.device("/job:ps/task:0/cpu:0"):
        weights = [tf.get_variable(f"w{number}", initializer=start) for number, start in enumerate(starts)]
    with tf.device("/job:worker/task:0/gpu:0"):
        x = tf.placeholder(tf.float32, [1, 2], name="x")
        hidden = tf.matmul(x, weights[0])
        loss = tf.reduce_sum(tf.square(tf.matmul(hidden, weights[1])))
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    with contextlib.ExitStack() as servers:
        for job, gpus in (("ps", 0), ("worker", 1)):
            server = tf.train.Server(cluster, job, 0, config=tf.ConfigProto(device_count={"GPU": gpus}))
            servers.callback(server.stop)
        with tf.Session(server.target) as session:
            session.run(tf.global_variables_initializer())
            first, second = starts
            for number in range(SOME):
                fed = np.float32([[0.1 * number, 1.0]])
                given = session.run([loss, train], {x: fed})[0]
                middle = fed @ first
                out = middle @ second
                np.testing.assert_allclose(given, (out * out).sum(), rtol=1e-4)
                first, second = first - 0.2 * fed.T @ (out @ second.T), second - 0.2 * middle.T @ out
            np.testing.assert_allclose(session.run(weights[1]), second, rtol=1e-4)

    stretches = [group.items for fusion in hot for group in fusion.groups if isinstance(group.run, Capture)]
    assert [getattr(item, "op", "") for item in stretches[0]].count("_BeginCopyToHost") == 2
    assert launched
    assert all(launched)
