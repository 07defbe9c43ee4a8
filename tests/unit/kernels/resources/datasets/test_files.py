"""Datasets of files: CSV with quotes over lines, SQLite's rows, names that match, packed text."""

from __future__ import annotations

import gc
import gzip
import sqlite3
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, drained
from tenfold_core import dtypes, errors, graph_files
from tenfold_core.graph_files import GraphFiles
from tenfold_core.records import ByteStream
from tenfold_kernels.cpu.io_parsing import columns_of_records
from tenfold_kernels.cpu.string_number import parser
from tenfold_kernels.resources.datasets import files
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.files import Csv, CsvFormat, CsvReader, Matching, Sql, written
from tenfold_kernels.resources.datasets.sources import Listed

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


# ---- fields and records ----------------------------------------------------------------------------------------------


def reader(path: Path, text: bytes, **form: Any) -> CsvReader:
    path.write_bytes(text)
    return CsvReader(str(path), FORM._replace(**form))


def all_of(source: CsvReader) -> list[Any]:
    """Records, and in their places the messages of errors."""
    found: list[Any] = []
    while len(found) < 50:
        try:
            record = source.read()
        except errors.InvalidArgumentError as error:
            found.append(error.message)
            continue
        if record is None:
            break
        found.append(record)
    assert source.read() is None
    return found


NO_QUOTES = "Unquoted fields cannot have quotes inside"
NOT_ESCAPED = "Quote inside a string has to be escaped by another quote"
NOT_CLOSED = "Reached end of file without closing quoted field in record"


@pytest.mark.parametrize("piece", [1, 2, 3, 5, 1 << 16])
@pytest.mark.parametrize(
    ("text", "records"),
    [
        (b"", []),
        (b"\n", [[b""]]),
        (b"\r", [[b""]]),
        (b"\r\n\r\n", [[b""], [b""]]),
        (b",\n,", [[b"", b""], [b"", b""]]),
        (b"a", [[b"a"]]),
        (b"a,", [[b"a", b""]]),
        (b"a,\r", [[b"a", b""]]),
        (b"a\rb\r\nc\n", [[b"a"], [b"b"], [b"c"]]),
        (b"a\r,b\n", [[b"a"], [b"", b"b"]]),
        (b'""\n', [[b""]]),
        (b'"",""', [[b"", b""]]),
        (b'"a"\r"b"\r\n"c"\n', [[b"a"], [b"b"], [b"c"]]),
        (b'"a""b","c\r\nd"\nx', [[b'a"b', b"c\r\nd"], [b"x"]]),
        (b'""""\n""""""', [[b'"'], [b'""']]),
        (b'"a",\n', [[b"a", b""]]),
        (b'"a",', [[b"a", b""]]),
        (b'x,"a,b",y\r\nz', [[b"x", b"a,b", b"y"], [b"z"]]),
        (b'a"b\nc\n', [NO_QUOTES, [b"c"]]),
        (b'a"b"c,d"\nc', [NO_QUOTES, [b"c"]]),
        (b'a"b', [NO_QUOTES]),
        (b'"a"b"\nc\n', [NOT_ESCAPED, [b"c"]]),
        (b'"a"b"c"d",e\nf', [NOT_ESCAPED, [b"f"]]),
        (b'"a"b",c"d\ne', [NOT_ESCAPED, [b"e"]]),
        (b'"a\nb', [NOT_CLOSED]),
        (b'x,"', [NOT_CLOSED]),
        (b'"a""', [NOT_CLOSED]),
    ],
)
def test_records_of_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: bytes, records: list[Any], piece: int
) -> None:
    monkeypatch.setattr(files, "_PIECE", piece)
    assert all_of(reader(tmp_path / "t", text)) == records


@pytest.mark.parametrize("piece", [1, 4, 1 << 16])
def test_quotes_and_delimiters_of_another_kind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(files, "_PIECE", piece)
    for text, records, form in (
        (b'"a,b"\r\nc"d\r"\n', [[b'"a', b'b"'], [b'c"d'], [b'"']], {"quotes": False}),
        (b'"a;b";c,d\n', [[b"a;b", b"c,d"]], {"delimiter": b";"}),
        (b"a.b\n.\r", [[b"a", b"b"], [b"", b""]], {"delimiter": b"."}),
        (b"a^b]c", [[b"a", b"b]c"]], {"delimiter": b"^"}),
        (b"a\tb\r\nc", [[b"a", b"b"], [b"c"]], {"delimiter": b"\t"}),
        (b'a"b\rc\n', [[b"a", b"b"], [b"c"]], {"delimiter": b'"', "quotes": False}),
    ):
        assert all_of(reader(tmp_path / "t", text, **form)) == records


def test_fields_that_are_wanted(tmp_path: Path) -> None:
    text = b'a,b,c\nd\n"e",f\n'
    for form, records in (
        ({}, [[b"a", b"b", b"c"], [b"d"], [b"e", b"f"]]),
        ({"selected": (0, 2)}, [[b"a", b"c"], [b"d"], [b"e"]]),
        ({"selected": (1,)}, [[b"b"], [], [b"f"]]),
        ({"excluded": (0,)}, [[b"b", b"c"], [], [b"f"]]),
        ({"excluded": (1, 2)}, [[b"a"], [b"d"], [b"e"]]),
    ):
        assert all_of(reader(tmp_path / "t", text, **form)) == records
        assert reader(tmp_path / "t", text, **form).plain(9) == records[:2]


@pytest.mark.parametrize("piece", [1, 3, 1 << 16])
def test_records_that_are_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, piece: int) -> None:
    monkeypatch.setattr(files, "_PIECE", piece)
    source, found = reader(tmp_path / "t", b'a,1\r\nb,2\nc,"3"\nd,4\re,5\nf,6\ng,7'), list[Any]()
    while True:
        records = source.plain(2)
        assert len(records) <= 2
        if records:
            assert source.plain(len(records)) == records, "only `skip` moves on"
            source.skip(len(records))
            found += records
        else:
            found.append("one")
            record = source.read()
            if record is None:
                break
            found.append(record)
    assert [each for each in found if each != "one"] == [
        [b"a", b"1"], [b"b", b"2"], [b"c", b"3"], [b"d", b"4"], [b"e", b"5"], [b"f", b"6"], [b"g", b"7"],
    ]  # fmt: skip
    if piece > 3:
        assert found[:3] == [[b"a", b"1"], [b"b", b"2"], "one"], "none with quotes"
        assert found.count("one") == 4, "nor with another end, nor the last, whose end is not there"


def test_a_record_is_no_longer_than_a_file_may_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_PIECE", 4)
    kept = graph_files.graph_files()
    try:
        graph_files.use(GraphFiles(most_bytes=8))
        assert all_of(reader(tmp_path / "t", b"aa\nbbb\ncccc\n"))
        with pytest.raises(errors.ResourceExhaustedError):
            reader(tmp_path / "t", b'"aaaaaaaaaaaa').read()
    finally:
        graph_files.use(kept)


def test_a_reader_that_is_gone_has_closed_its_file(tmp_path: Path) -> None:
    source = reader(tmp_path / "t", b"a\n")
    stream = source._stream
    assert source.read() == [b"a"]
    del source
    gc.collect()
    with pytest.raises(ValueError, match="closed"):
        stream.read(1)
    other = reader(tmp_path / "t", b"a\n")
    other.close()
    with pytest.raises(ValueError, match="closed"):
        other.read()


# ---- elements of tables ----------------------------------------------------------------------------------------------


def table(path: Path, text: bytes, defaults: Sequence[Any], types: Sequence[Any], **form: Any) -> Csv:
    made = csv(path, text, types, **form)
    made._defaults = tuple(defaults)
    made._columns = None
    return made


def test_fields_that_are_empty_or_missing(tmp_path: Path) -> None:
    types = (dtypes.string, dtypes.float32, dtypes.int64)
    defaults = [np.array([b"none"], object), np.array(1.5, np.float32), np.zeros(0, np.int64)]
    machine = table(tmp_path / "t", b",,3\nNA,NA,4\na,2,\nb,3,NA\nc,4,5\n", defaults, types, missing=b"NA").iterate(
        Run()
    )
    first = machine()
    assert first is not None
    assert [(array.shape, array.dtype) for array in first] == [((), object), ((), np.float32), ((), np.int64)]
    assert [array.item() for array in first] == [b"none", 1.5, 3]
    assert [array.item() for array in machine() or ()] == [b"none", 1.5, 4]
    for _ in range(2):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Field 2 is required but missing in record!"):
            machine()
    assert [array.item() for array in machine() or ()] == [b"c", 4, 5]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"a\n", "Expect 2 fields but have 1 in record"),
        (b"a,1,2\n", "Expect 2 fields but have more in record"),
        (b"a,x\n", "Field 1 in record is not a valid int64: x"),
        (b"a,\xff\n", "Field 1 in record is not a valid int64: \ufffd"),
    ],
)
def test_records_that_do_not_fit(tmp_path: Path, text: bytes, message: str) -> None:
    machine = table(
        tmp_path / "t", text, [np.zeros(0, object), np.zeros(0, np.int64)], (dtypes.string, dtypes.int64)
    ).iterate(Run())
    with pytest.raises(errors.InvalidArgumentError) as refused:
        machine()
    assert refused.value.message == message
    assert machine() is None


@pytest.mark.parametrize("taken", range(8))
@pytest.mark.parametrize("header", [True, False])
def test_a_table_of_several_files_goes_on_where_it_was(tmp_path: Path, taken: int, header: bool) -> None:
    first = b"no\n" * header
    dataset = csv(tmp_path / "a", first + b"1\nx\n3\n", INT, header=header)
    csv(tmp_path / "b", first, INT)
    csv(tmp_path / "c", first + b"4\n5", INT)
    dataset._names = tuple(str(tmp_path / name).encode() for name in "abc")
    whole = [1, "Field 0 in record is not a valid int64: x", 3, 4, 5]

    def events(machine: Any, most: int) -> list[Any]:
        found: list[Any] = []
        while len(found) < most:
            try:
                element = machine()
            except errors.InvalidArgumentError as error:
                found.append(error.message)
                continue
            if element is None:
                break
            found.append(element[0].item())
        return found

    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    assert events(machine, taken) == whole[:taken]
    other()
    state = machine.save()
    assert state[1] == [0, 1, 2, 3, 1, 2, 0, 0][taken]
    other.restore(state)
    assert events(other, 99) == whole[taken:]
    assert other() is None
    closed = Run()
    ended = dataset.iterate(closed)
    closed.close()
    with pytest.raises(errors.CancelledError):
        ended.restore((0, 1))
    ended.restore((0, 0))


def test_a_header_that_is_missing_is_one_error(tmp_path: Path) -> None:
    dataset = csv(tmp_path / "a", b"", INT, header=True)
    csv(tmp_path / "b", b"no\n7\n", INT)
    dataset._names = tuple(str(tmp_path / name).encode() for name in "ab")
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    with pytest.raises(errors.InvalidArgumentError, match=r"^Can't read header of file"):
        machine()
    assert machine.save() == (0, 1)
    other.restore(machine.save())
    assert drained(other) == drained(machine) == [7]


def test_blocks_of_a_table(tmp_path: Path) -> None:
    dataset = csv(tmp_path / "a", b"1\n2\n3\nx\n5\n", INT)
    machine = dataset.iterate(Run())
    assert machine.block is not None
    assert machine.block(2) is None, "the first record comes by itself"
    machine()
    block = machine.block(1)
    assert block is not None
    assert block[0].tolist() == [2]
    assert machine.save() == (0, 2)
    assert machine.block(3) is None, "one of them is not a number"
    assert machine.save() == (0, 2)
    assert machine()[0].item() == 3  # type: ignore[index]
    with pytest.raises(errors.InvalidArgumentError, match="not a valid int64: x"):
        machine()
    block = machine.block(3)
    assert block is not None
    assert block[0].tolist() == [5]
    assert machine.block(3) is None
    assert machine() is None
    dataset._columns = None
    plain = dataset.iterate(Run())
    plain()
    assert plain.block is not None
    assert plain.block(1) is None


# ---- databases -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "dtype", "wanted"),
    [
        (None, dtypes.string, b""), (b"a", dtypes.string, b"a"), (7, dtypes.string, b"7"), (1.5, dtypes.string, b"1.5"),
        (None, dtypes.float64, 0), (2, dtypes.float64, 2), (2.5, dtypes.float32, 2.5),
        (b" -1.5e1x", dtypes.float64, -15),
        (b".5", dtypes.float64, 0.5), (b"5.", dtypes.float64, 5), (b"+3", dtypes.float64, 3),
        (b"x1", dtypes.float64, 0),
        (b"2E-1", dtypes.float64, 0.2), (b"", dtypes.float64, 0),
        (None, dtypes.bool_, False), (2, dtypes.bool_, True), (0.5, dtypes.bool_, False), (b"1", dtypes.bool_, True),
        (None, dtypes.int32, 0), (3.9, dtypes.int32, 3), (-3.9, dtypes.int32, -3), (b"12.7", dtypes.int64, 12),
        (-1, dtypes.uint8, 255), (300, dtypes.uint8, 44), (1 << 62, dtypes.int64, 1 << 62), (-1, dtypes.int64, -1),
        (-1, dtypes.uint16, 65535), (b"x", dtypes.int8, 0),
    ],
)  # fmt: skip
def test_what_a_value_is_as_another_type(value: Any, dtype: Any, wanted: Any) -> None:
    found = files._column(value, dtype)
    assert (found.shape, found.dtype) == ((), dtype.as_numpy_dtype)
    assert found.item() == pytest.approx(wanted) if dtype.is_floating else found.item() == wanted


def test_rows_of_a_query_go_on_where_they_were(tmp_path: Path) -> None:
    rows = Sql(STRING, SCALAR, database(tmp_path / "a.db"), b"SELECT name FROM people ORDER BY name")
    for taken in range(4):
        machine, other = rows.iterate(Run()), rows.iterate(Run())
        for _ in range(taken):
            machine()
        assert machine.save() == min(taken, 2)
        other()
        other.restore(machine.save())
        assert drained(other) == drained(machine) == [b"Ann", b"Bob"][taken:]
    run = Run()
    closed = rows.iterate(run)
    run.close()
    with pytest.raises(errors.CancelledError):
        closed.restore(1)
    assert rows.is_slow


def test_a_database_is_opened_by_its_name(tmp_path: Path) -> None:
    source = database(tmp_path / "a?mode=memory#b%20.db")
    assert drained(Sql(STRING, SCALAR, source, b"SELECT name FROM people WHERE age = 30")) == [b"Ann"]
    with pytest.raises(errors.NotFoundError, match="none"):
        drained(Sql(STRING, SCALAR, str(tmp_path / "none").encode(), b"SELECT 1"))
    assert not (tmp_path / "none").exists()
    (tmp_path / "text").write_bytes(b"no database" * 100)
    with pytest.raises(errors.InvalidArgumentError, match="not a database"):
        drained(Sql(STRING, SCALAR, str(tmp_path / "text").encode(), b"SELECT name FROM people"))


def test_what_a_statement_may_do() -> None:
    ok, deny = sqlite3.SQLITE_OK, sqlite3.SQLITE_DENY
    assert [files._authorize(action, None, None) for action in (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH)] == [
        deny
    ] * 2
    assert files._authorize(sqlite3.SQLITE_FUNCTION, None, "load_extension", "main", None) == deny
    assert files._authorize(sqlite3.SQLITE_FUNCTION, None, "count") == ok
    assert files._authorize(sqlite3.SQLITE_READ, "load_extension", "load_extension") == ok
    assert files._authorize(sqlite3.SQLITE_SELECT, None, None) == ok


def test_rows_have_as_many_columns_as_types(tmp_path: Path) -> None:
    source = database(tmp_path / "a.db")
    with pytest.raises(errors.InvalidArgumentError, match=r"in query \(3\) .* in output_types \(2\)\.$"):
        drained(Sql(STRING * 2, SCALAR * 2, source, b"SELECT name, age, height FROM people"))


# ---- names and records -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("taken", range(5))
def test_names_go_on_where_they_were(tmp_path: Path, taken: int) -> None:
    for name in ("a1", "a2", "b1"):
        (tmp_path / name).touch()
    patterns = [str(tmp_path / pattern).encode() for pattern in ("a*", "none*", "b*")]
    whole = [str(tmp_path / name).encode() for name in ("a1", "a2", "b1")]
    dataset = Matching(patterns)
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    for _ in range(taken):
        machine()
    other()
    other.restore(machine.save())
    assert drained(other) == drained(machine) == whole[taken:]
    assert other() is None
    assert [dtype.name for dtype in dataset.types] == ["string"]


def test_names_are_those_of_then(tmp_path: Path) -> None:
    for name in ("a1", "a2"):
        (tmp_path / name).touch()
    machine = Matching([str(tmp_path / "a*").encode()]).iterate(Run())
    machine()
    (tmp_path / "a3").touch()
    other = Matching([str(tmp_path / "a*").encode()]).iterate(Run())
    other.restore(machine.save())
    assert drained(other) == [str(tmp_path / "a2").encode()]
    nothing = Matching([]).iterate(Run())
    for _ in range(2):
        with pytest.raises(errors.NotFoundError, match=r"^Don't find any matched files"):
            nothing()


def text(value: bytes) -> Any:
    return np.array(value, object)


def test_elements_are_written_as_records() -> None:
    found: list[bytes] = []
    written(Listed(STRING, SCALAR, [(text(b"a"),), (text(b""),)]), Run(), found.append)
    assert found == [b"a", b""]
    for types in (STRING * 2, INT):
        with pytest.raises(errors.InvalidArgumentError, match="must have a single component of type string"):
            written(Listed(types, SCALAR * len(types), []), Run(), found.append)
    with pytest.raises(errors.InvalidArgumentError, match="elements must be scalar strings"):
        written(Listed(STRING, SCALAR, [(text(b"c"),), (np.array([b"d"], object),)]), Run(), found.append)
    assert found == [b"a", b"", b"c"]
    run = Run()
    run.close()
    with pytest.raises(errors.CancelledError):
        written(Listed(STRING, SCALAR, [(text(b"a"),)]), run, found.append)


def test_a_table_reads_each_field_in_its_own_way(tmp_path: Path) -> None:
    made = csv(tmp_path / "t", b"1,2\n", INT * 2)
    made._parsers = made._parsers[:1]
    with pytest.raises(ValueError, match=r"zip\(\)"):
        made.iterate(Run())()
