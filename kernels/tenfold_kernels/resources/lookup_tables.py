"""Lookup tables: from keys to values, filled once (HashTable) or at any time (MutableHashTable and its kin).

A dictionary under a lock; keys and values are Python scalars or, for tables of tensors, tuples and rows. Used by
cpu/lookup.py and by everything that maps strings to numbers. Follows lookup_table_op.h, initializable_lookup_table.cc
and lookup_util.cc.
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
from tenfold_kernels.resources.quota import size_of
from tenfold_kernels.resources.tensor_arrays import check_count

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.quota import Account

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Bytes of an entry in a dictionary, with the objects of a key and a value that are numbers.
_ENTRY_BYTES = 160
#: Bytes of a number in a key of several.
_NUMBER_BYTES = 40
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
    ) -> None:
        """`kind` is "HashTable" for one that is initialized once. `reserved` are keys that may not be used, and why.
        `account` is charged for the entries; None: nobody counts them."""
        self.kind, self.name = kind, name
        self.account = account
        self.key_dtype, self.value_dtype = key_dtype, value_dtype
        self.key_shape, self.value_shape = key_shape, value_shape
        self._reserved = reserved or {}
        self._lock = threading.RLock()
        self._entries: dict[Any, Any] = {}
        #: Bytes of each entry; 0 where texts make them differ.
        self._each_bytes = 0 if "string" in {key_dtype.name, value_dtype.name} else self._bytes_of_one()
        self._initialized = kind != "HashTable"

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
        each = default.shape != self.value_shape
        if not (each or self.key_shape or self.value_shape or self._reserved):
            return self._find_scalars(keys, default)
        out = np.empty(shape, dtype=self.value_dtype.as_numpy_dtype)
        rows, defaults = out.reshape(-1, *self.value_shape), default.reshape(-1, *self.value_shape)
        with self._lock:
            entries = self._entries
            for index, key in enumerate(self._keys(keys)):
                self._check_key(key)
                rows[index] = entries[key] if key in entries else defaults[index if each else 0]
        return out

    def _find_scalars(self, keys: Array, default: Array) -> Array:
        out, other = np.empty(keys.shape, dtype=self.value_dtype.as_numpy_dtype), default[()]
        with self._lock:
            get = self._entries.get
            out.reshape(-1)[:] = [get(key, other) for key in keys.reshape(-1).tolist()]
        return out

    def insert(self, keys: Array, values: Array) -> None:
        """Sets values. Raises UnimplementedError for a table that is initialized once."""
        self._check_mutable("Insert")
        self._put(keys, values)

    def remove(self, keys: Array) -> None:
        """Forgets keys; unknown ones are no error."""
        self._check_mutable("Remove")
        self._outer(keys)
        with self._lock:
            for key in self._keys(keys):
                self._check_key(key)
                gone = self._entries.pop(key, self)
                if gone is not self:
                    self._charge(-self._bytes_of(key, gone))
                    self._after_remove(gone)

    def replace(self, keys: Array, values: Array) -> None:
        """Import: these entries and no others; a table that is initialized once, is so by it."""
        if not self.is_mutable:
            self.initialize(keys, values)
            return
        with self._lock:
            before, self._entries = self._entries, {}
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
            entries = self._exported()
        keys = np.empty((len(entries), *self.key_shape), dtype=self.key_dtype.as_numpy_dtype)
        values = np.empty((len(entries), *self.value_shape), dtype=self.value_dtype.as_numpy_dtype)
        for index, (key, value) in enumerate(entries):
            keys[index], values[index] = key, value
        return keys, values

    def _exported(self) -> list[tuple[Any, Any]]:
        return list(self._entries.items())

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
        entries: dict[Any, Any] = {}
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            if entries.setdefault(key, value) != value:
                raise errors.failed_precondition(
                    f"HashTable has different value for same key. Key {_plain(key)} has {_plain(entries[key])} "
                    f"and trying to add value {_plain(value)}"
                )
        with self._lock:
            if self._initialized:
                if entries != self._entries:
                    text = "Table was already initialized with different data."
                    raise errors.failed_precondition(text)
                return
            if self.account is not None:
                self.account.resize(sum(self._bytes_of(key, value) for key, value in entries.items()))
            self._entries, self._initialized = entries, True

    def _put(self, keys: Array, values: Array, *, ignore_reserved: bool = False) -> None:
        self._check_values(keys, values)
        rows = values.reshape(-1, *self.value_shape)
        with self._lock:
            if self.account is not None:
                self.account.check(len(rows) * _ENTRY_BYTES + size_of((keys, values)))
            if not ignore_reserved:
                self._before_put(rows.shape[0])
            before, more = len(self._entries), 0
            try:
                for index, key in enumerate(self._keys(keys)):
                    if ignore_reserved and key in self._reserved:
                        continue
                    self._check_key(key)
                    value = rows[index].copy() if self.value_shape else rows[index]
                    if not self._each_bytes:
                        old = self._entries.get(key, self)
                        more += self._bytes_of(key, value) - (0 if old is self else self._bytes_of(key, old))
                    self._entries[key] = value
            finally:
                self._charge(more + (len(self._entries) - before) * self._each_bytes)

    def _bytes_of_one(self) -> int:
        """What an entry takes, about, but for its texts."""
        numbers, row = math.prod(self.key_shape), math.prod(self.value_shape)
        return (
            _ENTRY_BYTES
            + (_NUMBER_BYTES * numbers if self.key_shape else 0)
            + (row * np.dtype(self.value_dtype.as_numpy_dtype).itemsize if self.value_shape else 0)
        )

    def _bytes_of(self, key: Any, value: Any) -> int:
        """What one entry takes, about."""
        if self._each_bytes:
            return self._each_bytes
        texts = [*(key if isinstance(key, tuple) else (key,)), *(value.flat if self.value_shape else (value,))]
        return self._bytes_of_one() + sum(len(text) for text in texts if isinstance(text, bytes))

    def _charge(self, nbytes: int) -> None:
        if self.account is not None:
            self.account.add(nbytes)

    def _check_values(self, keys: Array, values: Array) -> None:
        wanted = (*self._outer(keys), *self.value_shape)
        if values.shape != wanted:
            raise invalid(f"Expected shape {_text(wanted)} for value, got {_text(values.shape)}")

    def _check_key(self, key: Any) -> None:
        if key in self._reserved:
            raise invalid(f"Using the {self._reserved[key]} as a table key is not allowed")

    def _outer(self, keys: Array) -> tuple[int, ...]:
        """keys' shape without a key's. Raises InvalidArgumentError."""
        rank = len(self.key_shape)
        if keys.shape[keys.ndim - rank :] != self.key_shape:
            raise self._shape_error(keys)
        return tuple(keys.shape[: keys.ndim - rank])

    def _shape_error(self, keys: Array) -> errors.OpError:
        return invalid(f"Expected key shape {_text((*keys.shape[:1], *self.key_shape))} got {_text(keys.shape)}")

    def _keys(self, keys: Array) -> Iterator[Any]:
        if not self.key_shape:
            yield from keys.reshape(-1).tolist()
        else:
            yield from map(tuple, keys.reshape(-1, math.prod(self.key_shape)).tolist())

    def _before_put(self, count: int) -> None:
        """`count` keys are about to be set; the lock is held."""

    def _after_remove(self, value: Any) -> None:
        """A key with this value was removed; the lock is held."""

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
        )
        self._max_load_factor = max_load_factor
        self._set_buckets(buckets)

    def _after_remove(self, value: Any) -> None:
        self._removed.append(value)

    def replace(self, keys: Array, values: Array) -> None:
        with self._lock:
            before = self._buckets, self._removed
            self._set_buckets(len(keys) if keys.ndim else 0)
            try:
                super().replace(keys, values)
            except errors.OpError:
                self._buckets, self._removed = before
                raise

    def _exported(self) -> list[tuple[Any, Any]]:
        nothing = b"" if self.value_dtype.name == "string" else 0
        unused = self._buckets - len(self._entries) - len(self._removed)
        return [
            *self._entries.items(),
            *((self._deleted, removed) for removed in self._removed),
            *[(self._empty, nothing)] * unused,
        ]

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
