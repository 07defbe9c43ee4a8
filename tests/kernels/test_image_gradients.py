"""Gradients of the image ops against finite differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold.gradients.checker import directional_error
from tenfold.graph.op_builder import apply_op

RNG = np.random.default_rng(29)


def images(*shape: int) -> Any:
    return RNG.uniform(0.1, 1, shape).astype(np.float32)


@pytest.mark.parametrize("op", ["ResizeBilinear", "ResizeBicubic", "ResizeNearestNeighbor"])
@pytest.mark.parametrize("flags", [{}, {"align_corners": True}, {"half_pixel_centers": True}])
def test_resizing(op: str, flags: dict[str, bool]) -> None:
    def build(x: Any) -> Any:
        return apply_op(op, images=x, size=[7, 3], **flags)

    assert directional_error(build, [images(2, 4, 5, 2)]) < 2e-2


@pytest.mark.parametrize("kernel", ["lanczos3", "triangle"])
def test_scaling_and_moving(kernel: str) -> None:
    def build(x: Any) -> Any:
        return apply_op(
            "ScaleAndTranslate", images=x, size=[3, 9], scale=[0.7, 1.6], translation=[0.2, -0.1], kernel_type=kernel
        )

    assert directional_error(build, [images(2, 4, 5, 2)]) < 2e-2


@pytest.mark.parametrize("method", ["bilinear", "nearest"])
def test_crops(method: str) -> None:
    boxes = np.float32([[0.1, 0.2, 0.7, 0.9], [0.9, 0.1, 0.3, 0.6]])

    def build(x: Any) -> Any:
        return apply_op("CropAndResize", image=x, boxes=boxes, box_ind=[1, 0], crop_size=[3, 4], method=method)

    assert directional_error(build, [images(2, 5, 6, 2)]) < 2e-2


def test_hue_saturation_and_value() -> None:
    # no two colours of a pixel near each other, where the derivative jumps
    pixels = np.array([RNG.permutation([0.2, 0.5, 0.9]) for _ in range(24)]) + RNG.uniform(-0.05, 0.05, (24, 3))

    assert directional_error(lambda x: apply_op("RGBToHSV", images=x), [pixels.reshape(2, 3, 4, 3)]) < 1e-5
