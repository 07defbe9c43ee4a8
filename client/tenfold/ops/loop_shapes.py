"""How the shapes of loop variables may change from one iteration to the next: tf.while_loop's `shape_invariants`.

Pure checks, used by control_flow_while.py and while_context.py. Follows TensorFlow 1.15's control_flow_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.graph.tensor import Tensor


def is_at_least_as_specific(shape: TensorShape, limit: TensorShape) -> bool:
    """Whether every value of `shape` fits the invariant `limit`."""
    if limit.ndims is None:
        return True
    if shape.ndims != limit.ndims:
        return False
    pairs = zip(shape.as_list(), limit.as_list(), strict=True)
    return all(allowed is None or size == allowed for size, allowed in pairs)


def set_invariants(values: Sequence[Tensor], entered: Sequence[Tensor], shapes: Sequence[TensorShape]) -> None:
    """Gives the Enters of loop variables the shapes that they have in every iteration. Raises ValueError."""
    if not all(isinstance(shape, TensorShape) for shape in shapes):
        raise ValueError("`shapes` must be a (possibly nested) list of shapes.")
    for value, tensor, shape in zip(values, entered, shapes, strict=True):
        if not is_at_least_as_specific(value.shape, shape):
            raise ValueError(
                f"The shape invariant specified for {value.name} is not compatible with the initial shape of the loop "
                f"variable. It enters the loop with shape {value.shape}, but the specified shape invariant is {shape}."
            )
        tensor.set_shape(shape)


def invariants_of(value: Any, shape: Any = None) -> list[Any]:
    """The shapes of the tensors of one loop variable, for which the user gave `shape` or, with None, nothing.

    That of a sparse tensor is its dense shape's own: [R] for R dimensions. Raises TypeError and ValueError.
    """
    if not nest.is_composite(value):
        return [value.shape if shape is None else shape]
    if shape is not None and not isinstance(shape, TensorShape):
        raise TypeError(f"Expected shape to be a TensorShape, got {shape!r}")
    if isinstance(value, SparseTensor):
        # Indices, values, dense shape: an iteration may have more elements than the one before, not more dimensions.
        shape = value.dense_shape.shape if shape is None else shape
        if shape.ndims not in (None, 1):
            raise ValueError("Expected a shape with 1 dimension")
        rank = shape[0] if shape.ndims == 1 else None
        return [TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])]
    if shape is None:
        return [tensor.shape for tensor in nest.flatten(value, expand_composites=True)]
    # N slices of rows of the shape [None, *shape[1:]]; the dense shape has one number a dimension.
    rows = TensorShape([None]).concatenate(shape[1:]) if shape.ndims is not None else shape
    parts = [rows, TensorShape([None])]
    return parts if value.dense_shape is None else [*parts, TensorShape([shape.ndims])]
