"""`tf.data.experimental.TensorStructure` and its kin: older names of type specifications, with other arguments."""

from __future__ import annotations

from typing import Any

from tenfold.ops.type_specs import SparseTensorSpec, TensorArraySpec, TensorSpec

__all__ = ["SparseTensorStructure", "TensorArrayStructure", "TensorStructure"]


def TensorStructure(dtype: Any, shape: Any) -> TensorSpec:
    """`tf.TensorSpec(shape, dtype)`. Deprecated."""
    return TensorSpec(shape, dtype)


def SparseTensorStructure(dtype: Any, shape: Any) -> SparseTensorSpec:
    """`tf.SparseTensorSpec(shape, dtype)`. Deprecated."""
    return SparseTensorSpec(shape, dtype)


def TensorArrayStructure(dtype: Any, element_shape: Any, dynamic_size: bool, infer_shape: bool) -> TensorArraySpec:
    """`tf.TensorArraySpec(…)`. Deprecated."""
    return TensorArraySpec(element_shape, dtype, dynamic_size, infer_shape)
