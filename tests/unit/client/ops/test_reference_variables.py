"""Reference variables: names of nodes, values, assignment, conversion, protos, lists."""

from __future__ import annotations

import numpy as np
import pytest

import tenfold as tf


def new_session():
    """A session whose variables no other session sees."""
    return tf.Session()


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def nodes(graph):
    return [(op.name, op.type) for op in graph.get_operations()]


def test_variable_from_a_value_has_tensorflows_nodes(graph):
    variable = tf.Variable([1.0, 2.0], name="w")

    assert nodes(graph) == [
        ("w/initial_value", "Const"),
        ("w", "VariableV2"),
        ("w/Assign", "Assign"),
        ("w/read", "Identity"),
    ]
    assert variable.name == "w:0"
    assert variable.dtype == tf.float32.as_ref
    assert variable.get_shape().as_list() == [2]
    assert repr(variable) == "<tf.Variable 'w:0' shape=(2,) dtype=float32_ref>"


def test_default_name_is_made_unique():
    assert [tf.Variable(0).op.name for _ in range(3)] == ["Variable", "Variable_1", "Variable_2"]


def test_initializer_of_a_callable_is_colocated_with_the_variable(graph):
    tf.Variable(lambda: tf.zeros([3]), name="w")

    zeros = graph.get_operation_by_name("w/Initializer/zeros")
    assert zeros.colocation_groups() == [b"loc:@w"]
    assert graph.get_operation_by_name("w").type == "VariableV2"


def test_reads_and_assignments_are_colocated(graph):
    tf.Variable(0.0, name="w")

    assert graph.get_operation_by_name("w/read").colocation_groups() == [b"loc:@w"]
    assert graph.get_operation_by_name("w/Assign").colocation_groups() == [b"loc:@w"]


def test_variable_does_not_wait_for_control_dependencies_around_it(graph):
    with tf.control_dependencies([tf.no_op(name="before")]):
        variable = tf.Variable(0.0, name="w")

    assert variable.initializer.control_inputs == []


def test_wrong_arguments_are_refused():
    with pytest.raises(ValueError, match="initial_value must be specified"):
        tf.Variable()
    with pytest.raises(ValueError, match="list, tuple, or set"):
        tf.Variable(0, collections="variables")
    with pytest.raises(ValueError, match="constraint"):
        tf.Variable(0.0, constraint=3)
    with pytest.raises(ValueError, match="must have a shape specified"):
        tf.Variable(tf.placeholder(tf.float32))


def test_unknown_shape_without_validation():
    variable = tf.Variable(tf.placeholder(tf.float32), validate_shape=False)

    assert variable.get_shape().ndims is None


def test_lists_of_variables():
    weight = tf.Variable(0.0, name="layer/w")
    counter = tf.Variable(0, trainable=False, name="counter")
    local = tf.Variable(0, collections=[tf.GraphKeys.LOCAL_VARIABLES], trainable=False, name="local")

    assert tf.global_variables() == [weight, counter]
    assert tf.trainable_variables() == [weight]
    assert tf.local_variables() == [local]
    assert tf.global_variables("layer") == [weight]


def test_values_assignments_and_operators():
    variable = tf.Variable([1.0, 2.0], name="w")
    doubled = 2.0 * variable + 1.0
    with new_session() as session:
        session.run(tf.global_variables_initializer())

        assert session.run(doubled).tolist() == [3.0, 5.0]
        assert session.run(variable.assign([5.0, 6.0])).tolist() == [5.0, 6.0]
        assert session.run(variable.assign_add([1.0, 1.0])).tolist() == [6.0, 7.0]
        assert session.run(tf.assign_sub(variable, [2.0, 2.0])).tolist() == [4.0, 5.0]
        assert session.run(variable[1]) == 5.0
        assert variable.eval(session).tolist() == [4.0, 5.0]
        variable.load([0.0, 9.0], session)
        assert session.run(variable).tolist() == [0.0, 9.0]


def test_scatter_operations():
    variable = tf.Variable(np.zeros((3, 2), np.float32))
    update = variable.scatter_update(tf.IndexedSlices(tf.ones([2, 2]), tf.constant([0, 2])))
    with new_session() as session:
        session.run(variable.initializer)

        assert session.run(update)[:, 0].tolist() == [1.0, 0.0, 1.0]
        assert session.run(tf.scatter_add(variable, [1, 1], [[2.0, 2.0]] * 2))[1].tolist() == [4.0, 4.0]
    with pytest.raises(TypeError, match="IndexedSlices"):
        variable.scatter_add([1.0])


def test_reading_before_initialization_names_the_variable():
    variable = tf.Variable(0.0, name="late")
    with new_session() as session, pytest.raises(tf.errors.FailedPreconditionError, match="late"):
        session.run(variable)


def test_uninitialized_variables_are_reported():
    first = tf.Variable(0.0, name="first")
    tf.Variable(0.0, name="second")
    report = tf.report_uninitialized_variables()
    flag = tf.is_variable_initialized(first)
    with new_session() as session:
        assert session.run(report).tolist() == [b"first", b"second"]
        session.run(first.initializer)
        assert session.run(report).tolist() == [b"second"]
        assert session.run(flag)


def test_report_without_variables_is_an_empty_string_vector():
    report = tf.report_uninitialized_variables()

    assert report.dtype == tf.string
    assert report.get_shape().as_list() == [0]


def test_assert_variables_initialized():
    variable = tf.Variable(0.0)
    check = tf.assert_variables_initialized()
    with new_session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError):
            session.run(check)
        session.run(variable.initializer)
        session.run(check)


def test_initial_value_may_depend_on_another_variable():
    first = tf.Variable(3.0, name="first")
    second = tf.Variable(first * 2.0, name="second")
    with new_session() as session:
        # Both at once, in whatever order.
        session.run(tf.global_variables_initializer())
        assert session.run([first, second]) == [3.0, 6.0]
        session.run(first.assign(10.0))
        session.run(second.initializer)
        assert session.run(second) == 20.0


def test_initialized_value_before_and_after():
    variable = tf.Variable(3.0)
    value = variable.initialized_value()
    with new_session() as session:
        assert session.run(value) == 3.0
        session.run(tf.global_variables_initializer())
        session.run(variable.assign(4.0))
        assert session.run(value) == 4.0


def test_proto_round_trip():
    variable = tf.Variable([1.0], name="scope/w", trainable=False)

    proto = variable.to_proto()
    again = tf.Variable.from_proto(proto)

    assert proto.variable_name == "scope/w:0"
    assert proto.initializer_name == "scope/w/Assign"
    assert proto.snapshot_name == "scope/w/read:0"
    assert proto.initial_value_name == "scope/w/initial_value:0"
    assert not proto.is_resource
    assert again.op is variable.op
    assert again.value() is variable.value()
    assert again.trainable is False


def test_proto_with_scopes():
    variable = tf.Variable([1.0], name="outer/w")

    proto = variable.to_proto(export_scope="outer")
    again = tf.Variable.from_proto(proto, import_scope="outer")

    assert proto.variable_name == "w:0"
    assert again.op is variable.op
    assert variable.to_proto(export_scope="elsewhere") is None


def test_conversion_to_another_type_is_refused():
    variable = tf.Variable(1.0)

    with pytest.raises(ValueError, match="float32_ref"):
        tf.convert_to_tensor(variable, dtype=tf.int32)


def test_caching_device(graph):
    tf.Variable(0.0, name="w", caching_device="/job:worker/task:0")

    assert graph.get_operation_by_name("w/read").device == "/job:worker/task:0"


def test_variables_of_all_types():
    values = {
        tf.float64: 1.5,
        tf.int32: 7,
        tf.int64: 2**40,
        tf.bool: True,
        tf.string: b"text",
    }
    variables = {dtype: tf.Variable(value, dtype=dtype) for dtype, value in values.items()}
    with new_session() as session:
        session.run(tf.global_variables_initializer())
        for dtype, variable in variables.items():
            assert session.run(variable) == values[dtype]


def test_variable_creator_scope_sees_arguments_innermost_first():
    calls = []

    def creator(label):
        def create(next_creator, **kwargs):
            calls.append(label)
            return next_creator(**kwargs)

        return create

    with tf.variable_creator_scope(creator("outer")), tf.variable_creator_scope(creator("inner")):
        variable = tf.Variable(1.0, name="w")

    assert calls == ["inner", "outer"]
    assert isinstance(variable, tf.Variable)
