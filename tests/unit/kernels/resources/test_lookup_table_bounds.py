"""What lookup tables refuse and what is left then, what entries cost, and when a dense one doubles its buckets."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, graph_files
from tenfold_core.graph_files import GraphFiles
from tenfold_kernels.resources.lookup_tables import LINE_NUMBER, WHOLE_LINE, DenseTable, Table, read_text_file
from tenfold_kernels.resources.quota import StateQuota

if TYPE_CHECKING:
    from pathlib import Path

I64, F32, STRING = dtypes.int64, dtypes.float32, dtypes.string


def strings(*values: bytes) -> Any:
    return np.array(values, dtype=object)


def longs(*values: int) -> Any:
    return np.array(values, dtype=np.int64)


def hash_table() -> Table:
    return Table("HashTable", "words", STRING, I64)


def mutable(key: Any = I64, value: Any = I64, **more: Any) -> Table:
    return Table("MutableHashTable", "counts", key, value, **more)


def dense(buckets: int = 4, load: float = 0.5, empty: Any = -1, deleted: Any = -2, **more: Any) -> DenseTable:
    key = None if deleted is None else np.array(deleted)
    given = {"value_dtype": I64, "value_shape": (), **more}
    return DenseTable(
        "dense",
        I64,
        given["value_dtype"],
        given["value_shape"],
        np.array(empty),
        key,
        buckets,
        load,
        given.get("account"),
    )


def entries(table: Table) -> dict[Any, Any]:
    keys, values = table.export()
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


# -- tables that are filled once


@pytest.mark.parametrize(
    ("keys", "values", "text"),
    [
        (strings(b"a").reshape(1, 1), longs(1), "Keys must be a vector, but received shape[1,1]"),
        (np.array(b"a", dtype=object), longs(1), "Keys must be a vector, but received shape[]"),
        (strings(b"a"), longs(1).reshape(1, 1), "Values must be a vector, but received shape[1,1]"),
        (strings(b"a", b"b"), longs(1), "Keys and values must have the same size 2 vs 1"),
        (strings(), longs(), "keys and values cannot be empty tensors."),
    ],
)
def test_what_a_hash_table_is_not_filled_with(keys: Any, values: Any, text: str) -> None:
    table = hash_table()

    with pytest.raises(errors.InvalidArgumentError) as refused:
        table.initialize(keys, values)

    assert refused.value.message == text
    assert table.size() == 0
    with pytest.raises(errors.AbortedError, match="HashTable is not initialized"):
        table.export()


def test_a_hash_table_is_filled_by_an_import_too() -> None:
    table = hash_table()

    table.replace(strings(b"a"), longs(1))

    assert entries(table) == {b"a": 1}
    for change in (lambda: table.insert(strings(b"b"), longs(1)), lambda: table.remove(strings(b"a"))):
        with pytest.raises(errors.UnimplementedError, match="not supported by HashTable implementations"):
            change()
    with pytest.raises(errors.FailedPreconditionError, match="already initialized with different data"):
        table.replace(strings(b"b"), longs(1))
    assert entries(table) == {b"a": 1}


def test_a_table_that_changes_is_not_filled_once() -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Table counts is not initializable"):
        mutable().initialize(longs(1), longs(1))
    assert [table.is_mutable for table in (hash_table(), mutable(), dense())] == [False, True, True]


def test_defaults_have_the_shape_of_a_value_or_of_all() -> None:
    once, many = hash_table(), mutable()
    once.initialize(strings(b"a"), longs(1))
    many.insert(longs(1), longs(1))

    with pytest.raises(errors.InvalidArgumentError) as refused:
        once.find(strings(b"a", b"b"), longs(7, 8))
    assert refused.value.message == "Expected shape [] for default value, got [2]"
    with pytest.raises(errors.InvalidArgumentError) as refused:
        many.find(longs(1, 2), longs(7, 8, 9))
    assert refused.value.message == "Expected shape [] or [2] for default value, got [3]"
    assert many.find(longs(1, 2, 3), longs(7, 8, 9)).tolist() == [1, 8, 9]
    assert many.find(longs(1, 2, 3), np.array(7)).tolist() == [1, 7, 7]


# -- tables that change


def test_values_have_the_shape_of_their_keys() -> None:
    table = mutable(value_shape=(2,))
    table.insert(longs(1), np.array([[1, 2]]))

    for change in (table.insert, table.replace):
        for values in (longs(1, 2), np.zeros((1, 3)), np.zeros((2, 2))):
            with pytest.raises(errors.InvalidArgumentError, match=r"Expected shape \[1,2\] for value, got "):
                change(longs(7), values)
    assert entries(mutable()) == {}
    assert [each.tolist() for each in table.export()] == [[1], [[1, 2]]]


def test_what_an_import_brings_replaces_all() -> None:
    table = mutable()
    table.insert(longs(1, 2), longs(10, 20))
    table.replace(longs(2, 3), longs(21, 31))

    assert entries(table) == {2: 21, 3: 31}


# -- what entries cost


def charged(key: Any, value: Any, *inserts: tuple[Any, Any], **more: Any) -> int:
    quota = StateQuota()
    table = mutable(key, value, account=quota.account("t"), **more)
    for keys, values in inserts:
        table.insert(keys, values)
    return quota.bytes


def test_an_entry_costs_the_same_whenever_it_comes() -> None:
    at_once = charged(I64, I64, (longs(1, 2, 3), longs(1, 2, 3)))

    assert at_once >= 3 * (8 + 8)
    assert charged(I64, I64, (longs(1), longs(1)), (longs(2, 3), longs(2, 3))) == at_once
    assert charged(I64, I64, (longs(1, 2, 3), longs(1, 2, 3)), (longs(1), longs(9))) == at_once


def test_larger_keys_values_and_texts_cost_more() -> None:
    def of_keys(width: int) -> int:
        quota = StateQuota()
        table = dense(empty=[-1] * width, deleted=None, account=quota.account("t"))
        table.insert(np.arange(width).reshape(1, width), longs(1))
        return quota.bytes

    def of_rows(width: int) -> int:
        return charged(I64, F32, (longs(1), np.zeros((1, width), np.float32)), value_shape=(width,))

    scalar = charged(I64, I64, (longs(1), longs(1)))
    assert scalar < of_keys(1) < of_keys(2)
    assert of_keys(3) - of_keys(2) == of_keys(2) - of_keys(1) >= 8
    assert (of_rows(3) - of_rows(2), of_rows(2) - of_rows(1)) == (4, 4)
    assert of_rows(1) == scalar + 4, "a row is kept by itself"
    text = charged(STRING, I64, (strings(b""), longs(1)))
    assert charged(STRING, I64, (strings(b"abc"), longs(1))) == text + 3
    assert charged(STRING, STRING, (strings(b"abc"), strings(b"de"))) == text + 5
    assert charged(STRING, STRING, (strings(b"abc"), strings(b"de")), (strings(b"abc"), strings(b"d"))) == text + 4
    rows = charged(I64, STRING, (longs(1), strings(b"ab", b"c").reshape(1, 2)), value_shape=(2,))
    assert rows == charged(I64, STRING, (longs(1), strings(b"", b"").reshape(1, 2)), value_shape=(2,)) + 3


def test_what_is_removed_is_given_back() -> None:
    for key, value, keys, values in (
        (I64, I64, longs(1, 2), longs(1, 2)),
        (STRING, I64, strings(b"abc", b"d"), longs(1, 2)),
    ):
        quota = StateQuota()
        table = mutable(key, value, account=quota.account("t"))
        table.insert(keys[:1], values[:1])
        one = quota.bytes
        table.insert(keys, values)
        table.remove(keys[1:])
        table.remove(keys[1:])

        assert quota.bytes == one
        table.remove(keys)
        assert quota.bytes == 0


def test_many_entries_are_refused_before_the_first_is_set() -> None:
    keys = np.arange(100)
    whole = charged(I64, I64, (keys, keys))
    quota = StateQuota(whole + keys.nbytes)
    table = mutable(account=quota.account("t"))

    with pytest.raises(errors.ResourceExhaustedError, match="with 't' what is kept would take"):
        table.insert(keys, keys)

    assert (table.size(), quota.bytes) == (0, 0)
    table.insert(keys[:90], keys[:90])
    with pytest.raises(errors.ResourceExhaustedError, match="with 't'"):
        table.replace(np.arange(200), np.arange(200))
    assert (table.size(), quota.bytes) == (90, whole * 9 // 10)


def test_a_table_that_is_filled_once_is_charged_once() -> None:
    quota = StateQuota()
    table = Table("HashTable", "t", STRING, I64, account=quota.account("t"))
    table.initialize(strings(b"abc"), longs(1))
    one = quota.bytes
    table.initialize(strings(b"abc"), longs(1))

    assert (one, quota.bytes) == (charged(STRING, I64, (strings(b"abc"), longs(1))), one)


# -- dense tables


@pytest.mark.parametrize(
    ("empty", "deleted", "text"),
    [
        ([[0]], None, "Empty key must be a scalar or a vector, got shape [1,1]"),
        (0, [0], "Empty and deleted keys must have same shape, got shapes: [] and [1]"),
        (3, 3, "Empty and deleted keys cannot be equal"),
        ([3, 4], [3, 4], "Empty and deleted keys cannot be equal"),
    ],
)
def test_keys_that_cannot_be_reserved(empty: Any, deleted: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        dense(empty=empty, deleted=deleted)

    assert refused.value.message == text


@pytest.mark.parametrize("count", [4, 8, 1024])
def test_powers_of_two_are_numbers_of_buckets(count: int) -> None:
    assert len(dense(count).export()[0]) == count


@pytest.mark.parametrize("count", [-4, 0, 1, 2, 3, 5, 6, 7, 9, 12, 1023])
def test_other_numbers_of_buckets_are_refused(count: int) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"at least 4 and a power of 2, got: {count}$"):
        dense(count)


def test_more_buckets_than_any_program_has_are_refused() -> None:
    with pytest.raises(errors.ResourceExhaustedError, match="Table dense would have"):
        dense(1 << 60)


@pytest.mark.parametrize(
    ("inserts", "buckets"), [([2], 4), ([3], 8), ([4], 8), ([5], 16), ([2, 1], 8), ([2, 2], 8), ([2, 3], 16), ([9], 32)]
)
def test_buckets_are_doubled_when_more_than_the_load_would_be_taken(inserts: list[int], buckets: int) -> None:
    """Half of them may be."""
    table = dense(4, 0.5)
    for count in inserts:
        keys = np.arange(table.size(), table.size() + count)
        table.insert(keys, keys)

    assert len(table.export()[0]) == buckets
    assert table.size() == sum(inserts)


def test_buckets_of_removed_keys_are_taken_until_they_are_doubled() -> None:
    table = dense(8, 0.5)
    table.insert(longs(1, 2, 3), longs(10, 20, 30))
    table.remove(longs(1, 1, 7))

    keys, values = table.export()
    assert sorted(keys.tolist()) == [-2, -1, -1, -1, -1, -1, 2, 3]
    assert values[keys == -2].tolist() == [10]
    assert values[keys == -1].tolist() == [0] * 5
    table.insert(longs(4), longs(40))
    assert len(table.export()[0]) == 8, "2, 3, 4 and the one of 1 are four"
    table.insert(longs(5), longs(50))
    assert sorted(table.export()[0].tolist()) == [-1] * 12 + [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("dtype", "shape", "unused"), [(STRING, (), b""), (STRING, (2,), [b"", b""]), (F32, (2,), [0, 0])]
)
def test_an_unused_bucket_has_the_value_of_nothing(dtype: Any, shape: tuple[int, ...], unused: Any) -> None:
    keys, values = dense(value_dtype=dtype, value_shape=shape).export()

    assert keys.tolist() == [-1] * 4
    assert values.tolist() == [unused] * 4


@pytest.mark.parametrize("reserved", [-1, -2])
def test_reserved_keys_are_refused_by_name(reserved: int) -> None:
    table = dense(8, 0.9)
    table.insert(longs(5, 6), longs(50, 60))
    name = {-1: "empty_key", -2: "deleted_key"}[reserved]
    calls = (
        lambda: table.insert(longs(7, reserved), longs(1, 1)),
        lambda: table.remove(longs(6, reserved)),
        lambda: table.find(longs(5, reserved), np.array(0)),
    )
    for call in calls:
        with pytest.raises(errors.InvalidArgumentError, match=f"Using the {name} as a table key is not allowed"):
            call()

    assert sorted(table.export()[0].tolist()) == [-2, -1, -1, -1, -1, -1, 5, 7], "what came before it was done"


@pytest.mark.parametrize(
    ("keys", "values", "text"),
    [
        (longs(1, 2, 3), longs(1, 2, 3), "at least 4 and a power of 2, got: 3"),
        (np.array(1), np.array(1), "at least 4 and a power of 2, got: 0"),
        (longs(1, 2, 3, 4), longs(1, 2, 3), r"Expected shape \[4\] for value, got \[3\]"),
    ],
)
def test_an_import_that_is_refused_changes_nothing(keys: Any, values: Any, text: str) -> None:
    table = dense(16, 0.5)
    table.insert(np.arange(6), np.arange(6))
    table.remove(longs(5))
    before = [each.tolist() for each in table.export()]

    with pytest.raises(errors.InvalidArgumentError, match=text):
        table.replace(keys, values)

    assert [each.tolist() for each in table.export()] == before
    table.insert(longs(6, 7), longs(6, 7))
    assert len(table.export()[0]) == 16


def test_an_import_brings_the_number_of_buckets_along() -> None:
    table = dense(16, 0.5)
    table.insert(np.arange(6), np.arange(6))

    table.replace(longs(-1, 3, -2, 4, -1, -1, -1, -1), longs(0, 30, 9, 40, 0, 0, 0, 0))

    assert sorted(table.export()[0].tolist()) == [-1] * 6 + [3, 4]
    assert table.find(longs(3, 0), np.array(-7)).tolist() == [30, -7]


@pytest.mark.parametrize(
    ("key_shape", "keys", "text"),
    [
        ((2,), (3,), "Expected key shape [3,2] got [3]"),
        ((2,), (), "Expected key shape [2] got []"),
        ((2,), (2,), "Expected key shape [2,2] got [2]"),
        ((2,), (3, 1), "Expected key shape [3,2] got [3,1]"),
        ((2,), (1, 1, 2, 1), "Expected key shape [1,2] got [1,1,2,1]"),
        ((), (2, 3), "Expected key shape [2] got [2,3]"),
    ],
)
def test_keys_of_another_shape_are_refused(key_shape: tuple[int, ...], keys: tuple[int, ...], text: str) -> None:
    table = dense(empty=np.full(key_shape, -1), deleted=None)
    given = np.zeros(keys, np.int64)
    for call in (
        lambda: table.find(given, np.array(0)),
        lambda: table.insert(given, np.zeros(keys[:1], np.int64)),
        lambda: table.remove(given),
    ):
        with pytest.raises(errors.InvalidArgumentError) as refused:
            call()
        assert refused.value.message == text


def test_keys_of_one_element_may_stand_in_more_dimensions() -> None:
    table = dense(empty=[-1, -1], deleted=None)
    table.insert(np.array([[1, 2], [3, 4]]), longs(12, 34))
    scalars = dense()
    scalars.insert(longs(1), longs(10))

    assert table.find(np.array([[[1, 2]]]), np.array(0)).tolist() == [[12]]
    assert scalars.find(np.array([[1], [2]]), np.array(0)).tolist() == [[10], [0]]
    assert scalars.find(np.array(1), np.array(0)).tolist() == 10
    table.remove(np.array([[3, 4]]))
    assert table.find(np.array([[3, 4], [1, 2]]), np.array(0)).tolist() == [0, 12]


# -- vocabularies


@pytest.fixture
def vocabulary(tmp_path: Path) -> str:
    file = tmp_path / "vocabulary"
    file.write_bytes(b"a 1.5\r\nb 2.5\nc 3.5\n")
    return str(file)


def table_of(key: Any = STRING, value: Any = I64) -> Table:
    return Table("HashTable", "words", key, value)


@pytest.mark.parametrize(("size", "lines"), [(-1, 3), (0, 0), (1, 1), (2, 2), (3, 3)])
def test_as_many_lines_are_read_as_the_vocabulary_has(vocabulary: str, size: int, lines: int) -> None:
    keys, values = read_text_file(vocabulary, WHOLE_LINE, LINE_NUMBER, size, "\t", 7, table_of())

    assert keys.tolist() == [b"a 1.5", b"b 2.5", b"c 3.5"][:lines]
    assert values.tolist() == [7, 8, 9][:lines]


def test_columns_are_read_as_their_types(vocabulary: str) -> None:
    keys, values = read_text_file(vocabulary, 0, 1, -1, " ", 0, table_of(STRING, F32))
    numbers, back = read_text_file(vocabulary, LINE_NUMBER, 0, 3, " ", 0, table_of(I64, STRING))

    assert (keys.tolist(), values.tolist()) == ([b"a", b"b", b"c"], [1.5, 2.5, 3.5])
    assert (numbers.tolist(), back.tolist()) == ([0, 1, 2], [b"a", b"b", b"c"])
    assert (values.dtype, numbers.dtype) == (np.float32, np.int64)
    for arguments, table, text in (
        ((0, 1, -1, " ", 0), table_of(), "Field 1.5 in line 0 is not a valid int64."),
        ((0, 0, -1, " ", 0), table_of(STRING, F32), "Field a in line 0 is not a valid float."),
        ((0, 2, -1, " ", 0), table_of(), "line 0 (a 1.5) : expected at least 3 got 2"),
        ((0, LINE_NUMBER, 4, " ", 0), table_of(), "expected 4 but got 3"),
    ):
        with pytest.raises(errors.InvalidArgumentError) as refused:
            read_text_file(vocabulary, *arguments, table)  # type: ignore[arg-type]
        assert refused.value.message.endswith(text)


def test_an_empty_line_is_named_with_its_place(tmp_path: Path) -> None:
    file = tmp_path / "vocabulary"
    file.write_bytes(b"a\n\nb\n")

    with pytest.raises(errors.InvalidArgumentError, match=f"Invalid content in {file}: empty line found at position"):
        read_text_file(str(file), WHOLE_LINE, LINE_NUMBER, -1, " ", 0, table_of())


def test_a_vocabulary_is_a_file_of_bounded_size(vocabulary: str, tmp_path: Path) -> None:
    with pytest.raises(errors.OpError, match=r"; Is a directory|is no regular file"):
        read_text_file(str(tmp_path), WHOLE_LINE, LINE_NUMBER, -1, " ", 0, table_of())
    kept = graph_files.graph_files()
    try:
        graph_files.use(GraphFiles(most_bytes=18))
        with pytest.raises(errors.ResourceExhaustedError, match="19 bytes are more than the 18 that this task reads"):
            read_text_file(vocabulary, WHOLE_LINE, LINE_NUMBER, -1, " ", 0, table_of())
        gc.collect()  # a file that was left open would warn, which fails a test
        graph_files.use(GraphFiles(most_bytes=19))
        assert len(read_text_file(vocabulary, WHOLE_LINE, LINE_NUMBER, -1, " ", 0, table_of())[0]) == 3
    finally:
        graph_files.use(kept)
