"""Hue, saturation and value of images, changed in the space of YIQ; names of `tf.contrib.image` (image.py).

A pixel's three numbers are multiplied by one matrix: to YIQ, a turn around Y by the hue, back to RGB. Follows
TensorFlow 1.15's contrib/image/python/ops/distort_image_ops.py and its kernel.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, random
from tenfold.ops.image import convert_image_dtype
from tenfold.ops.products import tensordot
from tenfold_core import dtypes

__all__ = ["adjust_hsv_in_yiq", "random_hsv_in_yiq"]

_TO_YIQ = np.array([[0.299, 0.587, 0.114], [0.596, -0.274, -0.322], [0.211, -0.523, 0.312]], np.float32)
_FROM_YIQ = np.linalg.inv(_TO_YIQ.astype(np.float64)).astype(np.float32)


def adjust_hsv_in_yiq(
    image: Any, delta_hue: Any = 0, scale_saturation: Any = 1, scale_value: Any = 1, name: str | None = None
) -> Any:
    """The RGB image or images, hue turned by `delta_hue` in radians, saturation and value multiplied.

    Raises ValueError unless the last dimension is 3.
    """
    with name_scope(name, "adjust_hsv_in_yiq", [image]):
        given = convert_to_tensor(image, name="image")
        shape = given.get_shape()
        if shape.ndims is not None and (shape.ndims < 3 or not shape[-1:].is_compatible_with([3])):
            raise ValueError(f"image must have at least 3 dimensions, the last of size 3, not shape {shape}")
        value = convert_to_tensor(scale_value, dtypes.float32)
        strength = value * convert_to_tensor(scale_saturation, dtypes.float32)
        hue = convert_to_tensor(delta_hue, dtypes.float32)
        u, w = strength * math.cos(hue), strength * math.sin(hue)
        zero = array.zeros([], dtypes.float32)
        turn = array.stack([[value, zero, zero], [zero, u, -w], [zero, w, u]])
        whole = math.matmul(math.matmul(_FROM_YIQ, turn), _TO_YIQ)
        changed = tensordot(convert_image_dtype(given, dtypes.float32), array.transpose(whole), [[-1], [0]])
        changed.set_shape(shape)
        return convert_image_dtype(changed, given.dtype)


def random_hsv_in_yiq(
    image: Any,
    max_delta_hue: float = 0,
    lower_saturation: float = 1,
    upper_saturation: float = 1,
    lower_value: float = 1,
    upper_value: float = 1,
    seed: int | None = None,
) -> Any:
    """`adjust_hsv_in_yiq` by numbers drawn between these bounds. Raises ValueError for invalid bounds."""
    for what, bound in (
        ("max_delta", max_delta_hue),
        ("lower_saturation", lower_saturation),
        ("lower_value", lower_value),
    ):
        if bound < 0:
            raise ValueError(f"{what} must be non-negative.")
    for what, low, high in (
        ("saturation", lower_saturation, upper_saturation),
        ("value", lower_value, upper_value),
    ):
        if low > high:
            raise ValueError(f"lower_{what} must be < upper_{what}.")

    def drawn(low: float, high: float) -> Any:
        return low if low == high else random.random_uniform([], low, high, seed=seed)

    hue = 0 if max_delta_hue == 0 else drawn(-max_delta_hue, max_delta_hue)
    return adjust_hsv_in_yiq(image, hue, drawn(lower_saturation, upper_saturation), drawn(lower_value, upper_value))
