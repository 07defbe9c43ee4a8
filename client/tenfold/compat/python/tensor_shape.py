"""Functions of `tensorflow.python.framework.tensor_shape` beside its classes."""

from __future__ import annotations

from typing import Any

from tenfold_core.tensor_shape import Dimension, TensorShape, as_dimension

__all__ = ["as_dimension", "as_shape", "dimension_at_index", "matrix", "scalar", "unknown_shape", "vector"]


def as_shape(shape: Any) -> TensorShape:
    """`shape` as a TensorShape."""
    return shape if isinstance(shape, TensorShape) else TensorShape(shape)


def unknown_shape(ndims: int | None = None, rank: int | None = None) -> TensorShape:
    """A shape of which only the rank may be known."""
    known = ndims if rank is None else rank
    return TensorShape(None if known is None else [None] * known)


def scalar() -> TensorShape:
    return TensorShape([])


def vector(length: Any) -> TensorShape:
    return TensorShape([length])


def matrix(rows: Any, cols: Any) -> TensorShape:
    return TensorShape([rows, cols])


def dimension_at_index(shape: Any, index: int) -> Dimension:
    """The dimension of a shape at that index; an unknown one of a shape of unknown rank."""
    shape = as_shape(shape)
    return Dimension(None) if shape.ndims is None else as_dimension(shape.dims[index])
