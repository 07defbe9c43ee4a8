"""Hyperparameters of optimizers as tensors of the type of what they are applied to."""

from __future__ import annotations

from typing import Any

from tenfold.graph.op_builder import apply_op


def as_dtype_of(parameter: Any, target: Any) -> Any:
    """The scalar tensor `parameter` in the element type of `target` (a variable or tensor)."""
    dtype = target.dtype.base_dtype
    return parameter if parameter.dtype.base_dtype == dtype else apply_op("Cast", x=parameter, DstT=dtype)
