"""Models on several devices: the same variables, losses and metrics as on one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODES = tf.estimator.ModeKeys
X = np.arange(8, dtype=np.float32)[:, None] / 8
Y = 3 * X + 1
replicate = tf.contrib.estimator.replicate_model_fn
#: Two places, as a session without further settings has one CPU.
TWO = ["/cpu:0", "/cpu:0"]


@pytest.fixture(autouse=True)
def closed_writers() -> Iterator[None]:
    yield
    tf.summary.FileWriterCache.clear()


def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
    prediction = tf.layers.dense(features["x"], 1, name="line", kernel_initializer=tf.ones_initializer())
    if mode == MODES.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={"y": prediction})
    loss = tf.losses.mean_squared_error(labels, prediction)
    optimizer = tf.train.MomentumOptimizer(0.1, 0.9)
    if params["wrapped"]:
        optimizer = tf.contrib.estimator.TowerOptimizer(optimizer)
    train_op = optimizer.minimize(loss, global_step=tf.train.get_global_step())
    metrics = {"error": tf.metrics.mean_absolute_error(labels, prediction)}
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train_op, eval_metric_ops=metrics)


def batches(labels: bool = True) -> Any:
    return tf.estimator.inputs.numpy_input_fn({"x": X}, Y if labels else None, 8, 1, shuffle=False)


def outcome(folder: Path, function: Any) -> tuple[dict[str, Any], dict[str, Any], list[float]]:
    """The variables after three steps, the metrics then, and the predictions."""
    estimator = tf.estimator.Estimator(function, str(folder), params={"wrapped": True})
    for _ in range(3):
        estimator.train(batches())
    values = {name: estimator.get_variable_value(name) for name in estimator.get_variable_names()}
    predictions = [float(each["y"][0]) for each in estimator.predict(batches(labels=False))]
    return values, estimator.evaluate(batches()), predictions


@pytest.mark.thorough
def test_two_towers_are_as_good_as_one_model(tmp_path: Path) -> None:
    alone = outcome(tmp_path / "alone", model_fn)
    towers = outcome(tmp_path / "towers", replicate(model_fn, devices=TWO))

    assert sorted(alone[0]) == sorted(towers[0])
    assert "line/kernel/Momentum" in towers[0]
    for name, value in alone[0].items():
        np.testing.assert_allclose(towers[0][name], value, rtol=1e-5, err_msg=name)
    assert towers[1] == pytest.approx(alone[1], rel=1e-5)
    np.testing.assert_allclose(towers[2], alone[2], rtol=1e-5)


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Tower losses need to be reduced in some way"):
        replicate(model_fn, tf.losses.Reduction.NONE)
    towers = replicate(model_fn, devices=TWO)
    with pytest.raises(ValueError, match="Please wrap optimizers with TowerOptimizer"):
        tf.estimator.Estimator(towers, str(tmp_path), params={"wrapped": False}).train(lambda: ({"x": X}, Y))
    with tf.Graph().as_default(), pytest.raises(ValueError, match="needs to be divisible by the number of GPUs"):
        towers({"x": tf.zeros([3, 1])}, tf.zeros([3, 1]), MODES.TRAIN, {"wrapped": True})
