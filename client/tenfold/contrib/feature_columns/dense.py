"""Old dense columns: numbers, their buckets, one-hot vectors and embeddings of ids.

Used through `tf.contrib.layers`. Follows TensorFlow 1.15's `contrib/layers/python/layers/feature_column.py`.
"""

from __future__ import annotations

import math as numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.contrib.feature_columns.base import OldColumn, WideLookup, inner_flatten
from tenfold.contrib.feature_columns.raw_ids import raw_ids_of
from tenfold.contrib.feature_columns.sparse import OldCategorical, _SparseColumn, _WeightedSparseColumn
from tenfold.feature_column.base import DenseColumn, Features, IdWeightPair
from tenfold.graph import add_to_collection, get_collection
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, slicing
from tenfold.ops.embedding import safe_embedding_lookup_sparse
from tenfold.ops.init_ops import truncated_normal_initializer
from tenfold.ops.parsing import FixedLenFeature
from tenfold.ops.sparse import sparse_merge, sparse_slice, sparse_tensor_to_dense
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable


class OldDense(OldColumn, DenseColumn):
    """An old column that gives numbers."""

    def dense_tensor(self, features: Features, weight_collections: Sequence[str] | None, trainable: bool) -> Any:
        return self.deep(features, weight_collections, trainable, 2)


@dataclass(frozen=True)
class _RealValuedColumn(OldDense):
    """See real_valued_column."""

    column_name: str
    dimension: int
    default_value: tuple[Any, ...] | None
    dtype: Any
    normalizer: Callable[[Any], Any] | None

    _unnamed = ("normalizer",)

    @property
    def normalizer_fn(self) -> Callable[[Any], Any] | None:
        """The same as `normalizer`."""
        return self.normalizer

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        default = None if self.default_value is None else list(self.default_value)
        return {self.column_name: FixedLenFeature([self.dimension], self.dtype, default)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    def transform(self, features: Features) -> Any:
        given = features.get(self.column_name)
        return math.cast(given if self.normalizer is None else self.normalizer(given), dtypes.float32)

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        given = features.get(self)
        known = given.get_shape().ndims
        if known is not None and rank > known + 1:
            raise ValueError(
                f"Error while processing column {self.name}.Rank of input Tensor ({known}) should be the same as "
                f"output_rank ({rank}). For example, sequence data should typically be 3 dimensional (rank 3) while "
                "non-sequence data is typically 2 dimensional (rank 2)."
            )
        if known is not None and rank == known + 1:
            return array.expand_dims(given, -1)
        return inner_flatten(given, rank)


@dataclass(frozen=True)
class _BucketizedColumn(OldCategorical, DenseColumn):
    """See bucketized_column."""

    source_column: _RealValuedColumn
    boundaries: tuple[float, ...]

    combiner = "sum"

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def length(self) -> int:
        return len(self.boundaries) + 1

    @property
    def num_buckets(self) -> int:
        return self.length * self.source_column.dimension

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.num_buckets])

    def transform(self, features: Features) -> Any:
        bounds = [float(each) for each in self.boundaries]
        return tensor_op("Bucketize", input=features.get(self.source_column), boundaries=bounds, name="bucketize")

    def sparse_tensors(self, features: Features) -> IdWeightPair:
        buckets, width = features.get(self), self.source_column.dimension
        batch = array.shape(buckets)[0]
        rows = array.reshape(array.tile(array.expand_dims(math.range(0, batch), 1), [1, width]), [-1])
        columns = array.tile(math.range(0, width), [batch])
        # Each element of the feature has its own range of ids.
        ids = array.reshape(buckets, [-1]) + self.length * columns
        indices = math.cast(array.transpose(array.stack([rows, columns])), dtypes.int64)
        return IdWeightPair(SparseTensor(indices, ids, math.cast(array.stack([batch, width]), dtypes.int64)), None)

    def dense_tensor(self, features: Features, weight_collections: Sequence[str] | None, trainable: bool) -> Any:
        return self.deep(features, weight_collections, trainable, 2)

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        if rank != 2:
            raise ValueError("BucketizedColumn currently only supports output_rank=2")
        places = math.cast(features.get(self), dtypes.int64)
        return array.reshape(slicing.one_hot(places, self.length, 1.0, 0.0), [-1, self.num_buckets], name="reshape")


@dataclass(frozen=True)
class _OneHotColumn(OldDense):
    """See one_hot_column."""

    sparse_id_column: OldCategorical

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_one_hot"

    @property
    def length(self) -> int:
        """The length of the vector."""
        return self.sparse_id_column.length

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.sparse_id_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.length])

    def transform(self, features: Features) -> Any:
        return features.get(self.sparse_id_column)

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        ids, weights = self.sparse_id_column.sparse_tensors(features)
        ids = inner_flatten(ids, rank)
        if weights is None:
            places = sparse_tensor_to_dense(ids, default_value=-1)
            return math.reduce_sum(slicing.one_hot(places, self.length, 1.0, 0.0), axis=[rank - 1])
        merged = sparse_merge(ids, weights, vocab_size=self.length)
        # A merged tensor may have indices beyond its shape, for ids out of the vocabulary.
        merged = sparse_slice(merged, array.zeros_like(merged.dense_shape), merged.dense_shape)
        dense = sparse_tensor_to_dense(merged)
        return array.reshape(dense, array.concat([array.shape(dense)[:-1], [self.length]], axis=0))


@dataclass(frozen=True)
class _EmbeddingColumn(OldDense):
    """See embedding_column."""

    sparse_id_column: OldCategorical
    dimension: int
    combiner: str
    initializer: Any
    ckpt_to_load_from: str | None
    tensor_name_in_ckpt: str | None
    shared_embedding_name: str | None
    shared_vocab_size: int | None
    max_norm: float | None
    trainable: bool

    _unnamed = ("initializer",)

    @property
    def name(self) -> str:
        shared = "" if self.shared_embedding_name is None else "_shared"
        return f"{self.sparse_id_column.name}{shared}_embedding"

    @property
    def length(self) -> int:
        """The number of ids."""
        return self.sparse_id_column.num_buckets if self.shared_vocab_size is None else self.shared_vocab_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.sparse_id_column.parse_example_spec

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape([self.dimension])

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        if self.ckpt_to_load_from is None or self.tensor_name_in_ckpt is None:
            return None
        return self.ckpt_to_load_from, self.tensor_name_in_ckpt

    def transform(self, features: Features) -> Any:
        return features.get(self.sparse_id_column)

    def wide(self, features: Features) -> WideLookup:
        raise ValueError(f"Column {self} is not supported in linear models. Please use sparse_column.")

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        ids, weights = self.sparse_id_column.sparse_tensors(features)
        found = self._weights(collections, trainable)
        if self.checkpoint is not None:
            from tenfold.train.checkpoint_utils import init_from_checkpoint

            init_from_checkpoint(self.checkpoint[0], {self.checkpoint[1]: found})
        return safe_embedding_lookup_sparse(
            found,
            inner_flatten(ids, rank),
            None if weights is None else inner_flatten(weights, rank),
            combiner=self.combiner,
            name=f"{self.name}weights",
            max_norm=self.max_norm,
        )

    def _weights(self, collections: Sequence[str] | None, trainable: bool) -> Any:
        if self.shared_embedding_name is None:
            return self._variable("weights", collections, trainable)
        key = f"SHARED_EMBEDDING_COLLECTION_{self.shared_embedding_name.upper()}"
        there = get_collection(key)
        if not there:
            made = self._variable(self.shared_embedding_name, collections, trainable)
            add_to_collection(key, made)
            return made
        if len(there) > 1:
            raise ValueError(f"Collection {key} can only contain one (partitioned) variable.")
        raw = raw_ids_of(self.sparse_id_column) is not None
        got, wanted = there[0].get_shape(), TensorShape([None if raw else self.length, self.dimension])
        if got[-1:] != wanted[-1:] or (not raw and got != wanted):
            raise ValueError(
                f"The embedding variable with name {self.shared_embedding_name} already exists, but its shape does not "
                "match required embedding shape here. Please make sure to use different shared_embedding_name for "
                "different shared embeddings."
            )
        return there[0]

    def _variable(self, name: str, collections: Sequence[str] | None, trainable: bool) -> Any:
        from tenfold.contrib.framework import model_variable

        raw = raw_ids_of(self.sparse_id_column)
        if raw is not None:
            return raw.variable(name, self.dimension, self.initializer, trainable and self.trainable, collections)
        return model_variable(
            name,
            shape=[self.length, self.dimension],
            dtype=dtypes.float32,
            initializer=self.initializer,
            trainable=trainable and self.trainable,
            collections=collections,
        )


def real_valued_column(
    column_name: str,
    dimension: int = 1,
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer: Callable[[Any], Any] | None = None,
) -> _RealValuedColumn:
    """`dimension` numbers, cast to float32 after `normalizer`. Raises TypeError and ValueError."""
    dtype = dtypes.as_dtype(dtype)
    where = f"column_name: {column_name}"
    if not isinstance(dimension, int):
        raise TypeError(f"dimension must be an integer. dimension: {dimension}, {where}")
    if dimension < 1:
        raise ValueError(f"dimension must be greater than 0. dimension: {dimension}, {where}")
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, {where}")
    given = default_value
    if isinstance(given, (int, float)):
        given = [given] * dimension
    if isinstance(given, list):
        if len(given) != dimension:
            raise ValueError(
                "The length of default_value must be equal to dimension. "
                f"default_value: {default_value}, dimension: {dimension}, {where}"
            )
        kinds = (int, float) if dtype.is_floating else (int,)
        if all(isinstance(each, kinds) for each in given):
            given = tuple(float(each) if dtype.is_floating else each for each in given)
    if given is not None and not isinstance(given, tuple):
        raise TypeError(
            f"default_value must be compatible with dtype. default_value: {default_value}, dtype: {dtype}, {where}"
        )
    return _RealValuedColumn(column_name, dimension, given, dtype, normalizer)


def bucketized_column(source_column: _RealValuedColumn, boundaries: Sequence[float]) -> _BucketizedColumn:
    """The index of a number's bucket; equal boundaries count once. Raises TypeError and ValueError."""
    if not isinstance(source_column, _RealValuedColumn):
        raise TypeError(f"source_column must be an instance of _RealValuedColumn. source_column: {source_column}")
    if not isinstance(boundaries, (list, tuple)) or not boundaries:
        raise ValueError(f"boundaries must be a non-empty list or tuple. boundaries: {boundaries}")
    if list(boundaries) != sorted(boundaries):
        raise ValueError(f"boundaries must be a sorted list. boundaries: {boundaries}")
    return _BucketizedColumn(source_column, tuple(dict.fromkeys(boundaries)))


def one_hot_column(sparse_id_column: OldCategorical) -> _OneHotColumn:
    """The count of each id, or the sum of its weights, as a vector."""
    return _OneHotColumn(sparse_id_column)


def embedding_column(
    sparse_id_column: OldCategorical,
    dimension: int,
    combiner: str = "mean",
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> _EmbeddingColumn:
    """A learned vector for each id. Its first stddev is 1/sqrt(ids), unlike tf.feature_column's; 1/sqrt(dimension)
    where nobody counts the ids. Raises ValueError."""
    return _embedding(
        sparse_id_column, dimension, combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable
    )


def _embedding(
    column: Any,
    dimension: int,
    combiner: str,
    initializer: Any,
    checkpoint: str | None,
    tensor_name: str | None,
    max_norm: float | None,
    trainable: bool,
    shared: tuple[str | None, int | None] = (None, None),
) -> _EmbeddingColumn:
    if initializer is not None and not callable(initializer):
        raise ValueError(f"initializer must be callable if specified. Embedding of column_name: {column.name}")
    if (checkpoint is None) != (tensor_name is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    count = column.num_buckets if raw_ids_of(column) is None else dimension
    make = initializer or truncated_normal_initializer(mean=0.0, stddev=1 / numbers.sqrt(count))
    return _EmbeddingColumn(column, dimension, combiner, make, checkpoint, tensor_name, *shared, max_norm, trainable)


def shared_embedding_columns(
    sparse_id_columns: Any,
    dimension: int,
    combiner: str = "mean",
    shared_embedding_name: str | None = None,
    initializer: Any = None,
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    max_norm: float | None = None,
    trainable: bool = True,
) -> Sequence[_EmbeddingColumn]:
    """Embedding columns with one variable for all. Raises TypeError and ValueError for columns that do not fit."""
    if not isinstance(sparse_id_columns, Sequence) or isinstance(sparse_id_columns, str):
        raise TypeError(
            "sparse_id_columns must be a non-string sequence (ex: list or tuple) instead of type "
            f"{type(sparse_id_columns)}."
        )
    if not sparse_id_columns:
        raise ValueError("The input sparse_id_columns should have at least one element.")
    for column in sparse_id_columns:
        if not isinstance(column, (_SparseColumn, _WeightedSparseColumn)):
            raise TypeError(
                f"Elements of sparse_id_columns must be _SparseColumn or _WeightedSparseColumn, but {column} is not."
            )
    rest = (combiner, initializer, ckpt_to_load_from, tensor_name_in_ckpt, max_norm, trainable)
    first = sparse_id_columns[0]
    if len(sparse_id_columns) == 1:
        return [_embedding(first, dimension, *rest, shared=(shared_embedding_name, None))]
    weighted = isinstance(first, _WeightedSparseColumn)
    if not all(first.is_compatible(c) if weighted else c.is_compatible(first) for c in sparse_id_columns[1:]):
        raise ValueError("The input sparse id columns are not compatible.")
    name = shared_embedding_name or _shared_name(sparse_id_columns)
    size = first.length if first.is_counted else None
    return tuple(_embedding(c, dimension, *rest, shared=(name, size)) for c in sparse_id_columns)


def _shared_name(columns: Sequence[Any]) -> str:
    ordered = sorted(columns, key=lambda column: (isinstance(column, _WeightedSparseColumn), column.name))
    more = f"_plus_{len(ordered) - 3}_others" if len(ordered) > 3 else ""
    return "_".join(column.name for column in ordered[:3]) + more + "_shared_embedding"
