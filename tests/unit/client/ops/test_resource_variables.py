"""Resource variables: names of nodes, reads of their own value, assignment, protos, sparse reads."""

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


def test_nodes_are_tensorflows(graph):
    variable = tf.Variable([1.0, 2.0], name="w", use_resource=True)

    assert [(op.name, op.type) for op in graph.get_operations()] == [
        ("w/Initializer/initial_value", "Const"),
        ("w", "VarHandleOp"),
        ("w/IsInitialized/VarIsInitializedOp", "VarIsInitializedOp"),
        ("w/Assign", "AssignVariableOp"),
        ("w/Read/ReadVariableOp", "ReadVariableOp"),
    ]
    assert isinstance(variable, tf.Variable)
    assert variable.dtype == tf.float32
    assert variable.handle.dtype == tf.resource
    assert graph.get_operation_by_name("w").get_attr("shared_name") == b"w"
    assert variable.value().get_shape().as_list() == [2]


def test_values_and_assignments():
    variable = tf.Variable([1.0, 2.0], use_resource=True)
    with new_session() as session:
        session.run(tf.global_variables_initializer())

        assert session.run(variable).tolist() == [1.0, 2.0]
        assert session.run(variable * 2.0).tolist() == [2.0, 4.0]
        assert session.run(variable.assign([3.0, 4.0])).tolist() == [3.0, 4.0]
        assert session.run(variable.assign_add([1.0, 1.0])).tolist() == [4.0, 5.0]
        assert session.run(tf.assign_sub(variable, [4.0, 4.0])).tolist() == [0.0, 1.0]
        assert variable.assign([0.0, 0.0], read_value=False).type == "AssignVariableOp"


def test_a_read_keeps_its_value_when_the_variable_changes():
    variable = tf.Variable(1.0, use_resource=True)
    before = variable.read_value()
    with tf.control_dependencies([before]):
        assign = variable.assign(5.0, read_value=False)
    with tf.control_dependencies([assign]):
        unchanged = tf.identity(before)
        after = variable.read_value()
    with new_session() as session:
        session.run(variable.initializer)
        assert session.run([unchanged, after]) == [1.0, 5.0]


def test_assigning_another_shape_is_refused():
    variable = tf.Variable([1.0, 2.0], use_resource=True)

    with pytest.raises(ValueError, match="compatible"):
        variable.assign([1.0])


def test_in_place_operators_are_refused():
    variable = tf.Variable(1.0, use_resource=True)

    with pytest.raises(RuntimeError, match="assign_add"):
        variable += 1.0


def test_uninitialized_read_and_report():
    variable = tf.Variable(1.0, name="late", use_resource=True)
    report = tf.report_uninitialized_variables()
    with new_session() as session:
        with pytest.raises(tf.errors.FailedPreconditionError, match="late"):
            session.run(variable)
        assert session.run(report).tolist() == [b"late"]
        session.run(variable.initializer)
        assert session.run(report).size == 0


def test_initial_value_from_another_resource_variable():
    first = tf.Variable(2.0, use_resource=True)
    second = tf.Variable(first.initialized_value() + 1.0, use_resource=True)
    with new_session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run(second) == 3.0


def test_sparse_read_has_a_sparse_gradient():
    variable = tf.Variable(np.eye(4, dtype=np.float32), use_resource=True)
    rows = variable.sparse_read([2, 2, 0])
    assert rows.shape.as_list() == [3, 4]

    (grad,) = tf.gradients(tf.reduce_sum(rows), [variable])

    assert isinstance(grad, tf.IndexedSlices)
    with new_session() as session:
        session.run(variable.initializer)
        assert session.run(rows).argmax(axis=1).tolist() == [2, 2, 0]
        assert session.run(tf.convert_to_tensor(grad)).sum(axis=1).tolist() == [4.0, 0.0, 8.0, 0.0]


def test_the_gradient_of_rows_read_in_a_loop_has_the_variables_shape():
    variable = tf.Variable(np.ones(5, dtype=np.float32), use_resource=True)

    def body(i, x):
        return i + 1, x * tf.reduce_sum(tf.gather(variable, [1, 3]))

    _, end = tf.while_loop(lambda i, _: i < 3, body, [0, tf.constant(1.0)])
    (grad,) = tf.gradients(end, [variable])

    with new_session() as session:
        session.run(variable.initializer)
        assert session.run(grad.dense_shape).tolist() == [5]
        assert session.run(tf.convert_to_tensor(grad)).tolist() == [0.0, 12.0, 0.0, 12.0, 0.0]


def test_proto_round_trip():
    variable = tf.Variable([1.0], name="scope/w", use_resource=True)

    proto = variable.to_proto()
    again = tf.Variable.from_proto(proto)

    assert proto.is_resource
    assert proto.variable_name == "scope/w:0"
    assert proto.snapshot_name == "scope/w/Read/ReadVariableOp:0"
    assert again.handle is variable.handle
    assert again.get_shape() == variable.get_shape()


def test_resource_variables_can_be_the_default():
    tf.enable_resource_variables()
    try:
        assert tf.resource_variables_enabled()
        assert tf.Variable(0.0).op.type == "VarHandleOp"
    finally:
        tf.disable_resource_variables()
    assert tf.Variable(0.0).op.type == "VariableV2"
