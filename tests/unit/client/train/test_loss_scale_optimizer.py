"""Loss scales of tf.train.experimental and managers of tf.contrib.mixed_precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

experimental, mixed_precision = tf.train.experimental, tf.contrib.mixed_precision


@pytest.fixture(autouse=True)
def _graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def _problem() -> tuple[Any, Any, Any]:
    """A variable at 1, and a loss whose gradient is `slope`, which is fed."""
    v = tf.get_variable("v", initializer=1.0)
    slope = tf.placeholder(tf.float32, [])
    return v, slope, v * slope


def test_a_dynamic_scale_follows_the_gradients() -> None:
    v, slope, loss = _problem()
    scale = experimental.DynamicLossScale(initial_loss_scale=4, increment_period=2, multiplier=2)
    optimizer = experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), scale)
    step = tf.train.get_or_create_global_step()
    train = optimizer.minimize(loss, global_step=step)
    seen = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fed in (1.0, 1.0, np.inf, 1.0):
            session.run(train, {slope: fed})
            seen.append(tuple(session.run([v, step, scale()])))

    assert seen == [(0.5, 1, 4.0), (0.0, 2, 8.0), (0.0, 2, 4.0), (-0.5, 3, 4.0)]


@pytest.mark.parametrize("given", [16, experimental.FixedLossScale(16.0)])
def test_a_fixed_scale_leaves_gradients_as_they_are(given: Any) -> None:
    v, slope, loss = _problem()
    optimizer = experimental.enable_mixed_precision_graph_rewrite(tf.train.GradientDescentOptimizer(0.5), given)
    train = optimizer.minimize(loss)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train, {slope: 3.0})

        assert session.run(v) == -0.5
    with pytest.raises(ValueError, match="must not already be an instance"):
        experimental.enable_mixed_precision_graph_rewrite(optimizer)


def test_contribs_manager_counts_good_and_bad_steps() -> None:
    v, slope, loss = _problem()
    manager = mixed_precision.ExponentialUpdateLossScaleManager(8, incr_every_n_steps=2, decr_every_n_nan_or_inf=2)
    train = mixed_precision.LossScaleOptimizer(tf.train.GradientDescentOptimizer(0.5), manager).minimize(loss)
    seen = []
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for fed in (1.0, 1.0, np.nan, np.nan):
            session.run(train, {slope: fed})
            seen.append(tuple(map(float, session.run([v, manager.get_loss_scale()]))))

    assert seen[:3] == [(0.5, 8.0), (0.0, 16.0), (0.0, 16.0)]
    assert seen[3] == pytest.approx((0.0, 12.8))


def test_scales_below_one_and_what_is_none_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        experimental.FixedLossScale(0.5)
    with pytest.raises(ValueError, match="at least 1"):
        mixed_precision.FixedLossScaleManager(0.5)
    with pytest.raises(ValueError, match="Could not interpret"):
        experimental.MixedPrecisionLossScaleOptimizer(tf.train.GradientDescentOptimizer(1.0), "fast")
    with pytest.raises(ValueError, match="must be an instance of"):
        experimental.enable_mixed_precision_graph_rewrite("sgd")  # type: ignore[arg-type]
