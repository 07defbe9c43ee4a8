"""Hot steps on a GPU: elementwise ops in one launch, stretches of the step recorded and launched at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.gpu_programs import fused_programs
from tenfold_kernels.cuda import _recording
from tenfold_kernels.cuda.fused_runs import DeviceRun
from tenfold_services.worker.fuse.captures import Capture

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_services.worker.fuse import Fusion

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
    replay = _recording.Replayed._replay

    def noted(self: Any, found: Any, inputs: Any) -> bool:
        done = replay(self, found, inputs)
        calls.append(done)
        return done

    monkeypatch.setattr(_recording.Replayed, "_replay", noted)
    return calls


@pytest.mark.parametrize("use_resource", [False, True])
def test_a_training_step_is_launched_at_once(
    hot: list[Fusion], monkeypatch: pytest.MonkeyPatch, use_resource: bool
) -> None:
    launched = counted(monkeypatch)
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
    assert any(isinstance(run, Capture) for run in runs) == any(launched)


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
