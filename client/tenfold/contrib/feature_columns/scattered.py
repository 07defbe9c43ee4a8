"""`scattered_embedding_column`: embeddings of strings without a vocabulary, each number found by a hash of its own.

Beside dense.py, which has the other embeddings; the look-up is contrib/layers/embedding.py's. Follows TensorFlow
1.15's `contrib/layers/python/layers/feature_column.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.contrib.feature_columns.base import WideLookup, inner_flatten
from tenfold.contrib.feature_columns.dense import OldDense
from tenfold.ops.init_ops import truncated_normal_initializer
from tenfold.ops.parsing import VarLenFeature
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.feature_column.base import Features


@dataclass(frozen=True)
class _ScatteredEmbeddingColumn(OldDense):
    """See scattered_embedding_column."""

    column_name: str
    size: int
    dimension: int
    hash_key: int
    combiner: str
    initializer: Any

    _unnamed = ("initializer",)

    @property
    def name(self) -> str:
        return f"{self.column_name}_scattered_embedding"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.column_name: VarLenFeature(dtypes.string)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform(self, features: Features) -> Any:
        return features.get(self.column_name)

    def wide(self, features: Features) -> WideLookup:
        raise ValueError(f"Column {self} is not supported in linear models. Please use sparse_column.")

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        from tenfold.contrib.framework import model_variable
        from tenfold.contrib.layers import scattered_embedding_lookup_sparse

        weights = model_variable(
            "weights",
            shape=[self.size],
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=trainable,
            collections=collections,
        )
        return scattered_embedding_lookup_sparse(
            weights,
            inner_flatten(features.get(self), rank),
            self.dimension,
            hash_key=self.hash_key,
            combiner=self.combiner,
            name="lookup",
        )


def scattered_embedding_column(
    column_name: str, size: int, dimension: int, hash_key: int, combiner: str = "mean", initializer: Any = None
) -> _ScatteredEmbeddingColumn:
    """A vector of `dimension` for each string, of `size` parameters in all. Its first deviation is 0.1.

    Raises ValueError for a dimension or size below 1, an unknown combiner, and an initializer that is not a function.
    """
    if dimension < 1 or size < 1:
        raise ValueError(
            f"Dimension and size must be greater than 0. dimension: {dimension}, size: {size}, "
            f"column_name: {column_name}"
        )
    if combiner not in ("mean", "sqrtn", "sum"):
        raise ValueError(
            f"Combiner must be one of 'mean', 'sqrtn' or 'sum'. combiner: {combiner}, column_name: {column_name}"
        )
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. column_name: {column_name}")
    return _ScatteredEmbeddingColumn(
        column_name, size, dimension, hash_key, combiner, initializer or truncated_normal_initializer(0.0, 0.1)
    )
