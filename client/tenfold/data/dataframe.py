"""DataFrame: the fields of tabular data, and values of fields that hold lists. Those of DeepRec's Parquet datasets.

parquet.py has the datasets. Programs written for DeepRec import this as
`tensorflow.python.data.experimental.ops.dataframe`, whose names it has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.graph.tensor import Tensor
from tenfold.ops import array, casts, generated_ops, math
from tenfold.ops.sparse import sparse_reshape
from tenfold.ops.type_specs import TensorSpec
from tenfold_core import dtypes
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["DataFrame", "input_fields", "to_sparse", "unbatch_and_to_sparse"]


class _Field:
    """What a column of a table is: its type, and how many levels of lists it has (`ragged_rank`, 0 for none).

    `shape` is that of each of its values, or of each row of a list of a fixed length. With `dtype` or
    `ragged_rank` None it is incomplete: the file says what it is. Raises TypeError for what is no type,
    ValueError for a shape that is not fully known or comes with lists of lists.
    """

    def __init__(self, name: str, dtype: Any = None, ragged_rank: int | None = None, shape: Any = None) -> None:
        self._name = name
        self._dtype = None if dtype is None else as_dtype(dtype)
        self._ragged_rank = ragged_rank
        self._shape = as_shape(shape) if shape else None
        if self._shape is not None:
            if not self._shape.is_fully_defined():
                raise ValueError(f"Field {name}: the shape {self._shape} is not fully known")
            if ragged_rank is not None and ragged_rank > 1:
                raise ValueError(
                    f"Field {name}: lists of lists (ragged_rank {ragged_rank}) have no shape {self._shape}"
                )

    @property
    def name(self) -> str:
        return self._name

    @property
    def incomplete(self) -> bool:
        """Whether the type or the rank is still to be found out."""
        return self._dtype is None or self._ragged_rank is None

    @property
    def dtype(self) -> Any:
        return self._dtype

    @property
    def ragged_rank(self) -> Any:
        return self._ragged_rank

    @property
    def shape(self) -> TensorShape | None:
        return self._shape

    def map(self, func: Callable[[int], Any], rank: int | None = None) -> Any:
        """`func(0)`, or for lists a DataFrame.Value of `func(0)` and of `func(1)`, … for each level.

        Raises ValueError for an incomplete field.
        """
        if self.incomplete:
            raise ValueError(f"Field {self} is incomplete: dtype and ragged_rank are to be given")
        levels = self._ragged_rank if rank is None else rank
        if not levels:
            return func(0)
        return DataFrame.Value(func(0), tuple(func(level + 1) for level in range(levels)))

    @property
    def ragged_indices(self) -> Any:
        return self.map(lambda number: number)

    @property
    def output_classes(self) -> Any:
        return self.map(lambda _: Tensor)

    @property
    def output_types(self) -> Any:
        return self.map(lambda number: dtypes.int32 if number else self._dtype)

    @property
    def output_shapes(self) -> Any:
        return self.map(lambda number: TensorShape([None]) if number else self._values_shape())

    @property
    def output_specs(self) -> list[TensorSpec]:
        """Of the tensors: the values, and the places where the lists of each level begin."""
        specs = [TensorSpec(self._values_shape(), self._dtype)]
        return specs + [TensorSpec([None], dtypes.int32)] * (self._ragged_rank or 0)

    def _values_shape(self) -> TensorShape:
        return TensorShape([None]).concatenate(self._shape or TensorShape([]))

    def _key(self) -> Any:
        shape = None if self._shape is None else tuple(self._shape.as_list())
        return self._name, self._dtype, self._ragged_rank, shape

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Field) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        kind = "unknown" if self._dtype is None else self._dtype.name
        if self._ragged_rank is None:
            kind = f"unknown<{kind}>"
        elif self._ragged_rank:
            kind = f"list<{kind}>" if self._ragged_rank == 1 else f"list^{self._ragged_rank}<{kind}>"
        return f"{self._name} (dtype={kind}, shape={'unknown' if self._shape is None else self._shape})"


class _Parts(NamedTuple):
    values: Any
    nested_row_splits: tuple[Any, ...]


class _Value(_Parts):
    """A batch of lists: their values one after the other, and for each level the places where its lists begin, the
    outermost level first, each with a last one for the end."""

    __slots__ = ()

    def __new__(cls, values: Any, nested_row_splits: Any = None) -> _Value:
        return super().__new__(cls, values, tuple(nested_row_splits or ()))

    def __repr__(self) -> str:
        return f"{{{self.values}, splits={self.nested_row_splits}}}"

    def to_sparse(self, name: str | None = None) -> Any:
        """A SparseTensor, [rows, longest list, …]; the values as they are where they are no lists or have a shape."""
        splits = self.nested_row_splits
        if not splits or (len(splits) == 1 and (self.values.shape.ndims or 0) > 1):
            return self.values
        parts = generated_ops.ragged_tensor_to_sparse(list(splits), self.values, name=name)
        return SparseTensor(*parts)


class DataFrame:
    """Tabular data: fields, and what is read of them. Elements of a dataset are dictionaries of its values by name."""

    Field = _Field
    Value = _Value

    @classmethod
    def to_sparse(cls, features: Any) -> Any:
        """Lists as SparseTensors, of a value or of all values of a dictionary; tensors as they are.

        Raises ValueError for anything else.
        """
        if isinstance(features, dict):
            return {name: cls.to_sparse(value) for name, value in features.items()}
        if isinstance(features, _Value):
            return features.to_sparse()
        if isinstance(features, Tensor):
            return features
        raise ValueError(f"{features!r} is neither a tensor nor a DataFrame.Value, nor a dictionary of them")

    @classmethod
    def unbatch_and_to_sparse(cls, features: Any) -> Any:
        """The one row of a batch of one: a list as a SparseTensor of rank 1, lists of lists of one rank less.

        Raises ValueError as `to_sparse`.
        """
        if isinstance(features, dict):
            return {name: cls.unbatch_and_to_sparse(value) for name, value in features.items()}
        if not isinstance(features, _Value):
            return cls.to_sparse(features)
        splits = features.nested_row_splits
        if not splits:
            return features.values
        if len(splits) == 1:
            count = casts.cast(splits[0][1], dtypes.int64)
            places = array.reshape(math.range(count), [-1, 1])
            return SparseTensor(places, features.values, array.expand_dims(count, 0))
        sparse = features.to_sparse()
        return sparse_reshape(sparse, sparse.dense_shape[1:])


def to_sparse(num_parallel_calls: Any = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `DataFrame.to_sparse` of each element."""
    return lambda dataset: dataset.map(DataFrame.to_sparse, num_parallel_calls=num_parallel_calls)


def unbatch_and_to_sparse(num_parallel_calls: Any = None) -> Callable[[Any], Any]:
    """For `Dataset.apply`: `DataFrame.unbatch_and_to_sparse` of each element."""
    return lambda dataset: dataset.map(DataFrame.unbatch_and_to_sparse, num_parallel_calls=num_parallel_calls)


def input_fields(input_dataset: Any, fields: Any = None) -> Any:
    """The fields given, or those of the dataset that this one was made of. Raises ValueError where there are none."""
    waiting = [input_dataset]
    while fields is None and waiting:
        dataset = waiting.pop(0)
        fields = getattr(dataset, "fields", None)
        waiting += dataset._inputs()
    if not fields:
        raise ValueError("`fields` must be specified: the dataset was not made of one that has fields")
    if not isinstance(fields, (tuple, list)):
        raise ValueError(f"`fields` must be a list of DataFrame.Field, got {fields!r}")
    for field in fields:
        if not isinstance(field, _Field):
            raise ValueError(f"`fields` must be a list of DataFrame.Field, and has {field!r}")
    return fields
