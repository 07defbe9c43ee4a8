"""What surrounds an operation: devices, control dependencies, colocation, containers, gradient overrides."""

from __future__ import annotations

import threading

import pytest

import tenfold as tf
from tenfold.ops import state_ops


@pytest.fixture(autouse=True)
def graph():
    with tf.Graph().as_default() as graph:
        yield graph


def device_of_a_constant():
    return tf.constant(1).device


def test_inner_devices_win_field_by_field():
    with tf.device("/job:ps/task:1"):
        assert device_of_a_constant() == "/job:ps/task:1"
        with tf.device("/gpu:0"):
            assert device_of_a_constant() == "/job:ps/task:1/device:GPU:0"
        with tf.device(tf.DeviceSpec(task=2)):
            assert device_of_a_constant() == "/job:ps/task:2"
        with tf.device(None):
            assert device_of_a_constant() == ""
    assert device_of_a_constant() == ""


def test_device_functions_see_the_operation_with_its_inner_device():
    seen = []

    def to_the_worker(op):
        seen.append((op.type, op.device))
        return "/job:worker" if op.type == "Const" else op.device

    with tf.device("/job:ps"), tf.device(to_the_worker), tf.device("/cpu:0"):
        constant = tf.constant(1)
        no_op = tf.no_op()

    assert seen == [("Const", "/device:CPU:0"), ("NoOp", "/device:CPU:0")]
    assert constant.device == "/job:worker"
    assert no_op.device == "/job:ps/device:CPU:0"


def test_a_device_function_that_raises_adds_nothing(graph):
    def refuse(op):
        raise RuntimeError("no")

    with tf.device(refuse), pytest.raises(RuntimeError, match="no"):
        tf.constant(1)
    assert graph.get_operations() == []


def test_something_else_than_a_device_is_refused():
    with pytest.raises(TypeError, match="A device is a string"):
        tf.device(3).__enter__()
    with pytest.raises(ValueError, match="Malformed device specification"):
        tf.device("/jobs:ps").__enter__()


def control_inputs(tensor):
    return [op.name for op in (tensor if isinstance(tensor, tf.Operation) else tensor.op).control_inputs]


def test_control_dependencies_are_pruned_when_an_input_implies_them():
    a, b = tf.constant(1, name="a"), tf.constant(2, name="b")

    with tf.control_dependencies([a, b]):
        c = tf.identity(a, name="c")
        d = tf.identity(c, name="d")
        with tf.control_dependencies([d]):
            e = tf.constant(1, name="e")
        with tf.control_dependencies(None):
            f = tf.constant(1, name="f")

    assert control_inputs(c) == ["b"]  # a is an input already
    assert control_inputs(d) == []  # c waits for both
    assert control_inputs(e) == ["a", "b", "d"]
    assert control_inputs(f) == []
    assert [op.name for op in b.op._control_outputs] == ["c", "e"]


def test_control_inputs_may_be_operations_names_variables_and_slices():
    v = tf.Variable(1.0, name="v")
    slices = tf.IndexedSlices(tf.constant([1.0], name="values"), tf.constant([0]))

    with tf.control_dependencies([v, "values", tf.no_op(name="n"), slices]):
        x = tf.no_op()

    assert control_inputs(x) == ["v", "values", "n"]
    with pytest.raises(TypeError, match="Can not convert a int into a Tensor or Operation"):
        tf.control_dependencies([3]).__enter__()


def test_colocation_takes_the_device_and_ignores_outer_ones():
    with tf.device("/job:ps/task:0"):
        a = tf.constant(1, name="a")

    with tf.device("/job:worker"), tf.colocate_with(a):
        b = tf.constant(1, name="b")
        with tf.device("/gpu:0"):
            c = tf.constant(1, name="c")
    with tf.colocate_with(b):
        d = tf.constant(1, name="d")

    assert b.device == "/job:ps/task:0"
    assert c.device == "/job:ps/task:0"
    assert [t.op.colocation_groups() for t in (a, b, d)] == [[b"loc:@a"]] * 3
    with pytest.raises(ValueError, match="ignore_existing is not True"):
        tf.colocate_with(None).__enter__()


def test_an_operation_with_a_reference_input_is_colocated_with_it():
    with tf.device("/job:ps/task:0"):
        v = tf.Variable(1.0, name="v", use_resource=False)

    with tf.device("/job:worker"):
        op = state_ops.assign_add(v, 1.0).op

    assert op.device == "/job:ps/task:0"
    assert op.colocation_groups() == [b"loc:@v"]


def test_stateful_operations_take_the_container():
    graph = tf.get_default_graph()
    with graph.container("experiment"):
        v = tf.Variable(1.0, use_resource=False)
    w = tf.Variable(1.0, use_resource=False)

    assert v.op.get_attr("container") == b"experiment"
    assert w.op.get_attr("container") == b""


def test_gradient_overrides_and_scoped_attributes_reach_the_operations():
    graph = tf.get_default_graph()
    with (
        graph.gradient_override_map({"Identity": "Doubled"}),
        graph._attr_scope({"_note": tf.AttrValue(s=b"here")}),
    ):
        inside = tf.identity(tf.constant(1)).op
    outside = tf.identity(tf.constant(1)).op

    assert inside.get_attr("_gradient_op_type") == b"Doubled"
    assert inside.get_attr("_note") == b"here"
    assert set(outside.node_def.attr) == {"T"}
    with pytest.raises(TypeError, match="strings to strings"):
        graph.gradient_override_map({"Identity": 1}).__enter__()


def test_scopes_end_with_an_exception():
    graph = tf.get_default_graph()
    with pytest.raises(KeyError), tf.device("/cpu:0"), tf.name_scope("s"), tf.control_dependencies([tf.no_op()]):
        raise KeyError("x")

    tensor = tf.constant(1, name="a")
    assert (tensor.name, tensor.device, control_inputs(tensor)) == ("a:0", "", [])
    assert graph.get_name_scope() == ""


def test_a_graph_may_have_scopes_for_each_thread(graph):
    made = []

    def elsewhere():
        with graph.as_default():
            made.append(tf.constant(1, name="a"))

    with tf.device("/cpu:0"):
        graph.switch_to_thread_local()
        with tf.device("/job:ps"), tf.name_scope("s"), tf.control_dependencies([tf.no_op()]):
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
            made.append(tf.constant(2, name="a"))

    assert [one.op.name for one in made] == ["a", "s/a"]
    assert [one.device for one in made] == ["/device:CPU:0", "/job:ps/device:CPU:0"]
    assert [len(one.op.control_inputs) for one in made] == [0, 1]
