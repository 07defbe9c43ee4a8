"""Features of Examples and SequenceExamples as tensors: dense, sparse and ragged, and what a node's attributes ask for.

Used by io_parsing_examples.py and io_parsing_sequences.py. Follows example_proto_helper.cc and
example_proto_fast_parsing.cc.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu._strings import printable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape
    from tenfold_kernels.registry import KernelNode

#: Type of the output → field of the proto.
_FIELDS = {dtypes.string: "bytes_list", dtypes.float32: "float_list", dtypes.int64: "int64_list"}
TYPES = {field: dtype for dtype, field in _FIELDS.items()}
WORDS = {dtypes.string: "bytes", dtypes.float32: "float", dtypes.int64: "int64"}


class DenseFeature(NamedTuple):
    """A feature that becomes a dense tensor: the shape of a row's values, -1 first where rows differ in length."""

    key: str
    dtype: DType
    shape: tuple[int, ...]
    default: Array

    @property
    def is_variable(self) -> bool:
        return bool(self.shape) and self.shape[0] == -1

    @property
    def row_shape(self) -> tuple[int, ...]:
        return self.shape[1:] if self.is_variable else self.shape

    @property
    def type_text(self) -> str:
        return f"(data type: {self.dtype.op_name})"


class Column(NamedTuple):
    """A feature that becomes a sparse tensor, or a ragged one with splits of a type."""

    key: str
    dtype: DType
    splits: DType | None = None
    #: Of the context of sequence examples.
    is_context: bool = False


class Rows:
    """The rows of one input: protos, and what to call them in errors. A scalar input is one row without a batch."""

    def __init__(self, serialized: Array, names: Array | None, message: Any) -> None:
        if serialized.ndim > 1:
            raise invalid(f"Expected serialized to be a scalar or vector, got shape: {shape_text(serialized.shape)}")
        self.is_batch = serialized.ndim == 1
        items = serialized.reshape(-1).tolist()
        if names is not None and names.size and names.size != len(items):
            raise invalid(
                f"Expected names have the same shape as serialized: name.shape={shape_text(names.shape)}, "
                f"serialized.shape={shape_text(serialized.shape)}"
            )
        self._names = names.reshape(-1).tolist() if names is not None and names.size else None
        self.protos = [parsed(message, item) for item in items]

    def __len__(self) -> int:
        return len(self.protos)

    def name(self, row: int) -> str:
        return printable(self._names[row]) if self._names is not None else "<unknown>"


def parsed(message: Any, value: bytes) -> Any:
    from google.protobuf.message import DecodeError

    try:
        return message.FromString(value)
    except DecodeError:
        raise invalid(f"Could not parse example input, value: '{printable(value)}'") from None


def values_of(features: Mapping[str, Any], key: str, dtype: DType, where: str) -> Sequence[Any] | None:
    """A feature's values, None if it is missing or has no kind. Raises InvalidArgumentError for another type."""
    if key not in features:
        return None
    return _feature_values(features[key], dtype, where)


def _feature_values(feature: Any, dtype: DType, where: str) -> Sequence[Any] | None:
    kind = feature.WhichOneof("kind")
    if kind is None:
        return None
    if TYPES[kind] is not dtype:
        raise invalid(
            f"{where}.  Data types don't match. Data type: {TYPES[kind].op_name} but expected type: {dtype.op_name}"
        )
    found: Sequence[Any] = getattr(feature, kind).value
    return found


def array_of(values: Iterable[Any], dtype: DType, shape: tuple[int, ...]) -> Array:
    flat = list(values)
    out = np.empty(len(flat), dtype.as_numpy_dtype)
    out[:] = flat
    return out.reshape(shape)


def empty_of(dtype: DType, shape: tuple[int, ...], fill: Any = None) -> Array:
    if fill is None:
        fill = b"" if dtype is dtypes.string else 0
    allow(shape, dtype.as_numpy_dtype)
    return np.full(shape, fill, dtype.as_numpy_dtype)


def where_in(rows: Rows, row: int, key: str) -> str:
    return f"Name: {rows.name(row)}, Key: {key}, Index: {row}" if rows.is_batch else f"Key: {key}"


def dense_output(rows: Rows, maps: Sequence[Mapping[str, Any]], feature: DenseFeature) -> Array:
    """[rows] + shape, or shape for a scalar input; with a first dimension of -1, padded to the longest row."""
    found = [values_of(m, feature.key, feature.dtype, where_in(rows, i, feature.key)) for i, m in enumerate(maps)]
    row_shape, size = feature.row_shape, math.prod(feature.row_shape)
    if not feature.is_variable:
        parts = [_fixed_row(rows, i, feature, values, size) for i, values in enumerate(found)]
        if not rows.is_batch:
            return parts[0]
        return np.stack(parts) if parts else empty_of(feature.dtype, (0, *row_shape))
    strides: list[int] = []
    for values in found:
        count = len(values) if values is not None else 0
        if rows.is_batch and (not size or count % size):
            raise invalid(
                f"{where_in(rows, len(strides), feature.key)}.  Number of {WORDS[feature.dtype]} values is not a "
                f"multiple of stride length. Saw {count} values but output shape is: "
                f"{shape_text(feature.shape).replace('-1', '?')}"
            )
        if not size or count % size:
            raise invalid(
                f"Error while parsing feature with key {feature.key}: number of elements should be divisible by "
                f"{size}, found {count} instead"
            )
        strides.append(count // size)
    if not rows.is_batch:
        return array_of(found[0] or (), feature.dtype, (strides[0], *row_shape))
    out = empty_of(feature.dtype, (len(rows), max(strides, default=0), *row_shape), feature.default.reshape(-1)[0])
    for i, values in enumerate(found):
        if values:
            out[i, : strides[i]] = array_of(values, feature.dtype, (strides[i], *row_shape))
    return out


def _fixed_row(rows: Rows, row: int, feature: DenseFeature, values: Sequence[Any] | None, size: int) -> Array:
    if values is None:
        if not feature.default.size:
            name = f"Name: {rows.name(row)}, " if rows.is_batch else ""
            raise invalid(f"{name}Feature: {feature.key} {feature.type_text} is required but could not be found.")
        return feature.default.reshape(feature.shape).copy()
    if len(values) != size:
        if not rows.is_batch:
            what = f"Some {WORDS[feature.dtype]}_list slice was not parsed."
            raise invalid(f"Key: {feature.key}.  Can't parse serialized Example: {what}")
        raise invalid(
            f"{where_in(rows, row, feature.key)}.  Number of {WORDS[feature.dtype]} values != expected.  "
            f"Values size: {len(values)} but output shape: {shape_text(feature.shape)}"
        )
    return array_of(values, feature.dtype, feature.shape)


def column_values(rows: Rows, maps: Sequence[Mapping[str, Any]], feature: Column) -> list[Sequence[Any]]:
    return [values_of(m, feature.key, feature.dtype, where_in(rows, i, feature.key)) or () for i, m in enumerate(maps)]


def sparse_outputs(rows: Rows, found: list[Sequence[Any]], dtype: DType) -> tuple[Array, Array, Array]:
    """Indices, values and shape: a row of the matrix a row of the batch, or a vector for a scalar input."""
    values = array_of([v for row in found for v in row], dtype, (-1,))
    if not rows.is_batch:
        return np.arange(values.size, dtype=np.int64).reshape(-1, 1), values, np.array([values.size], np.int64)
    lengths = [len(row) for row in found]
    indices = np.empty((values.size, 2), np.int64)
    indices[:, 0] = np.repeat(np.arange(len(found)), lengths)
    indices[:, 1] = [j for length in lengths for j in range(length)]
    return indices, values, np.array([len(found), max(lengths, default=0)], np.int64)


def splits_of(lengths: Iterable[int], dtype: DType) -> Array:
    return np.concatenate(([0], np.cumsum(list(lengths), dtype=np.int64))).astype(dtype.as_numpy_dtype)


def ragged_outputs(rows: Rows, found: list[Sequence[Any]], feature: Column) -> tuple[Array, Array]:
    """Values and row_splits; a scalar input is one row, and its splits are not used."""
    assert feature.splits is not None
    values = array_of([v for row in found for v in row], feature.dtype, (-1,))
    if not rows.is_batch:
        # Sequence examples leave a scalar there, plain ones an empty vector.
        return values, np.zeros(() if feature.is_context else 0, feature.splits.as_numpy_dtype)
    return values, splits_of((len(row) for row in found), feature.splits)


def features_of(
    rows: Rows, maps: Sequence[Mapping[str, Any]], sparse: list[Column], dense: list[DenseFeature], ragged: list[Column]
) -> list[Array]:
    """The outputs in the ops' order: indices, values, shapes; dense values; ragged values, splits."""
    sparse_tensors = [sparse_outputs(rows, column_values(rows, maps, f), f.dtype) for f in sparse]
    ragged_tensors = [ragged_outputs(rows, column_values(rows, maps, f), f) for f in ragged]
    return [
        *(o[0] for o in sparse_tensors),
        *(o[1] for o in sparse_tensors),
        *(o[2] for o in sparse_tensors),
        *(dense_output(rows, maps, f) for f in dense),
        *(o[0] for o in ragged_tensors),
        *(o[1] for o in ragged_tensors),
    ]


def shapes_of_attr(node: KernelNode, attr: str) -> list[tuple[int, ...]]:
    found = []
    for i, shape in enumerate(node.attrs.get(attr, ())):
        dims = _dims(shape)
        if dims is None or any(d < 0 for d in dims[1:]):
            raise invalid(f"{attr}[{i}] has unknown rank or unknown inner dimensions: {shape}")
        found.append(dims)
    return found


def _dims(shape: TensorShape) -> tuple[int, ...] | None:
    return None if shape.ndims is None else tuple(-1 if d is None else d for d in shape.as_list())


def dense_features_of(
    keys: Sequence[str], types: Sequence[DType], shapes: list[tuple[int, ...]], defaults: Sequence[Array]
) -> list[DenseFeature]:
    if not len(keys) == len(types) == len(shapes) == len(defaults):
        raise invalid(
            f"Expected len(dense_defaults) == len(dense_keys) == len(dense_shapes) == len(dense_types) but got: "
            f"{len(defaults)}, {len(keys)}, {len(shapes)}, {len(types)}"
        )
    found = []
    for d, (key, dtype, shape, default) in enumerate(zip(keys, types, shapes, defaults, strict=True)):
        feature = DenseFeature(key, dtype, shape, default)
        if feature.is_variable and default.size != 1:
            raise invalid(
                f"dense_shape[{d}] is a variable length shape: {shape_text(shape).replace('-1', '?')}, therefore "
                f"def_value[{d}] must contain a single element (the padding element).  But its shape is: "
                f"{shape_text(default.shape)}"
            )
        if not feature.is_variable and default.size and default.shape != shape:
            raise invalid(
                f"def_value[{d}].shape() == {shape_text(default.shape)} is not compatible with "
                f"dense_shapes_[{d}] == {shape_text(shape)}"
            )
        found.append(feature)
    return found


def columns_of(keys: Sequence[str], types: Sequence[DType], splits: Sequence[DType] | None = None) -> list[Column]:
    if len(keys) != len(types) or (splits is not None and len(splits) != len(types)):
        raise invalid(f"Expected as many keys as types but got: {len(keys)} vs. {len(types)}")
    return [
        Column(key, dtype, None if splits is None else splits[i])
        for i, (key, dtype) in enumerate(zip(keys, types, strict=True))
    ]


def keys_of(value: Array) -> list[str]:
    return [_text(item) for item in value.reshape(-1).tolist()]


def _text(value: bytes | str) -> str:
    return value if isinstance(value, str) else value.decode("utf-8", "surrogateescape")


def attr_keys(node: KernelNode, name: str) -> list[str]:
    return [_text(key) for key in node.attrs.get(name, ())]


class Inputs:
    """Takes the inputs of a node one group after the other."""

    def __init__(self, values: tuple[Array, ...]) -> None:
        self._values = values
        self._at = 0

    def one(self) -> Array:
        return self.take(1)[0]

    def take(self, count: int) -> tuple[Array, ...]:
        """Raises InvalidArgumentError for a node whose attributes speak of more inputs than it has."""
        self._at += count
        if self._at > len(self._values):
            raise invalid(f"Expected {self._at} inputs at least, by the attributes, but got: {len(self._values)}")
        return self._values[self._at - count : self._at]

    def keys(self, count: int) -> list[str]:
        """The keys in `count` scalars. Raises InvalidArgumentError for an input that is not a scalar."""
        values = self.take(count)
        for value in values:
            if value.ndim:
                raise invalid(f"a key must be a scalar, got shape {shape_text(value.shape)}")
            if not value.dtype.hasobject:
                raise invalid(f"a key must be a string, got {value.dtype.name}")
        return [_text(bytes(value.item())) for value in values]


def outputs_in_order(values: list[Array]) -> Any:
    return values[0] if len(values) == 1 else tuple(values) if values else None
