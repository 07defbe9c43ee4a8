"""A worker with a GPU and a parameter server without one, each a process: what crosses between them is the host's.

    ps:0  CPU    weights, global step      ──►  worker:0  GPU  loss and gradients
                 their updates             ◄──
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

import tenfold as tf
from support import dry_gpu
from support.gpu_programs import ops_on
from support.task_processes import PATIENCE, static_cluster

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.task_processes import Tasks

STEPS = 5
RATE = np.float32(0.2)


@pytest.fixture
def tasks() -> Iterator[Tasks]:
    """Both see what this process sees, a real GPU or the simulator's, but that the ps shuts its eyes."""
    if dry_gpu.is_on():
        pytest.skip("a program needs what its kernels give")
    with static_cluster(ps=1, worker=1, absent=[("ps", 0), ("worker", 0)]) as found:
        found.start(("ps", 0), env={"CUDA_VISIBLE_DEVICES": ""})
        found.start(("worker", 0))
        yield found


@pytest.mark.timeout(5 * PATIENCE)
def test_a_gpu_worker_learns_with_variables_on_a_ps(tasks: Tasks) -> None:
    random = np.random.RandomState(0)
    feeds = [random.uniform(-1, 1, (4, 2)).astype(np.float32) for _ in range(STEPS)]
    weights = np.float32([[0.5], [-0.25]])
    target = np.float32([[2.0], [1.0]])
    with tf.Graph().as_default():
        with tf.device("/job:ps/task:0/cpu:0"):
            step = tf.train.get_or_create_global_step()
            w = tf.get_variable("w", initializer=weights)
        with tf.device("/job:worker/task:0/gpu:0"):
            x = tf.placeholder(tf.float32, [None, 2], name="x")
            loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - tf.matmul(x, tf.constant(target))))
        train = tf.train.GradientDescentOptimizer(float(RATE)).minimize(loss, global_step=step)
        with tf.Session(tasks.target("worker", 0)) as session:
            gpus = [device.name for device in session.list_devices() if device.device_type == "GPU"]
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train], {x: fed})[0] for fed in feeds[:-1]]
            metadata = tf.RunMetadata()
            options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
            losses.append(session.run([loss, train], {x: feeds[-1]}, options=options, run_metadata=metadata)[0])
            found, count = session.run([w, step])

    wanted = []
    for fed in feeds:
        rest = fed @ weights - fed @ target
        wanted.append(np.mean(rest * rest))
        weights = weights - RATE * 2 * fed.T @ rest / len(fed)
    np.testing.assert_allclose(losses, wanted, rtol=1e-4)
    np.testing.assert_allclose(found, weights, rtol=1e-4)
    assert count == STEPS
    assert gpus == ["/job:worker/replica:0/task:0/device:GPU:0"]
    places = ops_on(metadata)
    assert places["MatMul"] == {"GPU:0"}
    assert places["ApplyGradientDescent"] == {"CPU:0"}
