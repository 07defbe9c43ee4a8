"""Lookup tables: from keys to values, filled once (HashTable) or at any time (MutableHashTable and its kin).

Entries under a lock (table_entries.py), with a table's rules: what may be changed, which keys are reserved, what it
costs. Used by cpu/lookup.py and by everything that maps strings to numbers. Follows lookup_table_op.h,
initializable_lookup_table.cc and lookup_util.cc.
"""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_core.files import length
from tenfold_core.graph_files import graph_files
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.table_entries import Entries, entries_for
from tenfold_kernels.resources.tensor_arrays import check_count

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.id_map import IdLoops
    from tenfold_kernels.resources.quota import Account

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: In place of a column's number in a text file.
WHOLE_LINE, LINE_NUMBER = -2, -1


class Table:
    """One table. Thread-safe; a key or value of shape [] is a scalar, any other shape one row of the inputs."""

    def __init__(
        self,
        kind: str,
        name: str,
        key_dtype: DType,
        value_dtype: DType,
        *,
        key_shape: tuple[int, ...] = (),
        value_shape: tuple[int, ...] = (),
        reserved: dict[Any, str] | None = None,
        account: Account | None = None,
        loops: IdLoops | None = None,
    ) -> None:
        """`kind` is "HashTable" for one that is initialized once. `reserved` are keys that may not be used, and why.
        `account` is charged for the entries; None: nobody counts them. `loops` find the values of ids."""
        self.kind, self.name = kind, name
        self.account = account
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.key_shape, self.value_shape = key_shape, value_shape
        self._reserved = reserved or {}
        self._lock, self._loops = threading.RLock(), loops
        self._entries = self._nothing()
        self._initialized = kind != "HashTable"

    def _nothing(self) -> Entries:
        return entries_for(self.key_dtype, self.value_dtype, self.key_shape, self.value_shape, self._loops)

    @property
    def is_mutable(self) -> bool:
        return self.kind != "HashTable"

    def size(self) -> int:
        """How many keys there are."""
        return len(self._entries)

    def find(self, keys: Array, default: Array) -> Array:
        """The value of each key, `default` where there is none: keys' shape without the key's, then the value's.

        A table that can change also takes one default for each key. Raises FailedPreconditionError before the table
        was initialized, InvalidArgumentError for other shapes.
        """
        if not self._initialized:
            raise errors.failed_precondition("Table not initialized.")
        outer = self._outer(keys)
        shape = (*outer, *self.value_shape)
        if default.shape not in ((self.value_shape, shape) if self.is_mutable else (self.value_shape,)):
            wanted = f"{_text(self.value_shape)} or {_text(shape)}" if self.is_mutable else _text(self.value_shape)
            raise invalid(f"Expected shape {wanted} for default value, got {_text(default.shape)}")
        out = np.empty(shape, dtype=self.value_dtype.as_numpy_dtype)
        rows = self._rows(keys)
        self._check_first_reserved(rows, self._first_reserved(rows))
        with self._lock:
            values = out.reshape(-1, *self.value_shape)
            self._entries.find(rows, default.reshape(-1, *self.value_shape), values)
        return out

    def insert(self, keys: Array, values: Array) -> None:
        """Sets values. Raises UnimplementedError for a table that is initialized once."""
        self._check_mutable("Insert")
        self._put(keys, values)

    def remove(self, keys: Array) -> None:
        """Forgets keys; unknown ones are no error."""
        self._check_mutable("Remove")
        self._outer(keys)
        rows = self._rows(keys)
        end = self._first_reserved(rows)
        with self._lock:
            gone, nbytes = self._entries.remove(rows[:end])
            self._charge(-nbytes)
            self._after_remove(gone)
        self._check_first_reserved(rows, end)

    def replace(self, keys: Array, values: Array) -> None:
        """Import: these entries and no others; a table that is initialized once, is so by it."""
        if not self.is_mutable:
            self.initialize(keys, values)
            return
        with self._lock:
            before, self._entries = self._entries, self._nothing()
            charged = self.account.bytes if self.account is not None else 0
            self._charge(-charged)
            try:
                self._put(keys, values, ignore_reserved=True)
            except errors.OpError:
                self._entries = before  # it is refused before the first one is set
                self._charge(charged)
                raise

    def export(self) -> tuple[Array, Array]:
        """All keys and values. Raises AbortedError before the table was initialized."""
        if not self._initialized:
            raise errors.aborted(f"{self.kind} is not initialized.")
        with self._lock:
            return self._exported()

    def _exported(self) -> tuple[Array, Array]:
        return self._entries.items()

    def initialize(self, keys: Array, values: Array) -> None:
        """Fills a table that is filled once; again only with the same. Raises FailedPreconditionError for others."""
        if keys.ndim != 1:
            raise invalid(f"Keys must be a vector, but received shape{_text(keys.shape)}")
        if values.ndim != 1:
            raise invalid(f"Values must be a vector, but received shape{_text(values.shape)}")
        if len(keys) != len(values):
            raise invalid(f"Keys and values must have the same size {len(keys)} vs {len(values)}")
        if not keys.size:
            raise invalid("keys and values cannot be empty tensors.")
        if self.is_mutable:
            raise invalid(f"Table {self.name} is not initializable")
        entries = self._nothing()
        nbytes = entries.put(keys, values)
        found = np.empty_like(values)
        entries.find(keys, values[:1], found)
        differ = np.flatnonzero(found != values)
        if differ.size:
            key = keys[differ[0]]
            given = values[np.flatnonzero(keys == key)]
            raise errors.failed_precondition(
                f"HashTable has different value for same key. Key {_plain(key)} has {_plain(given[0])} "
                f"and trying to add value {_plain(given[-1])}"
            )
        with self._lock:
            if self._initialized:
                there = np.empty_like(values)
                self._entries.find(keys, values[:1], there)
                same = len(entries) == len(self._entries) and self._entries.have(keys) and np.array_equal(there, found)
                if not same:
                    raise errors.failed_precondition("Table was already initialized with different data.")
                return
            if self.account is not None:
                self.account.resize(nbytes)
            self._entries, self._initialized = entries, True

    def _put(self, keys: Array, values: Array, *, ignore_reserved: bool = False) -> None:
        self._check_values(keys, values)
        rows, given = self._rows(keys), values.reshape(-1, *self.value_shape)
        with self._lock:
            if self.account is not None:
                self.account.check(self._entries.most_bytes(rows, given))
            if ignore_reserved:
                if self._reserved:
                    kept = ~self._are_reserved(rows)
                    rows, given = rows[kept], given[kept]
                self._charge(self._entries.put(rows, given))
                return
            self._before_put(len(given))
            end = self._first_reserved(rows)
            self._charge(self._entries.put(rows[:end], given[:end]))
        self._check_first_reserved(rows, end)

    def _charge(self, nbytes: int) -> None:
        if self.account is not None:
            self.account.add(nbytes)

    def _check_values(self, keys: Array, values: Array) -> None:
        wanted = (*self._outer(keys), *self.value_shape)
        if values.shape != wanted:
            raise invalid(f"Expected shape {_text(wanted)} for value, got {_text(values.shape)}")

    def _are_reserved(self, rows: Array) -> Array:
        """Of each key whether it is one that may not be used."""
        found = np.zeros(len(rows), np.bool_)
        for key in self._reserved:
            same = rows == np.array(key, rows.dtype)
            found |= same.all(axis=1) if self.key_shape else same
        return found

    def _first_reserved(self, rows: Array) -> int:
        """The place of the first key that may not be used; all come before it where there is none."""
        if not self._reserved:
            return len(rows)
        places = np.flatnonzero(self._are_reserved(rows))
        return int(places[0]) if places.size else len(rows)

    def _check_first_reserved(self, rows: Array, place: int) -> None:
        if place < len(rows):
            key = _key(rows[place])
            raise invalid(f"Using the {self._reserved[key]} as a table key is not allowed")

    def _outer(self, keys: Array) -> tuple[int, ...]:
        """keys' shape without a key's. Raises InvalidArgumentError."""
        rank = len(self.key_shape)
        if keys.shape[keys.ndim - rank :] != self.key_shape:
            raise self._shape_error(keys)
        return tuple(keys.shape[: keys.ndim - rank])

    def _shape_error(self, keys: Array) -> errors.OpError:
        return invalid(f"Expected key shape {_text((*keys.shape[:1], *self.key_shape))} got {_text(keys.shape)}")

    def _rows(self, keys: Array) -> Array:
        """[N, *key shape]"""
        return keys.reshape(-1, math.prod(self.key_shape)) if self.key_shape else keys.reshape(-1)

    def _before_put(self, count: int) -> None:
        """`count` keys are about to be set; the lock is held."""

    def _after_remove(self, values: list[Any]) -> None:
        """Keys with these values were removed; the lock is held."""

    def _check_mutable(self, verb: str) -> None:
        if not self.is_mutable:
            raise errors.unimplemented(f"{verb} not supported by HashTable implementations")


class DenseTable(Table):
    """MutableDenseHashTable: what it exports, and so its checkpoints, are its buckets, the unused ones included.

    A bucket holds a key or the empty one; that of a removed key holds the deleted one until the buckets are doubled.
    """

    #: How many there are.
    _buckets: int
    #: The values of removed keys, which stay in their buckets.
    _removed: list[Any]

    def __init__(
        self,
        name: str,
        key_dtype: DType,
        value_dtype: DType,
        value_shape: tuple[int, ...],
        empty_key: Array,
        deleted_key: Array | None,
        buckets: int,
        max_load_factor: float,
        account: Account | None = None,
        loops: IdLoops | None = None,
    ) -> None:
        """Raises InvalidArgumentError for keys of other shapes or equal ones, or a number of buckets that is no power
        of two."""
        if empty_key.ndim > 1:
            raise invalid(f"Empty key must be a scalar or a vector, got shape {_text(empty_key.shape)}")
        self._empty = _key(empty_key)
        reserved = {self._empty: "empty_key"}
        self._deleted = None
        if deleted_key is not None:
            if deleted_key.shape != empty_key.shape:
                text = f"got shapes: {_text(empty_key.shape)} and {_text(deleted_key.shape)}"
                raise invalid(f"Empty and deleted keys must have same shape, {text}")
            self._deleted = _key(deleted_key)
            if self._deleted == self._empty:
                raise invalid("Empty and deleted keys cannot be equal")
            reserved[self._deleted] = "deleted_key"
        super().__init__(
            "MutableDenseHashTable",
            name,
            key_dtype,
            value_dtype,
            key_shape=empty_key.shape,
            value_shape=value_shape,
            reserved=reserved,
            account=account,
            loops=loops,
        )
        self._max_load_factor = max_load_factor
        self._set_buckets(buckets)

    def _after_remove(self, values: list[Any]) -> None:
        self._removed.extend(values)

    def replace(self, keys: Array, values: Array) -> None:
        with self._lock:
            before = self._buckets, self._removed
            self._set_buckets(len(keys) if keys.ndim else 0)
            try:
                super().replace(keys, values)
            except errors.OpError:
                self._buckets, self._removed = before
                raise

    def _exported(self) -> tuple[Array, Array]:
        keys, values = self._entries.items()
        removed = len(self._removed)
        nothing = b"" if self.value_dtype.name == "string" else 0
        all_keys = np.empty((self._buckets, *self.key_shape), keys.dtype)
        all_values = np.empty((self._buckets, *self.value_shape), values.dtype)
        all_keys[: len(keys)], all_values[: len(keys)] = keys, values
        for place, value in enumerate(self._removed, len(keys)):
            all_keys[place], all_values[place] = self._deleted, value
        all_keys[len(keys) + removed :], all_values[len(keys) + removed :] = self._empty, nothing
        return all_keys, all_values

    def _before_put(self, count: int) -> None:
        wanted = len(self._entries) + len(self._removed) + count
        if wanted > self._buckets * self._max_load_factor:
            buckets = self._buckets
            while wanted > buckets * self._max_load_factor:
                buckets *= 2
            self._set_buckets(buckets)

    def _set_buckets(self, count: int) -> None:
        if count < 4 or count.bit_count() != 1:
            raise invalid(f"Number of buckets must be at least 4 and a power of 2, got: {count}")
        check_count(count, f"Table {self.name}")
        self._buckets = count
        self._removed = []

    def _outer(self, keys: Array) -> tuple[int, ...]:
        if keys.size != math.prod((*keys.shape[:1], *self.key_shape)):
            raise self._shape_error(keys)
        return super()._outer(keys)


def _key(value: Array) -> Any:
    """A key as a table keeps it."""
    return tuple(value.tolist()) if value.ndim else value.item()


def read_text_file(
    filename: str, key_index: int, value_index: int, vocab_size: int, delimiter: str, offset: int, table: Table
) -> tuple[Array, Array]:
    """The keys and values of a vocabulary, a line each: columns by number, WHOLE_LINE or LINE_NUMBER.

    Blocks while it reads. Raises NotFoundError, and InvalidArgumentError naming the line that is wrong.
    """
    keys: list[Any] = []
    values: list[Any] = []
    columns = max(key_index, value_index) + 1
    with _opened(filename) as file:
        for number, raw in enumerate(file):
            if 0 <= vocab_size <= number:
                break
            line = raw.rstrip(b"\n").removesuffix(b"\r")
            if not line:
                raise invalid(f"Invalid content in {filename}: empty line found at position {file.tell()}.")
            fields = line.split(delimiter.encode()) if columns > 0 else []
            if len(fields) < columns:
                raise invalid(
                    f"Invalid number of columns in {filename} line {number} ({_plain(line)}) : expected at least "
                    f"{columns} got {len(fields)}"
                )
            for column, dtype, out in ((key_index, table.key_dtype, keys), (value_index, table.value_dtype, values)):
                if column == LINE_NUMBER:
                    out.append(number + offset)
                else:
                    out.append(_parsed(line if column == WHOLE_LINE else fields[column], dtype, number))
    if vocab_size != -1 and len(keys) != vocab_size:
        raise invalid(f"Invalid vocab_size in {filename}: expected {vocab_size} but got {len(keys)}")
    return _array(keys, table.key_dtype), _array(values, table.value_dtype)


def _opened(filename: str) -> Any:
    try:
        file = graph_files().open_to_read(filename)
        try:
            graph_files().check_bytes(filename, length(file))
        except errors.OpError:
            file.close()
            raise
        return file
    except FileNotFoundError:
        raise errors.not_found(f"{filename}; No such file or directory") from None
    except OSError as error:
        raise errors.failed_precondition(f"{filename}; {error.strerror}") from None


def _parsed(field: bytes, dtype: DType, number: int) -> Any:
    if dtype.name == "string":
        return field
    convert = float if dtype.is_floating else int
    try:
        return convert(field)
    except ValueError:
        raise invalid(f"Field {_plain(field)} in line {number} is not a valid {dtype.op_name}.") from None


def _array(items: list[Any], dtype: DType) -> Array:
    out = np.empty(len(items), dtype=dtype.as_numpy_dtype)
    out[:] = items
    return out


def _plain(value: Any) -> str:
    return value.decode(errors="backslashreplace") if isinstance(value, bytes) else str(value)


def _text(shape: tuple[int, ...]) -> str:
    return "[" + ",".join(map(str, shape)) + "]"
