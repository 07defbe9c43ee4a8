"""Optimizers: one step against arithmetic, for both kinds of variables, dense and sparse; slots, names, errors."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf

START = np.array([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
SLOPE = np.array([[0.5, -1.0], [0.25, 2.0], [-1.5, 0.1]])


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def gradient_descent(steps):
    value = START.copy()
    for grad in steps:
        value -= 0.1 * grad
    return value


def momentum(steps, nesterov=False):
    value, accum = START.copy(), np.zeros_like(START)
    for grad in steps:
        accum = 0.9 * accum + grad
        value -= 0.1 * (grad + 0.9 * accum) if nesterov else 0.1 * accum
    return value


def adagrad(steps):
    value, accum = START.copy(), np.full_like(START, 0.1)
    for grad in steps:
        accum += grad**2
        value -= 0.1 * grad / np.sqrt(accum)
    return value


def adam(steps):
    value, m, v = START.copy(), np.zeros_like(START), np.zeros_like(START)
    for t, grad in enumerate(steps, start=1):
        m = 0.9 * m + 0.1 * grad
        v = 0.999 * v + 0.001 * grad**2
        rate = 0.1 * np.sqrt(1 - 0.999**t) / (1 - 0.9**t)
        value -= rate * m / (np.sqrt(v) + 1e-8)
    return value


OPTIMIZERS = [
    pytest.param(lambda: tf.train.GradientDescentOptimizer(0.1), gradient_descent, id="GradientDescent"),
    pytest.param(lambda: tf.train.MomentumOptimizer(0.1, 0.9), momentum, id="Momentum"),
    pytest.param(
        lambda: tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True), lambda s: momentum(s, True), id="Nesterov"
    ),
    pytest.param(lambda: tf.train.AdagradOptimizer(0.1), adagrad, id="Adagrad"),
    pytest.param(lambda: tf.train.AdamOptimizer(0.1), adam, id="Adam"),
]
KINDS = pytest.mark.parametrize("use_resource", [False, True], ids=["reference", "resource"])


def run_steps(variable, train_op, count):
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(count):
            session.run(train_op)
        return session.run(variable)


@KINDS
@pytest.mark.parametrize("dtype", [tf.float32, tf.float64], ids=["float32", "float64"])
@pytest.mark.parametrize(("make", "expected"), OPTIMIZERS)
def test_dense_steps(make, expected, dtype, use_resource):
    variable = tf.Variable(START, dtype=dtype, use_resource=use_resource)
    train_op = make().apply_gradients([(tf.constant(SLOPE, dtype=dtype), variable)])

    result = run_steps(variable, train_op, 3)

    np.testing.assert_allclose(result, expected([SLOPE] * 3), rtol=1e-5)


@KINDS
@pytest.mark.parametrize(("make", "expected"), OPTIMIZERS)
def test_sparse_steps_sum_repeated_rows(make, expected, use_resource):
    variable = tf.Variable(START, dtype=tf.float64, use_resource=use_resource)
    rows = tf.constant([[1.0, 1.0], [2.0, 0.5], [0.5, -1.0]], dtype=tf.float64)
    grad = tf.IndexedSlices(rows, tf.constant([2, 0, 2]), tf.constant([3, 2]))
    dense = np.array([[2.0, 0.5], [0.0, 0.0], [1.5, 0.0]])
    train_op = make().apply_gradients([(grad, variable)])

    result = run_steps(variable, train_op, 1)

    np.testing.assert_allclose(result, expected([dense]), rtol=1e-6)


@KINDS
def test_minimize_through_gather_touches_only_the_rows_read(use_resource):
    table = tf.Variable(START, dtype=tf.float64, use_resource=use_resource)
    loss = tf.reduce_sum(tf.gather(table, [1]))
    train_op = tf.train.GradientDescentOptimizer(1.0).minimize(loss)

    result = run_steps(table, train_op, 1)

    np.testing.assert_allclose(result, START - [[0, 0], [1, 1], [0, 0]])


@KINDS
def test_global_step_is_incremented_after_the_updates(graph, use_resource):
    with tf.variable_scope("", use_resource=use_resource):
        step = tf.train.get_or_create_global_step()
        variable = tf.get_variable("w", initializer=tf.constant(1.0))
    kind = "AssignAddVariableOp" if use_resource else "AssignAdd"
    train_op = tf.train.GradientDescentOptimizer(0.1).minimize(variable * variable, global_step=step)

    assert (train_op.name, train_op.type) == ("GradientDescent", kind)
    # The increment waits for the updates by way of its constant, as in TensorFlow.
    (one,) = [tensor.op for tensor in train_op.inputs if tensor.op.type == "Const"]
    assert one.control_inputs == [graph.get_operation_by_name("GradientDescent/update")]
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP) == [train_op]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        for _ in range(2):
            session.run(train_op)
        assert tf.train.global_step(session, step) == 2


def test_slots_are_named_and_placed_with_their_variable(graph):
    with tf.device("/job:ps/task:3"):
        variable = tf.get_variable("layer/w", [2])
    loss = tf.reduce_sum(variable * variable)
    optimizers = {
        "momentum": tf.train.MomentumOptimizer(0.1, 0.9),
        "accumulator": tf.train.AdagradOptimizer(0.1),
        "m": tf.train.AdamOptimizer(),
    }
    for optimizer in optimizers.values():
        optimizer.minimize(loss)

    names = {slot: optimizer.get_slot(variable, slot).op.name for slot, optimizer in optimizers.items()}
    assert names == {"momentum": "layer/w/Momentum", "accumulator": "layer/w/Adagrad", "m": "layer/w/Adam"}
    adam = optimizers["m"]
    assert adam.get_slot(variable, "v").op.name == "layer/w/Adam_1"
    assert adam.get_slot(variable, "v").device == "/job:ps/task:3"
    assert adam.get_slot(variable, "v").op.colocation_groups() == [b"loc:@layer/w"]
    assert [v.op.name for v in adam.variables()] == ["beta1_power", "beta2_power", "layer/w/Adam", "layer/w/Adam_1"]
    assert adam.get_slot_names() == ["m", "v"]
    assert adam.get_slot(variable, "nothing") is None
    assert variable in tf.trainable_variables()
    assert not set(adam.variables()) & set(tf.trainable_variables())


def test_update_names_are_tensorflows(graph):
    tf.get_variable("w", [2])
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(tf.reduce_sum(tf.trainable_variables()[0]))

    names = [op.name for op in graph.get_operations()]
    assert "Momentum/learning_rate" in names
    assert "Momentum/momentum" in names
    assert "Momentum/update_w/ApplyMomentum" in names
    assert graph.get_operation_by_name("Momentum").type == "NoOp"


def test_hyperparameters_may_be_tensors_or_functions():
    rate = tf.placeholder(tf.float64, [])
    variable = tf.Variable(1.0, dtype=tf.float32)
    by_tensor = tf.train.GradientDescentOptimizer(rate).minimize(variable)
    by_function = tf.train.GradientDescentOptimizer(lambda: 0.25).minimize(variable)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(by_tensor, {rate: 0.5})
        assert session.run(variable) == 0.5
        session.run(by_function)
        assert session.run(variable) == 0.25


def test_constraint_is_applied_after_the_update():
    variable = tf.Variable([1.0, 1.0], constraint=lambda v: tf.maximum(v, 0.9))
    train_op = tf.train.GradientDescentOptimizer(0.1).apply_gradients([(tf.constant([0.5, 5.0]), variable)])

    np.testing.assert_allclose(run_steps(variable, train_op, 1), [0.95, 0.9])


def test_gating():
    first, second = tf.Variable(1.0), tf.Variable(2.0)
    loss = first * second
    for gate in (tf.train.Optimizer.GATE_NONE, tf.train.Optimizer.GATE_OP, tf.train.Optimizer.GATE_GRAPH):
        pairs = tf.train.GradientDescentOptimizer(0.1).compute_gradients(loss, gate_gradients=gate)
        with tf.Session() as session:
            session.run(tf.global_variables_initializer())
            assert session.run([grad for grad, _ in pairs]) == [2.0, 1.0]
    with pytest.raises(ValueError, match="gate_gradients must be one of"):
        tf.train.GradientDescentOptimizer(0.1).compute_gradients(loss, gate_gradients=7)


def test_variables_that_the_loss_does_not_depend_on_are_skipped():
    used, unused = tf.Variable(1.0), tf.Variable(5.0)
    optimizer = tf.train.GradientDescentOptimizer(1.0)

    pairs = optimizer.compute_gradients(used * 2.0)

    assert [grad is None for grad, _ in pairs] == [False, True]
    train_op = optimizer.apply_gradients(pairs)
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        session.run(train_op)
        assert session.run([used, unused]) == [-1.0, 5.0]


def test_wrong_use_is_refused():
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    with pytest.raises(ValueError, match="No variables to optimize"):
        optimizer.minimize(tf.constant(1.0))
    variable = tf.Variable(1.0, name="w")
    with pytest.raises(ValueError, match="No gradients provided for any variable"):
        optimizer.minimize(tf.constant(1.0))
    with pytest.raises(ValueError, match="Invalid type"):
        optimizer.minimize(tf.constant(1))
    with pytest.raises(ValueError, match="No variables provided"):
        optimizer.apply_gradients([])
    with pytest.raises(ValueError, match="No gradients provided"):
        optimizer.apply_gradients([(None, variable)])
    with pytest.raises(TypeError, match="Gradient must be convertible"):
        optimizer.apply_gradients([(object(), variable)])
    with pytest.raises(ValueError, match="optimizer name"):
        tf.train.GradientDescentOptimizer(0.1, name="")
    with pytest.raises(ValueError, match="must be positive"):
        tf.train.AdagradOptimizer(0.1, initial_accumulator_value=0.0)
    with pytest.raises(NotImplementedError, match="unsupported type"):
        optimizer.compute_gradients(variable * 2.0, var_list=["w"])


def test_global_step_helpers():
    assert tf.train.get_global_step() is None
    step = tf.train.create_global_step()

    assert tf.train.get_global_step() is step
    assert tf.train.get_or_create_global_step() is step
    assert step.dtype.base_dtype == tf.int64
    assert step.op.name == "global_step"
    assert not step.trainable
    with pytest.raises(ValueError, match="already exists"):
        tf.train.create_global_step()
    with pytest.raises(TypeError, match="integer type"):
        tf.train.assert_global_step(tf.constant(1.0))
    with pytest.raises(TypeError, match="not scalar"):
        tf.train.assert_global_step(tf.constant([1]))
    with pytest.raises(TypeError, match="Variable or Tensor"):
        tf.train.assert_global_step(3)


def test_the_values_of_a_dict_are_variables_to_train() -> None:
    with tf.Graph().as_default():
        weights = {"b": tf.Variable(1.0), "a": tf.Variable(2.0)}
        optimizer = tf.train.GradientDescentOptimizer(1.0)

        found = optimizer.compute_gradients(weights["a"] * weights["b"], var_list=weights.values())

        assert [variable for _, variable in found] == list(weights.values())
