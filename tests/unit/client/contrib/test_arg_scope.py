"""tf.contrib.framework.arg_scope, the layers that take part in it, and names that stand for one operation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

framework = tf.contrib.framework
layers = tf.contrib.layers
arg_scope = framework.arg_scope


@framework.add_arg_scope
def first(a: Any, b: Any = 1, c: Any = 2) -> tuple[Any, ...]:
    return a, b, c


@framework.add_arg_scope
def second(a: Any, b: Any = 3) -> tuple[Any, ...]:
    return a, b


@pytest.fixture(autouse=True)
def graph() -> Iterator[None]:
    with tf.Graph().as_default():
        yield


def test_arguments_of_a_scope_are_defaults() -> None:
    with arg_scope([first, second], b=10):
        with arg_scope([first], c=20):
            assert first(0) == (0, 10, 20)
            assert first(0, b=5) == (0, 5, 20)
            assert second(0) == (0, 10)
        assert first(0) == (0, 10, 2)
    assert first(0) == (0, 1, 2)


def test_a_scope_may_be_used_again() -> None:
    with arg_scope([first], b=10) as scope:
        pass
    with arg_scope([first], c=7), arg_scope(scope):
        assert first(0) == (0, 10, 2)
        assert framework.current_arg_scope() == scope


def test_an_error_ends_the_scope() -> None:
    with pytest.raises(KeyError), arg_scope([first], b=10):
        raise KeyError
    assert framework.current_arg_scope() == {}


def test_what_is_refused() -> None:
    with pytest.raises(ValueError, match="is not decorated with @add_arg_scope"), arg_scope([len], b=1):
        pass
    with pytest.raises(ValueError, match="kwargs must be empty"), arg_scope({}, b=1):
        pass
    with pytest.raises(TypeError, match="list/tuple or reused scope"), arg_scope(first, b=1):
        pass


def test_which_arguments_take_part() -> None:
    assert framework.has_arg_scope(first)
    assert not framework.has_arg_scope(len)
    assert framework.arg_scoped_arguments(first) == ("b", "c")


def test_layers_take_part() -> None:
    images = tf.zeros([2, 8, 8, 3])
    with arg_scope([layers.conv2d, layers.fully_connected], activation_fn=None):
        with arg_scope([layers.conv2d], padding="VALID"), arg_scope([layers.max_pool2d], stride=4):
            net = layers.max_pool2d(layers.conv2d(images, 4, 3), 2)
            other = layers.avg_pool2d(images, 2)
        dense = layers.fully_connected(layers.flatten(net), 5)
    assert net.shape.as_list() == [2, 2, 2, 4]
    assert other.shape.as_list() == [2, 4, 4, 3]
    assert dense.op.type == "BiasAdd"


def test_edit_distance() -> None:
    truth = tf.SparseTensorValue([[0, 0], [0, 1], [1, 0]], ["a", "b", "c"], [2, 2])
    guess = tf.SparseTensorValue([[0, 0], [1, 0]], ["a", "d"], [2, 1])
    with tf.Session() as session:
        assert session.run(tf.edit_distance(guess, truth)).tolist() == [0.5, 1]
    with pytest.raises(TypeError, match="Truth must be a SparseTensor"):
        tf.edit_distance(guess, [1])


def test_the_depthwise_operation_and_its_gradients() -> None:
    x, w = tf.ones([1, 3, 3, 2]), tf.ones([2, 2, 2, 1])
    arguments = {"strides": [1, 1, 1, 1], "padding": "VALID"}
    y = tf.nn.depthwise_conv2d_native(x, w, **arguments)
    by_x = tf.nn.depthwise_conv2d_backprop_input([1, 3, 3, 2], w, tf.ones_like(y), **arguments)
    by_w = tf.nn.depthwise_conv2d_native_backprop_filter(x, [2, 2, 2, 1], tf.ones_like(y), **arguments)
    with tf.Session() as session:
        values, of_x, of_w = session.run([y, by_x, by_w])
    assert np.all(values == 4)
    assert of_x[0, :, :, 0].tolist() == [[1, 2, 1], [2, 4, 2], [1, 2, 1]]
    assert np.all(of_w == 4)


def test_names_that_other_namespaces_have_too() -> None:
    assert tf.io.decode_png is tf.image.decode_png
    assert tf.initializers.orthogonal is tf.orthogonal_initializer
    assert tf.debugging.assert_all_finite is tf.verify_tensor_all_finite
    assert framework.sort is tf.sort
