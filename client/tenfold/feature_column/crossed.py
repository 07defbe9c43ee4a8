"""Categorical columns made of other columns: with weights, and crossed.

Used through tf.feature_column; base.py has the base classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.feature_column.base import CategoricalColumn, Features, IdWeightPair, to_sparse
from tenfold.feature_column.categorical import HashedCategoricalColumn
from tenfold.graph.sparse_tensor import SparseTensor, convert_to_tensor_or_sparse_tensor
from tenfold.ops import math
from tenfold.ops.parsing import VarLenFeature
from tenfold.ops.sparse_cross import sparse_cross_hashed
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tenfold_core.dtypes import DType


@dataclass(frozen=True)
class WeightedCategoricalColumn(CategoricalColumn):
    """See weighted_categorical_column."""

    categorical_column: CategoricalColumn
    weight_feature_key: str
    dtype: DType

    @property
    def name(self) -> str:
        return f"{self.categorical_column.name}_weighted_by_{self.weight_feature_key}"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec = dict(self.categorical_column.parse_example_spec)
        if self.weight_feature_key in spec:
            raise ValueError(
                f"Parse config {spec[self.weight_feature_key]} already exists for {self.weight_feature_key}."
            )
        return {**spec, self.weight_feature_key: VarLenFeature(self.dtype)}

    @property
    def num_buckets(self) -> int:
        return self.categorical_column.num_buckets

    def transform(self, features: Features) -> tuple[SparseTensor, SparseTensor]:
        given = features.get(self.weight_feature_key)
        if given is None:
            raise ValueError(f"Missing weights {self.weight_feature_key}.")
        weights = convert_to_tensor_or_sparse_tensor(given)
        if self.dtype != weights.dtype.base_dtype:
            raise ValueError(f"Bad dtype, expected {self.dtype}, but got {weights.dtype}.")
        weights = to_sparse(weights, ignored=0)
        if not weights.dtype.is_floating:
            weights = SparseTensor(weights.indices, math.cast(weights.values, dtypes.float32), weights.dense_shape)
        return features.get(self.categorical_column), weights

    def sparse_tensors(self, features: Features) -> IdWeightPair:
        return IdWeightPair(*features.get(self))


@dataclass(frozen=True)
class CrossedColumn(CategoricalColumn):
    """See crossed_column."""

    keys: tuple[str | CategoricalColumn, ...]
    hash_bucket_size: int
    hash_key: int | None

    def leaves(self) -> Iterator[str | CategoricalColumn]:
        """The features and columns that are crossed; a crossed column gives its own leaves."""
        for key in self.keys:
            if isinstance(key, CrossedColumn):
                yield from key.leaves()
            else:
                yield key

    @property
    def name(self) -> str:
        return "_X_".join(sorted(key if isinstance(key, str) else key.name for key in self.leaves()))

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        spec: dict[str, Any] = {}
        for key in self.keys:
            spec.update({key: VarLenFeature(dtypes.string)} if isinstance(key, str) else key.parse_example_spec)
        return spec

    @property
    def num_buckets(self) -> int:
        return self.hash_bucket_size

    def transform(self, features: Features) -> SparseTensor:
        tensors = []
        for key in self.leaves():
            if isinstance(key, str):
                tensors.append(features.get(key))
                continue
            ids = key.sparse_tensors(features)
            if ids.weight_tensor is not None:
                raise ValueError(
                    "crossed_column does not support weight_tensor, but the given column populates weight_tensor. "
                    f"Given column: {key.name}"
                )
            tensors.append(ids.id_tensor)
        return sparse_cross_hashed(tensors, self.hash_bucket_size, self.hash_key)


def weighted_categorical_column(
    categorical_column: CategoricalColumn, weight_feature_key: str, dtype: Any = dtypes.float32
) -> WeightedCategoricalColumn:
    """The ids of a column, each with a weight from another feature. Raises ValueError unless numeric."""
    kind = None if dtype is None else dtypes.as_dtype(dtype)
    if kind is None or not (kind.is_integer or kind.is_floating):
        raise ValueError(f"dtype {dtype} is not convertible to float.")
    return WeightedCategoricalColumn(categorical_column, weight_feature_key, kind)


def crossed_column(
    keys: Sequence[str | CategoricalColumn], hash_bucket_size: int, hash_key: int | None = None
) -> CrossedColumn:
    """Every combination of the values of several features, by its hash. Raises ValueError."""
    if not hash_bucket_size or hash_bucket_size < 1:
        raise ValueError(f"hash_bucket_size must be > 1. hash_bucket_size: {hash_bucket_size}")
    if not keys or len(keys) < 2:
        raise ValueError(f"keys must be a list with length > 1. Given: {keys}")
    for key in keys:
        if not isinstance(key, (str, CategoricalColumn)):
            raise ValueError(
                "Unsupported key type. All keys must be either string, or categorical column except "
                f"HashedCategoricalColumn. Given: {key}"
            )
        if isinstance(key, HashedCategoricalColumn):
            raise ValueError(
                "categorical_column_with_hash_bucket is not supported for crossing. Hashing before crossing will "
                f"increase probability of collision. Instead, use the feature name as a string. Given: {key}"
            )
    return CrossedColumn(tuple(keys), hash_bucket_size, hash_key)
