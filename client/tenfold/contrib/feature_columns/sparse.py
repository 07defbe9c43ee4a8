"""Old columns of ids: by hash, by keys, by a vocabulary file, integers as they are; with weights.

Used through `tf.contrib.layers`. Follows TensorFlow 1.15's `contrib/layers/python/layers/feature_column.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold import logging
from tenfold.contrib.feature_columns.base import OldColumn, WideLookup, inner_flatten
from tenfold.feature_column.base import CategoricalColumn, Features, IdWeightPair, to_sparse
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import lookup, math, string
from tenfold.ops.parsing import VarLenFeature
from tenfold.ops.sparse import sparse_concat
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence


class _SparseIdLookupConfig(NamedTuple):
    """Where a column's vocabulary is."""

    vocabulary_file: str | None = None
    keys: tuple[Any, ...] | None = None
    num_oov_buckets: int = 0
    vocab_size: int | None = None
    default_value: int = -1


class OldCategorical(OldColumn, CategoricalColumn):
    """An old column of ids: gives `length` of them, and `combiner` says how those of an example are summed."""

    combiner: str

    @property
    def is_counted(self) -> bool:
        """Whether there is a number of ids; without one an embedding variable has a row for each."""
        return True

    @property
    def length(self) -> int:
        """The number of ids."""
        raise NotImplementedError

    @property
    def num_buckets(self) -> int:
        return self.length

    def wide(self, features: Features) -> WideLookup:
        ids, weights = self.sparse_tensors(features)
        return WideLookup(ids, weights, self.num_buckets if self.is_counted else 0, self.combiner)

    def deep(self, features: Features, collections: Sequence[str] | None, trainable: bool, rank: int) -> Any:
        kind = type(self).__name__.lstrip("_")
        raise ValueError(
            f"{kind} is not supported in DNN. Please use embedding_column or one_hot_column. column: {self}"
        )


@dataclass(frozen=True)
class _SparseColumn(OldCategorical):
    """Ids of one feature."""

    column_name: str
    is_integerized: bool = False
    bucket_size: int | None = None
    lookup_config: _SparseIdLookupConfig | None = None
    combiner: str = "sum"
    dtype: Any = dtypes.string

    def __post_init__(self) -> None:
        where = f"column_name: {self.column_name}"
        if self.is_integerized and self.bucket_size is None:
            raise ValueError(f"bucket_size must be set if is_integerized is True. {where}")
        if self.is_integerized and not self.dtype.is_integer:
            raise ValueError(f"dtype must be an integer if is_integerized is True. dtype: {self.dtype}, {where}.")
        if self.dtype != dtypes.string and not self.dtype.is_integer:
            raise ValueError(f"dtype must be string or integer. dtype: {self.dtype}, {where}")
        if self.bucket_size is None and self.lookup_config is None:
            raise ValueError(f"one of bucket_size or lookup_config must be set. {where}")
        if self.bucket_size is not None and self.bucket_size < 1:
            raise ValueError(f"bucket_size must be at least 1. bucket_size: {self.bucket_size}, {where}")

    @property
    def name(self) -> str:
        return self.column_name

    @property
    def length(self) -> int:
        if self.bucket_size is not None:
            return self.bucket_size
        config = self.lookup_config
        assert config is not None
        return (config.vocab_size or 0) + config.num_oov_buckets

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.column_name: VarLenFeature(self.dtype)}

    def transform(self, features: Features) -> SparseTensor:
        given = features.get(self.column_name)
        if not isinstance(given, SparseTensor):
            given = inner_flatten(given, 2)
        return self._ids(to_sparse(given, ignored=b"" if given.dtype == dtypes.string else -1))

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        raise NotImplementedError

    def is_compatible(self, other: Any) -> bool:
        """Whether the two may share an embedding."""
        if not other.is_counted:
            return False
        if self.lookup_config and other.lookup_config:
            return bool(self.lookup_config == other.lookup_config)
        same = self.length == other.length and (
            self.dtype == other.dtype or (self.dtype.is_integer and other.dtype.is_integer)
        )
        if same:
            logging.warning("Column %s and %s may not have the same vocabulary.", self.name, other.name)
        return bool(same)


@dataclass(frozen=True)
class _SparseColumnIntegerized(_SparseColumn):
    """See sparse_column_with_integerized_feature."""

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        return SparseTensor(tensor.indices, math.mod(tensor.values, self.bucket_size, name="mod"), tensor.dense_shape)


@dataclass(frozen=True)
class _SparseColumnHashed(_SparseColumn):
    """See sparse_column_with_hash_bucket."""

    hash_keys: tuple[tuple[int, int], ...] | None = field(default=None, repr=False)

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        texts = string.as_string(tensor.values) if self.dtype.is_integer else tensor.values
        assert self.bucket_size is not None
        if not self.hash_keys:
            ids = string.string_to_hash_bucket_fast(texts, self.bucket_size, name="lookup")
            return SparseTensor(tensor.indices, ids, tensor.dense_shape)
        found = [
            tensor_op("StringToHashBucketStrong", input=texts, num_buckets=self.bucket_size, key=list(key))
            for key in self.hash_keys
        ]
        made: SparseTensor = sparse_concat(
            axis=1, sp_inputs=[SparseTensor(tensor.indices, ids, tensor.dense_shape) for ids in found], name="lookup"
        )
        return made


@dataclass(frozen=True)
class _SparseColumnKeys(_SparseColumn):
    """See sparse_column_with_keys."""

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        config = self.lookup_config
        assert config is not None
        assert config.keys is not None
        table = lookup.index_table_from_tensor(
            tuple(config.keys), default_value=config.default_value, dtype=self.dtype, name="lookup"
        )
        found: SparseTensor = table.lookup(tensor)
        return found


@dataclass(frozen=True)
class _SparseColumnVocabulary(_SparseColumn):
    """See sparse_column_with_vocabulary_file."""

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        config = self.lookup_config
        assert config is not None
        if self.dtype.is_integer:
            tensor = SparseTensor(tensor.indices, string.as_string(tensor.values), tensor.dense_shape)
        table = lookup.index_table_from_file(
            vocabulary_file=config.vocabulary_file,
            num_oov_buckets=config.num_oov_buckets,
            vocab_size=config.vocab_size,
            default_value=config.default_value,
            name=f"{self.name}_lookup",
        )
        found: SparseTensor = table.lookup(tensor)
        return found


@dataclass(frozen=True)
class _WeightedSparseColumn(OldCategorical):
    """See weighted_sparse_column."""

    sparse_id_column: _SparseColumn
    weight_column_name: str
    dtype: Any

    @property
    def name(self) -> str:
        return f"{self.sparse_id_column.name}_weighted_by_{self.weight_column_name}"

    @property
    def is_counted(self) -> bool:
        return self.sparse_id_column.is_counted

    @property
    def length(self) -> int:
        return self.sparse_id_column.length

    @property
    def combiner(self) -> str:  # type: ignore[override]  # That of the ids.
        return self.sparse_id_column.combiner

    @property
    def lookup_config(self) -> Any:
        """Where the vocabulary of the ids is."""
        return self.sparse_id_column.lookup_config

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {**self.sparse_id_column.parse_example_spec, self.weight_column_name: VarLenFeature(self.dtype)}

    def transform(self, features: Features) -> tuple[SparseTensor, SparseTensor]:
        weights = to_sparse(features.get(self.weight_column_name), ignored=0)
        if not self.dtype.is_floating:
            weights = SparseTensor(weights.indices, math.cast(weights.values, dtypes.float32), weights.dense_shape)
        return features.get(self.sparse_id_column), weights

    def sparse_tensors(self, features: Features) -> IdWeightPair:
        return IdWeightPair(*features.get(self))

    def is_compatible(self, other: Any) -> bool:
        """Whether the two may share an embedding."""
        if isinstance(other, _WeightedSparseColumn):
            other = other.sparse_id_column
        return self.sparse_id_column.is_compatible(other)


def sparse_column_with_integerized_feature(
    column_name: str, bucket_size: int, combiner: str = "sum", dtype: Any = dtypes.int64
) -> _SparseColumnIntegerized:
    """Integers, modulo `bucket_size`. Raises ValueError."""
    return _SparseColumnIntegerized(column_name, True, bucket_size, None, combiner, dtypes.as_dtype(dtype))


def sparse_column_with_hash_bucket(
    column_name: str,
    hash_bucket_size: int,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
    hash_keys: Any = None,
) -> _SparseColumnHashed:
    """Strings, or integers as text, by their hash; with `hash_keys` by one hash for each pair. Raises ValueError."""
    if hash_keys is not None:
        if not isinstance(hash_keys, list) or not hash_keys:
            raise ValueError("hash_keys must be a non-empty list.")
        for pair in hash_keys:
            if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(each, int) for each in pair):
                raise ValueError("Each element of hash_keys must be a pair of integers.")
        hash_keys = tuple(tuple(pair) for pair in hash_keys)
    return _SparseColumnHashed(column_name, False, hash_bucket_size, None, combiner, dtypes.as_dtype(dtype), hash_keys)


def sparse_column_with_keys(
    column_name: str, keys: Any, default_value: int = -1, combiner: str = "sum", dtype: Any = dtypes.string
) -> _SparseColumnKeys:
    """Values by their place among `keys`; others get `default_value`. Raises ValueError."""
    keys = tuple(keys)
    config = _SparseIdLookupConfig(keys=keys, vocab_size=len(keys), default_value=default_value)
    return _SparseColumnKeys(column_name, False, None, config, combiner, dtypes.as_dtype(dtype))


def sparse_column_with_vocabulary_file(
    column_name: str,
    vocabulary_file: str,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    combiner: str = "sum",
    dtype: Any = dtypes.string,
) -> _SparseColumnVocabulary:
    """Values by their line in a file, which the task reads that runs the step. Raises ValueError."""
    if vocab_size is None:
        raise ValueError(f"vocab_size should be defined. column_name: {column_name}")
    config = _SparseIdLookupConfig(vocabulary_file, None, num_oov_buckets, vocab_size, default_value)
    return _SparseColumnVocabulary(column_name, False, None, config, combiner, dtypes.as_dtype(dtype))


def weighted_sparse_column(
    sparse_id_column: _SparseColumn, weight_column_name: str, dtype: Any = dtypes.float32
) -> _WeightedSparseColumn:
    """Ids with weights from another feature. Raises ValueError unless its type is numeric."""
    kind = dtypes.as_dtype(dtype)
    if not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype is not convertible to float. Given {dtype}")
    return _WeightedSparseColumn(sparse_id_column, weight_column_name, kind)
