"""Hooks that end a training by metrics of evaluations, and evaluation in memory."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.estimator.early_stopping import _CheckForStoppingHook, _StopOnPredicateHook, read_eval_metrics
from tenfold.estimator.hooks import _StopAtCheckpointStepHook
from tenfold.train.training_util import _increment_global_step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

experimental = tf.estimator.experimental
#: Step → accuracy, which is best at 200.
ACCURACIES = {100: 0.5, 200: 0.8, 300: 0.7, 400: 0.75}


@pytest.fixture(autouse=True)
def closed_writers() -> Iterator[None]:
    yield
    tf.summary.FileWriterCache.clear()


def model_fn(features: Any, labels: Any, mode: str) -> Any:
    step = tf.assign_add(tf.train.get_global_step(), 1)
    value = tf.get_variable("value", initializer=0.0)
    with tf.control_dependencies([step]):
        train_op = tf.assign_add(value, 1.0)
    return tf.estimator.EstimatorSpec(mode, loss=tf.identity(value), train_op=train_op)


def ones() -> Any:
    return tf.ones([1])


@pytest.fixture
def estimator(tmp_path: Path) -> Any:
    return tf.estimator.Estimator(model_fn, str(tmp_path), tf.estimator.RunConfig(save_summary_steps=0))


def evaluated(estimator: Any) -> None:
    writer = tf.summary.FileWriterCache.get(estimator.eval_dir())
    for step, accuracy in ACCURACIES.items():
        value = tf.Summary.Value(tag="accuracy", simple_value=accuracy)
        writer.add_summary(tf.Summary(value=[value]), step)
    writer.flush()


@pytest.mark.parametrize(
    ("hook", "limit", "min_steps", "stops"),
    [
        ("stop_if_higher_hook", 0.78, 0, True),
        ("stop_if_higher_hook", 0.78, 300, False),
        ("stop_if_lower_hook", 0.6, 0, True),
        ("stop_if_lower_hook", 0.6, 200, False),
        ("stop_if_no_increase_hook", 200, 0, True),
        ("stop_if_no_increase_hook", 300, 0, False),
        ("stop_if_no_decrease_hook", 300, 0, True),
        ("stop_if_no_decrease_hook", 150, 200, False),
    ],
)
def test_by_metrics(estimator: Any, hook: str, limit: float, min_steps: int, stops: bool) -> None:
    evaluated(estimator)

    made = getattr(experimental, hook)(estimator, "accuracy", limit, min_steps=min_steps)

    assert isinstance(made, _StopOnPredicateHook)
    assert made._should_stop_fn() is stops


def test_no_evaluation_yet(estimator: Any) -> None:
    assert read_eval_metrics(estimator.eval_dir()) == {}
    assert not experimental.stop_if_higher_hook(estimator, "accuracy", 0.5)._should_stop_fn()


def test_a_function_ends_the_training(estimator: Any) -> None:
    asked: list[int] = []

    def third_time() -> bool:
        asked.append(1)
        return len(asked) == 3

    hook = experimental.make_early_stopping_hook(estimator, third_time, run_every_secs=None, run_every_steps=2)

    estimator.train(ones, hooks=[hook], steps=100)

    assert estimator.get_variable_value("global_step") == 5
    assert estimator.get_variable_value("signal_early_stopping/STOP")


def test_workers_hear_of_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cluster = {"chief": ["h:1"], "worker": ["h:2"]}
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": "worker", "index": 0}}))
    worker = tf.estimator.Estimator(model_fn, str(tmp_path))
    hook = experimental.make_early_stopping_hook(worker, lambda: True)
    with tf.Graph().as_default():
        step = tf.train.create_global_step()
        stop = tf.get_variable("other", initializer=True)
        with tf.train.SingularMonitoredSession(hooks=[hook]) as session:
            session.run(step)
            before = session.should_stop()
            with tf.variable_scope("signal_early_stopping", reuse=True):
                variable = tf.global_variables()[-1]
            variable.load(True, session.raw_session())
            session.run(stop)
            after = session.should_stop()

    assert isinstance(hook, _CheckForStoppingHook)
    assert (before, after) == (False, True)


def test_what_is_refused(estimator: Any) -> None:
    make = experimental.make_early_stopping_hook
    with pytest.raises(TypeError, match="`estimator` must have type"):
        make("estimator", lambda: True)
    with pytest.raises(ValueError, match="Only one of `run_every_secs` and `run_every_steps` must be set"):
        make(estimator, lambda: True, 60, 100)
    with pytest.raises(TypeError, match="`should_stop_fn` must be callable"):
        make(estimator, "stop")
    with pytest.raises(ValueError, match="invalid every_n_iter=0"):
        experimental.InMemoryEvaluatorHook(estimator, ones, every_n_iter=0)


def test_evaluation_in_memory(estimator: Any) -> None:
    hook = experimental.InMemoryEvaluatorHook(estimator, ones, steps=1, name="memory", every_n_iter=3)

    estimator.train(ones, hooks=[hook], steps=7)

    losses = {step: metrics["loss"] for step, metrics in read_eval_metrics(estimator.eval_dir("memory")).items()}
    assert losses == {0: 0.0, 3: 3.0, 6: 6.0, 7: 7.0}


def test_a_worker_ends_once_a_checkpoint_has_the_last_step(estimator: Any) -> None:
    chief = experimental.make_stop_at_checkpoint_step_hook(estimator, 3)
    estimator.train(ones, hooks=[chief])
    worker = _StopAtCheckpointStepHook(estimator.model_dir, 3, wait_after_file_check_secs=0)
    with tf.Graph().as_default():
        tf.train.create_global_step()
        step = _increment_global_step(1)  # after it was read
        ran = 0
        with tf.train.SingularMonitoredSession(hooks=[worker]) as session:
            while not session.should_stop():
                session.run(step)
                ran += 1

    assert estimator.get_variable_value("global_step") == 3
    assert ran == 3
