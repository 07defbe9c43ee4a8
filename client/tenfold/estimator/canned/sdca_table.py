"""A table in several parts, and sparse features: what the solver of sdca_model.py keeps and is given.

The parts may lie on several parameter servers. Follows TensorFlow 1.15's
`estimator/canned/linear_optimizer/python/utils/sharded_mutable_dense_hashtable.py` and `sdca_ops.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math, slicing
from tenfold.ops.control_flow import group
from tenfold.ops.lookup_mutable import DenseHashTable
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class SparseFeatureColumn:
    """The features of a batch that are not 0: int64 [N] examples, in order, and their features, float32 [N] values.

    Values are None where all of them are 1. As `tf.contrib.linear_optimizer.SparseFeatureColumn`.
    """

    def __init__(self, example_indices: Any, feature_indices: Any, feature_values: Any = None) -> None:
        with name_scope(None, "SparseFeatureColumn", [example_indices, feature_indices]):
            self.example_indices = convert_to_tensor(example_indices, name="example_indices", dtype=dtypes.int64)
            self.feature_indices = convert_to_tensor(feature_indices, name="feature_indices", dtype=dtypes.int64)
            self.feature_values: Tensor | None = None
            if feature_values is not None:
                self.feature_values = convert_to_tensor(feature_values, name="feature_values", dtype=dtypes.float32)


class ShardedMutableDenseHashTable:
    """A DenseHashTable in `num_shards` parts, each key in that of its remainder; a key that is a vector by its first
    element. As `tf.contrib.linear_optimizer.ShardedMutableDenseHashTable`.
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        num_shards: int = 1,
        checkpoint: bool = True,
        name: str = "ShardedMutableHashTable",
    ) -> None:
        self._key_dtype = dtypes.as_dtype(key_dtype)
        with name_scope(name, "sharded_mutable_hash_table") as scope:
            self.name = scope
            self.table_shards = [
                DenseHashTable(
                    key_dtype, value_dtype, default_value, empty_key, deleted_key, checkpoint=checkpoint,
                    name=f"{name}-{number + 1}-of-{num_shards}",
                )
                for number in range(num_shards)
            ]  # fmt: skip

    def size(self, name: str | None = None) -> Tensor:
        """The number of keys."""
        with name_scope(name, "sharded_mutable_hash_table_size"):
            return math.add_n([table.size() for table in self.table_shards])

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """The values of keys [N] or [N, W], the default for unknown ones. Raises TypeError, ValueError for others."""
        if keys.dtype.base_dtype != self._key_dtype:
            raise TypeError(f"Signature mismatch. Keys must be dtype {self._key_dtype}, got {keys.dtype}.")
        self._check_keys(keys)
        if len(self.table_shards) == 1:
            return self.table_shards[0].lookup(keys, name=name)
        shards = self._shards_of(keys)
        values = [
            table.lookup(part, name=name)
            for table, part in zip(self.table_shards, self._apart(keys, shards), strict=True)
        ]
        found = slicing.dynamic_stitch(self._apart(math.range(array.shape(keys)[0]), shards), values)
        found.set_shape(keys.shape[:1].concatenate(values[0].shape[1:]))
        return found

    def insert(self, keys: Any, values: Any, name: str | None = None) -> Any:
        """Sets the values of keys [N] or [N, W]. Raises ValueError for others."""
        self._check_keys(keys)
        if len(self.table_shards) == 1:
            return self.table_shards[0].insert(keys, values, name=name)
        shards = self._shards_of(keys)
        parts = zip(self.table_shards, self._apart(keys, shards), self._apart(values, shards), strict=True)
        return group(*(table.insert(part, value, name=name) for table, part, value in parts))

    def export_sharded(self, name: str | None = None) -> tuple[list[Any], list[Any]]:
        """All keys and all values, part by part."""
        keys, values = zip(*(table.export(name=name) for table in self.table_shards), strict=True)
        return list(keys), list(values)

    def _apart(self, value: Any, shards: Any) -> list[Any]:
        return slicing.dynamic_partition(value, shards, len(self.table_shards))

    def _shards_of(self, keys: Any) -> Any:
        first = keys if keys.shape.ndims == 1 else keys[:, 0]
        return math.cast(math.mod(math.abs(first), len(self.table_shards)), dtypes.int32)

    def _check_keys(self, keys: Any) -> None:
        if keys.shape.ndims not in (1, 2):
            raise ValueError(f"Expected a vector or matrix for keys, got {keys.shape}.")
