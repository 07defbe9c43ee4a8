"""Activations of tf.layers by their names: each against NumPy, in each kind of layer; a name that is none."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.layers.activations import activation_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

X = np.linspace(-3, 3, 7).astype(np.float32)[None]
SCALE, ALPHA = 1.0507009873554805, 1.6732632423543772


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        session.run(tf.global_variables_initializer())
        return session.run(tensor)


EXPECTED: dict[str, Callable[[Any], Any]] = {
    "elu": lambda x: np.where(x > 0, x, np.exp(x) - 1),
    "exponential": np.exp,
    "hard_sigmoid": lambda x: np.clip(0.2 * x + 0.5, 0, 1),
    "linear": lambda x: x,
    "relu": lambda x: np.maximum(x, 0),
    "selu": lambda x: SCALE * np.where(x > 0, x, ALPHA * (np.exp(x) - 1)),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(-1, keepdims=True),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "softsign": lambda x: x / (1 + np.abs(x)),
    "tanh": np.tanh,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_an_activation_by_its_name(name: str) -> None:
    found = tf.layers.dense(tf.constant(X), 7, name, kernel_initializer=tf.constant_initializer(np.eye(7)))
    np.testing.assert_allclose(value(found), EXPECTED[name](X), rtol=1e-5, atol=1e-6)


def test_convolutions_take_names_too() -> None:
    picture = tf.constant(X.reshape(1, 7, 1, 1))
    assert tf.layers.conv2d(picture, 1, 1, activation="relu").op.type == "Relu"
    assert tf.layers.conv2d_transpose(picture, 1, 1, activation="tanh").op.type == "Tanh"
    assert tf.layers.separable_conv2d(picture, 1, 1, activation="softmax").op.type == "Softmax"


def test_names_that_are_none() -> None:
    assert activation_of(None) is None
    assert activation_of(tf.nn.relu) is tf.nn.relu
    with pytest.raises(ValueError, match="Unknown activation function: odd; there are elu, exponential"):
        tf.layers.Dense(3, activation="odd")
