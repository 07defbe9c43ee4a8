"""Categorical columns: strings and integers become ids by a hash, a vocabulary, or unchanged.

Used through tf.feature_column; base.py has the base classes, crossed.py the columns of several features.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import gfile, logging
from tenfold.feature_column.base import CategoricalColumn, Features, check_key, check_string_or_int, to_sparse
from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import control_dependencies
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, check_ops, lookup, math, slicing, string
from tenfold.ops.embedding_options import EmbeddingVariableOption
from tenfold.ops.parsing import VarLenFeature
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType


#: Of a hash of strings whose ids no table has to count.
_MOST_BUCKETS = (1 << 63) - 1


class _KeyColumn(CategoricalColumn):
    """A column of one feature, which is converted to a SparseTensor."""

    key: str
    dtype: DType

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: VarLenFeature(self.dtype)}

    def transform(self, features: Features) -> SparseTensor:
        return self._ids(to_sparse(features.get(self.key)))

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        raise NotImplementedError

    def _check(self, tensor: SparseTensor) -> None:
        check_string_or_int(tensor.dtype, f"column_name: {self.key} input_tensor")
        if self.dtype.is_integer != tensor.dtype.is_integer:
            raise ValueError(
                "Column dtype and SparseTensors dtype must be compatible. "
                f"key: {self.key}, column dtype: {self.dtype}, tensor dtype: {tensor.dtype}"
            )

    def _looked_up(self, tensor: SparseTensor, table: Any) -> SparseTensor:
        found: SparseTensor = table.lookup(tensor)
        return found


@dataclass(frozen=True)
class HashedCategoricalColumn(_KeyColumn):
    """See categorical_column_with_hash_bucket."""

    key: str
    hash_bucket_size: int
    dtype: DType

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        self._check(tensor)
        text = tensor.values if self.dtype == dtypes.string else string.as_string(tensor.values)
        ids = string.string_to_hash_bucket_fast(text, self.hash_bucket_size, name="lookup")
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)


@dataclass(frozen=True)
class EmbeddingCategoricalColumn(_KeyColumn):
    """See categorical_column_with_embedding."""

    key: str
    dtype: DType
    partition_num: int | None
    ev_option: EmbeddingVariableOption

    @property
    def num_buckets(self) -> int:
        raise ValueError(
            f"The ids of the column {self.key} are any 64-bit numbers: use it in embedding_column or linear_model, not "
            "where ids are counted, as in indicator_column"
        )

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        self._check(tensor)
        if self.dtype == dtypes.string:
            ids = string.string_to_hash_bucket_fast(tensor.values, _MOST_BUCKETS, name="lookup")
        else:
            ids = math.cast(tensor.values, dtypes.int64)
        return SparseTensor(tensor.indices, ids, tensor.dense_shape)


class _VocabularyColumn(_KeyColumn):
    """A column whose ids are looked up in a table of words."""

    dtype: DType

    def _table(self, key_dtype: DType, name: str) -> Any:
        """The table from words to ids."""
        raise NotImplementedError

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        self._check(tensor)
        key_dtype, tensor = _as_key(self.dtype, tensor)
        return self._looked_up(tensor, self._table(key_dtype, f"{self.key}_lookup"))


@dataclass(frozen=True)
class VocabularyFileCategoricalColumn(_VocabularyColumn):
    """See categorical_column_with_vocabulary_file."""

    key: str
    vocabulary_file: str
    vocabulary_size: int
    num_oov_buckets: int
    dtype: DType
    default_value: int

    @property
    def num_buckets(self) -> int:
        return self.vocabulary_size + self.num_oov_buckets

    def _table(self, key_dtype: DType, name: str) -> Any:
        return lookup.index_table_from_file(
            vocabulary_file=self.vocabulary_file,
            num_oov_buckets=self.num_oov_buckets,
            vocab_size=self.vocabulary_size,
            default_value=self.default_value,
            key_dtype=key_dtype,
            name=name,
        )


@dataclass(frozen=True)
class VocabularyListCategoricalColumn(_VocabularyColumn):
    """See categorical_column_with_vocabulary_list."""

    key: str
    vocabulary_list: tuple[Any, ...]
    dtype: DType
    default_value: int
    num_oov_buckets: int

    @property
    def num_buckets(self) -> int:
        return len(self.vocabulary_list) + self.num_oov_buckets

    def _table(self, key_dtype: DType, name: str) -> Any:
        return lookup.index_table_from_tensor(
            self.vocabulary_list,
            num_oov_buckets=self.num_oov_buckets,
            default_value=self.default_value,
            dtype=key_dtype,
            name=name,
        )


@dataclass(frozen=True)
class IdentityCategoricalColumn(_KeyColumn):
    """See categorical_column_with_identity."""

    key: str
    number_buckets: int
    default_value: int | None

    dtype = dtypes.int64

    @property
    def num_buckets(self) -> int:
        return self.number_buckets

    def _ids(self, tensor: SparseTensor) -> SparseTensor:
        if not tensor.dtype.is_integer:
            raise ValueError(f"Invalid input, not integer. key: {self.key} dtype: {tensor.dtype}")
        values = math.cast(tensor.values, dtypes.int64, name="values")
        count = convert_to_tensor(self.number_buckets, dtype=dtypes.int64, name="num_buckets")
        zero = convert_to_tensor(0, dtype=dtypes.int64, name="zero")
        if self.default_value is None:
            above = f'Bucket index for categorical column "{self.name}" exceeds number of buckets'
            below = f'Negative bucket index for categorical column "{self.name}"'
            checks = (
                check_ops.assert_less(values, count, data=(values, count), message=above),
                check_ops.assert_greater_equal(values, zero, data=(values,), message=below),
            )
            with control_dependencies(checks):
                values = array.identity(values)
        else:
            outside = math.logical_or(math.less(values, zero), math.greater_equal(values, count))
            default = convert_to_tensor(self.default_value, dtype=dtypes.int64)
            values = slicing.where(outside, array.fill(array.shape(values), default), values)
        return SparseTensor(tensor.indices, values, tensor.dense_shape)


def _as_key(dtype: DType, tensor: SparseTensor) -> tuple[DType, SparseTensor]:
    """The type of a table's keys (int64 or string), and the tensor cast to it."""
    if not tensor.dtype.is_integer:
        return dtype, tensor
    return dtypes.int64, SparseTensor(tensor.indices, math.cast(tensor.values, dtypes.int64), tensor.dense_shape)


def categorical_column_with_hash_bucket(
    key: str, hash_bucket_size: int, dtype: Any = dtypes.string
) -> HashedCategoricalColumn:
    """Strings, or integers as text, by their hash; values may collide. Raises ValueError for a bad argument."""
    dtype = dtypes.as_dtype(dtype)
    if hash_bucket_size is None:
        raise ValueError(f"hash_bucket_size must be set. key: {key}")
    if hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be at least 1. hash_bucket_size: {hash_bucket_size}, key: {key}")
    check_key(key)
    check_string_or_int(dtype, f"column_name: {key}")
    return HashedCategoricalColumn(key, hash_bucket_size, dtype)


def categorical_column_with_embedding(
    key: str,
    dtype: Any = dtypes.string,
    partition_num: int | None = None,
    ev_option: EmbeddingVariableOption | None = None,
) -> EmbeddingCategoricalColumn:
    """Raw ids, or strings by a hash of 63 bits, for an `embedding_column` that keeps them in an embedding variable; in
    `partition_num` parts, or as the layer's partitioner says. In DeepRec's spelling. Raises ValueError for a bad
    argument."""
    dtype = dtypes.as_dtype(dtype)
    if partition_num is not None and partition_num < 1:
        raise ValueError(f"partition_num must be at least 1. partition_num: {partition_num}, key: {key}")
    check_key(key)
    check_string_or_int(dtype, f"column_name: {key}")
    return EmbeddingCategoricalColumn(key, dtype, partition_num, ev_option or EmbeddingVariableOption())


def categorical_column_with_vocabulary_file(
    key: str,
    vocabulary_file: str,
    vocabulary_size: int | None = None,
    num_oov_buckets: int = 0,
    default_value: int | None = None,
    dtype: Any = dtypes.string,
) -> VocabularyFileCategoricalColumn:
    """Values by their line number in a file; others get `default_value`, -1 if None, or a bucket by hash.

    The task that runs the step reads the file; the client reads it only if `vocabulary_size` is None. Raises
    ValueError.
    """
    dtype = dtypes.as_dtype(dtype)
    if not vocabulary_file:
        raise ValueError(f"Missing vocabulary_file in {key}.")
    if vocabulary_size is None:
        if not gfile.Exists(vocabulary_file):
            raise ValueError(f"vocabulary_file in {key} does not exist.")
        with gfile.GFile(vocabulary_file) as lines:
            vocabulary_size = sum(1 for _ in lines)
        logging.info("%s has %d elements, by the lines of %s.", key, vocabulary_size, vocabulary_file)
    if vocabulary_size < 1:
        raise ValueError(f"Invalid vocabulary_size in {key}.")
    _check_buckets(key, num_oov_buckets, default_value is not None)
    check_string_or_int(dtype, f"column_name: {key}")
    check_key(key)
    default = -1 if default_value is None else default_value
    return VocabularyFileCategoricalColumn(key, vocabulary_file, vocabulary_size, num_oov_buckets or 0, dtype, default)


def categorical_column_with_vocabulary_list(
    key: str, vocabulary_list: Sequence[Any], dtype: Any = None, default_value: int = -1, num_oov_buckets: int = 0
) -> VocabularyListCategoricalColumn:
    """Values by their index in a list; others get `default_value`, or a bucket by hash. Raises ValueError."""
    if vocabulary_list is None or len(vocabulary_list) < 1:
        raise ValueError(f"vocabulary_list {vocabulary_list} must be non-empty, column_name: {key}")
    if len(set(vocabulary_list)) != len(vocabulary_list):
        raise ValueError(f"Duplicate keys in vocabulary_list {vocabulary_list}, column_name: {key}")
    kind = np.array(vocabulary_list).dtype
    known = dtypes.string if kind.kind in "SUO" else dtypes.as_dtype(kind)
    _check_buckets(key, num_oov_buckets, default_value != -1)
    check_string_or_int(known, f"column_name: {key} vocabulary")
    dtype = known if dtype is None else dtypes.as_dtype(dtype)
    if dtype.is_integer != known.is_integer:
        raise ValueError(f"dtype {dtype} and vocabulary dtype {known} do not match, column_name: {key}")
    check_string_or_int(dtype, f"column_name: {key}")
    check_key(key)
    return VocabularyListCategoricalColumn(key, tuple(vocabulary_list), dtype, default_value, num_oov_buckets)


def categorical_column_with_identity(
    key: str, num_buckets: int, default_value: int | None = None
) -> IdentityCategoricalColumn:
    """Integers unchanged; one outside of [0, num_buckets) becomes `default_value`, or fails the step if None."""
    if num_buckets < 1:
        raise ValueError(f"num_buckets {num_buckets} < 1, column_name {key}")
    if default_value is not None and not 0 <= default_value < num_buckets:
        raise ValueError(f"default_value {default_value} not in range [0, {num_buckets}), column_name {key}")
    check_key(key)
    return IdentityCategoricalColumn(key, num_buckets, default_value)


def _check_buckets(key: str, num_oov_buckets: int, has_default: bool) -> None:
    if num_oov_buckets and has_default:
        raise ValueError(f"Can't specify both num_oov_buckets and default_value in {key}.")
    if num_oov_buckets and num_oov_buckets < 0:
        raise ValueError(f"Invalid num_oov_buckets {num_oov_buckets} in {key}.")
