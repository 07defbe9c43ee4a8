"""Gradients of loops and branches for outputs that no y depends on, with static shapes and without."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error

if TYPE_CHECKING:
    from collections.abc import Callable

X = np.array([[0.5, -1.2, 0.8, 1.1], [0.3, 0.9, -0.7, 1.4]])


def turns(body: Callable[[Any, Any], Any], start: Any, count: int = 3) -> Any:
    return tf.while_loop(
        lambda i, a: i < count, lambda i, a: (i + 1, body(i, a)), (0, start), (tf.TensorShape([]), start.shape)
    )[1]


def half(x: Any) -> Any:
    return tf.split(x, 2, axis=1)[0]


def one_output_of_two(x: Any) -> Any:
    return turns(lambda i, a: a * half(tf.sin(x)), half(x))


def one_branch_reads(x: Any) -> Any:
    return turns(lambda i, a: tf.cond(i < 2, lambda: a * x, lambda: a + 1.0), x)


def the_other_branch_reads(x: Any) -> Any:
    return turns(lambda i, a: tf.cond(i < 1, lambda: tf.identity(a), lambda: a * tf.sin(x)), x)


def an_inner_exit_is_unused(x: Any) -> Any:
    def inner(i: Any, a: Any) -> Any:
        return tf.while_loop(
            lambda j, b, c: j < 2,
            lambda j, b, c: (j + 1, b + c, c * x),
            (0, a, x),
            (tf.TensorShape([]), a.shape, x.shape),
        )[1]

    return turns(inner, x, 2)


def nothing_flows_after_the_first_turn(x: Any) -> Any:
    return turns(lambda i, a: tf.ones_like(a), x) + x


def a_branch_outside(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) > 0, lambda: x * x, lambda: tf.ones_like(tf.stop_gradient(x)))


def the_other_branch_outside(x: Any) -> Any:
    return tf.cond(tf.reduce_sum(x) < 0, lambda: tf.ones_like(tf.stop_gradient(x)), lambda: x * x)


@pytest.mark.parametrize("static_shapes", [True, False], ids=["static", "dynamic"])
@pytest.mark.parametrize(
    "build",
    [
        one_output_of_two,
        one_branch_reads,
        the_other_branch_reads,
        an_inner_exit_is_unused,
        nothing_flows_after_the_first_turn,
        a_branch_outside,
        the_other_branch_outside,
    ],
)
def test_gradient(build: Callable[[Any], Any], static_shapes: bool) -> None:
    assert directional_error(build, [X], static_shapes=static_shapes) < 1e-6


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
@pytest.mark.parametrize("taken", [True, False])
def test_a_variable_of_one_branch(taken: bool, resource: bool) -> None:
    """The gradient of the branch that is not taken is zero, of the variable's shape."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([1.0, 2.0], use_resource=resource)
        p = tf.placeholder(tf.bool, [])
        y = tf.cond(p, lambda: variable * 3.0, lambda: tf.constant([1.0, 1.0]))
        (gradient,) = tf.gradients(y, variable)
        session.run(variable.initializer)

        assert session.run(gradient, {p: taken}).tolist() == ([3, 3] if taken else [0, 0])


@pytest.mark.parametrize("taken", [True, False])
def test_a_variable_that_is_fed_to_one_branch(taken: bool) -> None:
    """Nothing says of which type it is: its zeros are float."""
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([1.0, 2.0], use_resource=True)
        p, fed = tf.placeholder(tf.bool, []), tf.placeholder(tf.resource, [])
        read = {"resource": fed, "dtype": tf.float32}
        y = tf.cond(p, lambda: tf.raw_ops.ReadVariableOp(**read) * 3.0, lambda: tf.constant([1.0, 1.0]))
        (gradient,) = tf.gradients(y, fed)
        session.run(variable.initializer)

        feeds = {p: taken, fed: session.run(variable.handle)}
        assert session.run(gradient, feeds).tolist() == ([3, 3] if taken else [0, 0])


@pytest.mark.parametrize("resource", [True, False], ids=["resource", "reference"])
def test_a_variable_of_one_branch_of_some_turns(resource: bool) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        variable = tf.Variable([1.0, 2.0], use_resource=resource)
        y = turns(lambda i, a: tf.cond(i < 2, lambda: a + variable, lambda: tf.identity(a)), tf.zeros([2]), 5)
        (gradient,) = tf.gradients(y, variable)
        session.run(variable.initializer)

        assert session.run(gradient).tolist() == [2, 2]
