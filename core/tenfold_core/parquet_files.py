"""Parquet files: tables in columns, read in batches of rows.

pyarrow decodes them. It is in the extra `parquet`, imported at the first file; without it the error says what to
install. Files are opened through a `Files`, so that a graph's are those that it may use. Used by the dataset of
kernels/cpu and by programs that ask for a schema. Which types a column may have, and what becomes of them, follows
DeepRec's arrow_util.cc, with a few more.
"""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.dtypes import DType, as_dtype
from tenfold_core.file_errors import os_error, os_errors
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

#: A file's own description may have texts and lists of this size: more than a table of 10,000 columns needs.
_MOST_TEXT, _MOST_ITEMS = 1 << 26, 1 << 22
#: Bytes of a column that are read together.
_BUFFER_BYTES = 1 << 18
#: Types of Arrow that are those of NumPy, by their names.
_NUMBERS = {
    **{name: name for name in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")},
    **{"halffloat": "float16", "float": "float32", "double": "float64"},
}
_TEXTS = frozenset(("string", "binary", "large_string", "large_binary"))


class Column(NamedTuple):
    """A column: numbers, bools or texts for rank 0, lists of them for rank 1, lists of lists for rank 2, …"""

    name: str
    dtype: DType
    ragged_rank: int

    def __str__(self) -> str:
        return "list of " * self.ragged_rank + self.dtype.name


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise errors.UnimplementedError(
            None, None, "Parquet files need the package pyarrow, which is not installed: pip install 'tenfold[parquet]'"
        ) from None
    return pyarrow


class ParquetReader:
    """A file, open until `close`. Not thread-safe; blocks on the disk.

    Raises UnimplementedError without pyarrow, the step's error for what the disk says, DataLossError for a file that is
    damaged, cut off, or none of this format.
    """

    def __init__(self, path: str, *, files: Files = EVERYWHERE) -> None:
        self._arrow = _pyarrow()
        self._path, self._opener = path, files
        with os_errors(path):
            self._stream = files.open_to_read(file_path(path))
        try:
            with self._failures():
                self._file = self._arrow.parquet.ParquetFile(
                    self._arrow.PythonFile(self._stream, mode="r"),
                    buffer_size=_BUFFER_BYTES,
                    thrift_string_size_limit=_MOST_TEXT,
                    thrift_container_size_limit=_MOST_ITEMS,
                )
                self._schema = self._file.schema_arrow
            self.names: list[str] = self._schema.names
            if len(set(self.names)) < len(self.names):
                twice = next(name for name in self.names if self.names.count(name) > 1)
                raise errors.InvalidArgumentError(None, None, f"{path}: two columns are called {twice!r}")
        except BaseException:
            self._stream.close()
            raise

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> ParquetReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def row_groups(self) -> int:
        """The number of its parts, which can be read apart from each other."""
        return int(self._file.num_row_groups)

    def column(self, name: str) -> Column:
        """What a column is. Raises NotFoundError without such a one, UnimplementedError for types that tensors lack."""
        if name not in self.names:
            raise errors.NotFoundError(
                None, None, f"{self._path}: there is no column {name!r}; there are {', '.join(self.names) or 'none'}"
            )
        found = kind = self._schema.field(name).type
        rank = 0
        while str(kind).startswith(("list<", "large_list<")):
            kind, rank = kind.value_type, rank + 1
        if str(kind).startswith("dictionary<"):
            kind = kind.value_type
        dtype = dtypes.string if str(kind) in _TEXTS else _NUMBERS.get(str(kind))
        if dtype is None:
            raise errors.UnimplementedError(
                None,
                None,
                f"{self._path}: column {name!r} is {found}: numbers, bools, strings, and lists of them are read",
            )
        return Column(name, as_dtype(dtype), rank)

    def batches(self, columns: Sequence[Column], batch_size: int, groups: Sequence[int]) -> Iterator[list[Any]]:
        """Batches of the rows of some parts: `batch_size` rows each, but for the last.

        A batch is for each column its values, and for lists the places where those of each level begin, int32, the
        outermost level first. Arrays are read-only. Raises InvalidArgumentError for a column that is another than it is
        said to be and for a missing value, ResourceExhaustedError for a batch of more bytes than may be read at once.
        """
        for wanted in columns:
            found = self.column(wanted.name)
            if found != wanted:
                raise errors.InvalidArgumentError(
                    None, None, f"{self._path}: column {wanted.name!r} is {found}, and {wanted} was asked for"
                )
        threads = _threads(self._arrow)
        with self._failures():
            rows = sum(self._file.metadata.row_group(group).num_rows for group in groups)
            most = min(batch_size, max(rows, 1))
            # pyarrow makes room for as many rows as it is asked for, and the file says how many it has
            self._opener.check_bytes(self._path, most * max(wanted.dtype.size for wanted in columns))
            read = self._file.iter_batches(most, list(groups), [wanted.name for wanted in columns], use_threads=threads)
        while True:
            with self._failures():
                batch = next(read, None)
            if batch is None:
                return
            self._opener.check_bytes(self._path, batch.nbytes)
            out: list[Any] = []
            for wanted in columns:
                out += self._arrays(batch.column(wanted.name), wanted)
            yield out

    def _arrays(self, array: Any, column: Column) -> list[Any]:
        starts = []
        for _ in range(column.ragged_rank):
            self._check_whole(array, column)
            begin = array.offsets.to_numpy()
            array = array.values.slice(begin[0], begin[-1] - begin[0])
            begin = begin - begin[0]
            if len(begin) and begin[-1] > np.iinfo(np.int32).max:
                raise errors.InvalidArgumentError(
                    None, None, f"{self._path}: a batch of column {column.name!r} has more than 2^31 - 1 values"
                )
            starts.append(_read_only(begin.astype(np.int32)))
        self._check_whole(array, column)
        if hasattr(array, "dictionary_decode"):
            array = array.dictionary_decode()
        if column.dtype == dtypes.string:
            text = str(array.type)
            array = array.cast(self._arrow.large_binary() if text.startswith("large_") else self._arrow.binary())
        return [_read_only(array.to_numpy(zero_copy_only=False)), *starts]

    def _check_whole(self, array: Any, column: Column) -> None:
        if array.null_count:
            raise errors.InvalidArgumentError(
                None, None, f"{self._path}: column {column.name!r} has a missing value (null), which no tensor can hold"
            )

    @contextlib.contextmanager
    def _failures(self) -> Iterator[None]:
        """What pyarrow says of the file, as the step's error."""
        try:
            yield
        except MemoryError as error:
            raise errors.ResourceExhaustedError(None, None, f"{self._path}: {_first_line(error)}") from None
        except NotImplementedError as error:
            raise errors.UnimplementedError(None, None, f"{self._path}: {_first_line(error)}") from None
        except OSError as error:
            if error.errno is not None:
                raise os_error(self._path, error) from None
            raise self._damaged(error) from None
        except (self._arrow.ArrowException, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{self._path}: no whole Parquet file: {_first_line(error)}")


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0]


def _read_only(array: Any) -> Any:
    array.setflags(write=False)
    return array


def _threads(arrow: Any) -> bool:
    """Whether several threads decode the columns of a batch: ARROW_NUM_THREADS, as DeepRec has it; 0 by default."""
    try:
        count = int(os.environ.get("ARROW_NUM_THREADS", "0"))
    except ValueError:
        return False
    if count > 0 and arrow.cpu_count() != count:
        arrow.set_cpu_count(count)
    return count != 0
