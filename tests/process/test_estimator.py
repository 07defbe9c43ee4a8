"""`tf.estimator.train_and_evaluate` as four processes: chief, worker, ps and evaluator end in order, with an export."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support.task_processes import CLI, PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

#: A line is fitted; the last lines say what each task was. The shorter of the delays that TensorFlow has are 0 here.
PROGRAM = """
import sys
import numpy as np
import tensorflow as tf
from tensorflow.python.estimator import model_fn as model_fn_lib

def model_fn(features, labels, mode, params, config):
    prediction = tf.layers.dense(features["x"], 1, name="line")
    if mode == tf.estimator.ModeKeys.PREDICT:
        return model_fn_lib.EstimatorSpec(mode, predictions={"y": prediction})
    loss = tf.losses.mean_squared_error(labels, prediction)
    optimizer = tf.train.GradientDescentOptimizer(params["rate"])
    metrics = {"error": tf.metrics.mean_absolute_error(labels, prediction)}
    if config.task_type == "worker":
        assert tf.trainable_variables()[0].device == "/job:ps/task:0", tf.trainable_variables()[0].device
    return tf.estimator.EstimatorSpec(
        mode, loss=loss, eval_metric_ops=metrics,
        train_op=optimizer.minimize(loss, global_step=tf.train.get_global_step()))

def input_fn():
    x = np.linspace(-1, 1, 32, dtype=np.float32)[:, None]
    return tf.estimator.inputs.numpy_input_fn({"x": x}, 2 * x + 1, 8, None, shuffle=False)()

def receiver_fn():
    x = tf.placeholder(tf.float32, [None, 1], name="x")
    return tf.estimator.export.ServingInputReceiver({"x": x}, {"x": x})

config = tf.estimator.RunConfig(sys.argv[1], save_checkpoints_steps=100, experimental_max_worker_delay_secs=0)
estimator = tf.estimator.Estimator(model_fn, config=config, params={"rate": 0.1})
tf.estimator.train_and_evaluate(
    estimator,
    tf.estimator.TrainSpec(input_fn, max_steps=200),
    tf.estimator.EvalSpec(input_fn, steps=2, start_delay_secs=0, throttle_secs=1,
                          exporters=tf.estimator.FinalExporter("last", receiver_fn)))
print("ended as", config.task_type, estimator.latest_checkpoint().rpartition("-")[2])
"""


@pytest.mark.thorough
def test_chief_worker_ps_and_evaluator(tmp_path: Path) -> None:
    program, model = tmp_path / "program.py", tmp_path / "model"
    program.write_text(PROGRAM)
    jobs = ["--ps", "1", "--workers", "1", "--chief", "--evaluator"]

    done = subprocess.run(
        [sys.executable, *CLI, "run", *jobs, "--as-tensorflow", str(program), str(model)],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stdout + done.stderr
    ended = sorted(line.partition("ended as ")[2] for line in done.stdout.splitlines() if "ended as" in line)
    assert [line.split()[0] for line in ended] == ["chief", "evaluator", "worker"]
    step = tf.train.load_variable(str(model), "global_step")
    assert step >= 200
    (export,) = (model / "export" / "last").iterdir()
    with tf.Graph().as_default(), tf.Session() as session:
        loaded = tf.saved_model.loader.load(session, ["serve"], bytes(export))  # as an Estimator returns it
        signature = loaded.signature_def["serving_default"]
        (y,) = session.run([signature.outputs["y"].name], {signature.inputs["x"].name: [[0.5]]})
    np.testing.assert_allclose(y, [[2.0]], atol=0.2)
    events = tf.gfile.Glob(str(model / "eval" / "events*"))
    steps = [event.step for path in events for event in tf.train.summary_iterator(path) if event.summary.value]
    assert steps[-1] >= 200
