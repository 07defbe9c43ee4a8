"""Flips and rotations whose number only the step knows, and images of which nothing is known before it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tenfold as tf

IMAGE = np.arange(24).reshape(2, 4, 3)


@pytest.mark.parametrize("batch", [False, True])
def test_a_number_of_turns_that_is_fed(batch: bool) -> None:
    image: Any = np.stack([IMAGE, IMAGE + 100]) if batch else IMAGE
    with tf.Graph().as_default(), tf.Session() as sess:
        k = tf.placeholder(tf.int32, [])
        turned = tf.image.rot90(image, k)
        for number in range(-1, 6):
            expected = np.rot90(image, number, axes=(1, 2) if batch else (0, 1))
            np.testing.assert_array_equal(sess.run(turned, {k: number}), expected)
            np.testing.assert_array_equal(sess.run(tf.image.rot90(image, number)), expected)


def test_an_image_of_unknown_rank_is_one_image() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        x = tf.placeholder(tf.int32)
        flipped = tf.image.flip_left_right(x)
        assert flipped.shape.as_list() == [None] * 3
        np.testing.assert_array_equal(sess.run(flipped, {x: IMAGE}), IMAGE[:, ::-1])
        with pytest.raises(tf.errors.InvalidArgumentError, match="at least three-dimensional"):
            sess.run(flipped, {x: IMAGE[0]})


@pytest.mark.parametrize("function", ["flip_up_down", "random_flip_left_right", "transpose_image", "rot90"])
def test_what_is_no_image_is_refused(function: str) -> None:
    with tf.Graph().as_default():
        for shape, says in (
            ([2, 3], "at least three-dimensional"),
            ([2, 0, 3], "all dims of 'image.shape' must be > 0"),
            ([1, 1, 2, 2, 3], "either 3 or 4 dimensions"),
        ):
            with pytest.raises(ValueError, match=says):
                getattr(tf.image, function)(tf.placeholder(tf.float32, shape))
