"""Parquet files: each type of column, batches over row groups, and what is said of files that cannot be read."""

from __future__ import annotations

import datetime
import itertools
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

from support import parquet_tables
from tenfold_core import dtypes, errors
from tenfold_core.dtypes import as_dtype
from tenfold_core.graph_files import GraphFiles
from tenfold_core.parquet_files import Column, ParquetReader

if TYPE_CHECKING:
    from pathlib import Path


def read(path: str, *names: str, size: int = 100, groups: Any = None) -> list[list[Any]]:
    with ParquetReader(path) as reader:
        columns = [reader.column(name) for name in names]
        return list(reader.batches(columns, size, range(reader.row_groups) if groups is None else groups))


NUMBERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32", "float64"]


@pytest.mark.parametrize("name", NUMBERS)
def test_columns_of_numbers(tmp_path: Path, name: str) -> None:
    values = np.array([0, 1, 100], name)
    path = parquet_tables.write(tmp_path / "f", {"a": pa.array(values)})
    with ParquetReader(path) as reader:
        assert reader.column("a") == Column("a", as_dtype(name), 0)
    ((found,),) = read(path, "a")
    assert found.dtype == values.dtype
    np.testing.assert_array_equal(found, values)
    assert not found.flags.writeable


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary(), pa.large_binary()])
def test_columns_of_texts_are_bytes(tmp_path: Path, kind: Any) -> None:
    path = parquet_tables.write(tmp_path / "f", {"a": pa.array(["x", "", "é"], kind)})
    with ParquetReader(path) as reader:
        assert reader.column("a") == Column("a", dtypes.string, 0)
    assert read(path, "a")[0][0].tolist() == [b"x", b"", "é".encode()]


def test_columns_of_bools_and_of_categories(tmp_path: Path) -> None:
    category = pa.array(["x", "y", "x"]).dictionary_encode()
    path = parquet_tables.write(tmp_path / "f", {"b": [True, False, True], "c": category})
    ((bools, texts),) = read(path, "b", "c")
    assert (bools.tolist(), texts.tolist()) == ([True, False, True], [b"x", b"y", b"x"])


@pytest.mark.parametrize("size", [3, 4, 100])
def test_batches_go_on_over_row_groups(tmp_path: Path, size: int) -> None:
    path = parquet_tables.write(tmp_path / "f")
    found = read(path, "id", "seen", "deep", size=size)
    starts = range(0, parquet_tables.ROWS, size)
    assert [batch[0].tolist() for batch in found] == [list(range(s, min(s + size, 10))) for s in starts]
    for start, (_, values, begin, deep, outer, inner) in zip(starts, found, strict=True):
        rows = [values[a:b].tolist() for a, b in itertools.pairwise(begin)]
        assert rows == parquet_tables.LISTS[start : start + size]
        lists = [deep[a:b].tolist() for a, b in itertools.pairwise(inner)]
        nested = [lists[a:b] for a, b in itertools.pairwise(outer)]
        assert nested == parquet_tables.NESTED[start : start + size]
        assert {array.dtype for array in (begin, outer, inner)} == {np.dtype(np.int32)}


def test_some_row_groups_and_columns_in_the_order_asked_for(tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f")
    ((names, ids),) = read(path, "name", "id", groups=[0, 2])
    assert ids.tolist() == [0, 1, 2, 3, 8, 9]
    assert names.tolist() == [b"n%d" % i for i in ids]
    assert read(path, "id", groups=[]) == []


def test_several_threads_decode_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet_tables.write(tmp_path / "f")
    alone = read(path, "id", "name")
    for value in ("2", "-1", "odd"):
        monkeypatch.setenv("ARROW_NUM_THREADS", value)
        assert [[a.tolist() for a in batch] for batch in read(path, "id", "name")] == [
            [a.tolist() for a in batch] for batch in alone
        ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, None], "column 'a' has a missing value"),
        ([[1], None], "column 'a' has a missing value"),
        ([[1], [None]], "column 'a' has a missing value"),
        (["x", None], "column 'a' has a missing value"),
    ],
)
def test_missing_values_are_refused(tmp_path: Path, values: Any, message: str) -> None:
    path = parquet_tables.write(tmp_path / "f", {"a": values})
    with pytest.raises(errors.InvalidArgumentError, match=message):
        read(path, "a")


def test_types_that_no_tensor_has(tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f", {"day": [datetime.date(2026, 1, 1)], "x": [1]})
    with ParquetReader(path) as reader, pytest.raises(errors.UnimplementedError, match="'day' is date32"):
        reader.column("day")
    assert read(path, "x")[0][0].tolist() == [1]


def test_a_column_that_is_not_there_and_one_that_is_another(tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f")
    with ParquetReader(path) as reader:
        with pytest.raises(errors.NotFoundError, match="no column 'odd'; there are id, name, seen, deep, pair"):
            reader.column("odd")
        for column, message in (
            (Column("id", dtypes.float32, 0), "column 'id' is int64, and float32 was asked for"),
            (Column("id", dtypes.int64, 1), "column 'id' is int64, and list of int64 was asked for"),
            (Column("deep", dtypes.int64, 1), "column 'deep' is list of list of int64, and list of int64 was"),
        ):
            with pytest.raises(errors.InvalidArgumentError, match=message):
                next(reader.batches([column], 1, [0]))


def test_two_columns_of_one_name(tmp_path: Path) -> None:
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    path = parquet_tables.write(tmp_path / "f", twice)
    with pytest.raises(errors.InvalidArgumentError, match="two columns are called 'a'"):
        ParquetReader(path)


def test_files_that_are_damaged(tmp_path: Path) -> None:
    parquet_tables.write(tmp_path / "whole")
    whole = (tmp_path / "whole").read_bytes()
    for number, data in enumerate((b"", b"PAR1", b"no table at all", whole[:-9], whole[: len(whole) // 2])):
        path = tmp_path / f"bad{number}"
        path.write_bytes(data)
        with pytest.raises(errors.DataLossError, match=f"bad{number}: no whole Parquet file"):
            ParquetReader(str(path))
    torn = tmp_path / "torn"
    torn.write_bytes(b"PAR1" + b"\xff" * 40 + whole[44:])
    with pytest.raises(errors.DataLossError, match="torn: no whole Parquet file"):
        read(str(torn), "id")


def test_files_that_are_not_there_or_may_not_be_used(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="No such file"):
        ParquetReader(str(tmp_path / "none"))
    with pytest.raises(errors.FailedPreconditionError):
        ParquetReader(str(tmp_path))
    (tmp_path / "mine").mkdir()
    path = parquet_tables.write(tmp_path / "f")
    with pytest.raises(errors.PermissionDeniedError, match="the folder that graphs may use"):
        ParquetReader(path, files=GraphFiles(str(tmp_path / "mine")))


def test_a_batch_that_is_too_large(tmp_path: Path) -> None:
    path = parquet_tables.write(tmp_path / "f", {"a": pa.array(range(4000), pa.int64()), "t": ["x" * 20] * 4000})
    small = GraphFiles(most_bytes=20_000)
    for name, size in (("a", 4000), ("t", 2000)):
        with ParquetReader(path, files=small) as reader:
            with pytest.raises(errors.ResourceExhaustedError, match="TENFOLD_FILE_BYTES"):
                next(reader.batches([reader.column(name)], size, range(reader.row_groups)))
            assert next(reader.batches([reader.column(name)], 100, range(reader.row_groups)))


def test_room_for_a_batch_is_asked_for_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = parquet_tables.write(tmp_path / "f", {"a": pa.array(range(4000), pa.int64())})
    with ParquetReader(path, files=GraphFiles(most_bytes=20_000)) as reader:
        batches = reader.batches([reader.column("a")], 4000, range(reader.row_groups))
        # nothing is left of the file that could make room for rows
        monkeypatch.setattr(reader, "_file", SimpleNamespace(metadata=reader._file.metadata, close=reader._file.close))
        with pytest.raises(errors.ResourceExhaustedError, match="32000 bytes are more than the 20000"):
            next(batches)


@pytest.mark.parametrize(
    ("values", "message"),
    [(2**31 - 1, "column 'a' has a missing value"), (2**31, r"column 'a' has more than 2\^31 - 1 values")],
)
def test_values_of_a_batch_of_lists_are_counted_in_32_bits(tmp_path: Path, values: int, message: str) -> None:
    path = parquet_tables.write(tmp_path / "f", {"a": [[1]]})
    # missing values take no memory
    lists = pa.LargeListArray.from_arrays(pa.array([0, 1, values], pa.int64()), pa.nulls(values))
    with ParquetReader(path) as reader, pytest.raises(errors.InvalidArgumentError, match=message):
        reader._arrays(lists, Column("a", dtypes.int64, 1))


def test_without_pyarrow_the_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(errors.UnimplementedError, match=r"pip install 'tenfold\[parquet\]'"):
        ParquetReader("any")
