"""Private names of `tensorflow.python.feature_column`, for models that make their own input layer of columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.feature_column.base import Features as _LazyBuilder
from tenfold.feature_column.base import to_sparse as _to_sparse_input_and_drop_ignore_values
from tenfold.feature_column.sequence import sequence_lengths

if TYPE_CHECKING:
    from tenfold.graph.sparse_tensor import SparseTensor
    from tenfold.graph.tensor import Tensor

__all__ = ["_LazyBuilder", "_to_sparse_input_and_drop_ignore_values", "sequence_length_from_sparse_tensor"]


def sequence_length_from_sparse_tensor(sp_tensor: SparseTensor, num_elements: int = 1) -> Tensor:
    """The number of steps of each row of a sparse matrix, int64 [rows]; a step has so many elements."""
    return sequence_lengths(sp_tensor, num_elements)
