"""`decode_image` of each format by what the file holds, and what JPEG does to an image."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import tenfold as tf


def file_of(image: Any, kind: str) -> bytes:
    """Written by Pillow, which is not what reads it."""
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(image).save(file, kind, **({"quality": 95, "subsampling": 0} if kind == "JPEG" else {}))
    return file.getvalue()


PICTURE = np.kron(np.uint8([[[10, 200, 30], [90, 90, 250]]]), np.ones((16, 16, 1), np.uint8))


def test_each_format_is_found() -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        contents = tf.placeholder(tf.string)
        image, first = tf.image.decode_image(contents), tf.image.decode_image(contents, expand_animations=False)
        wide = tf.image.decode_image(contents, dtype=tf.float32)
        for kind, slack in (("PNG", 0), ("BMP", 0), ("GIF", 3), ("JPEG", 8)):
            feed = {contents: file_of(PICTURE, kind)}
            found = sess.run(image, feed)
            assert found.shape == ((1, 16, 32, 3) if kind == "GIF" else (16, 32, 3)), kind
            assert np.abs(found.reshape(16, 32, 3).astype(int) - PICTURE).max() <= slack, kind
            assert sess.run(first, feed).shape == (16, 32, 3), kind
            np.testing.assert_allclose(sess.run(wide, feed), found / np.float32(255), rtol=1e-4)
        with pytest.raises(tf.errors.InvalidArgumentError, match="Unable to decode bytes as JPEG, PNG, GIF, or BMP"):
            sess.run(image, {contents: b"nothing of the kind"})


@pytest.mark.parametrize(
    ("channels", "kind", "says"),
    [(4, "JPEG", "Channels must be in"), (1, "GIF", "Channels must be in"), (1, "BMP", "Channels must be in")],
)
def test_channels_that_a_format_has_not(channels: int, kind: str, says: str) -> None:
    with tf.Graph().as_default(), tf.Session() as sess:
        image = tf.image.decode_image(file_of(PICTURE, kind), channels)
        with pytest.raises(tf.errors.InvalidArgumentError, match=says):
            sess.run(image)


def test_a_number_of_channels_that_no_format_has() -> None:
    with tf.Graph().as_default(), pytest.raises(ValueError, match="channels must be in"):
        tf.image.decode_image(b"", 2)


def test_a_poor_quality_blurs() -> None:
    chance = np.random.default_rng(0).integers(0, 255, (16, 16, 3), np.uint8)
    with tf.Graph().as_default(), tf.Session() as sess:
        quality = tf.placeholder(tf.int32, [])
        image = tf.image.adjust_jpeg_quality(chance, quality)
        errors = [np.abs(sess.run(image, {quality: q}).astype(int) - chance).mean() for q in (95, 5)]
        assert errors[0] < errors[1]
        assert sess.run(tf.image.random_jpeg_quality(chance, 10, 90)).shape == (16, 16, 3)
        with pytest.raises(ValueError, match="must be less than"):
            tf.image.random_jpeg_quality(chance, 90, 10)
