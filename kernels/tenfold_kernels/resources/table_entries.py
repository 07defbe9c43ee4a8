"""What a lookup table keeps: a dictionary of objects, or numbers by ids in arrays.

Both have the same methods and no lock; lookup_tables.py asks them under a table's own. Keys come as [N, *key shape],
values as [N, *value shape]. Where keys are integers and values numbers, a map of ids (id_map.py) finds the row of an
array.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels.resources.growing import GrowingArray
from tenfold_kernels.resources.id_map import IdMap, as_ids
from tenfold_kernels.resources.quota import size_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.id_map import IdLoops

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Bytes of an entry in a dictionary, with the objects of a key and a value that are numbers.
_ENTRY_BYTES = 160
#: Bytes of a number in a key of several.
_NUMBER_BYTES = 40
#: Bytes of an id: itself, and its part of an index between a third and two thirds full.
_ID_BYTES = 8 + 12


class ObjectEntries:
    """Keys of any shape and values of any kind: Python scalars or, where they have a shape, tuples and rows."""

    def __init__(
        self, key_dtype: DType, value_dtype: DType, key_shape: tuple[int, ...], value_shape: tuple[int, ...]
    ) -> None:
        self._key_dtype, self._value_dtype = key_dtype, value_dtype
        self._key_shape, self._value_shape = key_shape, value_shape
        self._entries: dict[Any, Any] = {}
        numbers, row = math.prod(key_shape), math.prod(value_shape)
        self._each_bytes = (
            _ENTRY_BYTES
            + (_NUMBER_BYTES * numbers if key_shape else 0)
            + (row * np.dtype(value_dtype.as_numpy_dtype).itemsize if value_shape else 0)
        )
        self._has_texts = "string" in {key_dtype.name, value_dtype.name}

    def __len__(self) -> int:
        return len(self._entries)

    def most_bytes(self, keys: Array, values: Array) -> int:
        """What these would take if all of them were new, at most."""
        return len(values) * _ENTRY_BYTES + size_of((keys, values))

    def have(self, keys: Array) -> bool:
        """Whether all of these are there."""
        return all(key in self._entries for key in self._keys(keys))

    def find(self, keys: Array, defaults: Array, out: Array) -> None:
        """Writes the value of each key to `out`, where there is none its default; there is one, or one for each."""
        if not (self._key_shape or self._value_shape) and len(defaults) == 1:
            get, other = self._entries.get, defaults[0]
            out[:] = [get(key, other) for key in keys.tolist()]
            return
        each = len(defaults) != 1
        for index, key in enumerate(self._keys(keys)):
            out[index] = self._entries[key] if key in self._entries else defaults[index if each else 0]

    def put(self, keys: Array, values: Array) -> int:
        """Sets values, the last one of a key; how many bytes more there are."""
        entries, before, texts = self._entries, len(self._entries), 0
        for index, key in enumerate(self._keys(keys)):
            value = values[index].copy() if self._value_shape else values[index]
            if self._has_texts:
                texts += self._texts_of(key, value) - (self._texts_of(key, entries[key]) if key in entries else 0)
            entries[key] = value
        return texts + (len(entries) - before) * self._each_bytes

    def remove(self, keys: Array) -> tuple[list[Any], int]:
        """Forgets keys; the values that are gone, and their bytes."""
        gone, nbytes = [], 0
        for key in self._keys(keys):
            if key in self._entries:
                gone.append(self._entries.pop(key))
                nbytes += self._each_bytes + (self._texts_of(key, gone[-1]) if self._has_texts else 0)
        return gone, nbytes

    def items(self) -> tuple[Array, Array]:
        """All keys and values."""
        count = len(self._entries)
        keys = np.empty((count, *self._key_shape), self._key_dtype.as_numpy_dtype)
        values = np.empty((count, *self._value_shape), self._value_dtype.as_numpy_dtype)
        for index, (key, value) in enumerate(self._entries.items()):
            keys[index], values[index] = key, value
        return keys, values

    def _keys(self, keys: Array) -> Iterator[Any]:
        return map(tuple, keys.tolist()) if self._key_shape else iter(keys.tolist())

    def _texts_of(self, key: Any, value: Any) -> int:
        texts = [*(key if isinstance(key, tuple) else (key,)), *(value.flat if self._value_shape else (value,))]
        return sum(len(text) for text in texts if isinstance(text, bytes))


class IdEntries:
    """Integer scalars as keys, numbers as values: rows of one array. Its methods are those of ObjectEntries."""

    def __init__(self, loops: IdLoops, key_dtype: DType, value_dtype: DType, value_shape: tuple[int, ...] = ()) -> None:
        self._key_dtype = key_dtype
        self._map = IdMap(loops)
        self._values = GrowingArray(value_dtype.as_numpy_dtype, value_shape)
        self._values.reserve(1)
        self._each_bytes = _ID_BYTES + self._values.array[:1].nbytes

    def __len__(self) -> int:
        return len(self._map)

    def most_bytes(self, keys: Array, values: Array) -> int:
        return len(values) * self._each_bytes

    def have(self, keys: Array) -> bool:
        return bool((self._map.find(as_ids(keys)) >= 0).all())

    def find(self, keys: Array, defaults: Array, out: Array) -> None:
        rows = self._map.find(as_ids(keys))
        absent = rows < 0
        np.take(self._values.array, np.where(absent, 0, rows), axis=0, out=out)
        if absent.any():
            out[absent] = defaults if len(defaults) == 1 else defaults[absent]

    def put(self, keys: Array, values: Array) -> int:
        self._values.reserve(self._map.rows + len(values))
        rows, added = self._map.find_or_add(as_ids(keys))
        self._values.array[rows] = values
        return added.size * self._each_bytes

    def remove(self, keys: Array) -> tuple[list[Any], int]:
        rows = self._map.remove(as_ids(keys))
        return list(self._values.array[rows]), rows.size * self._each_bytes

    def items(self) -> tuple[Array, Array]:
        keys, rows = self._map.items()
        return keys.astype(self._key_dtype.as_numpy_dtype), self._values.array[rows]


Entries: TypeAlias = ObjectEntries | IdEntries


def entries_for(
    key_dtype: DType,
    value_dtype: DType,
    key_shape: tuple[int, ...],
    value_shape: tuple[int, ...],
    loops: IdLoops | None = None,
) -> Entries:
    """None yet, kept in what suits keys and values of these types and shapes; without `loops` in a dictionary."""
    is_id = not key_shape and key_dtype.is_integer and key_dtype.name != "uint64"
    if loops is not None and is_id and np.dtype(value_dtype.as_numpy_dtype) != object:
        return IdEntries(loops, key_dtype, value_dtype, value_shape)
    return ObjectEntries(key_dtype, value_dtype, key_shape, value_shape)
