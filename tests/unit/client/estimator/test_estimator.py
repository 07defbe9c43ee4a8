"""An estimator in one process: it trains on, evaluates, predicts, writes what TensorBoard reads, and starts warm."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.estimator.early_stopping import read_eval_metrics

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

MODES = tf.estimator.ModeKeys
X = np.arange(8, dtype=np.float32)[:, None]
Y = 3 * X + 1


@pytest.fixture(autouse=True)
def closed_writers() -> Iterator[None]:
    yield
    tf.summary.FileWriterCache.clear()


def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
    x = features["x"] if isinstance(features, dict) else features
    prediction = tf.layers.dense(x, 1, name="line")
    if mode == MODES.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": prediction, "x": x})
    loss = tf.losses.mean_squared_error(labels, prediction)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, prediction)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def new(folder: Path, **config: Any) -> Any:
    settings = tf.estimator.RunConfig(tf_random_seed=1, log_step_count_steps=5, save_summary_steps=5, **config)
    return tf.estimator.Estimator(model_fn, str(folder), settings, params={"rate": 0.01})


def batches(epochs: int | None, *, shuffle: bool = False, labels: bool = True) -> Callable[[], Any]:
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y if labels else None, 4, epochs, shuffle)


def test_train_evaluate_predict_and_go_on(tmp_path: Path) -> None:
    estimator = new(tmp_path)

    estimator.train(batches(None, shuffle=True), steps=20)
    before = estimator.evaluate(batches(1), name="early")
    estimator.train(batches(None, shuffle=True), steps=20)
    after = estimator.evaluate(batches(1))
    estimator.train(batches(None), max_steps=40)
    (last, *_) = reversed(list(estimator.predict(batches(1, labels=False), predict_keys=["y"])))

    assert (before["global_step"], after["global_step"]) == (20, 40)
    assert after["loss"] < before["loss"]
    assert set(after) == {"loss", "error", "global_step"}
    assert estimator.latest_checkpoint() == str(tmp_path / "model.ckpt-40")
    assert estimator.get_variable_names() == ["global_step", "line/bias", "line/kernel"]
    kernel, bias = (estimator.get_variable_value(f"line/{name}") for name in ("kernel", "bias"))
    np.testing.assert_allclose(last["y"], X[-1] @ kernel + bias, rtol=1e-5)
    # metrics are those that were written, and of which checkpoint they are
    assert read_eval_metrics(estimator.eval_dir("early"))[20]["error"] == pytest.approx(before["error"])
    assert os.path.basename(estimator.eval_dir("early")) == "eval_early"
    (path,) = tf.gfile.Glob(str(tmp_path / "eval" / "events*"))
    tags = {value.tag: value for event in tf.train.summary_iterator(path) for value in event.summary.value}
    assert tf.make_ndarray(tags["checkpoint_path"].tensor).item() == str(tmp_path / "model.ckpt-40").encode()
    tf.summary.FileWriterCache.clear()
    written = {
        value.tag
        for path in tf.gfile.Glob(str(tmp_path / "events*"))
        for event in tf.train.summary_iterator(path)
        for value in event.summary.value
    }
    assert {"loss", "global_step/sec"} <= written


def test_input_ends_the_training_and_listeners_hear_of_each_save(tmp_path: Path) -> None:
    heard: list[tuple[str, int]] = []

    class Listener(tf.estimator.CheckpointSaverListener):  # type: ignore[misc] # found at its first use
        def after_save(self, session: Any, global_step_value: int) -> None:
            heard.append(("saved", global_step_value))

        def end(self, session: Any, global_step_value: int) -> None:
            heard.append(("end", global_step_value))

    estimator = new(tmp_path, save_checkpoints_steps=2)

    estimator.train(batches(2), saving_listeners=[Listener()])

    assert heard == [("saved", 0), ("saved", 2), ("saved", 4), ("end", 4)]
    with pytest.raises(ValueError, match="There should be a CheckpointSaverHook to use saving_listeners"):
        new(tmp_path, save_checkpoints_secs=None).train(batches(1), saving_listeners=[Listener()])


def test_warm_start_from_another_estimators_folder(tmp_path: Path) -> None:
    new(tmp_path / "first").train(batches(None), steps=3)
    kernel = tf.train.load_variable(str(tmp_path / "first"), "line/kernel")

    warm = tf.estimator.Estimator(
        model_fn, str(tmp_path / "second"), params={"rate": 0.0}, warm_start_from=str(tmp_path / "first")
    )
    (one, *_) = warm.predict(batches(1, labels=False))
    warm.train(batches(None), steps=1)

    np.testing.assert_array_equal(warm.get_variable_value("line/kernel"), kernel)
    assert (one["x"].shape, warm.get_variable_value("global_step")) == ((1,), 1)
    with pytest.raises(ValueError, match="warm_start_from must be a string or a WarmStartSettings"):
        tf.estimator.Estimator(model_fn, params={}, warm_start_from=1)
    with pytest.raises(ValueError, match="`ckpt_to_initialize_from` MUST be set"):
        tf.estimator.WarmStartSettings("")


def test_metrics_are_added(tmp_path: Path) -> None:
    def more(labels: Any, predictions: Any, features: Any) -> dict[str, Any]:
        return {"largest": tf.metrics.mean(tf.reduce_max(features["x"])), "error": tf.metrics.mean(tf.size(labels))}

    estimator = tf.estimator.add_metrics(new(tmp_path), more)

    found = estimator.evaluate(batches(1))

    assert (found["largest"], found["error"], found["global_step"]) == (5.0, 4.0, 0)
    with pytest.raises(ValueError, match=r"metric_fn .* has following not expected args: \['weights'\]"):
        tf.estimator.add_metrics(estimator, lambda weights: {})


#: What is done, and what is said of it.
REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda e: e.train(batches(1), steps=1, max_steps=1), ValueError, "Can not provide both steps and max_steps"),
    (lambda e: e.train(batches(1), steps=0), ValueError, "Must specify steps > 0, given: 0"),
    (lambda e: e.train(batches(1), max_steps=-1), ValueError, "Must specify max_steps > 0"),
    (lambda e: e.train(batches(1), hooks=["h"]), TypeError, "Hooks must be a SessionRunHook, given: h"),
    (lambda e: e.train(batches(1), saving_listeners=["l"]), TypeError, "must be a list of CheckpointSaverListener"),
    (lambda e: e.train(lambda: (1, 2, 3)), ValueError, "as a len 2 tuple"),
    (lambda e: e.evaluate(batches(1), steps=0), ValueError, "Must specify steps > 0"),
    (lambda e: e.get_variable_names(), ValueError, "Could not find trained model in model_dir"),
    (
        lambda e: next(e.predict(batches(1, labels=False), predict_keys=["z"])),
        ValueError,
        "Expected to run at least one output from",
    ),
    (lambda e: e.export_saved_model("/nowhere", None), ValueError, "An input_receiver_fn must be defined"),
    (
        lambda e: tf.estimator.Estimator(lambda features: None, e.model_dir).train(batches(1)),
        ValueError,
        "model_fn does not take labels, but input_fn returns labels",
    ),
    (
        lambda e: tf.estimator.Estimator(lambda features, labels: None, e.model_dir).train(batches(1)),
        ValueError,
        "model_fn should return an EstimatorSpec",
    ),
    (lambda e: tf.estimator.Estimator(None, e.model_dir), ValueError, "model_fn must be provided to Estimator"),
    (lambda e: tf.estimator.Estimator(model_fn, config="c"), ValueError, "config must be an instance of `RunConfig`"),
    (
        lambda e: tf.estimator.Estimator(model_fn, "/a", tf.estimator.RunConfig("/b"), {}),
        ValueError,
        "`model_dir` are set both in constructor and `RunConfig`",
    ),
]


@pytest.mark.parametrize(("act", "error", "words"), REFUSED)
def test_what_is_refused(tmp_path: Path, act: Callable[[Any], Any], error: type[Exception], words: str) -> None:
    with pytest.raises(error, match=words):
        act(new(tmp_path))


def test_subclasses_do_not_override(tmp_path: Path) -> None:
    class Wrong(tf.estimator.Estimator):  # type: ignore[misc]
        def train(self) -> None:
            """Something else."""

    class Right(tf.estimator.Estimator):  # type: ignore[misc]
        def more(self) -> str:
            return str(self.model_dir)

    with pytest.raises(ValueError, match=r"cannot override members of Estimator.*\['train'\]"):
        Wrong(model_fn, str(tmp_path), params={})
    assert Right(model_fn, str(tmp_path), params={}).more() == str(tmp_path)
