"""Private functions of TensorFlow's array_ops that programs call."""

from __future__ import annotations

from typing import Any

from tenfold.ops import array
from tenfold_core import dtypes


def shape_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = dtypes.int32) -> Any:
    """`tf.shape`; a shape that is known when the graph is built is a constant either way."""
    return array.shape(input, name, out_type)


def size_internal(input: Any, name: str | None = None, optimize: bool = True, out_type: Any = dtypes.int32) -> Any:
    """`tf.size`."""
    return array.size(input, name, out_type)


def rank_internal(input: Any, name: str | None = None, optimize: bool = True) -> Any:
    """`tf.rank`."""
    return array.rank(input, name)
