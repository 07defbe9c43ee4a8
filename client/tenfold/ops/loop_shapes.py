"""How the shapes of loop variables may change from one iteration to the next: tf.while_loop's `shape_invariants`.

Pure checks, used by control_flow_while.py and while_context.py. Follows TensorFlow 1.15's control_flow_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.graph.indexed_slices import IndexedSlices
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


def invariants_of(value: Any, shape: Any) -> list[Any]:
    """The shapes of the tensors of one loop variable for which the user gave `shape`."""
    if not nest.is_composite(value):
        return [shape]
    if not isinstance(shape, TensorShape):
        raise TypeError(f"Expected shape to be a TensorShape, got {shape!r}")
    if isinstance(value, IndexedSlices):
        # N slices of rows of the shape [None, *shape[1:]]; the dense shape has one number a dimension.
        rows = TensorShape([None]).concatenate(shape[1:]) if shape.ndims is not None else shape
        parts = [rows, TensorShape([None])]
        return parts if value.dense_shape is None else [*parts, TensorShape([shape.ndims])]
    # A sparse tensor of the dense shape `shape`: indices, values, dense shape.
    return [TensorShape([None, shape.ndims]), TensorShape([None]), TensorShape([shape.ndims])]
