"""`tf.variable_scope` and `tf.get_variable`: names, sharing, inherited defaults, initializers."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def test_names_of_nested_scopes(graph):
    with tf.variable_scope("outer"), tf.variable_scope("inner") as scope:
        variable = tf.get_variable("w", [2, 3])
        op = tf.no_op("act")

    assert scope.name == "outer/inner"
    assert scope.original_name_scope == "outer/inner/"
    assert variable.name == "outer/inner/w:0"
    assert op.name == "outer/inner/act"


def test_default_initializer_is_glorot_uniform_with_tensorflows_node_names(graph):
    tf.get_variable("w", [2, 3])

    names = [op.name for op in graph.get_operations()]
    assert names[:7] == [
        "w/Initializer/random_uniform/shape",
        "w/Initializer/random_uniform/min",
        "w/Initializer/random_uniform/max",
        "w/Initializer/random_uniform/RandomUniform",
        "w/Initializer/random_uniform/sub",
        "w/Initializer/random_uniform/mul",
        "w/Initializer/random_uniform",
    ]
    assert names[7:] == ["w", "w/Assign", "w/read"]
    limit = np.sqrt(6.0 / 5.0)
    largest = tf.get_default_graph().get_operation_by_name("w/Initializer/random_uniform/max")
    assert largest.constant == pytest.approx(limit)


def test_integers_start_at_zero():
    assert tf.get_variable("n", [2], tf.int32).initial_value.op.constant.tolist() == [0, 0]


def test_name_scopes_do_not_change_variable_names():
    with tf.name_scope("tower"), tf.variable_scope("v"):
        assert tf.get_variable("w", []).name == "v/w:0"
        assert tf.no_op("n").name == "tower/v/n"


def test_making_a_variable_twice_says_where_the_first_was_made():
    tf.get_variable("w", [])

    with pytest.raises(
        ValueError, match=r"Variable w already exists, disallowed.*reuse=True(.|\n)*test_variable_scope"
    ):
        tf.get_variable("w", [])


def test_reuse():
    with tf.variable_scope("s"):
        first = tf.get_variable("w", [2])
    with tf.variable_scope("s", reuse=True):
        assert tf.get_variable("w", [2]) is first
        assert tf.get_variable("w") is first
        with pytest.raises(ValueError, match="does not exist"):
            tf.get_variable("missing", [2])
        with pytest.raises(ValueError, match=r"specified shape \(3,\) and found shape \(2,\)"):
            tf.get_variable("w", [3])
        with pytest.raises(ValueError, match="specified dtype int32 and found dtype float32"):
            tf.get_variable("w", [2], tf.int32)
    with tf.variable_scope("s") as scope:
        scope.reuse_variables()
        assert tf.get_variable("w") is first


def test_reuse_is_inherited_by_inner_scopes():
    with tf.variable_scope("a"), tf.variable_scope("b"):
        first = tf.get_variable("w", [])
    with tf.variable_scope("a", reuse=True), tf.variable_scope("b"):
        assert tf.get_variable_scope().reuse is True
        assert tf.get_variable("w") is first


def test_auto_reuse_makes_and_then_shares():
    def layer():
        with tf.variable_scope("auto", reuse=tf.AUTO_REUSE):
            return tf.get_variable("w", [1])

    assert layer() is layer()


def test_reentering_a_scope_object():
    with tf.variable_scope("first", initializer=tf.ones_initializer()) as scope:
        pass
    with tf.variable_scope("other"), tf.variable_scope(scope) as again:
        variable = tf.get_variable("w", [2])
        op = tf.no_op("n")

    assert variable.name == "first/w:0"
    assert op.name == "other/first/n"
    assert again.initializer is scope.initializer
    assert variable.initial_value.op.constant.tolist() == [1.0, 1.0]


def test_same_scope_twice_gets_a_new_name_scope():
    with tf.variable_scope("s"):
        first = tf.no_op("n")
    with tf.variable_scope("s"):
        second = tf.no_op("n")

    assert (first.name, second.name) == ("s/n", "s_1/n")


def test_default_names_are_unique():
    names = []
    for _ in range(3):
        with tf.variable_scope(None, "layer") as scope:
            names.append((scope.name, tf.get_variable("w", []).name))

    assert names == [("layer", "layer/w:0"), ("layer_1", "layer_1/w:0"), ("layer_2", "layer_2/w:0")]


def test_default_names_start_over_in_a_reopened_scope():
    def build():
        with tf.variable_scope("net", reuse=tf.AUTO_REUSE):
            with tf.variable_scope(None, "layer"):
                first = tf.get_variable("w", [])
            with tf.variable_scope(None, "layer"):
                return first, tf.get_variable("w", [])

    assert build() == build()


def test_no_auxiliary_name_scope():
    with tf.variable_scope("v", auxiliary_name_scope=False):
        assert tf.no_op("n").name == "n"
        assert tf.get_variable("w", []).name == "v/w:0"


def test_the_same_context_can_be_entered_again():
    context = tf.variable_scope("s", reuse=tf.AUTO_REUSE)
    with context:
        first = tf.get_variable("w", [])
    with context:
        assert tf.get_variable("w", []) is first


def test_wrong_arguments_are_refused():
    with pytest.raises(TypeError, match="name_or_scope is required"):
        tf.variable_scope(None)
    with pytest.raises(TypeError, match="string or VariableScope"):
        tf.variable_scope(3)
    with pytest.raises(ValueError, match="reuse parameter"):
        tf.variable_scope("s", reuse="yes")
    with pytest.raises(ValueError, match="without a name_or_scope"), tf.variable_scope(None, "d", reuse=True):
        pass
    with pytest.raises(ValueError, match="do not specify shape"):
        tf.get_variable("w", [1], initializer=tf.constant([1.0]))
    with pytest.raises(ValueError, match="don't match"):
        tf.get_variable("w", dtype=tf.int32, initializer=tf.constant([1.0]))
    with pytest.raises(ValueError, match="initializer passed is not valid"):
        tf.get_variable("w", [None, 2], initializer=tf.zeros_initializer())
    with pytest.raises(ValueError, match="Partitioner must be callable"):
        tf.get_variable("w", [4], partitioner=[2])


def test_failing_scope_leaves_everything_as_it_was():
    with pytest.raises(RuntimeError, match="boom"), tf.variable_scope("s"):
        raise RuntimeError("boom")

    assert tf.get_variable_scope().name == ""
    assert tf.no_op("n").name == "n"


def test_initializer_of_a_value_and_of_a_function():
    from_value = tf.get_variable("a", initializer=tf.constant([1.0, 2.0]))
    from_function = tf.get_variable("b", initializer=lambda: tf.ones([3]))

    assert from_value.get_shape().as_list() == [2]
    assert from_function.get_shape().as_list() == [3]


def test_regularizer_adds_a_loss():
    with tf.variable_scope("s", regularizer=lambda v: tf.reduce_sum(v * v)):
        tf.get_variable("w", [2])
        tf.get_variable("free", [2], regularizer=tf.no_regularizer)

    (loss,) = tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)
    assert loss.op.name.startswith("s/w/Regularizer/")


def test_custom_getters_nest():
    seen = []

    def getter(label):
        def custom(getter, name, *args, **kwargs):
            seen.append((label, name))
            return getter(name, *args, **kwargs)

        return custom

    with tf.variable_scope("a", custom_getter=getter("outer")), tf.variable_scope("b", custom_getter=getter("inner")):
        tf.get_variable("w", [])

    assert seen == [("inner", "a/b/w"), ("outer", "a/b/w")]


def test_a_custom_getter_may_pass_the_first_arguments_by_position():
    def in_float32(getter, name, shape=None, dtype=tf.float32, *args, **kwargs):
        return tf.cast(getter(name, shape, tf.float32, *args, **kwargs), dtype)

    with tf.variable_scope("a", custom_getter=in_float32):
        found = tf.get_variable("w", [2], tf.float16, tf.zeros_initializer())

    assert (found.dtype, found.op.type) == (tf.float16, "Cast")
    (variable,) = tf.global_variables()
    assert (variable.dtype.base_dtype, variable.shape.as_list()) == (tf.float32, [2])


def test_defaults_of_a_scope():
    with tf.variable_scope("s", dtype=tf.float64, use_resource=True, caching_device="/job:worker"):
        variable = tf.get_variable("w", [2])

    assert variable.dtype == tf.float64
    assert variable.op.type == "VarHandleOp"
    assert tf.get_variable("plain", []).op.type == "VariableV2"


def test_variables_of_a_scope():
    with tf.variable_scope("s") as scope:
        inside = tf.get_variable("w", [])
    tf.get_variable("outside", [])

    assert scope.global_variables() == [inside]
    assert scope.trainable_variables() == [inside]


def test_local_variable():
    variable = tf.get_local_variable("n", [], tf.int32)

    assert tf.local_variables() == [variable]
    assert tf.trainable_variables() == []
    assert tf.global_variables() == []


def test_scopes_of_two_graphs_are_independent(graph):
    with tf.variable_scope("s"):
        with tf.Graph().as_default():
            assert tf.get_variable_scope().name == ""
            assert tf.get_variable("w", []).name == "w:0"
        assert tf.get_variable("w", []).name == "s/w:0"


INITIALIZERS = [
    (tf.zeros_initializer(), lambda v: np.all(v == 0)),
    (tf.ones_initializer(), lambda v: np.all(v == 1)),
    (tf.constant_initializer(3.5), lambda v: np.all(v == 3.5)),
    (tf.random_uniform_initializer(-0.5, 0.5, seed=1), lambda v: v.min() < -0.4 and 0.4 < v.max() < 0.5),
    (tf.random_normal_initializer(1.0, 0.1, seed=1), lambda v: abs(v.mean() - 1) < 0.05),
    (tf.truncated_normal_initializer(0.0, 1.0, seed=1), lambda v: np.abs(v).max() <= 2.0),
    (tf.glorot_uniform_initializer(seed=1), lambda v: np.abs(v).max() <= np.sqrt(6 / 60)),
    (tf.glorot_normal_initializer(seed=1), lambda v: abs(v.std() - np.sqrt(2 / 60)) < 0.03),
    (tf.variance_scaling_initializer(2.0, seed=1), lambda v: abs(v.std() - np.sqrt(2 / 20)) < 0.05),
]


@pytest.mark.parametrize(("initializer", "holds"), INITIALIZERS, ids=lambda value: type(value).__name__)
def test_initializer(initializer, holds):
    variable = tf.get_variable("w", [20, 40], initializer=initializer)
    with tf.Session() as session:
        session.run(variable.initializer)
        value = session.run(variable)

    assert value.shape == (20, 40)
    assert holds(value)


def test_initializers_check_their_arguments():
    with pytest.raises(ValueError, match="scale"):
        tf.variance_scaling_initializer(scale=0.0)
    with pytest.raises(ValueError, match="mode"):
        tf.variance_scaling_initializer(mode="fan")
    with pytest.raises(ValueError, match="distribution"):
        tf.variance_scaling_initializer(distribution="odd")
    with pytest.raises(ValueError, match="floating"):
        tf.random_normal_initializer(dtype=tf.int32)
    with pytest.raises(TypeError, match="initial value"):
        tf.constant_initializer(object())


def test_initializer_configuration_round_trip():
    initializer = tf.variance_scaling_initializer(2.0, "fan_out", "uniform", seed=3)

    again = type(initializer).from_config(initializer.get_config())

    assert again.get_config() == initializer.get_config()


def test_identity_initializer_is_for_matrices():
    assert tf.initializers.identity(2.0)([2, 3]).op.constant.tolist() == [[2, 0, 0], [0, 2, 0]]
    with pytest.raises(ValueError, match="2D"):
        tf.initializers.identity()([2])


@pytest.mark.parametrize("use_resource", [False, True])
def test_kept_weights_are_read_as_the_type_of_the_computation(use_resource):
    scope = tf.variable_scope("low", use_resource=use_resource)
    with scope.keep_weights(dtype=tf.float32) as entered:
        assert entered.name == "low"
        out = tf.layers.dense(tf.ones([2, 3], tf.bfloat16), 4, name="dense")
        plain = tf.get_variable("plain", [2])
        count = tf.get_variable("count", [], tf.int32, tf.zeros_initializer(), trainable=False)
    train = tf.train.GradientDescentOptimizer(0.5).minimize(tf.reduce_sum(tf.cast(out, tf.float32)))

    assert (out.dtype, plain.dtype.base_dtype, count.dtype.base_dtype) == (tf.bfloat16, tf.float32, tf.int32)
    kept = tf.trainable_variables("low/dense")
    assert [each.dtype.base_dtype for each in kept] == [tf.float32, tf.float32]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        before = session.run(kept[1])
        session.run(train)
        assert (session.run(kept[1]) == before - 1.0).all()


def test_a_getter_around_kept_weights_is_asked_first():
    asked = []

    def getter(get, name, *args, **kwargs):
        asked.append((name, tf.as_dtype(kwargs["dtype"])))
        return get(name, *args, **kwargs)

    scope = tf.variable_scope("low", custom_getter=getter)
    with scope.keep_weights():
        made = tf.get_variable("w", [2], tf.bfloat16)

    assert made.dtype == tf.bfloat16
    assert asked == [("low/w", tf.float32)]
