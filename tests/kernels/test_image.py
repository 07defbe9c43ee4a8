"""Resizing of images that hold inf and nan, or nothing."""

from __future__ import annotations

import colorsys
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_kernels.cpu import image


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_mean_is_of_what_it_covers_only(ops: Any, wrong: float) -> None:
    picture = np.float32([[wrong, 2, 3, 4], [5, 6, 7, 8]]).reshape(1, 2, 4, 1)

    halves = ops.run("ResizeArea", [picture, np.int32([2, 2])])
    thirds = ops.run("ResizeArea", [picture, np.int32([2, 3])])

    np.testing.assert_array_equal(halves.reshape(2, 2), [[wrong, 3.5], [5.5, 7.5]])
    np.testing.assert_allclose(thirds.reshape(2, 3), [[wrong, 2.5, 3.75], [5.25, 6.5, 7.75]])


def test_inf_in_both_directions_has_no_mean(ops: Any) -> None:
    picture = np.float32([np.inf, -np.inf, 1, 3]).reshape(1, 1, 4, 1)

    np.testing.assert_array_equal(ops.run("ResizeArea", [picture, np.int32([1, 2])]).reshape(-1), [np.nan, 2])


def test_an_image_without_channels_has_no_mean(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="image must have at least one channel"):
        ops.run("ResizeArea", [np.zeros((1, 2, 2, 0), np.float32), np.int32([1, 1])])


def test_images_without_channels_take_no_time(ops: Any) -> None:
    """A shape may say that there are any number of them."""
    images = np.zeros((1 << 33, 2, 2, 0), np.float32)

    with pytest.raises(errors.InvalidArgumentError, match="at least one channel"):
        ops.run("ResizeBicubic", [images, np.int32([3, 4])])


# ---- colours ---------------------------------------------------------------------------------------------------------


PIXELS = np.array(
    [[0.2, 0.5, 0.9], [0.9, 0.2, 0.5], [0.5, 0.9, 0.2], [0.9, 0.5, 0.2], [0.2, 0.9, 0.5], [0.5, 0.2, 0.9],
     [0.3, 0.3, 0.3], [0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 1, 0], [0, 0, 1], [0.7, 0.7, 0.1], [0.1, 0.7, 0.7]]
)  # fmt: skip


@pytest.mark.parametrize(("kind", "slack"), [(np.float16, 2e-3), (np.float32, 1e-6), (np.float64, 1e-12)])
def test_colour_spaces_are_those_of_colorsys(ops: Any, kind: Any, slack: float) -> None:
    pixels = PIXELS.astype(kind)
    hsv = ops.run("RGBToHSV", [pixels.reshape(2, 7, 3)])
    assert (hsv.shape, hsv.dtype) == ((2, 7, 3), kind)
    expected = [colorsys.rgb_to_hsv(*pixel) for pixel in pixels.astype(np.float64).tolist()]
    np.testing.assert_allclose(hsv.reshape(-1, 3), expected, atol=slack)
    rgb = ops.run("HSVToRGB", [hsv])
    assert (rgb.shape, rgb.dtype) == ((2, 7, 3), kind)
    np.testing.assert_allclose(rgb.reshape(-1, 3), pixels.astype(np.float64), atol=3 * slack)
    assert ops.run("RGBToHSV", [pixels[0]]).shape == (3,)


def in_pieces(monkeypatch: pytest.MonkeyPatch, of: Any) -> list[tuple[int, int]]:
    """Has the work of a module done in two pieces; what it is said to be, and the least that pays."""
    asked: list[tuple[int, int]] = []

    def pieces(work: Any, total: int, least: int) -> None:
        asked.append((total, least))
        work(0, total // 3)
        work(total // 3, total)

    monkeypatch.setattr(of, "in_parts", pieces)
    return asked


@pytest.mark.parametrize("amount", [0.0, 0.3, -0.4, 1.0, 1.7])
def test_hue_and_saturation_are_moved(ops: Any, amount: float, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = in_pieces(monkeypatch, image)
    images = PIXELS.astype(np.float32).reshape(1, 2, 7, 3)
    for op, change in (
        ("AdjustHue", lambda h, s, v: ((h + amount) % 1, s, v)),
        ("AdjustSaturation", lambda h, s, v: (h, min(max(s * amount, 0), 1), v)),
    ):
        for kind, slack in ((np.float32, 2e-6), (np.float16, 3e-3)):
            found = ops.run(op, [images.astype(kind), np.float32(amount)])
            assert (found.shape, found.dtype) == (images.shape, kind)
            expected = [colorsys.hsv_to_rgb(*change(*colorsys.rgb_to_hsv(*pixel))) for pixel in PIXELS.tolist()]
            np.testing.assert_allclose(found.reshape(-1, 3), expected, atol=slack)
    assert asked == [(14, image._SHARE)] * 4
    assert ops.run("AdjustHue", [images[:0], np.float32(0.5)]).shape == (0, 2, 7, 3)


@pytest.mark.parametrize("kind", [np.float16, np.float32])
def test_contrast_is_of_each_channel_of_each_image(ops: Any, kind: Any) -> None:
    images = np.random.default_rng(1).uniform(0, 1, (2, 3, 4, 2)).astype(kind)
    mean = images.astype(np.float64).mean(axis=(1, 2), keepdims=True)
    wide = (images - mean) * 1.5 + mean
    found = ops.run("AdjustContrastv2", [images, np.float32(1.5)])
    assert found.dtype == kind
    np.testing.assert_allclose(found, wide, atol=2e-3 if kind is np.float16 else 1e-6)
    one = ops.run("AdjustContrastv2", [images[0], np.float32(1.5)])
    assert one.tolist() == found[0].tolist()
    for shape in ((0, 3, 4, 2), (2, 0, 4, 2), (2, 3, 4, 0)):
        assert ops.run("AdjustContrastv2", [np.zeros(shape, kind), np.float32(2)]).shape == shape


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.float32])
def test_contrast_within_bounds(ops: Any, kind: Any) -> None:
    images = np.array([0, 10, 20, 90], kind).reshape(1, 2, 2, 1)
    found = ops.run("AdjustContrast", [images, np.float32(2), np.float32(-5), np.float32(50)])
    assert (found.dtype, found.ravel().tolist()) == (np.float32, [-5, -5, 10, 50])


NARROW = np.zeros((2, 3), np.float32)
GREY = np.zeros((2, 2, 1), np.float32)
THREE = np.zeros((2, 2, 3), np.float32)


@pytest.mark.parametrize(
    ("op", "inputs", "text"),
    [
        ("AdjustContrastv2", [NARROW, 1], r"^input must be at least 3-D, got shape\[2,3\]$"),
        ("AdjustContrastv2", [THREE, [1]], r"^contrast_factor must be scalar: \[1\]$"),
        ("AdjustContrast", [NARROW, 1, 0, 1], r"^input must be at least 3-D, got shape\[2,3\]$"),
        ("AdjustContrast", [THREE, [1], 0, 1], r"^contrast_factor must be scalar: \[1\]$"),
        ("AdjustContrast", [THREE, 1, [0], 1], r"^min_value must be scalar: \[1\]$"),
        ("AdjustContrast", [THREE, 1, 0, [1, 2]], r"^max_value must be scalar: \[2\]$"),
        ("AdjustHue", [NARROW, 1], r"^input must be at least 3-D, got shape\[2,3\]$"),
        ("AdjustHue", [THREE, [1]], r"^delta must be scalar: \[1\]$"),
        ("AdjustHue", [GREY, 1], r"^input must have 3 channels but instead has 1 channels\.$"),
        ("AdjustSaturation", [THREE, [1]], r"^scale must be scalar: \[1\]$"),
        ("AdjustSaturation", [np.zeros((2, 2, 4), np.float32), 1], r"^input must have 3 channels but instead has 4 "),
        ("RGBToHSV", [np.float32(1)], r"^input must have 3 channels but instead has 0 channels\.$"),
        ("HSVToRGB", [GREY], r"^input must have 3 channels but instead has 1 channels\.$"),
    ],
)
def test_images_and_amounts_that_cannot_be(ops: Any, op: str, inputs: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, [inputs[0], *(np.array(value, np.float32) for value in inputs[1:])])
