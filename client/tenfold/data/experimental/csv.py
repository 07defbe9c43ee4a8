"""`tf.data.experimental.make_csv_dataset`: batches of the rows of CSV files as dicts of columns.

Names and types of the columns are read from the files, now, if they are not given. Follows TensorFlow 1.15's
data/experimental/ops/readers.py.
"""

from __future__ import annotations

import csv
import gzip
import itertools
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import gfile
from tenfold.data import mapping
from tenfold.data.dataset import AUTOTUNE, Dataset
from tenfold.data.experimental.elements import ignore_errors as ignoring_errors
from tenfold.data.experimental.features import read_by_turns, shuffled_rounds
from tenfold.data.readers import CSV_TYPES, CsvDataset, required_column
from tenfold.graph.constant_value import known_value
from tenfold.graph.tensor import Tensor
from tenfold.ops import array
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def make_csv_dataset(
    file_pattern: Any,
    batch_size: Any,
    column_names: Any = None,
    column_defaults: Any = None,
    label_name: str | None = None,
    select_columns: Any = None,
    field_delim: str = ",",
    use_quote_delim: bool = True,
    na_value: str = "",
    header: bool = True,
    num_epochs: int | None = None,
    shuffle: bool = True,
    shuffle_buffer_size: Any = 10000,
    shuffle_seed: Any = None,
    prefetch_buffer_size: Any = None,
    num_parallel_reads: Any = None,
    sloppy: bool = False,
    num_rows_for_inference: int | None = 100,
    compression_type: Any = None,
    ignore_errors: bool = False,
) -> Dataset:
    """Batches of rows as ordered dicts, column → tensor; with `label_name`, pairs of a dict and the label.

    `select_columns` are names or numbers. Reads the files' beginnings if names or defaults are missing. Raises
    ValueError for columns that there are not, or twice, and for files that do not agree.
    """
    filenames = _files(file_pattern)
    dataset = Dataset.from_tensor_slices(filenames)
    if shuffle:
        dataset = dataset.shuffle(len(filenames), shuffle_seed)
    source = _Source(filenames, field_delim, use_quote_delim, compression_type)
    if column_names is None or column_defaults is None:
        source.check_compression()
    if column_names is None:
        if not header:
            raise ValueError("Cannot infer column names without a header line.")
        column_names = source.names()
    if len(column_names) != len(set(column_names)):
        raise ValueError("Cannot have duplicate column names.")
    chosen = None if select_columns is None else _numbers(select_columns, column_names)
    if column_defaults is not None:
        defaults = [required_column(each) for each in column_defaults]
    else:
        types = source.types(len(column_names), na_value, header, num_rows_for_inference, chosen)
        defaults = [array.constant(["" if each is dtypes.string else 0], dtype=each) for each in types]
    if chosen is not None and len(defaults) != len(chosen):
        raise ValueError("If specified, column_defaults and select_columns must have same length.")
    if chosen is not None and len(column_names) > len(chosen):
        column_names = [column_names[number] for number in chosen]
    if label_name is not None and label_name not in column_names:
        raise ValueError("`label_name` provided must be one of the columns.")

    def read(filename: Any) -> Dataset:
        rows: Dataset = CsvDataset(
            filename,
            record_defaults=defaults,
            field_delim=field_delim,
            use_quote_delim=use_quote_delim,
            na_value=na_value,
            select_cols=chosen,
            header=header,
            compression_type=compression_type,
        )
        return rows.apply(ignoring_errors()) if ignore_errors else rows

    def named(*columns: Any) -> Any:
        features = OrderedDict(zip(column_names, columns, strict=True))
        return features if label_name is None else (features, features.pop(label_name))

    dataset = read_by_turns(dataset, read, 1 if num_parallel_reads is None else num_parallel_reads, sloppy)
    dataset = shuffled_rounds(dataset, num_epochs, shuffle, shuffle_buffer_size, shuffle_seed)
    dataset = dataset.batch(batch_size, drop_remainder=num_epochs is None)
    dataset = Dataset(mapping.mapped(dataset, named, use_inter_op_parallelism=False))
    return dataset.prefetch(AUTOTUNE if prefetch_buffer_size is None else prefetch_buffer_size)


def _files(file_pattern: Any) -> list[str]:
    if isinstance(file_pattern, list) and not file_pattern:
        raise ValueError("File pattern is empty.")
    patterns = file_pattern if isinstance(file_pattern, list) else [file_pattern]
    found = sorted(name for pattern in patterns for name in gfile.Glob(pattern))
    if not found:
        raise ValueError(f"No files match {file_pattern}.")
    return found


def _numbers(columns: Sequence[Any], names: Sequence[str]) -> list[int]:
    """The chosen columns as sorted numbers."""
    by_name = {name: number for number, name in enumerate(names)}
    found = []
    for column in columns:
        if isinstance(column, int):
            if not 0 <= column < len(names):
                raise ValueError(f"Column index {column} specified in select_columns out of valid range.")
            found.append(column)
        elif column in by_name:
            found.append(by_name[column])
        else:
            raise ValueError(f"Value '{column}' specified in select_columns not a valid column index or name.")
    if len(set(found)) != len(found):
        raise ValueError("select_columns contains duplicate columns")
    return sorted(found)


class _Source:
    """The files, read here for what the caller did not say."""

    def __init__(self, filenames: list[str], delimiter: str, quotes: bool, compression_type: Any) -> None:
        self._filenames = filenames
        self._form: Any = {"delimiter": delimiter, "quoting": csv.QUOTE_MINIMAL if quotes else csv.QUOTE_NONE}
        self._compression: Any = compression_type
        if isinstance(compression_type, Tensor):
            known = known_value(compression_type)
            self._compression = None if known is None else bytes(known[()]).decode()
            self._is_known = known is not None
        else:
            self._is_known = True

    def check_compression(self) -> None:
        """Raises ValueError for files that are not read here."""
        if not self._is_known:
            raise ValueError("Received unkown compression_type")
        if self._compression == "ZLIB":
            raise ValueError(f"compression_type ({self._compression}) is not supported for probing columns")
        if self._compression not in (None, "", "GZIP"):
            raise ValueError(f"compression_type ({self._compression}) is not supported")

    def _rows(self, filename: str) -> Iterator[list[str]]:
        if self._compression == "GZIP":
            with gzip.open(filename, "rt", newline="") as file:
                yield from csv.reader(file, **self._form)
            return
        with gfile.GFile(filename, "r") as text:
            yield from csv.reader(text, **self._form)

    def names(self) -> list[str]:
        """The first line of the files, which must be the same in all."""
        found: list[str] | None = None
        for filename in self._filenames:
            first = next(self._rows(filename), None)
            if first is None:
                raise ValueError(f"Received StopIteration when reading the header line of {filename}.  Empty file?")
            if found is not None and first != found:
                raise ValueError("Files have different column names in the header row.")
            found = first
        assert found is not None
        return found

    def types(
        self, count: int, na_value: str, header: bool, most_rows: int | None, chosen: Sequence[int] | None
    ) -> list[Any]:
        """The narrowest type of each column that fits the first `most_rows` rows."""
        columns = range(count) if chosen is None else chosen
        found: list[Any] = [None] * len(columns)
        rows = (row for name in self._filenames for row in itertools.islice(self._rows(name), int(header), None))
        for row in itertools.islice(rows, most_rows):
            if len(row) != count:
                raise ValueError("Problem inferring types: CSV row has different number of fields than expected.")
            for place, column in enumerate(columns):
                found[place] = _wider(row[column], na_value, found[place])
        return [dtypes.string if each is None else each for each in found]


#: From narrow to wide.
_ORDER = (dtypes.int32, dtypes.int64, dtypes.float32, dtypes.float64, dtypes.string)
assert set(_ORDER) == set(CSV_TYPES)


def _wider(text: str, na_value: str, before: Any) -> Any:
    """The narrowest type that fits this field and those before."""
    if text in ("", na_value):
        return before
    start = 0 if before is None else _ORDER.index(before)
    return next(dtype for dtype in _ORDER[start:] if _fits(text, dtype))


def _fits(text: str, dtype: Any) -> bool:
    if dtype == dtypes.string:
        return True
    kind = np.dtype(dtype.as_numpy_dtype)
    try:
        if kind.kind == "i":
            bounds = np.iinfo(kind)
            return bool(bounds.min <= int(text) <= bounds.max)
        with np.errstate(over="ignore"):
            return bool(kind.type(float(text)) < np.inf)
    except (ValueError, OverflowError):
        return False
