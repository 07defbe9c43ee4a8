"""Numeric columns, and their bucketized form.

Used through tf.feature_column; base.py has the base classes.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tenfold import nest
from tenfold.feature_column.base import CategoricalColumn, DenseColumn, Features, IdWeightPair, check_key
from tenfold.graph.op_builder import tensor_op
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.ops import array, math, slicing
from tenfold.ops.parsing import FixedLenFeature
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold.graph.tensor import Tensor
    from tenfold_core.dtypes import DType


@dataclass(frozen=True)
class NumericColumn(DenseColumn):
    """See numeric_column."""

    key: str
    shape: tuple[int, ...]
    default_value: Any
    dtype: DType
    normalizer_fn: Callable[[Any], Any] | None

    @property
    def name(self) -> str:
        return self.key

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return {self.key: FixedLenFeature(self.shape, self.dtype, self.default_value)}

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape(self.shape)

    def transform(self, features: Features) -> Tensor:
        tensor = features.get(self.key)
        if isinstance(tensor, SparseTensor):
            raise ValueError(
                "The corresponding Tensor of numerical column must be a Tensor. SparseTensor is not supported. "
                f"key: {self.key}"
            )
        made: Tensor = math.cast(tensor if self.normalizer_fn is None else self.normalizer_fn(tensor), dtypes.float32)
        return made


@dataclass(frozen=True)
class BucketizedColumn(DenseColumn, CategoricalColumn):
    """See bucketized_column."""

    source_column: NumericColumn
    boundaries: tuple[float, ...]

    @property
    def name(self) -> str:
        return f"{self.source_column.name}_bucketized"

    @property
    def parse_example_spec(self) -> dict[str, Any]:
        return self.source_column.parse_example_spec

    @property
    def _buckets(self) -> int:
        return len(self.boundaries) + 1

    @property
    def variable_shape(self) -> TensorShape:
        return TensorShape((*self.source_column.shape, self._buckets))

    @property
    def num_buckets(self) -> int:
        return self._buckets * self.source_column.shape[0]

    def transform(self, features: Features) -> Tensor:
        return tensor_op(
            "Bucketize", input=features.get(self.source_column), boundaries=[float(each) for each in self.boundaries]
        )

    def dense_tensor(self, features: Features, weight_collections: Sequence[str], trainable: bool) -> Tensor:
        return slicing.one_hot(math.cast(features.get(self), dtypes.int64), self._buckets, 1.0, 0.0)

    def sparse_tensors(self, features: Features) -> IdWeightPair:
        buckets = features.get(self)
        batch, width = array.shape(buckets)[0], self.source_column.shape[0]
        rows = array.reshape(array.tile(array.expand_dims(math.range(0, batch), 1), [1, width]), [-1])
        columns = array.tile(math.range(0, width), [batch])
        # Each element of the feature has its own range of ids.
        ids = array.reshape(buckets, [-1]) + self._buckets * columns
        indices = math.cast(array.transpose(array.stack([rows, columns])), dtypes.int64)
        return IdWeightPair(SparseTensor(indices, ids, math.cast(array.stack([batch, width]), dtypes.int64)), None)


def numeric_column(
    key: str,
    shape: Any = (1,),
    default_value: Any = None,
    dtype: Any = dtypes.float32,
    normalizer_fn: Callable[[Any], Any] | None = None,
) -> NumericColumn:
    """Numbers of a `shape`, cast to float32, and passed through `normalizer_fn` if given.

    Raises ValueError for a type that is not numeric, an invalid shape, and a default value of another shape;
    TypeError for a default value of another type, and for a normalizer that is not callable.
    """
    dtype = dtypes.as_dtype(dtype)
    sizes = checked_shape(shape, key)
    if not (dtype.is_integer or dtype.is_floating):
        raise ValueError(f"dtype must be convertible to float. dtype: {dtype}, key: {key}")
    default = _default(sizes, default_value, dtype, key)
    if normalizer_fn is not None and not callable(normalizer_fn):
        raise TypeError(f"normalizer_fn must be a callable. Given: {normalizer_fn}")
    check_key(key)
    return NumericColumn(key, sizes, default, dtype, normalizer_fn)


def bucketized_column(source_column: NumericColumn, boundaries: Sequence[float]) -> BucketizedColumn:
    """The index of a number's bucket, one of `len(boundaries) + 1`; a boundary belongs to the bucket above it.

    Raises ValueError for another source than a numeric column of one dimension, and for boundaries out of order.
    """
    if not isinstance(source_column, NumericColumn):
        raise ValueError(f"source_column must be a column generated with numeric_column(). Given: {source_column}")
    if len(source_column.shape) > 1:
        raise ValueError(f"source_column must be one-dimensional column. Given: {source_column}")
    if not boundaries:
        raise ValueError("boundaries must not be empty.")
    if not isinstance(boundaries, (list, tuple)) or any(low >= high for low, high in pairwise(boundaries)):
        raise ValueError("boundaries must be a sorted list.")
    return BucketizedColumn(source_column, tuple(boundaries))


def checked_shape(shape: Any, key: Any) -> tuple[int, ...]:
    """The sizes of a shape. Raises TypeError and ValueError unless they are positive integers."""
    sizes = tuple(shape) if isinstance(shape, (list, tuple, TensorShape)) else (shape,)
    for size in sizes:
        if not isinstance(size, int):
            raise TypeError(f"shape dimensions must be integer. shape: {sizes}, key: {key}")
        if size < 1:
            raise ValueError(f"shape dimensions must be greater than 0. shape: {sizes}, key: {key}")
    return sizes


def _default(shape: tuple[int, ...], value: Any, dtype: DType, key: Any) -> Any:
    """The default as nested tuples of `shape`: a single number is repeated."""
    if value is None:
        return None
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, int) or (isinstance(value, float) and dtype.is_floating):
        return _filled(shape, value)
    if isinstance(value, (list, tuple)):
        if not _has_shape(value, shape):
            raise ValueError(
                "The shape of default_value must be equal to given shape. "
                f"default_value: {value}, shape: {shape}, key: {key}"
            )
        numbers = nest.flatten(value)
        if all(isinstance(each, int) for each in numbers) or (
            dtype.is_floating and any(isinstance(each, float) for each in numbers)
        ):
            return _tuples(value)
    raise TypeError(f"default_value must be compatible with dtype. default_value: {value}, dtype: {dtype}, key: {key}")


def _filled(shape: tuple[int, ...], value: float) -> Any:
    return tuple(_filled(shape[1:], value) for _ in range(shape[0])) if shape else value


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, (list, tuple)) else value


def _has_shape(value: Any, shape: tuple[int, ...]) -> bool:
    if not isinstance(value, (list, tuple)) or not shape:
        return not isinstance(value, (list, tuple)) and not shape
    return len(value) == shape[0] and all(_has_shape(each, shape[1:]) for each in value)
