"""Datasets of what stands in files: the records of CSV files, the rows that a SQLite database gives, names that match.

Used by cpu/dataset_files.py. Follows csv_dataset_op.cc, sql_dataset_op.cc and matching_files_dataset_op.cc. A database
is opened by its name, after the files that graphs may open were asked for it, and its statements cannot attach others.
"""

from __future__ import annotations

import contextlib
import os
import re
import sqlite3
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.file_errors import os_errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.records import ByteStream
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid, scalar_object
from tenfold_kernels.resources.datasets.core import Array, Dataset, Element, Machine, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold_core.dtypes import DType

#: Bytes of a file that are looked at together.
_PIECE = 1 << 16


class CsvFormat(NamedTuple):
    """What a CSV file looks like, and which of its columns are wanted: all where `selected` is empty."""

    delimiter: bytes
    quotes: bool
    missing: bytes
    header: bool
    selected: tuple[int, ...]
    excluded: tuple[int, ...]
    compression: str


class CsvReader:
    """The records of one file as lists of fields, those that are wanted. Blocks on the disk.

    `read` raises InvalidArgumentError for a record that is written wrongly, and goes on behind it when asked again.
    """

    def __init__(self, path: str, form: CsvFormat) -> None:
        self._form = form
        self._stream = ByteStream(path, form.compression, files=graph_files())
        weakref.finalize(self, self._stream.close)
        self._data, self._at, self._is_whole = b"", 0, False
        quote = b'"' if form.quotes else b""
        self._unquoted_end = re.compile(b"[\\n\\r" + re.escape(form.delimiter) + quote + b"]")

    def close(self) -> None:
        self._stream.close()

    def read(self) -> list[bytes] | None:
        """The wanted fields of the next record, or None at the end."""
        if not self._has(0):
            return None
        form = self._form
        end = self._data.find(b"\n", self._at)
        if end < 0 and not self._is_whole:
            self._more()
            end = self._data.find(b"\n", self._at)
        if end >= 0:
            line = self._data[self._at : end].removesuffix(b"\r")
            if b"\r" not in line and not (form.quotes and b'"' in line):
                self._at = end + 1
                return self._chosen(line.split(form.delimiter))
        return self._chosen(self._careful())

    def plain(self, most: int) -> list[list[bytes]]:
        """The wanted fields of the next records, as far as they are there without quotes. Only `skip` moves on."""
        form = self._form
        *lines, _ = self._rest().split(b"\n", most)
        found = []
        for line in lines:
            text = line.removesuffix(b"\r")
            if b"\r" in text or (form.quotes and b'"' in text):
                break
            found.append(self._chosen(text.split(form.delimiter)))
        return found

    def skip(self, lines: int) -> None:
        """Moves on by records that `plain` has given."""
        self._at = len(self._data) - len(self._rest().split(b"\n", lines)[-1])

    def _rest(self) -> bytes:
        """What was read of the file and has not been given: a whole line, if there is one."""
        if not self._is_whole and self._data.find(b"\n", self._at) < 0:
            self._more()
        return self._data[self._at :]

    def _chosen(self, fields: list[bytes]) -> list[bytes]:
        selected, excluded = self._form.selected, self._form.excluded
        if selected:
            return [fields[number] for number in selected if number < len(fields)]
        if excluded:
            return [field for number, field in enumerate(fields) if number not in excluded]
        return fields

    def _careful(self) -> list[bytes]:
        """A record with quotes, or with other ends of line; its first error is raised once it is over."""
        fields: list[bytes] = []
        failure: errors.OpError | None = None
        goes_on = True
        while goes_on:
            if not self._has(0):
                fields.append(b"")
                break
            quoted = self._form.quotes and self._data[self._at : self._at + 1] == b'"'
            field, goes_on, wrong = self._quoted() if quoted else self._plain()
            fields.append(field)
            failure = failure or wrong
        if failure is not None:
            raise failure
        return fields

    def _has(self, ahead: int) -> bool:
        """Whether there is a byte so far ahead."""
        while self._at + ahead >= len(self._data):
            if self._is_whole:
                return False
            self._more()
        return True

    def _more(self) -> None:
        piece = self._stream.read(_PIECE)
        if not piece:
            self._is_whole = True
            return
        self._data, self._at = self._data[self._at :] + piece, 0
        graph_files().check_bytes(self._stream.path, len(self._data))

    def _end(self, last: bytes) -> bool:
        """Steps over what ended a field; whether the record goes on."""
        if last == b"\r" and self._has(0) and self._data[self._at : self._at + 1] == b"\n":
            self._at += 1
        return last == self._form.delimiter

    def _plain(self) -> tuple[bytes, bool, errors.OpError | None]:
        ahead, wrong = 0, None
        while True:
            found = self._unquoted_end.search(self._data, self._at + ahead)
            if found is None:
                ahead = len(self._data) - self._at
                if self._has(ahead):
                    continue
                field, self._at = self._data[self._at :], len(self._data)
                return field, False, wrong
            if found.group() == b'"' and self._form.delimiter != b'"':
                wrong = wrong or invalid("Unquoted fields cannot have quotes inside")
                ahead = found.end() - self._at
                continue
            field, self._at = self._data[self._at : found.start()], found.end()
            return field, self._end(found.group()), wrong

    def _quoted(self) -> tuple[bytes, bool, errors.OpError | None]:
        ahead, wrong = 1, None
        while True:
            at = self._data.find(b'"', self._at + ahead)
            if at < 0:
                ahead = len(self._data) - self._at
                if self._has(ahead):
                    continue
                self._at = len(self._data)
                return b"", False, invalid("Reached end of file without closing quoted field in record")
            ahead = at - self._at
            follows = self._data[self._at + ahead + 1 : self._at + ahead + 2] if self._has(ahead + 1) else b""
            if follows == b'"':
                ahead += 2
            elif follows in (b"", b"\n", b"\r", self._form.delimiter):
                field = self._data[self._at + 1 : self._at + ahead].replace(b'""', b'"')
                self._at += ahead + 1 + len(follows)
                return field, bool(follows) and self._end(follows), wrong
            else:
                wrong = wrong or invalid("Quote inside a string has to be escaped by another quote")
                ahead += 2


class Csv(Dataset):
    """The records of CSV files, a component a field; an empty one, or one that is missing, is its default."""

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        names: Sequence[bytes],
        form: CsvFormat,
        defaults: Sequence[Array],
        parsers: Sequence[Callable[[bytes], Any] | None],
        columns: Callable[[Sequence[list[bytes]]], Sequence[Array] | None] | None = None,
    ) -> None:
        """`columns` makes the components of many records, or None where each is to be read by itself."""
        super().__init__(types, shapes)
        self._names, self._form, self._defaults, self._parsers = tuple(names), form, tuple(defaults), tuple(parsers)
        self._columns = columns

    def iterate(self, run: Run) -> Machine:
        names, file, given = self._names, 0, 0
        reader: CsvReader | None = None

        def opened() -> CsvReader:
            nonlocal reader, given
            if reader is None:
                reader = CsvReader(os.fsdecode(names[file]), self._form)
                if self._form.header:
                    given += 1  # counted only where it fails, which stands for an element
                    if reader.read() is None:
                        raise invalid("Can't read header of file")
                    given -= 1
            return reader

        def fields() -> list[bytes] | None:
            nonlocal reader, file, given
            while file < len(names):
                source = opened()
                given += 1
                found = source.read()
                if found is not None:
                    return found
                source.close()
                reader, file, given = None, file + 1, 0
            return None

        def following() -> Element | None:
            found = fields()
            return None if found is None else self._element(found)

        def block(most: int) -> Element | None:
            nonlocal given
            if self._columns is None or reader is None:
                return None  # the first record of a file comes by itself, and with it what is wrong with the file
            records = reader.plain(most)
            found = self._columns(records) if records else None
            if found is None:
                return None
            reader.skip(len(records))
            given += len(records)
            return tuple(found)

        def restore(state: Any) -> None:
            nonlocal reader, file, given
            file, count = state
            reader, given = None, 0
            for _ in range(count):
                run.check()
                try:
                    fields()
                except errors.InvalidArgumentError:
                    continue  # the record was counted

        return Machine(following, lambda: (file, given), restore, block)

    def _element(self, fields: list[bytes]) -> Element:
        count = len(self.types)
        if len(fields) != count:
            have = "more" if len(fields) > count else str(len(fields))
            raise invalid(f"Expect {count} fields but have {have} in record")
        out = []
        for number, (field, dtype, parse) in enumerate(zip(fields, self.types, self._parsers, strict=True)):
            value = np.empty((), dtype.as_numpy_dtype)
            if not field or field == self._form.missing:
                if not self._defaults[number].size:
                    raise invalid(f"Field {number} is required but missing in record!")
                value[()] = self._defaults[number].reshape(-1)[0]
            else:
                try:
                    value[()] = field if parse is None else parse(field)
                except ValueError:
                    shown = field.decode(errors="replace")
                    raise invalid(f"Field {number} in record is not a valid {dtype.op_name}: {shown}") from None
            out.append(value)
        return tuple(out)


#: What a statement may do: all but to open other databases, and to load code.
_REFUSED = {sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH}


def _authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
    loads_code = action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_DENY if action in _REFUSED or loads_code else sqlite3.SQLITE_OK


class Sql(Dataset):
    """The rows that a query of a SQLite database gives."""

    is_slow = True

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], source: bytes, query: bytes) -> None:
        super().__init__(types, shapes)
        self._source, self._query = os.fsdecode(source), query.decode("utf-8", "surrogateescape")

    def iterate(self, run: Run) -> Machine:
        rows: Iterator[tuple[Any, ...]] | None = None
        given = 0

        def following() -> Element | None:
            nonlocal rows, given
            if rows is None:
                rows = self._rows()
            try:
                found = next(rows, None)
            except sqlite3.Error as error:
                is_unknown = getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_ERROR
                kind = errors.UnknownError if is_unknown else errors.InvalidArgumentError
                raise kind(None, None, f"{self._source}: {error}") from None
            if found is None:
                return None
            given += 1
            return tuple(_column(value, dtype) for value, dtype in zip(found, self.types, strict=True))

        def restore(state: Any) -> None:
            nonlocal rows, given
            rows, given = None, 0
            for _ in range(state):
                run.check()
                following()

        return Machine(following, lambda: given, restore)

    def _rows(self) -> Iterator[tuple[Any, ...]]:
        with os_errors(self._source):
            os.close(graph_files().descriptor(self._source))
        uri = f"file:{_quoted_path(os.path.realpath(self._source))}?mode=rw"
        with contextlib.closing(
            sqlite3.connect(uri, uri=True, isolation_level=None, check_same_thread=False)
        ) as connection:
            connection.text_factory = bytes
            connection.set_authorizer(_authorize)
            cursor = connection.execute(self._query)
            columns = len(cursor.description or ())
            if columns != len(self.types):
                raise invalid(
                    f"The number of columns in query ({columns}) must match the number of elements in output_types "
                    f"({len(self.types)})."
                )
            yield from cursor


def _quoted_path(path: str) -> str:
    from urllib.parse import quote

    return quote(path)


def _column(value: Any, dtype: DType) -> Array:
    """What SQLite makes of a value that is asked for as another type."""
    out = np.empty((), dtype.as_numpy_dtype)
    if dtype.name == "string":
        out[()] = b"" if value is None else value if isinstance(value, bytes) else str(value).encode()
        return out
    if isinstance(value, bytes):
        number = _NUMBER.match(value)
        value = float(number.group()) if number else 0
    if dtype.is_floating:
        out[()] = 0.0 if value is None else value
    elif dtype.name == "bool":
        out[()] = bool(int(value or 0))
    else:
        whole = int(value or 0)
        out[()] = np.array(whole & ((1 << 64) - 1), np.uint64).astype(dtype.as_numpy_dtype)
    return out


_NUMBER = re.compile(rb"\s*[-+]?(\d+(\.\d*)?|\.\d+)([eE][-+]?\d+)?")


class Matching(Dataset):
    """The names of the files that match, pattern after pattern. Raises NotFoundError at the end where none did."""

    def __init__(self, patterns: Sequence[bytes]) -> None:
        super().__init__((dtypes.string,), (TensorShape([]),))
        self._patterns = tuple(patterns)

    def iterate(self, run: Run) -> Machine:
        pattern = given = 0
        names: list[str] | None = None
        has_any = False

        def following() -> Element | None:
            nonlocal pattern, given, names, has_any
            while pattern < len(self._patterns):
                if names is None:
                    names = graph_files().matching_files(file_path(self._patterns[pattern]))
                if given < len(names):
                    has_any = True
                    given += 1
                    return (scalar_object(os.fsencode(names[given - 1])),)
                pattern, given, names = pattern + 1, 0, None
            if not has_any:
                raise errors.not_found("Don't find any matched files")
            return None

        def restore(state: Any) -> None:
            nonlocal pattern, given, names, has_any
            pattern, given, held, has_any = state
            names = None if held is None else list(held)

        return Machine(following, lambda: (pattern, given, names, has_any), restore)


def written(dataset: Dataset, run: Run, write: Callable[[bytes], None]) -> None:
    """Writes each element, one string, as a record. Raises InvalidArgumentError for other elements."""
    if len(dataset.types) != 1 or dataset.types[0].name != "string":
        raise invalid("The dataset must have a single component of type string.")
    machine = dataset.iterate(run)
    while (element := machine.following()) is not None:
        run.check()
        if element[0].ndim:
            raise invalid("The dataset's elements must be scalar strings.")
        write(element[0].item())
