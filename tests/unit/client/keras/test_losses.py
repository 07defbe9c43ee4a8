"""Cross-entropies of tf.keras.losses: against NumPy, with TensorFlow 1.15's clipping; weights, reductions, refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf

if TYPE_CHECKING:
    from collections.abc import Iterator

EPSILON = 1e-7
LABELS = np.array([[1.0, 0.0, 1.0], [0.0, 0.5, 0.0]], np.float32)
GUESSES = np.array([[0.9, 0.2, 0.0], [0.3, 0.5, 1.0]], np.float32)
LOGITS = np.array([[2.0, -1.0, 0.5], [-3.0, 0.0, 1.0]], np.float32)


@pytest.fixture(autouse=True)
def graph() -> Iterator[tf.Graph]:
    with tf.Graph().as_default() as graph:
        yield graph


def value(tensor: Any) -> Any:
    with tf.Session() as session:
        return session.run(tensor)


def binary(labels: Any, guesses: Any) -> Any:
    # in float32, where 1 - 1e-7 is rounded
    p, tiny = np.clip(np.asarray(guesses, np.float32), EPSILON, 1 - EPSILON), np.float32(EPSILON)
    return -np.mean(labels * np.log(p + tiny) + (1 - labels) * np.log(1 - p + tiny), axis=-1)


def categorical(labels: Any, guesses: Any) -> Any:
    p = guesses / np.sum(np.asarray(guesses, np.float64), axis=-1, keepdims=True)
    return -np.sum(labels * np.log(np.clip(p, EPSILON, 1 - EPSILON)), axis=-1)


def sigmoid(logits: Any) -> Any:
    return 1 / (1 + np.exp(-np.asarray(logits, np.float64)))


def test_binary_cross_entropy_is_the_mean_of_the_last_dimension() -> None:
    losses = tf.keras.losses
    np.testing.assert_allclose(value(losses.binary_crossentropy(LABELS, GUESSES)), binary(LABELS, GUESSES), rtol=1e-5)
    found = value(losses.BinaryCrossentropy()(LABELS, GUESSES))
    np.testing.assert_allclose(found, np.mean(binary(LABELS, GUESSES)), rtol=1e-5)
    smooth = LABELS * 0.8 + 0.1
    found = value(losses.BinaryCrossentropy(label_smoothing=0.2)(LABELS, GUESSES))
    np.testing.assert_allclose(found, np.mean(binary(smooth, GUESSES)), rtol=1e-5)


def test_labels_may_be_integers_and_shapes_unknown() -> None:
    labels, guesses = tf.placeholder(tf.int32), tf.placeholder(tf.float32)
    loss = tf.keras.losses.BinaryCrossentropy()(labels, tf.squeeze(guesses))
    with tf.Session() as session:
        found = session.run(loss, {labels: [1, 0], guesses: [[0.9], [0.4]]})
    np.testing.assert_allclose(found, binary(np.array([1, 0]), [0.9, 0.4]), rtol=1e-5)


def test_categorical_cross_entropy_divides_by_the_sum() -> None:
    labels, guesses = np.array([[0, 1, 0], [0, 0, 1]]), np.array([[1.0, 2.0, 1.0], [0.5, 0.5, 0.0]], np.float32)
    losses = tf.keras.losses
    expected = categorical(labels, guesses)
    np.testing.assert_allclose(value(losses.categorical_crossentropy(labels, guesses)), expected, rtol=1e-5)
    np.testing.assert_allclose(value(losses.CategoricalCrossentropy()(labels, guesses)), np.mean(expected), rtol=1e-5)
    smooth = labels * 0.7 + 0.1
    found = value(losses.CategoricalCrossentropy(label_smoothing=0.3)(labels, guesses))
    np.testing.assert_allclose(found, np.mean(categorical(smooth, guesses)), rtol=1e-5)


def test_of_a_sigmoid_and_a_softmax_the_logits_are_used() -> None:
    losses, far = tf.keras.losses, np.array([[200.0, -200.0]], np.float32)
    for guesses, logits in ((tf.sigmoid(far), False), (far, True)):
        wrong = value(losses.BinaryCrossentropy(from_logits=logits)([[0.0, 1.0]], guesses))
        assert wrong == pytest.approx(200)
    for guesses, logits in ((tf.nn.softmax(far), False), (far, True)):
        wrong = value(losses.CategoricalCrossentropy(from_logits=logits)([[0.0, 1.0]], guesses))
        assert wrong == pytest.approx(400)
    found = value(losses.BinaryCrossentropy(from_logits=True)(LABELS, LOGITS))
    np.testing.assert_allclose(found, np.mean(binary(LABELS, sigmoid(LOGITS))), rtol=1e-5)


def test_weights_and_reductions() -> None:
    losses, each = tf.keras.losses, binary(LABELS, GUESSES)
    for reduction, expected in (("none", each), ("sum", np.sum(each)), ("sum_over_batch_size", np.mean(each))):
        found = value(losses.BinaryCrossentropy(reduction=reduction)(LABELS, GUESSES))
        np.testing.assert_allclose(found, expected, rtol=1e-5)
    weighed = value(losses.BinaryCrossentropy()(LABELS, GUESSES, sample_weight=[1.0, 3.0]))
    np.testing.assert_allclose(weighed, (each[0] + 3 * each[1]) / 2, rtol=1e-5)
    with pytest.raises(ValueError, match="Invalid Reduction Key mean; there are auto, none"):
        losses.BinaryCrossentropy(reduction="mean")


def test_nothing_is_added_to_the_losses_of_the_graph() -> None:
    tf.keras.losses.BinaryCrossentropy()(LABELS, GUESSES)
    assert tf.losses.get_losses() == []


def test_a_loss_of_a_program() -> None:
    class Absolute(tf.keras.losses.Loss):  # type: ignore[name-defined, misc]
        def call(self, y_true: Any, y_pred: Any) -> Any:
            return tf.abs(y_true - y_pred)

    assert value(Absolute()(tf.constant([1.0, 2.0]), tf.constant([2.0, 4.0]))) == 1.5
    with pytest.raises(NotImplementedError, match="Loss does not say"):
        tf.keras.losses.Loss()(LABELS, GUESSES)


def test_losses_that_are_not_there_say_what_to_use() -> None:
    with pytest.raises(AttributeError, match=r"tf\.keras\.losses\.Huber is not part of Tenfold: use tf\.losses"):
        tf.keras.losses.Huber  # noqa: B018
