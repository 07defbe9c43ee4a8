"""train_and_evaluate: who does what in a cluster, when an evaluator ends, and what is refused. No server is started."""

from __future__ import annotations

import json
import threading
import time
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

import tenfold as tf
from tenfold.estimator import training
from tenfold.train import server_lib

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CLUSTER = {"chief": ["h:1"], "ps": ["h:2"], "worker": ["h:3", "h:4"]}
OLD = {"master": ["h:1"], "worker": ["h:2"]}
TrainSpec, EvalSpec = tf.estimator.TrainSpec, tf.estimator.EvalSpec


def input_fn() -> Any:
    raise AssertionError("nothing is read here")


class FakeExporter(tf.estimator.Exporter):  # type: ignore[misc] # found at its first use
    def __init__(self, name: Any = "all") -> None:
        self._name, self.finals = name, []

    @property
    def name(self) -> Any:
        return self._name

    def export(self, is_the_final_export: bool, **_: Any) -> str:  # type: ignore[override]
        self.finals.append(is_the_final_export)
        return "exported"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> mock.Mock:
    made = mock.Mock()
    monkeypatch.setattr(server_lib, "Server", made)
    return made


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of the test's own thread, which take no time here. Those of other threads are none of its business."""
    pauses: list[float] = []
    own, really = threading.get_ident(), time.sleep
    monkeypatch.setattr(time, "sleep", lambda s: pauses.append(s) if threading.get_ident() == own else really(s))
    return pauses


def estimator_of(config: Any) -> mock.Mock:
    """An estimator that does nothing, on `config`."""
    return mock.Mock(spec=tf.estimator.Estimator, config=config, model_dir="m")


def place(monkeypatch: pytest.MonkeyPatch, cluster: dict[str, list[str]], job: str, index: int = 0) -> Any:
    monkeypatch.setenv("TF_CONFIG", json.dumps({"cluster": cluster, "task": {"type": job, "index": index}}))
    return tf.estimator.RunConfig()


def run(estimator: Any, **of_eval: Any) -> Any:
    return tf.estimator.train_and_evaluate(estimator, TrainSpec(input_fn, 10), EvalSpec(input_fn, **of_eval))


@pytest.mark.parametrize(("job", "index", "delay"), [("chief", 0, []), ("worker", 0, [5]), ("worker", 1, [10])])
def test_trainers_serve_wait_their_turn_and_train(
    monkeypatch: pytest.MonkeyPatch, server: mock.Mock, slept: list[float], job: str, index: int, delay: list[float]
) -> None:
    estimator = estimator_of(place(monkeypatch, CLUSTER, job, index))

    run(estimator)

    assert (server.call_args.kwargs["job_name"], server.call_args.kwargs["task_index"]) == (job, index)
    server.return_value.start.assert_called_once_with()
    assert estimator.train.call_args.kwargs == {
        "input_fn": input_fn,
        "max_steps": 10,
        "hooks": [],
        "saving_listeners": None,
    }
    assert slept == delay


def test_a_delay_may_be_bounded(monkeypatch: pytest.MonkeyPatch, server: mock.Mock, slept: list[float]) -> None:
    config = place(monkeypatch, CLUSTER, "worker", 1).replace(experimental_max_worker_delay_secs=0)

    run(estimator_of(config))

    assert slept == []


def test_a_ps_serves(monkeypatch: pytest.MonkeyPatch, server: mock.Mock) -> None:
    estimator = estimator_of(place(monkeypatch, CLUSTER, "ps"))

    run(estimator)

    server.return_value.join.assert_called_once_with()
    estimator.train.assert_not_called()


def test_a_master_trains_and_evaluates_what_it_saves(monkeypatch: pytest.MonkeyPatch, server: mock.Mock) -> None:
    estimator = estimator_of(place(monkeypatch, OLD, "master"))

    run(estimator, throttle_secs=0)

    (listener,) = estimator.train.call_args.kwargs["saving_listeners"]
    assert isinstance(listener, tf.estimator.CheckpointSaverListener)


def test_an_evaluator_ends_with_the_last_step(
    monkeypatch: pytest.MonkeyPatch, server: mock.Mock, slept: list[float]
) -> None:
    estimator, exporter = estimator_of(place(monkeypatch, CLUSTER, "evaluator")), FakeExporter()
    estimator.latest_checkpoint.side_effect = [None, "a", "a", "b"]
    estimator.evaluate.side_effect = [{"global_step": 5}, {"global_step": 10}]

    run(estimator, exporters=exporter, start_delay_secs=3, throttle_secs=0)

    assert [call.kwargs["checkpoint_path"] for call in estimator.evaluate.call_args_list] == ["a", "b"]
    assert exporter.finals == [False, True]
    assert slept == [3]
    server.assert_not_called()


def test_a_pause_between_evaluations(monkeypatch: pytest.MonkeyPatch, slept: list[float]) -> None:
    estimator = estimator_of(place(monkeypatch, CLUSTER, "evaluator"))
    estimator.latest_checkpoint.return_value = "a"
    estimator.evaluate.return_value = {"global_step": 10}

    run(estimator, start_delay_secs=0, throttle_secs=100)

    (pause,) = slept
    assert 90 < pause <= 100


def test_by_itself_it_returns_the_last_metrics(tmp_path: Path) -> None:
    def model_fn(features: Any, labels: Any, mode: str) -> Any:
        loss = tf.reduce_mean(features) * tf.get_variable("v", [])
        step = tf.assign_add(tf.train.get_global_step(), 1)
        return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=step)

    def ones() -> Any:
        return tf.ones([1])

    exporter = FakeExporter()
    estimator = tf.estimator.Estimator(
        model_fn, str(tmp_path), tf.estimator.RunConfig(save_checkpoints_steps=2, save_summary_steps=0)
    )

    metrics, exported = tf.estimator.train_and_evaluate(
        estimator, TrainSpec(ones, 4), EvalSpec(ones, steps=1, exporters=exporter, throttle_secs=0)
    )

    assert (metrics["global_step"], exported, exporter.finals) == (4, ["exported"], [False, True])
    tf.summary.FileWriterCache.clear()


#: What is given, the error, and what it says.
REFUSED: list[tuple[Callable[[], Any], type[Exception], str]] = [
    (lambda: TrainSpec("f"), TypeError, "`input_fn` must be callable, given: f"),
    (lambda: TrainSpec(input_fn, 0), ValueError, "Must specify max_steps > 0, given: 0"),
    (lambda: TrainSpec(input_fn, hooks=["h"]), TypeError, "All hooks must be `SessionRunHook` instances, given: h"),
    (lambda: EvalSpec("f"), TypeError, "`input_fn` must be callable, given: f"),
    (lambda: EvalSpec(input_fn, steps=0), ValueError, "Must specify steps > 0, given: 0"),
    (lambda: EvalSpec(input_fn, name=1), TypeError, "`name` must be string, given: 1"),
    (lambda: EvalSpec(input_fn, exporters=1), TypeError, "`exporters` must be an Exporter, an iterable of Exporter"),
    (lambda: EvalSpec(input_fn, exporters=["e"]), TypeError, "`exporters` must be an Exporter"),
    (lambda: EvalSpec(input_fn, exporters=FakeExporter("")), ValueError, "cannot have a name that is `None` or empty"),
    (lambda: EvalSpec(input_fn, exporters=FakeExporter(1)), ValueError, "An Exporter must have a string name"),
    (
        lambda: EvalSpec(input_fn, exporters=[FakeExporter(), FakeExporter()]),
        ValueError,
        "`exporters` must have unique names",
    ),
    (lambda: EvalSpec(input_fn, start_delay_secs=-1), ValueError, "Must specify start_delay_secs >= 0, given: -1"),
    (lambda: EvalSpec(input_fn, throttle_secs=-1), ValueError, "Must specify throttle_secs >= 0, given: -1"),
    (lambda: tf.estimator.train_and_evaluate("e", TrainSpec(input_fn), "s"), TypeError, "`eval_spec` must have type"),
    (
        lambda: tf.estimator.train_and_evaluate("e", TrainSpec(input_fn), EvalSpec(input_fn)),
        TypeError,
        "`estimator` must have type `tf.estimator.Estimator`",
    ),
]


@pytest.mark.parametrize(("act", "error", "words"), REFUSED)
def test_what_is_refused(act: Callable[[], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        act()


@pytest.mark.parametrize(
    ("cluster", "job", "index", "words"),
    [
        (CLUSTER, "evaluator", 1, "there can only be one `evaluator` task"),
        ({**CLUSTER, "local": ["h:9"]}, "local", 0, "`task.type` in TF_CONFIG cannot be `local`"),
        ({**CLUSTER, "other": ["h:9"]}, "other", 0, "Task type other is not supported. Supported task types are"),
    ],
)
def test_tasks_that_there_is_no_work_for(
    monkeypatch: pytest.MonkeyPatch, cluster: dict[str, list[str]], job: str, index: int, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        run(estimator_of(place(monkeypatch, cluster, job, index)))


def test_servers_that_are_there_already(monkeypatch: pytest.MonkeyPatch, server: mock.Mock) -> None:
    config = place(monkeypatch, CLUSTER, "chief")
    monkeypatch.setenv("TF_CONFIG", json.dumps({"environment": "google"}))

    training._TrainingExecutor(estimator_of(config), TrainSpec(input_fn, 1), None).run_chief()

    server.assert_not_called()
