"""Old columns of crossed features: every combination of the values of others, by its hash.

Used through `tf.contrib.layers`. Follows TensorFlow 1.15's `contrib/layers/python/layers/feature_column.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.contrib.feature_columns.dense import _BucketizedColumn
from tenfold.contrib.feature_columns.sparse import OldCategorical, _SparseColumn
from tenfold.ops.sparse_cross import sparse_cross_hashed

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold.feature_column.base import Features
    from tenfold.graph.sparse_tensor import SparseTensor


@dataclass(frozen=True)
class _CrossedColumn(OldCategorical):
    """See crossed_column."""

    columns: tuple[Any, ...]
    hash_bucket_size: int
    hash_key: int | None
    combiner: str = "sum"
    ckpt_to_load_from: str | None = None
    tensor_name_in_ckpt: str | None = None

    @property
    def name(self) -> str:
        return "_X_".join(sorted(column.name for column in self.columns))

    @property
    def length(self) -> int:
        return self.hash_bucket_size

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {key: value for column in self.columns for key, value in column.parse_example_spec.items()}

    @property
    def checkpoint(self) -> tuple[str, str] | None:
        if self.ckpt_to_load_from is None or self.tensor_name_in_ckpt is None:
            return None
        return self.ckpt_to_load_from, self.tensor_name_in_ckpt

    def _leaves(self) -> Iterator[Any]:
        for column in self.columns:
            if isinstance(column, _CrossedColumn):
                yield from column._leaves()
            else:
                yield column

    def transform(self, features: Features) -> SparseTensor:
        crossed = []
        for column in self._leaves():
            # A column of one feature is crossed by the feature's own values, not by its ids.
            if isinstance(column, _SparseColumn):
                crossed.append(features.get(column.name))
            else:
                crossed.append(column.sparse_tensors(features).id_tensor)
        return sparse_cross_hashed(crossed, self.hash_bucket_size, self.hash_key)


def crossed_column(
    columns: Any,
    hash_bucket_size: int,
    combiner: str = "sum",
    ckpt_to_load_from: str | None = None,
    tensor_name_in_ckpt: str | None = None,
    hash_key: int | None = None,
) -> _CrossedColumn:
    """Every combination of the values of several columns, by its hash. Raises TypeError and ValueError."""
    for column in columns:
        if not isinstance(column, (_SparseColumn, _CrossedColumn, _BucketizedColumn)):
            raise TypeError(
                "columns must be a set of _SparseColumn, _CrossedColumn, or _BucketizedColumn instances. "
                f"(column {column} is a {type(column).__name__})"
            )
    if len(columns) < 2:
        raise ValueError(f"columns must contain at least 2 elements. columns: {columns}")
    if hash_bucket_size < 2:
        raise ValueError(f"hash_bucket_size must be at least 2. hash_bucket_size: {hash_bucket_size}")
    if (ckpt_to_load_from is None) != (tensor_name_in_ckpt is None):
        raise ValueError("Must specify both `ckpt_to_load_from` and `tensor_name_in_ckpt` or none of them.")
    ordered = tuple(sorted(columns, key=lambda column: column.name))
    return _CrossedColumn(ordered, hash_bucket_size, hash_key, combiner, ckpt_to_load_from, tensor_name_in_ckpt)
