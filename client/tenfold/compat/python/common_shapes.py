"""`tensorflow.python.framework.common_shapes`: shape functions. The op definitions infer the shapes."""

from __future__ import annotations

from typing import Any

from tenfold.ops.array import broadcast_static_shape as broadcast_shape

__all__ = ["broadcast_shape", "call_cpp_shape_fn", "scalar_shape", "unchanged_shape", "unknown_shape"]


def call_cpp_shape_fn(op: Any, require_shape_fn: bool = True) -> dict[str, Any]:
    """The static shapes that an operation's outputs have."""
    return {"shapes": [each.get_shape() for each in op.outputs], "handle_data": None}


def unchanged_shape(op: Any) -> list[Any]:
    """The shape of the first input."""
    return [op.inputs[0].get_shape()]


def scalar_shape(op: Any) -> list[Any]:
    """A scalar's."""
    from tenfold_core.tensor_shape import TensorShape

    return [TensorShape([])]


def unknown_shape(op: Any) -> list[Any]:
    """Unknown for every output."""
    from tenfold_core.tensor_shape import TensorShape

    return [TensorShape(None) for _ in op.outputs]
