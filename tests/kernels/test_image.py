"""Resizing of images that hold inf and nan, or nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
def test_a_mean_is_of_what_it_covers_only(ops: Any, wrong: float) -> None:
    image = np.float32([[wrong, 2, 3, 4], [5, 6, 7, 8]]).reshape(1, 2, 4, 1)

    halves = ops.run("ResizeArea", [image, np.int32([2, 2])])
    thirds = ops.run("ResizeArea", [image, np.int32([2, 3])])

    np.testing.assert_array_equal(halves.reshape(2, 2), [[wrong, 3.5], [5.5, 7.5]])
    np.testing.assert_allclose(thirds.reshape(2, 3), [[wrong, 2.5, 3.75], [5.25, 6.5, 7.75]])


def test_inf_in_both_directions_has_no_mean(ops: Any) -> None:
    image = np.float32([np.inf, -np.inf, 1, 3]).reshape(1, 1, 4, 1)

    np.testing.assert_array_equal(ops.run("ResizeArea", [image, np.int32([1, 2])]).reshape(-1), [np.nan, 2])


def test_an_image_without_channels_has_no_mean(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="image must have at least one channel"):
        ops.run("ResizeArea", [np.zeros((1, 2, 2, 0), np.float32), np.int32([1, 1])])


def test_images_without_channels_take_no_time(ops: Any) -> None:
    """A shape may say that there are any number of them."""
    images = np.zeros((1 << 33, 2, 2, 0), np.float32)

    with pytest.raises(errors.InvalidArgumentError, match="at least one channel"):
        ops.run("ResizeBicubic", [images, np.int32([3, 4])])
