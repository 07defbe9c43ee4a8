"""Lookup tables: filled once or at any time, scalars and rows, from files; dense ones export their buckets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors
from tenfold_kernels.cpu._compiled.id_index import id_loops
from tenfold_kernels.resources.lookup_tables import LINE_NUMBER, WHOLE_LINE, DenseTable, Table, read_text_file

if TYPE_CHECKING:
    from pathlib import Path

I64, STRING = dtypes.int64, dtypes.string


def strings(*values: bytes) -> Any:
    return np.array(values, dtype=object)


def longs(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def test_a_hash_table_is_filled_once() -> None:
    table = Table("HashTable", "t", STRING, I64)
    with pytest.raises(errors.FailedPreconditionError, match="Table not initialized"):
        table.find(strings(b"a"), np.int64(-1))
    table.initialize(strings(b"a", b"b"), longs(1, 2))
    table.initialize(strings(b"b", b"a"), longs(2, 1))
    found = table.find(np.array([[b"b", b"x"]], dtype=object), np.array(-1))
    assert found.tolist() == [[2, -1]]
    with pytest.raises(errors.FailedPreconditionError, match="already initialized with different data"):
        table.initialize(strings(b"a"), longs(1))
    with pytest.raises(errors.UnimplementedError, match="Insert not supported"):
        table.insert(strings(b"c"), longs(3))
    with pytest.raises(errors.FailedPreconditionError, match="Key a has 1 and trying to add value 2"):
        Table("HashTable", "t", STRING, I64).initialize(strings(b"a", b"a"), longs(1, 2))


def test_a_mutable_table_changes() -> None:
    table = Table("MutableHashTable", "t", I64, STRING)
    table.insert(longs(1, 2), strings(b"a", b"b"))
    table.insert(longs(2), strings(b"c"))
    table.remove(longs(1, 7))
    assert [x.tolist() for x in table.export()] == [[2], [b"c"]]
    table.replace(longs(5), strings(b"e"))
    assert table.find(longs(2, 5), strings(b"x", b"y")).tolist() == [b"x", b"e"]
    with pytest.raises(errors.InvalidArgumentError, match=r"Expected shape \[1\] for value, got \[2\]"):
        table.insert(longs(1), strings(b"a", b"b"))


def test_values_may_be_rows() -> None:
    table = Table("MutableHashTableOfTensors", "t", STRING, I64, value_shape=(2,))
    rows = np.arange(4).reshape(2, 2)
    table.insert(strings(b"a", b"b"), rows)
    rows[:] = 9
    assert table.find(strings(b"b", b"x"), longs(7, 7)).tolist() == [[2, 3], [7, 7]]


@pytest.mark.parametrize("kind", ["MutableHashTable", "MutableDenseHashTable"])
@pytest.mark.parametrize("value_shape", [(), (3,)])
def test_ids_in_arrays_do_what_objects_do(kind: str, value_shape: tuple[int, ...]) -> None:
    def make(loops: Any) -> Table:
        if kind == "MutableHashTable":
            return Table(kind, "t", I64, I64, value_shape=value_shape, loops=loops)
        return DenseTable("t", I64, I64, value_shape, np.array(-1), np.array(-2), 8, 0.7, loops=loops)

    choose, tables = np.random.default_rng(11), (make(None), make(id_loops()))

    def outcome(table: Table, call: Any) -> Any:
        try:
            return call(table)
        except errors.OpError as error:
            return error.message

    for turn in range(60):
        low = -3 if kind == "MutableDenseHashTable" and turn % 5 == 0 else 0
        keys = choose.integers(low, 90, 12)
        values, some = choose.integers(0, 1000, (12, *value_shape)), keys[::3].reshape(4, 1)
        default = values[:4].reshape(4, 1, *value_shape) if turn % 2 else values[0]
        calls = (
            lambda table, keys=keys, values=values: table.insert(keys, values),
            lambda table, keys=keys: table.remove(keys[:4]),
            lambda table, keys=some, default=default: table.find(keys, default).tolist(),
            lambda table: table.size(),
        )
        for call in calls:
            one, other = (outcome(table, call) for table in tables)
            assert one == other
    one, other = (sorted(zip(*(each.tolist() for each in table.export()), strict=True)) for table in tables)
    assert one == other
    keys, values = tables[0].export()
    for table in tables:
        table.replace(keys, values)
    assert tables[0].size() == tables[1].size() > 20


@pytest.mark.parametrize("key", [I64, dtypes.int32])
def test_a_table_of_ids_is_filled_once(key: Any) -> None:
    def ids(*values: int) -> Any:
        return np.array(values, key.as_numpy_dtype)

    table = Table("HashTable", "t", key, I64, loops=id_loops())
    with pytest.raises(errors.FailedPreconditionError, match="Key 5 has 1 and trying to add value 2"):
        table.initialize(ids(4, 5, 5), longs(0, 1, 2))
    table.initialize(ids(5, 6, 5), longs(1, 2, 1))
    table.initialize(ids(6, 5), longs(2, 1))
    others = (ids(5), longs(1)), (ids(5, 7), longs(1, 2)), (ids(5, 6), longs(1, 3)), (ids(5, 7), longs(1, 1))
    for keys, values in others:
        with pytest.raises(errors.FailedPreconditionError, match="already initialized with different data"):
            table.initialize(keys, values)
    assert table.find(ids(6, 9), np.array(-1)).tolist() == [2, -1]
    assert table.export()[0].dtype == key.as_numpy_dtype


def test_a_dense_table_exports_its_buckets() -> None:
    table = DenseTable("t", I64, I64, (), np.array(0), np.array(-1), 4, 0.8)
    table.insert(longs(11, 12, 13), longs(0, 1, 2))
    assert sorted(table.export()[0].tolist()) == [0, 11, 12, 13]
    table.remove(longs(12))
    assert sorted(table.export()[0].tolist()) == [-1, 0, 11, 13]
    table.insert(longs(14), longs(3))
    assert len(table.export()[0]) == 8
    keys, values = table.export()
    table.replace(keys, values)
    assert table.size() == 3
    for key, name in ((0, "empty_key"), (-1, "deleted_key")):
        with pytest.raises(errors.InvalidArgumentError, match=f"Using the {name} as a table key is not allowed"):
            table.find(longs(key), np.array(0))


def test_a_dense_tables_keys_may_be_rows() -> None:
    table = DenseTable("t", I64, I64, (), longs(0, 0), None, 4, 0.8)
    table.insert(np.array([[1, 2], [3, 4]]), longs(12, 34))
    assert table.find(np.array([[3, 4], [5, 6]]), np.array(-1)).tolist() == [34, -1]
    with pytest.raises(errors.InvalidArgumentError, match="Expected key shape"):
        table.find(longs(1, 2, 3), np.array(-1))


@pytest.mark.parametrize("buckets", [0, 3, 2, -8])
def test_buckets_are_a_power_of_two(buckets: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="must be at least 4 and a power of 2"):
        DenseTable("t", I64, I64, (), np.array(0), np.array(-1), buckets, 0.8)


def test_a_vocabulary_is_read_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "vocabulary"
    file.write_bytes(b"a\t1\nb\t2\nc\t3\n")
    table = Table("HashTable", "t", STRING, I64)

    def read(*arguments: Any) -> list[Any]:
        return [x.tolist() for x in read_text_file(str(file), *arguments, table)]

    assert read(0, 1, -1, "\t", 0) == [[b"a", b"b", b"c"], [1, 2, 3]]
    assert read(WHOLE_LINE, LINE_NUMBER, 2, "\t", 5) == [[b"a\t1", b"b\t2"], [5, 6]]
    for arguments, message in (
        ((0, LINE_NUMBER, 9, "\t", 0), "Invalid vocab_size in .*: expected 9 but got 3"),
        ((0, 2, -1, "\t", 0), "expected at least 3 got 2"),
        ((0, 0, -1, "\t", 0), "Field a in line 0 is not a valid int64"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            read(*arguments)
    with pytest.raises(errors.NotFoundError, match="No such file"):
        read_text_file(str(tmp_path / "none"), 0, 1, -1, "\t", 0, table)
