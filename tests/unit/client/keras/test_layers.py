"""The layers of tf.keras that are there: what they compute, the names of their variables, and what they refuse."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

X = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


def normalized(axes: Any) -> Any:
    mean, variance = X.mean(axes, keepdims=True), X.var(axes, keepdims=True)
    return (X - mean) / np.sqrt(variance + 0.001)


@pytest.mark.parametrize(("axis", "axes"), [(-1, (2,)), (2, (2,)), (1, (1,)), ([1, 2], (1, 2)), ([-1, -2], (1, 2))])
def test_each_example_is_normalized(axis: Any, axes: Any) -> None:
    layer = tf.keras.layers.LayerNormalization(axis=axis)
    outputs = layer(tf.constant(X))
    assert outputs.shape.as_list() == [2, 3, 4]
    np.testing.assert_allclose(value(outputs), normalized(axes), atol=1e-5)


def test_gamma_and_beta_are_learned() -> None:
    layer = tf.keras.layers.LayerNormalization(gamma_initializer=tf.constant_initializer(2.0), beta_initializer="ones")
    outputs = layer(tf.placeholder_with_default(X, [None, 3, 4]))
    assert [variable.op.name for variable in layer.trainable_variables] == [
        "layer_normalization/gamma",
        "layer_normalization/beta",
    ]
    assert layer.gamma.shape.as_list() == [4]
    np.testing.assert_allclose(value(outputs), normalized((2,)) * 2 + 1, atol=1e-5)
    assert all(gradient is not None for gradient in tf.gradients(outputs, layer.trainable_variables))
    plain = tf.keras.layers.LayerNormalization(center=False, scale=False)
    plain(tf.constant(X))
    assert (plain.weights, plain.gamma, plain.beta) == ([], None, None)


def test_names_are_keras_and_variables_in_one_part() -> None:
    with tf.variable_scope("tower", partitioner=tf.fixed_size_partitioner(2), reuse=tf.AUTO_REUSE):
        for name in ("one", "two"):
            with tf.variable_scope(name):
                tf.keras.layers.LayerNormalization(scale=False)(tf.constant(X))
    assert [variable.op.name for variable in tf.trainable_variables()] == [
        "tower/one/layer_normalization/beta",
        "tower/two/layer_normalization_1/beta",
    ]


@pytest.mark.parametrize(
    ("axis", "shape", "message"),
    [
        (3, [2, 3, 4], "Invalid axis: 3; the inputs have 3 dimensions"),
        (-4, [2, 3, 4], "Invalid axis: -1"),
        ([2, -1], [2, 3, 4], r"Duplicate axis: \(2, 2\)"),
        (1, [2, None], "The size of axis 1 must be known"),
    ],
)
def test_axes_that_are_not_there(axis: Any, shape: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        tf.keras.layers.LayerNormalization(axis=axis)(tf.placeholder(tf.float32, shape))
    with pytest.raises(ValueError, match="Unknown initializer: odd; by name there are Constant, Ones"):
        tf.keras.layers.LayerNormalization(gamma_initializer="odd")


def test_a_function_as_a_layer() -> None:
    layer = tf.keras.layers.Lambda(lambda x, by: tf.add_n(x) * by, arguments={"by": 3.0}, name="sum")
    total = layer([tf.constant([1.0]), tf.constant([2.0])])
    assert value(total).tolist() == [9]
    assert total.op.name.startswith("sum/")
    training = tf.keras.layers.Lambda(lambda x, training: x if training else -x)
    assert value(training(tf.constant(2.0), training=True)) == 2
    assert value(training(tf.constant(2.0))) == -2


def test_shapes_of_a_function() -> None:
    Lambda = tf.keras.layers.Lambda
    assert Lambda(tf.identity, output_shape=[5]).compute_output_shape([2, 3]).as_list() == [2, 5]
    assert Lambda(tf.identity, output_shape=lambda s: [*s[:1], 7]).compute_output_shape([2, 3]).as_list() == [2, 7]
    with pytest.raises(NotImplementedError, match="give it output_shape"):
        Lambda(tf.identity).compute_output_shape([2, 3])
    with pytest.raises(ValueError, match="there are no masks here"):
        Lambda(tf.identity, mask=True)


def test_layers_that_are_not_there_say_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"tf\.keras\.layers\.LSTM is not part of Tenfold: use tf\.layers"):
        tf.keras.layers.LSTM  # noqa: B018
