"""Datasets of files: CSV with quotes over lines, SQLite's rows, names that match, packed text."""

from __future__ import annotations

import gzip
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, drained
from tenfold_core import dtypes, errors
from tenfold_core.records import ByteStream
from tenfold_kernels.cpu.io_parsing import columns_of_records
from tenfold_kernels.cpu.string_number import parser
from tenfold_kernels.resources.datasets import files
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.files import Csv, CsvFormat, Matching, Sql

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

STRING, TWO = (dtypes.string,), SCALAR * 2
FORM = CsvFormat(b",", True, b"", False, (), (), "")


def csv(path: Path, text: bytes, types: Sequence[Any] = (dtypes.string, dtypes.string), **form: Any) -> Csv:
    path.write_bytes(text)
    defaults = [np.zeros(0, dtype.as_numpy_dtype) for dtype in types]
    parsers = [None if dtype.name == "string" else parser(dtype.as_numpy_dtype) for dtype in types]
    columns = partial(columns_of_records, types=types, missing=b"", defaults=defaults)
    return Csv(types, SCALAR * len(types), [str(path).encode()], FORM._replace(**form), defaults, parsers, columns)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"a,b\nc,d\n", [(b"a", b"b"), (b"c", b"d")]),
        (b"a,b\r\nc,d", [(b"a", b"b"), (b"c", b"d")]),
        (b"a,b\rc,d\r", [(b"a", b"b"), (b"c", b"d")]),
        (b'"a\nx","b""y"\n"c",d\n', [(b"a\nx", b'b"y'), (b"c", b"d")]),
        (b'"a,x",b', [(b"a,x", b"b")]),
        (b'a,"b"', [(b"a", b"b")]),
    ],
)
@pytest.mark.parametrize("piece", [1, 3, 1 << 16])
def test_records_of_csv_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, expected: Any, piece: int
) -> None:
    monkeypatch.setattr(files, "_PIECE", piece)
    assert drained(csv(tmp_path / "a.csv", text)) == expected


@pytest.mark.parametrize("piece", [1, 5, 1 << 16])
def test_blocks_of_records_are_what_comes_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    """As many as are whole and without quotes; what is wrong, or written otherwise, comes by itself."""
    monkeypatch.setattr(files, "_PIECE", piece)
    text = b'no,head\n1,a\n2,b\r\n3,"c\nd"\n4,e\n5,\rx,f\n6,g\n7,h\n8,i'
    dataset = csv(tmp_path / "a.csv", text, (dtypes.int32, dtypes.string), header=True)
    machine, found, blocks = dataset.iterate(Run()), [], 0
    assert machine.block is not None
    while True:
        try:
            rows = machine.block(3)
            if rows is not None:
                blocks += 1
                found.extend(zip(*(column.tolist() for column in rows), strict=True))
                other = dataset.iterate(Run())
                other.restore(machine.save())
                machine = other
                continue
            element = machine.following()
        except errors.InvalidArgumentError as error:
            found.append(error.message)
            continue
        if element is None:
            break
        found.append(tuple(value.item() for value in element))

    assert found == [
        (1, b"a"), (2, b"b"), (3, b"c\nd"), (4, b"e"), "Field 1 is required but missing in record!",
        "Field 0 in record is not a valid int32: x", (6, b"g"), (7, b"h"), (8, b"i"),
    ]  # fmt: skip
    assert blocks == 3 or piece < 1 << 16
    assert machine.block(3) is None


def test_columns_are_chosen_and_left_out_and_headers_skipped(tmp_path: Path) -> None:
    text = b"x,y,z\n1,2,3\n4,5,6\n"
    chosen = csv(tmp_path / "a.csv", text, INT, header=True, selected=(1,))
    assert drained(chosen) == [2, 5]
    left = csv(tmp_path / "b.csv", text, INT * 2, header=True, excluded=(1,))
    assert drained(left) == [(1, 3), (4, 6)]
    packed = tmp_path / "c.csv"
    dataset = csv(packed, text, INT * 3, header=True, compression="GZIP")
    packed.write_bytes(gzip.compress(text))
    assert drained(dataset) == [(1, 2, 3), (4, 5, 6)]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        (b'a"b,c\nx,y\n', "Unquoted fields cannot have quotes inside"),
        (b'"a"b",c\nx,y\n', "Quote inside a string has to be escaped by another quote"),
        (b"a\nx,y\n", "Expect 2 fields but have 1 in record"),
        (b"a,b,c\nx,y\n", "Expect 2 fields but have more in record"),
        (b",c\nx,y\n", "Field 0 is required but missing in record!"),
    ],
)
def test_a_record_that_is_wrong_does_not_end_the_file(tmp_path: Path, text: bytes, match: str) -> None:
    machine = csv(tmp_path / "a.csv", text).iterate(Run())
    with pytest.raises(errors.InvalidArgumentError, match=match):
        machine()
    assert drained(machine) == [(b"x", b"y")]


def test_an_empty_file_has_no_header_and_the_next_file_is_read(tmp_path: Path) -> None:
    dataset = csv(tmp_path / "a.csv", b"", (dtypes.string, dtypes.string), header=True)
    csv(tmp_path / "b.csv", b"x,y\na,b\n", (dtypes.string, dtypes.string))
    dataset._names = (*dataset._names, str(tmp_path / "b.csv").encode())
    machine = dataset.iterate(Run())

    with pytest.raises(errors.InvalidArgumentError, match="Can't read header of file"):
        machine()
    assert [part.item() for part in machine() or ()] == [b"a", b"b"]


def test_a_quote_that_never_ends_and_a_number_that_is_none(tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Reached end of file without closing quoted field"):
        drained(csv(tmp_path / "a.csv", b'"a,b\n'))
    with pytest.raises(errors.InvalidArgumentError, match="Field 0 in record is not a valid int64: x"):
        drained(csv(tmp_path / "a.csv", b"x\n", INT))


def database(path: Path) -> bytes:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE people (name TEXT, age INTEGER, height REAL)")
        connection.executemany("INSERT INTO people VALUES (?, ?, ?)", [("Ann", 30, 1.5), ("Bob", -1, 2.25)])
    connection.close()
    return str(path).encode()


def test_rows_of_a_query(tmp_path: Path) -> None:
    source = database(tmp_path / "a.db")
    types = (dtypes.string, dtypes.int32, dtypes.float64)
    rows = Sql(types, SCALAR * 3, source, b"SELECT name, age, height FROM people ORDER BY age DESC")
    assert drained(rows) == [(b"Ann", 30, 1.5), (b"Bob", -1, 2.25)]
    other = Sql((dtypes.string, dtypes.bool_, dtypes.uint8), SCALAR * 3, source, b"SELECT age, age, age FROM people")
    assert drained(other) == [(b"30", True, 30), (b"-1", True, 255)]


@pytest.mark.parametrize(
    ("query", "error", "match"),
    [
        (b"SELECT colour FROM people", errors.UnknownError, "no such column: colour"),
        (b"SELEKT name FROM people", errors.UnknownError, "syntax error"),
        (b"SELECT name, age FROM people", errors.InvalidArgumentError, r"columns in query \(2\) must match the number"),
        (b"INSERT INTO people (name) VALUES ('Eve')", errors.InvalidArgumentError, r"columns in query \(0\)"),
        (b"ATTACH DATABASE 'other.db' AS other", errors.InvalidArgumentError, "not authorized"),
        (b"SELECT load_extension('x') FROM people", errors.UnknownError, "not authorized"),
    ],
)
def test_queries_that_are_refused(tmp_path: Path, query: bytes, error: type[errors.OpError], match: str) -> None:
    source = database(tmp_path / "a.db")
    with pytest.raises(error, match=match):
        drained(Sql(STRING, SCALAR, source, query))
    assert drained(Sql(STRING, SCALAR, source, b"SELECT name FROM people WHERE age > 99")) == []


def test_names_that_match_and_none_that_does(tmp_path: Path) -> None:
    for name in ("b.txt", "a.txt", "c.bin"):
        (tmp_path / name).touch()
    (tmp_path / "d.txt").mkdir()
    names = [str(tmp_path / name).encode() for name in ("a.txt", "b.txt")]
    assert drained(Matching([str(tmp_path / "*.txt").encode()])) == names
    with pytest.raises(errors.NotFoundError, match="any matched files"):
        drained(Matching([str(tmp_path / "*.none").encode()]))


def test_lines_of_packed_files(tmp_path: Path) -> None:
    lines = [b"%d %s\n" % (n, b"x" * n) for n in range(400)] + [b"last"]
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(b"".join(lines)))
    stream = ByteStream(str(path), "GZIP")
    assert [stream.read_line() for _ in lines] == lines
    assert stream.read_line() is None
    stream.close()
