"""Old columns of ids that nobody counts: any integers, or strings by a hash, with their weights in embedding variables.

Used through `tf.contrib.layers`. Follows DeepRec's `contrib/layers/python/layers/feature_column.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tenfold.contrib.feature_columns.sparse import _SparseColumn, _WeightedSparseColumn
from tenfold.graph.collections import GraphKeys
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import math, string
from tenfold.ops.embedding_options import EmbeddingVariableOption
from tenfold.ops.embedding_variables import get_embedding_variable
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Strings are hashed to so many ids.
_MOST_BUCKETS = (1 << 63) - 1


@dataclass(frozen=True)
class _SparseColumnEmbedding(_SparseColumn):
    """See sparse_column_with_embedding."""

    partition_num: int | None = None
    steps_to_live: int | None = None
    ev_option: EmbeddingVariableOption = field(default_factory=EmbeddingVariableOption)

    def __post_init__(self) -> None:
        if self.dtype != dtypes.string and not self.dtype.is_integer:
            raise ValueError(f"dtype must be string or integer. dtype: {self.dtype}, column_name: {self.column_name}")

    @property
    def is_counted(self) -> bool:
        return False

    @property
    def length(self) -> int:
        raise ValueError(
            f"The ids of the column {self.column_name} are any 64-bit numbers: use it in embedding_column or in a "
            "weighted sum, not where ids are counted, as in one_hot_column"
        )

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        if self.dtype == dtypes.string:
            ids = string.string_to_hash_bucket_fast(tensor.values, _MOST_BUCKETS, name="lookup")
        else:
            ids = math.cast(tensor.values, dtypes.int64)
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)

    def is_compatible(self, other: Any) -> bool:
        """Whether the two may share an embedding."""
        return isinstance(other, _SparseColumnEmbedding) and self.dtype.is_integer == other.dtype.is_integer

    def variable(
        self, name: str, width: int, initializer: Any, trainable: bool, collections: Sequence[str] | None
    ) -> Any:
        """The embedding variable `name` with a row of `width` elements for each id."""
        return get_embedding_variable(
            name,
            width,
            value_dtype=dtypes.float32,
            initializer=initializer,
            trainable=trainable,
            collections=list({*(collections or ()), GraphKeys.MODEL_VARIABLES, GraphKeys.GLOBAL_VARIABLES}),
            partitioner=fixed_size_partitioner(self.partition_num) if self.partition_num else None,
            ev_option=self.ev_option,
            steps_to_live=self.steps_to_live,
        )


def raw_ids_of(column: Any) -> _SparseColumnEmbedding | None:
    """The column whose ids an embedding variable keeps, with weights or without; None for counted ids."""
    inner = column.sparse_id_column if isinstance(column, _WeightedSparseColumn) else column
    return inner if isinstance(inner, _SparseColumnEmbedding) else None


def sparse_column_with_embedding(
    column_name: str,
    dtype: Any = dtypes.string,
    partition_num: int | None = None,
    steps_to_live: int | None = None,
    init_data_source: Any = None,
    ht_partition_num: int = 1000,
    ev_option: EmbeddingVariableOption | None = None,
    combiner: str = "sum",
) -> _SparseColumnEmbedding:
    """Ids of any size, or strings by a hash of 63 bits; what is made of them keeps its weights in an embedding variable
    of `partition_num` parts. Raises ValueError for other types, NotImplementedError for a data source.
    `ht_partition_num` of DeepRec's hash tables does nothing."""
    if init_data_source is not None:
        raise NotImplementedError("An embedding variable cannot be filled from a data source; restore a checkpoint")
    return _SparseColumnEmbedding(
        column_name,
        combiner=combiner,
        dtype=dtypes.as_dtype(dtype),
        partition_num=partition_num,
        steps_to_live=steps_to_live,
        ev_option=ev_option or EmbeddingVariableOption(),
    )
