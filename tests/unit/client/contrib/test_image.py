"""tf.contrib.image: quarter turns and shifts against NumPy, and gradients through a transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

image = tf.contrib.image

PICTURE = np.arange(12, dtype=np.float32).reshape(3, 4)


def value_of(tensor: Any) -> Any:
    with tf.Session() as sess:
        return sess.run(tensor)


@pytest.mark.parametrize("interpolation", ["NEAREST", "BILINEAR"])
def test_a_shift_brings_zeros_in(interpolation: str) -> None:
    with tf.Graph().as_default():
        moved = value_of(image.translate(PICTURE, [1.0, 0.0], interpolation))

    np.testing.assert_array_equal(moved[:, 1:], PICTURE[:, :-1])
    np.testing.assert_array_equal(moved[:, 0], 0)


def test_a_quarter_turn_is_counterclockwise() -> None:
    square = np.arange(9, dtype=np.uint8).reshape(1, 3, 3, 1)
    with tf.Graph().as_default():
        turned = value_of(image.rotate(square, np.pi / 2))

    np.testing.assert_array_equal(turned[0, ..., 0], np.rot90(square[0, ..., 0]))
    assert turned.dtype == np.uint8


def test_half_a_pixel_is_the_mean_of_two_and_has_gradients() -> None:
    with tf.Graph().as_default():
        given = tf.constant(PICTURE)
        moved = image.translate(given, [0.5, 0.0], "BILINEAR")
        (gradient,) = tf.gradients(moved[:, 1:], [given])
        moved_value, gradient_value = value_of([moved, gradient])

    np.testing.assert_allclose(moved_value[:, 1:], (PICTURE[:, 1:] + PICTURE[:, :-1]) / 2)
    np.testing.assert_allclose(gradient_value[0], [0.5, 1.0, 1.0, 0.5])


def test_transforms_compose() -> None:
    with tf.Graph().as_default():
        moves = image.translations_to_projective_transforms([[1.0, 0.0]])
        twice = image.compose_transforms(moves, moves)
        np.testing.assert_allclose(value_of(twice), [[1, 0, -2, 0, 1, 0, 0, 0]])
        assert image.transform(PICTURE, twice, output_shape=[2, 2]).shape.as_list() == [2, 2]


def test_mistakes_are_named() -> None:
    with tf.Graph().as_default():
        with pytest.raises(TypeError, match="rank between 2 and 4"):
            image.transform(tf.ones([3]), [1, 0, 0, 0, 1, 0, 0, 0])
        with pytest.raises(ValueError, match="NEAREST or BILINEAR"):
            image.transform(PICTURE, [1, 0, 0, 0, 1, 0, 0, 0], interpolation="CUBIC")
        with pytest.raises(AttributeError, match=r"scipy\.ndimage\.label"):
            _ = image.connected_components


def test_colors_turn_in_yiq() -> None:
    """Against the matrix by which the definition turns one pixel."""
    picture = np.random.RandomState(0).rand(2, 3, 4, 3).astype(np.float32)
    to_yiq = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]])
    turned = np.array([[2, 0, 0], [0, np.cos(0.3), -np.sin(0.3)], [0, np.sin(0.3), np.cos(0.3)]])
    turned[1:] *= 2 * 1.5
    with tf.Graph().as_default(), tf.Session() as session:
        found = session.run(image.adjust_hsv_in_yiq(picture, 0.3, 1.5, 2.0))
        same = session.run(image.random_hsv_in_yiq((picture * 255).astype(np.uint8)))

    np.testing.assert_allclose(found, picture @ (np.linalg.inv(to_yiq) @ turned @ to_yiq).T, rtol=1e-3, atol=1e-3)
    assert np.abs(same.astype(int) - (picture * 255).astype(np.uint8)).max() <= 1
    with pytest.raises(ValueError, match="last of size 3"):
        image.adjust_hsv_in_yiq(np.zeros([2, 2, 4], np.float32))
    with pytest.raises(ValueError, match="lower_value must be < upper_value"):
        image.random_hsv_in_yiq(picture, lower_value=2)
