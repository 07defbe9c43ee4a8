"""The optimizers with an op of their own: names and slots, arguments refused; schedules and clipping refuse too.

Their numbers are compared with TensorFlow's by tests/interop/test_optimizers_oracle.py.
"""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def run(train_op, fetches, steps=1):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(steps):
            session.run(train_op)
        return session.run(fetches)


SLOTS = {
    "Adadelta": (lambda: tf.train.AdadeltaOptimizer(), ["accum", "accum_update"]),
    "AdagradDA": (
        lambda: tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
        ["gradient_accumulator", "gradient_squared_accumulator"],
    ),
    "RMSProp": (lambda: tf.train.RMSPropOptimizer(0.1, centered=True), ["mg", "momentum", "rms"]),
    "Ftrl": (lambda: tf.train.FtrlOptimizer(0.1), ["accum", "linear"]),
    "ProximalAdagrad": (lambda: tf.train.ProximalAdagradOptimizer(0.1), ["accumulator"]),
    "ProximalGradientDescent": (lambda: tf.train.ProximalGradientDescentOptimizer(0.1), []),
}


@pytest.mark.parametrize("name", SLOTS)
@pytest.mark.parametrize("use_resource", [False, True])
def test_slots_and_their_names(name, use_resource):
    make, slots = SLOTS[name]
    variable = tf.get_variable("w", [2], use_resource=use_resource)
    optimizer = make()
    optimizer.minimize(tf.reduce_sum(variable * variable))

    assert optimizer.get_slot_names() == slots
    expected = {f"w/{name}" + (f"_{i}" if i else "") for i in range(len(slots))}
    assert {v.op.name for v in optimizer.variables()} == expected
    assert all(type(v) is type(variable) for v in optimizer.variables())


def test_ftrl_takes_names_for_its_slots():
    variable = tf.get_variable("w", [2])
    optimizer = tf.train.FtrlOptimizer(0.1, accum_name="a", linear_name="l")
    optimizer.minimize(tf.reduce_sum(variable))

    assert [v.op.name for v in optimizer.variables()] == ["w/a", "w/l"]


def test_op_and_node_names_are_tensorflows(graph):
    variable = tf.get_variable("w", [2])
    tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1).minimize(tf.reduce_sum(variable))

    names = [op.name for op in graph.get_operations()]
    assert "Ftrl/update_w/ApplyFtrlV2" in names
    assert "Ftrl/l2_shrinkage_regularization_strength" in names


@pytest.mark.parametrize("dtype", [tf.float16, tf.float32, tf.float64])
def test_types_keep(dtype):
    variable = tf.Variable([1.0, 2.0], dtype=dtype)
    updates = [
        optimizer.apply_gradients([(tf.constant([0.5, -0.5], dtype), variable)])
        for optimizer in (
            tf.train.RMSPropOptimizer(0.1),
            tf.train.AdadeltaOptimizer(0.1),
            tf.train.ProximalAdagradOptimizer(0.1),
            tf.train.ProximalGradientDescentOptimizer(0.1),
            tf.train.FtrlOptimizer(0.1),
        )
    ]
    value = run(tf.group(*updates), variable)

    assert value.dtype == dtype.as_numpy_dtype
    assert np.isfinite(value).all()


def test_functions_as_hyperparameters_and_as_loss():
    variable = tf.Variable(4.0)
    optimizer = tf.train.RMSPropOptimizer(lambda: 0.5, decay=lambda: 0.9, momentum=lambda: 0.0, epsilon=lambda: 1e-10)
    train_op = optimizer.minimize(lambda: variable * 2.0)

    # the mean square is 0.9 * 1 + 0.1 * 4
    assert run(train_op, variable) == pytest.approx(4.0 - 0.5 * 2.0 / np.sqrt(1.3), rel=1e-5)


def test_a_rate_that_decays_with_the_step():
    step = tf.train.get_or_create_global_step()
    variable = tf.Variable(0.0)
    rate = tf.train.piecewise_constant(step, [1, 3], [1.0, 10.0, 100.0])
    train_op = tf.train.GradientDescentOptimizer(rate).apply_gradients([(tf.constant(-1.0), variable)], step)

    assert run(train_op, variable, steps=5) == 1 + 1 + 10 + 10 + 100


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: tf.train.FtrlOptimizer(0.1, learning_rate_power=0.1), "learning_rate_power 0.100000 needs to be neg"),
        (lambda: tf.train.FtrlOptimizer(0.1, initial_accumulator_value=-1.0), "needs to be positive or zero"),
        (lambda: tf.train.FtrlOptimizer(0.1, l1_regularization_strength=-1.0), "needs to be positive or zero"),
        (lambda: tf.train.ProximalAdagradOptimizer(0.1, initial_accumulator_value=0.0), "must be positive: 0.0"),
        (lambda: tf.train.AdagradDAOptimizer(0.1, None, 0.0), "must be positive: 0.0"),
        (lambda: tf.train.exponential_decay(0.1, None, 1, 0.1), "global_step is required"),
        (lambda: tf.train.cosine_decay(0.1, None, 1), "global_step is required"),
        (lambda: tf.train.piecewise_constant(1, [1, 2], [0.1, 0.2]), "1 less than the length of values"),
        (lambda: tf.train.piecewise_constant(1, [1.0], [0.1, 0.2]), "must have the same dtype as x"),
        (lambda: tf.train.piecewise_constant(1, [1], [0.1, 2]), "same dtype"),
        (lambda: tf.clip_by_value(tf.constant([1.0]), [0.0, 1.0], 2.0), "not compatible|ncompatible|must be equal"),
    ],
)
def test_wrong_arguments_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_clipping_wants_a_sequence():
    for function in (tf.global_norm, lambda t: tf.clip_by_global_norm(t, 1.0)):
        with pytest.raises(TypeError, match="t_list should be a sequence"):
            function(tf.constant(1.0))


def test_clipping_keeps_places_of_sparse_gradients_and_of_none():
    rows = tf.IndexedSlices(tf.constant([[3.0, 4.0]]), tf.constant([7]), tf.constant([9, 2]))
    (nothing, clipped), norm = tf.clip_by_global_norm([None, rows], 1.0)

    assert nothing is None
    assert clipped.indices is rows.indices
    with tf.Session() as session:
        values, length = session.run([clipped.values, norm])
    np.testing.assert_allclose(values, [[0.6, 0.8]], rtol=1e-6)
    assert length == 5.0


def test_average_is_restored_in_place_of_its_variable(tmp_path):
    variable = tf.Variable(1.0, name="v")
    average = tf.train.ExponentialMovingAverage(0.5)
    update = average.apply()
    assert average.average_name(variable) == "v/ExponentialMovingAverage"
    assert average.average(tf.constant(1.0)) is None
    assert tf.moving_average_variables() == [variable]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        variable.load(3.0, session)
        session.run(update)
        saved = tf.train.Saver().save(session, str(tmp_path / "model"))

    with tf.Graph().as_default(), tf.Session() as session:
        again = tf.Variable(0.0, name="v")
        names = tf.train.ExponentialMovingAverage(0.5).variables_to_restore()
        assert names == {"v/ExponentialMovingAverage": again}
        tf.train.Saver(names).restore(session, saved)
        assert session.run(again) == 2.0


def test_only_floats_are_averaged():
    with pytest.raises(TypeError, match="must be half, float, or double"):
        tf.train.ExponentialMovingAverage(0.5).apply([tf.Variable(1)])


def test_zero_debiased_average_of_a_constant_is_the_constant():
    from tenfold.train.moving_averages import assign_moving_average, weighted_moving_average

    average = tf.Variable(0.0, name="a")
    update = assign_moving_average(average, tf.constant(5.0), 0.9)
    weighted = weighted_moving_average(tf.constant(3.0), 0.9, tf.constant(0.5))
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(3):
            assert session.run(update) == pytest.approx(5.0, rel=1e-5)
            assert session.run(weighted) == pytest.approx(3.0, rel=1e-5)
    assert {"a/biased", "a/local_step"} <= {v.op.name for v in tf.global_variables()}
