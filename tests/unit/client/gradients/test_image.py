"""Gradients of image ops: sizes that only the step knows, whole numbers, and colours that are alike."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import tenfold as tf
from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(61)
RESIZES = ("ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor")


def images(*shape: int) -> Any:
    return RNG.uniform(0.1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("flags", [{}, {"align_corners": True}, {"half_pixel_centers": True}], ids=str)
@pytest.mark.parametrize("op", RESIZES)
def test_images_of_unknown_size(op: str, flags: dict[str, bool]) -> None:
    def build(x: Any) -> Any:
        return apply_op(op, images=x, size=[7, 3], **flags)

    # linear in the image: a large step is exact
    assert directional_error(build, [images(2, 4, 5, 2)], static_shapes=False, step=0.5) < 1e-5


def test_the_size_of_a_known_image_is_a_constant() -> None:
    for shape, kind in (([2, 4, 5, 1], "Const"), ([2, None, 5, 1], "StridedSlice"), ([None, 4, 5, None], "Const")):
        with tf.Graph().as_default() as graph:
            x = tf.placeholder(tf.float32, shape)
            tf.gradients(apply_op("ResizeNearestNeighbor", images=x, size=[7, 3]), x)
            (back,) = [op for op in graph.get_operations() if op.type == "ResizeNearestNeighborGrad"]
            assert back.inputs[1].op.type == kind


def test_whole_numbers_have_no_slope() -> None:
    with tf.Graph().as_default():
        pixels = tf.placeholder(tf.uint8, [1, 4, 4, 1])
        half = tf.placeholder(tf.float16, [1, 4, 4, 1])
        assert tf.gradients(apply_op("ResizeBicubic", images=half, size=[2, 2]), half) == [None], "as in TensorFlow"
        boxes = tf.placeholder(tf.float32, [1, 4])
        assert tf.gradients(apply_op("ResizeBicubic", images=pixels, size=[2, 2]), pixels) == [None]
        crops = apply_op("CropAndResize", image=pixels, boxes=boxes, box_ind=[0], crop_size=[2, 2])
        of_pixels, of_boxes = tf.gradients(crops, [pixels, boxes])
        assert of_pixels is None
        assert of_boxes.shape.as_list() == [1, 4]


@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_bicubic_images_of_both_widths(kind: Any) -> None:
    def build(x: Any) -> Any:
        return apply_op("ResizeBicubic", images=x, size=[3, 6])

    assert directional_error(build, [images(1, 4, 5, 2).astype(kind)], step=0.5) < 1e-5


BOXES = np.array([[0.13, 0.22, 0.71, 0.93], [0.86, 0.12, 0.31, 0.64]], np.float32)


def test_crops_move_with_image_and_boxes() -> None:
    image = images(2, 5, 6, 2)

    def crop(method: str) -> Any:
        return lambda x, boxes: apply_op(
            "CropAndResize", image=x, boxes=boxes, box_ind=[1, 0], crop_size=[3, 4], method=method
        )

    assert directional_error(crop("bilinear"), [image, BOXES], differentiate=[0], step=0.5) < 1e-5
    assert directional_error(crop("nearest"), [image, BOXES], differentiate=[0], step=0.5) < 1e-5
    assert directional_error(crop("bilinear"), [image, BOXES], differentiate=[1], step=1e-3) < 2e-2


@pytest.mark.parametrize("kernel", ["lanczos5", "gaussian", "box"])
@pytest.mark.parametrize("antialias", [True, False])
def test_scaling_and_moving(kernel: str, antialias: bool) -> None:
    def build(x: Any) -> Any:
        return apply_op(
            "ScaleAndTranslate", images=x, size=[3, 9], scale=[0.7, 1.6], translation=[0.2, -0.1],
            kernel_type=kernel, antialias=antialias,
        )  # fmt: skip

    assert directional_error(build, [images(2, 4, 5, 2)], step=0.5) < 1e-4


def test_what_has_no_gradient_in_tensorflow_has_none() -> None:
    with tf.Graph().as_default():
        x = tf.placeholder(tf.float32, [1, 4, 4, 3])
        assert tf.gradients(apply_op("HSVToRGB", images=x), x) == [None]


#: A pixel of alike colours → what TensorFlow gives for its hue, saturation and value.
ALIKE: list[tuple[list[float], list[list[float]]]] = [
    ([0.5, 0.5, 0.5], [[0, 0, 0], [2, 0, -2], [1, 0, 0]]),
    ([0, 0, 0], [[0, 0, 0], [0, 0, 0], [1, 0, 0]]),
    ([0.8, 0.8, 0.2], [[-5 / 18, 5 / 18, 0], [0.3125, 0, -1.25], [1, 0, 0]]),
    ([0.8, 0.2, 0.8], [[5 / 18, 0, -5 / 18], [0.3125, -1.25, 0], [1, 0, 0]]),
    ([0.2, 0.8, 0.8], [[0, -5 / 18, 5 / 18], [-1.25, 0.3125, 0], [0, 1, 0]]),
    ([0.2, 0.2, 0.8], [[5 / 18, -5 / 18, 0], [0, -1.25, 0.3125], [0, 0, 1]]),
    ([0.2, 0.8, 0.2], [[-5 / 18, 0, 5 / 18], [0, 0.3125, -1.25], [0, 1, 0]]),
    ([0.8, 0.2, 0.2], [[0, 5 / 18, -5 / 18], [0.3125, 0, -1.25], [1, 0, 0]]),
    ([0, 0.4, 0], [[-5 / 12, 0, 5 / 12], [0, 0, 0], [0, 1, 0]]),
    ([0.4, 0, 0.4], [[5 / 12, 0, -5 / 12], [0, 0, 0], [1, 0, 0]]),
]


def test_colours_that_are_alike() -> None:
    pixels = np.array([pixel for pixel, _ in ALIKE])[None]
    with tf.Graph().as_default(), tf.Session() as session:
        x = tf.constant(pixels)
        y = apply_op("RGBToHSV", images=x)
        found = session.run([tf.gradients(y[..., part], x)[0] for part in range(3)])

    for number, (pixel, expected) in enumerate(ALIKE):
        for part in range(3):
            np.testing.assert_allclose(found[part][0, number], expected[part], atol=1e-12, err_msg=f"{pixel} {part}")


def test_colours_of_any_order() -> None:
    """One part at a time, of pixels each of which has another order."""
    orders = np.array(list(itertools.permutations([0.9, 0.5, 0.2])))
    for part in range(3):
        error = directional_error(lambda x, part=part: apply_op("RGBToHSV", images=x)[..., part], [orders])
        assert error < 1e-6, part
