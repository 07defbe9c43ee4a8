"""Defun: functions of the graph's library, their calls, gradients and variables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import tenfold as tf
from tenfold.compat.python import function

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def test_a_call_is_one_operation_of_the_functions_name(graph: tf.Graph) -> None:
    @function.Defun(tf.float32, tf.float32, func_name="Both", out_names=["sum", "difference"])
    def both(x: Any, y: Any) -> Any:
        return x + y, x - y

    total, difference = both(3.0, 1.0, name="call")

    assert total.op.type == "Both"
    assert total.op.name == "call"
    assert [each.name for each in both.definition.signature.output_arg] == ["sum", "difference"]
    with tf.Session() as session:
        assert session.run([total, difference]) == [4.0, 2.0]


def test_types_come_of_the_arguments_without_given_ones() -> None:
    @function.Defun()
    def double(x: Any) -> Any:
        return x + x

    with tf.Session() as session:
        assert session.run([double(2), double(1.5)]) == [4, 3.0]


def test_the_gradient_is_the_bodys_or_the_given_function() -> None:
    @function.Defun(tf.float32)
    def cube(x: Any) -> Any:
        return x * x * x

    @function.Defun(tf.float32, tf.float32)
    def five(x: Any, grad: Any) -> Any:
        return 5.0 * grad

    @function.Defun(tf.float32, grad_func=five)
    def with_function(x: Any) -> Any:
        return x * x

    @function.Defun(tf.float32, python_grad_func=lambda op, grad: 7.0 * grad * op.inputs[0])
    def with_python(x: Any) -> Any:
        return x * x

    x = tf.constant(2.0)
    with tf.Session() as session:
        found = [tf.gradients(f(x), x)[0] for f in (cube, with_function, with_python)]
        assert session.run(found) == [12.0, 5.0, 14.0]


def test_shapes_are_those_of_shape_func() -> None:
    @function.Defun(tf.float32, shape_func=lambda op: [op.inputs[0].get_shape()])
    def same(x: Any) -> Any:
        return tf.identity(x)

    assert same(tf.zeros([2, 3])).get_shape().as_list() == [2, 3]


def test_variables_are_made_outside_and_tensors_captured() -> None:
    outside = tf.constant(10.0)

    @function.Defun(tf.float32)
    def affine(x: Any) -> Any:
        return x * tf.get_variable("w", initializer=3.0) + outside

    with tf.variable_scope("model"):
        y = affine(2.0)

    assert [variable.op.name for variable in tf.trainable_variables()] == ["model/w"]
    grad = tf.gradients(y, tf.trainable_variables())[0]
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        assert session.run([y, grad]) == [16.0, 2.0]


def test_a_function_without_results_runs_for_its_effect() -> None:
    count = tf.get_variable("count", initializer=0, use_resource=True)

    @function.Defun()
    def add_one() -> None:
        count.assign_add(1)

    call = add_one()
    with tf.Session() as session:
        session.run(count.initializer)
        session.run(call)
        assert session.run(count) == 1


def test_a_graph_with_calls_is_imported(graph: tf.Graph) -> None:
    @function.Defun(tf.float32)
    def double(x: Any) -> Any:
        return x + x

    double(tf.placeholder(tf.float32, name="x"), name="y")
    definition = graph.as_graph_def()
    with tf.Graph().as_default(), tf.Session() as session:
        y, x = tf.import_graph_def(definition, return_elements=["y:0", "x:0"])
        grad = tf.gradients(y, x)[0]
        assert session.run([y, grad], {x: 4.0}) == [8.0, 2.0]


def test_what_is_no_function_or_call_is_refused() -> None:
    with pytest.raises(ValueError, match="argument defaults"):
        function.Defun(tf.float32)(lambda x=1: x)
    with pytest.raises(ValueError, match="fewer arguments"):
        function.Defun(tf.float32)(lambda: None)
    one = function.Defun(tf.float32, func_name="one")(lambda x: x)
    with pytest.raises(ValueError, match="Expected number of arguments: 1, received: 2"):
        one(1.0, 2.0)
    with pytest.raises(ValueError, match="was passed int32"):
        one(1)
    with pytest.raises(ValueError, match="can not return None"):
        function.Defun(tf.float32)(lambda x: [x, None])(1.0)
    with pytest.raises(ValueError, match="Unknown keyword arguments"):
        one(1.0, inlined=True)


def test_constants_of_a_function_run_in_the_frame_of_its_call() -> None:
    @function.Defun(tf.float32)
    def thrice_squared(x: Any) -> Any:
        return tf.square(x) * 3.0

    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(2.0)
        unknown = [tf.TensorShape(None)] * 2
        _, result = tf.while_loop(lambda i, _: i < 2, lambda i, v: [i + 1, thrice_squared(v)], [0, x], unknown)

        assert session.run([result, tf.gradients(result, x)[0]]) == [432.0, 864.0]
