"""Columns of ids that have two small tables, by quotient and remainder, instead of a row each.

Used through tf.feature_column; embedding_column makes the dense one. Follows DeepRec's feature_column_v2.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.feature_column.base import DenseColumn, Features
from tenfold.feature_column.categorical import _KeyColumn
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import math
from tenfold.ops.composite_embeddings import check_multihash, get_multihash_variable
from tenfold.ops.embedding import safe_embedding_lookup_sparse
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


@dataclass(frozen=True)
class MultiHashCategoricalColumn(_KeyColumn):
    """See categorical_column_with_multihash."""

    key: str
    dims: tuple[int, ...]
    operation: str
    dtype: DType
    partition_num: int | None

    @property
    def num_buckets(self) -> int:
        raise ValueError(f"The ids of the column {self.key} have rows of two tables: use it in embedding_column only")

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        self._check(tensor)
        return SparseTensor(tensor.indices, math.cast(tensor.values, dtypes.int64), tensor.dense_shape)


@dataclass(frozen=True)
class MultiHashEmbeddingColumn(DenseColumn):
    """An embedding_column of a MultiHashCategoricalColumn."""

    categorical_column: MultiHashCategoricalColumn
    dimension: tuple[int, int]
    combiner: str
    initializer: Callable[..., Any] | None
    max_norm: float | None
    trainable: bool

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_embedding"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.categorical_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        joins = self.categorical_column.operation == "concat"
        return TensorShape([sum(self.dimension) if joins else self.dimension[0]])

    def transform(self, features: Features) -> Any:
        return features.get(self.categorical_column)

    def dense_tensor(self, features: Features, weight_collections: Sequence[str], trainable: bool) -> Tensor:
        column = self.categorical_column
        weights = get_multihash_variable(
            "embedding_weights",
            [[rows, width] for rows, width in zip(column.dims, self.dimension, strict=True)],
            operation=column.operation,
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=self.trainable and trainable,
            collections=list(weight_collections),
            partitioner=fixed_size_partitioner(column.partition_num) if column.partition_num else None,
        )
        ids, id_weights = column.sparse_tensors(features)
        return safe_embedding_lookup_sparse(
            weights, ids, id_weights, combiner=self.combiner, name=f"{self.name}_weights", max_norm=self.max_norm
        )


def categorical_column_with_multihash(
    key: str,
    dims: Sequence[int],
    complementary_strategy: str = "Q-R",
    operation: str = "concat",
    dtype: Any = dtypes.int64,
    partition_num: int | None = None,
) -> MultiHashCategoricalColumn:
    """Integers for an embedding_column with two tables of `dims` rows, see `tf.get_multihash_variable`; its `dimension`
    has two widths. Raises ValueError for other strategies, operations, numbers of tables or types."""
    check_multihash(dims, complementary_strategy, operation)
    found = dtypes.as_dtype(dtype)
    if not found.is_integer:
        raise ValueError(f"dtype must be an integer type. dtype: {found}, column_name: {key}")
    return MultiHashCategoricalColumn(key, tuple(dims), operation, found, partition_num)
