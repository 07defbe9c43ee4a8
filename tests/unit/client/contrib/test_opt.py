"""tf.contrib.opt: one step of each optimizer against NumPy, and workers' copies that meet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Callable

opt = tf.contrib.opt

#: Optimizer, and where one step takes 2.0 with a gradient of 4.
CASES: dict[str, tuple[Callable[[], Any], float]] = {
    "AdamW": (lambda: opt.AdamWOptimizer(0.5, 0.1), 2.0 * 0.5 - 0.1),
    "MomentumW": (lambda: opt.MomentumWOptimizer(0.5, 0.1, 0.9), 2.0 * 0.5 - 0.4),
    "extended": (
        lambda: opt.extend_with_decoupled_weight_decay(tf.train.GradientDescentOptimizer)(0.5, 0.1),
        2.0 * 0.5 - 0.4,
    ),
    "Nadam": (lambda: opt.NadamOptimizer(0.1), 2.0 - 0.1 * (0.9 * 0.1 + 0.1) / 0.1),
    "AdaMax": (lambda: opt.AdaMaxOptimizer(0.1), 2.0 - 0.1),
    "AddSign": (lambda: opt.AddSignOptimizer(0.1), 2.0 - 0.1 * 2 * 4),
    "PowerSign": (lambda: opt.PowerSignOptimizer(0.1), 2.0 - 0.1 * np.e * 4),
    "LARS": (
        lambda: opt.LARSOptimizer(0.1, weight_decay=0.0, eeta=0.5),
        2.0 - 0.1 * (0.5 * 2 / 4) * 4,
    ),
    "RegAdagrad": (lambda: opt.RegAdagradOptimizer(0.1), 2.0 - 0.1 * 4 / np.sqrt(0.1 + 16)),
    "VariableClipping": (None, 1.0),  # type: ignore[dict-item]
}


@pytest.mark.parametrize("use_resource", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_one_step(name: str, use_resource: bool) -> None:
    make, expected = CASES[name]
    with tf.Graph().as_default():
        var = tf.get_variable("v", initializer=[2.0], use_resource=use_resource)
        if name == "VariableClipping":
            optimizer = opt.VariableClippingOptimizer(tf.train.GradientDescentOptimizer(0.1), {var: [0]}, 1.0)
        else:
            optimizer = make()
        train = optimizer.apply_gradients([(tf.constant([4.0]), var)])
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            np.testing.assert_allclose(sess.run(var), [expected], rtol=1e-5)


@pytest.mark.parametrize("use_resource", [False, True])
def test_lazy_adam_leaves_other_rows_alone(use_resource: bool) -> None:
    with tf.Graph().as_default():
        var = tf.get_variable("v", initializer=np.ones((3, 1), np.float32), use_resource=use_resource)
        optimizer = opt.LazyAdamOptimizer(0.1)
        rows = tf.IndexedSlices(tf.constant([[4.0]]), tf.constant([1]), tf.constant([3, 1]))
        train = optimizer.apply_gradients([(rows, var)])
        moments = optimizer.get_slot(var, "m")
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            np.testing.assert_allclose(sess.run(var), [[1.0], [0.9], [1.0]], rtol=1e-5)
            np.testing.assert_allclose(sess.run(moments), [[0.0], [0.4], [0.0]], rtol=1e-5)


def test_averages_are_saved_under_the_variables_names(tmp_path: Any) -> None:
    with tf.Graph().as_default():
        var = tf.get_variable("v", initializer=2.0)
        optimizer = opt.MovingAverageOptimizer(tf.train.GradientDescentOptimizer(1.0), average_decay=0.5)
        train = optimizer.minimize(var)
        saver = optimizer.swapping_saver()
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train)
            path = saver.save(sess, str(tmp_path / "model"))
    assert tf.train.load_variable(path, "v") == 1.5
    assert tf.train.load_variable(path, "v/ExponentialMovingAverage") == 1.0


def test_elastic_copies_and_the_center_pull_at_each_other() -> None:
    with tf.Graph().as_default():
        getter = opt.ElasticAverageCustomGetter("/cpu:0")
        step = tf.train.get_or_create_global_step()
        with tf.variable_scope("", custom_getter=getter):
            var = tf.get_variable("v", initializer=4.0)
        optimizer = opt.ElasticAverageOptimizer(
            tf.train.GradientDescentOptimizer(1.0), 1, getter, communication_period=2, moving_rate=0.5, rho=0.0
        )
        train = optimizer.apply_gradients([(tf.constant(1.0), var)], step)
        hook = optimizer.make_session_run_hook(is_chief=True, task_index=0)
        hook.begin()
        with tf.Session() as sess:
            sess.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
            hook.after_create_session(sess, None)
            sess.run(train)
            assert sess.run([var, step]) == [3.0, 0]
            sess.run(train)
            center = next(each for each in tf.global_variables() if each.op.name.startswith("global_center"))
            assert sess.run([var, center, step]) == [3.0, 3.0, 1]


def test_stale_gradients_are_dropped() -> None:
    with tf.Graph().as_default():
        step = tf.train.get_or_create_global_step()
        var = tf.get_variable("v", initializer=4.0)
        optimizer = opt.DropStaleGradientOptimizer(tf.train.GradientDescentOptimizer(1.0), staleness=1)
        pairs = optimizer.compute_gradients(var * 1.0, [var])
        optimizer._local_step = tf.placeholder(tf.int64, [])
        train = optimizer.apply_gradients(pairs, step)
        with tf.Session() as sess:
            sess.run(tf.global_variables_initializer())
            sess.run(train, {optimizer._local_step: 0})
            assert sess.run([var, step]) == [3.0, 1]
            assert sess.run(train, {optimizer._local_step: -1}) == 1.0
            assert sess.run([var, step]) == [3.0, 1]


def test_what_is_left_out_says_why() -> None:
    with pytest.raises(AttributeError, match="keeps and inverts a matrix"):
        _ = opt.ShampooOptimizer
