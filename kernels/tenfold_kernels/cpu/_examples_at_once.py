"""All Examples of a batch by two compiled loops: what _examples.py makes of protobuf's messages, without the messages.

Gives None for what is not plain: a record that does not parse, values of another type or number than asked for, a
missing feature without a default. _examples.py then says what is wrong, or reads what is unusual. Used by
io_parsing_examples.py; the loops are _compiled/examples.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.cpu._compiled import examples
from tenfold_kernels.cpu._examples import empty_of, splits_of

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cpu._examples import Column, DenseFeature

_KINDS = {dtypes.string: examples.BYTES, dtypes.float32: examples.FLOATS, dtypes.int64: examples.INTS}
#: Entries of a record of which it is remembered whose they were.
_GUESSES = 256
_NO_BYTES, _NO_INTS = np.empty(0, np.uint8), np.empty(0, np.int64)


class _NotPlain(Exception):
    """Left to _examples.py."""


class AtOnce:
    """The features that are wanted, and their loops. Any number of threads may call at once."""

    def __init__(self, sparse: list[Column], dense: list[DenseFeature], ragged: list[Column]) -> None:
        self.sparse, self.dense, self.ragged = sparse, dense, ragged
        self._scan, self._fill = examples.scan(), examples.fill()
        #: Key → its number in the table of what was found.
        self._numbers: dict[str, int] = {}
        for key in (*(each.key for each in sparse), *(each.key for each in dense), *(each.key for each in ragged)):
            self._numbers.setdefault(key, len(self._numbers))
        keys = [key.encode("utf-8", "surrogateescape") for key in self._numbers]
        self._key_ends = np.cumsum([0, *(len(key) for key in keys)], dtype=np.int64)
        self._keys = np.frombuffer(b"".join(keys), np.uint8)

    def outputs(self, serialized: Array) -> list[Array] | None:
        """What _examples.features_of gives for these records: a vector of them, or a scalar. None where it must."""
        items = serialized.reshape(-1).tolist()
        data = items[0] if len(items) == 1 else b"".join(items)
        ends = np.cumsum([len(item) for item in items], dtype=np.int64)
        table = np.zeros((len(self._numbers), len(items), 4), np.int64)
        guesses = np.zeros(_GUESSES, np.int64)
        array = np.frombuffer(data, np.uint8)
        if self._scan(array, ends, self._keys, self._key_ends, guesses, table) >= 0:
            return None
        records, numbers = _Records(self._fill, data, array, bool(serialized.ndim)), self._numbers
        try:
            sparse = [records.sparse(table[numbers[each.key]], each.dtype) for each in self.sparse]
            dense = [records.dense(table[numbers[each.key]], each) for each in self.dense]
            ragged = [records.ragged(table[numbers[each.key]], each) for each in self.ragged]
        except _NotPlain:
            return None
        return [
            *(each[0] for each in sparse),
            *(each[1] for each in sparse),
            *(each[2] for each in sparse),
            *dense,
            *(each[0] for each in ragged),
            *(each[1] for each in ragged),
        ]


class _Records:
    """Records that were scanned. A table has a row for each: kind, begin, end, number of values."""

    def __init__(self, fill: Any, data: bytes, array: Array, is_batch: bool) -> None:
        self._fill, self._data, self._array, self._is_batch = fill, data, array, is_batch

    def dense(self, table: Array, feature: DenseFeature) -> Array:
        kinds, counts = _checked(table, feature.dtype)
        rows, row_shape, size = len(counts), feature.row_shape, math.prod(feature.row_shape)
        default = feature.default.reshape(-1)
        if feature.is_variable:
            if not size or (counts % size).any():
                raise _NotPlain
            most = int(counts.max(initial=0)) // size
            out = empty_of(feature.dtype, (rows, most, *row_shape), default[0])
            size *= most
        else:
            missing = kinds == 0
            if missing.any() and not default.size:
                raise _NotPlain
            if (counts[~missing] != size).any():
                raise _NotPlain
            allow((rows, *row_shape), feature.dtype.as_numpy_dtype)
            out = np.empty((rows, *row_shape), feature.dtype.as_numpy_dtype)
            if missing.any():
                out[missing] = feature.default.reshape(row_shape)
        self._write(table, feature.dtype, np.arange(rows, dtype=np.int64) * size, out.reshape(-1))
        return out if self._is_batch else out.reshape(out.shape[1:])

    def values(self, table: Array, dtype: DType) -> tuple[Array, Array, Array]:
        """The values of all rows one behind the other, how many each has, and where they begin."""
        _, counts = _checked(table, dtype)
        begins = np.cumsum(counts) - counts
        allow((int(counts.sum()),), dtype.as_numpy_dtype)
        out = np.empty(int(counts.sum()), dtype.as_numpy_dtype)
        self._write(table, dtype, begins, out)
        return out, counts, begins

    def sparse(self, table: Array, dtype: DType) -> tuple[Array, Array, Array]:
        values, counts, begins = self.values(table, dtype)
        if not self._is_batch:
            return np.arange(values.size, dtype=np.int64).reshape(-1, 1), values, np.array([values.size], np.int64)
        indices = np.empty((values.size, 2), np.int64)
        indices[:, 0] = np.repeat(np.arange(len(counts)), counts)
        indices[:, 1] = np.arange(values.size) - np.repeat(begins, counts)
        return indices, values, np.array([len(counts), counts.max(initial=0)], np.int64)

    def ragged(self, table: Array, feature: Column) -> tuple[Array, Array]:
        assert feature.splits is not None
        values, counts, _ = self.values(table, feature.dtype)
        if not self._is_batch:
            return values, np.zeros(0, feature.splits.as_numpy_dtype)
        return values, splits_of(counts.tolist(), feature.splits)

    def _write(self, table: Array, dtype: DType, places: Array, out: Array) -> None:
        if dtype is dtypes.float32:
            self._fill(self._array, examples.FLOATS, table, places, out.view(np.uint8), _NO_INTS)
            return
        if dtype is dtypes.int64:
            self._fill(self._array, examples.INTS, table, places, _NO_BYTES, out)
            return
        counts = table[:, 3]
        begins = np.cumsum(counts) - counts
        spans = np.empty(2 * int(counts.sum()), np.int64)
        self._fill(self._array, examples.BYTES, table, begins, _NO_BYTES, spans)
        data, numbers = self._data, spans.tolist()
        strings = [data[begin:end] for begin, end in zip(numbers[::2], numbers[1::2], strict=True)]
        if len(strings) == out.size:
            out[:] = strings
            return
        for place, begin, count in zip(places.tolist(), begins.tolist(), counts.tolist(), strict=True):
            out[place : place + count] = strings[begin : begin + count]


def _checked(table: Array, dtype: DType) -> tuple[Array, Array]:
    """Kinds and numbers of values; the kind is that of the type, or 0."""
    kinds = table[:, 0]
    if ((kinds != 0) & (kinds != _KINDS[dtype])).any():
        raise _NotPlain
    return kinds, table[:, 3]
