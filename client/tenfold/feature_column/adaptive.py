"""Adaptive embeddings: ids that an example's mask says are frequent have rows of their own, the others share rows.

DeepRec's categorical_column_with_adaptive_embedding. An embedding column of one has two tables: a variable of
`hash_bucket_size` rows, by a hash of the id, and an embedding variable by the id itself, where a row begins as the
shared one is at that moment. `input_layer` takes the masks, by the columns' keys. Used by embedding.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.feature_column.base import check_key, check_string_or_int
from tenfold.feature_column.categorical import EmbeddingCategoricalColumn, HashedCategoricalColumn
from tenfold.graph.conversion import convert_to_tensor
from tenfold.ops import array, math, slicing
from tenfold.ops.embedding import embedding_lookup
from tenfold.ops.embedding_options import EmbeddingVariableOption
from tenfold.ops.embedding_variables import get_embedding_variable
from tenfold.ops.partitioned_variables import fixed_size_partitioner
from tenfold.ops.sparse_math import sparse_segment_mean, sparse_segment_sqrt_n, sparse_segment_sum
from tenfold.ops.variable_scope import get_variable
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold.feature_column.base import Features
    from tenfold.graph.sparse_tensor import SparseTensor
    from tenfold.graph.tensor import Tensor

_COMBINED = {
    "sum": sparse_segment_sum,
    "mean": sparse_segment_mean,
    "sqrtn": sparse_segment_sqrt_n,
}


@dataclass(frozen=True)
class AdaptiveCategoricalColumn(HashedCategoricalColumn):
    """See categorical_column_with_adaptive_embedding. Where there is one table, as in linear_model, it is that by the
    hash."""

    partition_num: int | None
    ev_option: EmbeddingVariableOption

    def raw_ids(self, features: Features) -> SparseTensor:
        """The ids of the embedding variable, in the same places."""
        found: SparseTensor = features.get(
            EmbeddingCategoricalColumn(self.key, self.dtype, self.partition_num, self.ev_option)
        )
        return found


def categorical_column_with_adaptive_embedding(
    key: str,
    hash_bucket_size: int,
    dtype: Any = dtypes.string,
    partition_num: int | None = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> AdaptiveCategoricalColumn:
    """Ids for an `embedding_column` with shared rows for rare ids and rows of their own for frequent ones.

    `input_layer(…, adaptive_mask_tensors={key: mask})` says by an int32 mask [batch] which examples have frequent ids:
    1 takes rows of an embedding variable, in `partition_num` parts, 0 those of a variable with `hash_bucket_size` rows.
    A row of the embedding variable begins as the shared row of its id. In DeepRec's spelling. Raises ValueError for a
    bad argument.
    """
    dtype = dtypes.as_dtype(dtype)
    if hash_bucket_size is None or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    if partition_num is not None and partition_num < 1:
        raise ValueError(f"partition_num must be at least 1. partition_num: {partition_num}, key: {key}")
    check_key(key)
    check_string_or_int(dtype, f"column_name: {key}")
    option = EmbeddingVariableOption() if ev_option is None else ev_option
    return AdaptiveCategoricalColumn(key, hash_bucket_size, dtype, partition_num, option)


def adaptive_embedding(
    column: AdaptiveCategoricalColumn,
    features: Features,
    dimension: int,
    combiner: str,
    initializer: Any,
    max_norm: float | None,
    trainable: bool,
    collections: Sequence[str],
) -> Tensor:
    """The embedded column, [batch, dimension]; zeros for an example without ids. Makes the two tables.

    Raises ValueError without a mask for the column, or with one of another shape.
    """
    mask = features.mask(column.key)
    shared: Any = get_variable(
        "embedding_weights",
        shape=(column.hash_bucket_size, dimension),
        dtype=dtypes.float32,
        initializer=initializer,
        trainable=trainable,
        collections=list(collections),
    )
    own: Any = get_embedding_variable(
        "embedding_weights_of_ids",
        dimension,
        value_dtype=dtypes.float32,
        initializer=initializer,
        trainable=trainable,
        collections=list(collections),
        partitioner=fixed_size_partitioner(column.partition_num) if column.partition_num else None,
        ev_option=column.ev_option,
    )
    buckets, ids = features.get(column), column.raw_ids(features)
    example = buckets.indices[:, 0]
    part_of = slicing.gather(mask, example)
    places = slicing.dynamic_partition(math.range(array.size(example)), part_of, 2)
    rare, frequent = slicing.dynamic_partition(buckets.values, part_of, 2)
    rare_rows = embedding_lookup(shared, rare, "div", max_norm=max_norm)
    first = array.stop_gradient(embedding_lookup(shared, frequent, "div"))
    wanted = slicing.dynamic_partition(ids.values, part_of, 2)[1]
    rows = embedding_lookup(own, wanted, max_norm=max_norm, ev_init_value=first)
    every = slicing.dynamic_stitch(places, [rare_rows, rows])
    order = math.range(array.size(example))
    count = math.cast(buckets.dense_shape[0], dtypes.int32)
    found: Tensor = _COMBINED[combiner](every, order, math.cast(example, dtypes.int32), num_segments=count)
    found.set_shape([None, dimension])
    return found


def as_masks(masks: Any) -> dict[str, Tensor]:
    """The masks by key, int32 vectors. Raises ValueError for one that is no vector."""
    found = {}
    for key, mask in (masks or {}).items():
        tensor = math.cast(convert_to_tensor(mask), dtypes.int32)
        if not tensor.shape.is_compatible_with(TensorShape([None])):
            raise ValueError(f"adaptive_mask_tensors[{key!r}] must be a vector with an entry for each example")
        found[key] = tensor
    return found
