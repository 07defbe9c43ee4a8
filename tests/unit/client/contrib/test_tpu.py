"""Programs written for TPUs that run without one: batch sizes in params, metrics and scaffolds made by functions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from pathlib import Path

tpu = tf.contrib.tpu


def model_fn(features: Any, labels: Any, mode: str, params: dict[str, Any]) -> Any:
    assert params["use_tpu"] is False
    weight = tf.get_variable("weight", initializer=0.0)
    loss = tf.reduce_mean(tf.square(features["x"] * weight - 1.0))
    optimizer = tpu.CrossShardOptimizer(tf.train.GradientDescentOptimizer(0.1))
    return tpu.TPUEstimatorSpec(
        mode,
        loss=loss,
        train_op=optimizer.minimize(loss, tf.train.get_global_step()),
        eval_metrics=(lambda values: {"size": tf.metrics.mean(tf.size(values))}, [features["x"]]),
        scaffold_fn=lambda: tf.train.Scaffold(init_op=tf.global_variables_initializer()),
    )


def input_fn(params: dict[str, Any]) -> Any:
    return {"x": tf.ones([params["batch_size"]])}


def test_train_and_evaluate_on_the_host(tmp_path: Path) -> None:
    config = tpu.RunConfig(model_dir=str(tmp_path), tpu_config=tpu.TPUConfig(iterations_per_loop=5))
    estimator = tpu.TPUEstimator(model_fn, config=config, use_tpu=False, train_batch_size=4, eval_batch_size=2)

    estimator.train(input_fn, steps=3)
    found = estimator.evaluate(input_fn, steps=1)

    assert (found["size"], found["global_step"], config.tpu_config.iterations_per_loop) == (2.0, 3, 5)
    assert np.isfinite(found["loss"])
    tf.summary.FileWriterCache.clear()


def test_a_tpu_is_refused() -> None:
    with pytest.raises(ValueError, match="TPUs are not served: pass use_tpu=False"):
        tpu.TPUEstimator(model_fn)
    with pytest.raises(ValueError, match="TPUs are not served"):
        tpu.RunConfig(cluster="tpu")
    with pytest.raises(ValueError, match="reserved keys but existed in params"):
        tpu.TPUEstimator(model_fn, params={"batch_size": 1}, use_tpu=False)
    with pytest.raises(AttributeError, match="TPUs are not served"):
        _ = tpu.shard
