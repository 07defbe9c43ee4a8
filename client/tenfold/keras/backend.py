"""`tf.keras.backend`: questions about tensors, and Keras's constants."""

from __future__ import annotations

from typing import Any

from tenfold.graph.sparse_tensor import SparseTensor

__all__ = ["epsilon", "floatx", "image_data_format", "is_sparse"]


def is_sparse(tensor: Any) -> bool:
    """Whether it is a SparseTensor."""
    return isinstance(tensor, SparseTensor)


def epsilon() -> float:
    """1e-7, what is added where a zero would do harm."""
    return 1e-7


def floatx() -> str:
    """The name of the usual type, "float32"."""
    return "float32"


def image_data_format() -> str:
    """Where channels are: "channels_last"."""
    return "channels_last"
