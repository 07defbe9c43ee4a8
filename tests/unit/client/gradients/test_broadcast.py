"""Which axes a gradient is summed over, by static shapes alone, and when they do not tell."""

from __future__ import annotations

from typing import Any

import pytest

import tenfold as tf
from tenfold.gradients.broadcast import broadcast_axes

#: x, y → the axes along which each was repeated; None where only a step knows.
SHAPES: list[tuple[Any, Any, tuple[list[int], list[int]] | None]] = [
    ([2, 3], [2, 3], ([], [])),
    ([2, 3], [3], ([], [0])),
    ([3], [2, 3], ([0], [])),
    ([2, 3], [], ([], [0, 1])),
    ([1, 3], [2, 1], ([0], [1])),
    ([3], [1, 3], ([0], [])),
    ([1, 1], [1, 1], ([], [])),
    ([4, 1, 2], [3, 1], ([1], [0, 2])),
    ([2, 0], [1, 1], ([], [0, 1])),
    ([None, 3], [3], ([], [0])),
    ([3], [None, None, 3], ([0, 1], [])),
    ([None, 3], [None, 3], None),
    ([None, 3], [2, 3], None),
    ([None, 3], [1, 3], None),
    ([2], [None, 3, None], None),
    (None, [3], None),
    ([3], None, None),
]


@pytest.mark.parametrize(("x", "y", "axes"), SHAPES)
def test_axes(x: Any, y: Any, axes: Any) -> None:
    assert broadcast_axes(tf.TensorShape(x), tf.TensorShape(y)) == axes
