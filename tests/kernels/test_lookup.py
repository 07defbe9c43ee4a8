"""Lookup tables through a session: filled, asked, counted. The machine's own tests are tests/unit/kernels/resources."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tenfold as tf
from support.kernel_runs import Steps, make_node
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels import registry
from tenfold_kernels.resources.lookup_tables import DenseTable, Table

if TYPE_CHECKING:
    from pathlib import Path

raw = tf.raw_ops


@pytest.mark.parametrize("kind", ["HashTableV2", "MutableHashTableV2"])
def test_keys_find_their_values_and_others_the_default(kind: str) -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = getattr(raw, kind)(key_dtype=tf.string, value_dtype=tf.int64)
        if kind == "HashTableV2":
            filled = raw.InitializeTableV2(table_handle=table, keys=["a", "b"], values=tf.constant([1, 2], tf.int64))
        else:
            filled = raw.LookupTableInsertV2(table_handle=table, keys=["a", "b"], values=tf.constant([1, 2], tf.int64))
        found = raw.LookupTableFindV2(table_handle=table, keys=["b", "?"], default_value=tf.constant(-1, tf.int64))

        session.run(filled)

        assert session.run(found).tolist() == [2, -1]
        assert session.run(raw.LookupTableSizeV2(table_handle=table)) == 2


def test_a_table_that_was_not_filled_says_so() -> None:
    with tf.Graph().as_default(), tf.Session() as session:
        table = raw.HashTableV2(key_dtype=tf.string, value_dtype=tf.int64)
        found = raw.LookupTableFindV2(table_handle=table, keys=["b"], default_value=tf.constant(-1, tf.int64))

        with pytest.raises(tf.errors.FailedPreconditionError, match="not initialized"):
            session.run(found)


# -- the ops by themselves ---------------------------------------------------------------------------------------------

LONG, INT, FLOAT, S = dtypes.int64, dtypes.int32, dtypes.float32, dtypes.string


def strings(*values: bytes) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


class Tables(Steps):
    """Steps of which some make tables of texts to numbers."""

    def table(self, kind: str = "MutableHashTableV2", **attrs: Any) -> Any:
        given = {"key_dtype": S, "value_dtype": LONG, "shared_name": b"t", "container": b"", **attrs}
        if kind.startswith("Anonymous"):
            del given["shared_name"], given["container"]
        return self(kind, **given)

    def dense(self, *reserved: Any, kind: str = "MutableDenseHashTableV2", **attrs: Any) -> Any:
        given = {"key_dtype": LONG, "value_dtype": FLOAT, "value_shape": TensorShape([]), "initial_num_buckets": 4}
        names = {} if kind.startswith("Anonymous") else {"shared_name": b"t", "container": b""}
        return self(kind, *(reserved or (np.array(-1), np.array(-2))), **{**given, **names, **attrs})


@pytest.fixture
def steps() -> Tables:
    return Tables()


def held(handle: Any) -> Table:
    found = handle[()].resource
    assert isinstance(found, Table)
    return found


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("HashTableV2", "HashTable"),
        ("MutableHashTableV2", "MutableHashTable"),
        ("AnonymousHashTable", "HashTable"),
        ("AnonymousMutableHashTable", "MutableHashTable"),
    ],
)
def test_each_kind_says_what_it_is(steps: Tables, kind: str, found: str) -> None:
    table = held(steps.table(kind))
    assert (table.kind, table.key_dtype, table.value_dtype, table.key_shape, table.value_shape) == (
        found,
        S,
        LONG,
        (),
        (),
    )
    assert table.account is not None
    again = held(steps.table(kind))
    assert (again is table) is not kind.startswith("Anonymous")
    assert (again.name == table.name) is not kind.startswith("Anonymous")


@pytest.mark.parametrize("other", [{"key_dtype": LONG}, {"value_dtype": S}])
def test_a_table_of_a_name_is_made_alike(steps: Tables, other: Any) -> None:
    steps.table()
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Conflicting key/value dtypes .* with string-int64 for table t"
    ):
        steps.table(**other)


def test_values_of_tensors_are_vectors(steps: Tables) -> None:
    table = held(steps.table("MutableHashTableOfTensorsV2", value_shape=TensorShape([3])))
    assert (table.kind, table.value_shape) == ("MutableHashTableOfTensors", (3,))
    for shape in ([], [2, 3]):
        with pytest.raises(errors.InvalidArgumentError, match="Default value must be a vector, got shape"):
            steps.table("AnonymousMutableHashTableOfTensors", value_shape=TensorShape(shape))
    assert held(steps.table("AnonymousMutableHashTableOfTensors", value_shape=TensorShape([None]))).value_shape == (0,)


def test_a_dense_table_is_as_its_node_says(steps: Tables) -> None:
    table = held(steps.dense(np.array([1, 2]), np.array([3, 4]), value_shape=TensorShape([5]), max_load_factor=0.5))
    assert isinstance(table, DenseTable)
    assert (table.name, table.key_shape, table.value_shape) == ("t", (2,), (5,))
    assert (table._buckets, table._max_load_factor) == (4, 0.5)
    assert table.account is not None
    own = held(steps.dense(kind="AnonymousMutableDenseHashTable"))
    assert own is not held(steps.dense(kind="AnonymousMutableDenseHashTable"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_load_factor": 0.0}, "max_load_factor must be between 0 and 1, got: 0"),
        ({"max_load_factor": 1.0}, "max_load_factor must be between 0 and 1, got: 1"),
        ({"value_shape": TensorShape([1, 2])}, r"Empty value must be a scalar or a vector, got shape \[1,2\]"),
    ],
)
def test_dense_tables_that_cannot_be(steps: Tables, options: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps.dense(**options)


def test_what_is_put_is_found_removed_exported_and_counted(steps: Tables) -> None:
    handle = steps.table()
    steps("LookupTableInsertV2", handle, strings(b"a", b"b"), np.array([1, 2]))
    size = steps("LookupTableSizeV2", handle)
    assert (size.tolist(), size.dtype) == (2, np.int64)
    assert steps("LookupTableFindV2", handle, strings(b"b", b"x"), np.array(-1)).tolist() == [2, -1]
    steps("LookupTableRemoveV2", handle, strings(b"a"))
    steps("LookupTableImportV2", handle, strings(b"c"), np.array([3]))
    keys, values = steps("LookupTableExportV2", handle, Tkeys=S, Tvalues=LONG)
    assert (keys.tolist(), values.tolist()) == ([b"c"], [3])
    once = steps.table("HashTableV2", shared_name=b"once")
    steps("InitializeTableV2", once, strings(b"a"), np.array([1]))
    assert held(once).size() == 1


@pytest.mark.parametrize(
    ("op", "inputs", "wanted"),
    [
        ("LookupTableFindV2", [np.array([1]), np.array(-1)], "int64->int64"),
        ("LookupTableFindV2", [strings(b"a"), np.array(-1, np.int32)], "string->int32"),
        ("LookupTableInsertV2", [np.array([1]), np.array([1])], "int64->int64"),
        ("LookupTableImportV2", [strings(b"a"), np.array([1], np.int32)], "string->int32"),
        ("LookupTableRemoveV2", [np.array([1])], "int64"),
        ("InitializeTableV2", [np.array([1]), np.array([1])], "int64->int64"),
    ],
)
def test_types_are_those_of_the_table(steps: Tables, op: str, inputs: list[Any], wanted: str) -> None:
    handle = steps.table()
    with pytest.raises(
        errors.InvalidArgumentError, match=f"^{op} has types {wanted}, but the table t maps string->int64$"
    ):
        steps(op, handle, *inputs)


def test_exported_types_too(steps: Tables) -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match="has types string->int32, but the table t maps string->int64"
    ):
        steps("LookupTableExportV2", steps.table(), Tkeys=S, Tvalues=INT)


def entries(table: Table) -> dict[Any, Any]:
    keys, values = table.export()
    return dict(zip(keys.tolist(), values.tolist(), strict=True))


def read(steps: Tables, name: Any, key: int = -2, value: int = -1, **options: Any) -> Table:
    attrs = {"vocab_size": -1, "delimiter": b"\t", "offset": 0, **options}
    types = {each: attrs.pop(each) for each in ("key_dtype", "value_dtype") if each in attrs}
    handle = steps.table("HashTableV2", shared_name=b"", **types)
    steps("InitializeTableFromTextFileV2", handle, name, key_index=key, value_index=value, **attrs)
    return held(handle)


@pytest.fixture
def vocabulary(tmp_path: Path) -> Any:
    (tmp_path / "words").write_bytes(b"a\t5\nb\t6\n")
    return np.array(str(tmp_path / "words").encode(), object)


def test_a_vocabulary_is_read_as_its_node_says(steps: Tables, vocabulary: Any) -> None:
    assert entries(read(steps, vocabulary)) == {b"a\t5": 0, b"b\t6": 1}
    assert entries(read(steps, vocabulary, 0, 1)) == {b"a": 5, b"b": 6}
    assert entries(read(steps, vocabulary, 0, -1, vocab_size=1, offset=7)) == {b"a": 7}
    commas = read(steps, vocabulary, -2, -1, delimiter=b",")
    assert commas.size() == 2
    assert entries(read(steps, vocabulary, 1, 0, key_dtype=LONG, value_dtype=S)) == {5: b"a", 6: b"b"}


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ((-2, -1), {"delimiter": b""}, "delimiter should be only 1 char"),
        ((-2, -1), {"delimiter": b",,"}, "delimiter should be only 1 char"),
        ((-1, 1), {}, "Key index for line number requires table key dtype of int64, got string"),
        ((0, -1), {"value_dtype": INT}, "Value index for line number requires table value dtype of int64, got int32"),
        ((-2, -1), {"key_dtype": FLOAT}, "Key index for whole line requires string or integer table key, got float"),
        ((0, -2), {"value_dtype": FLOAT}, "Value index for whole line requires table value dtype of integer or string"),
    ],
)
def test_vocabularies_that_cannot_be_read(
    steps: Tables, vocabulary: Any, columns: tuple[int, int], options: Any, message: str
) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        read(steps, vocabulary, *columns, **options)


def test_a_vocabulary_has_one_name(steps: Tables, vocabulary: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"filename should be a single string, but got \[1\]"):
        read(steps, vocabulary.reshape(1))
    with pytest.raises(errors.InvalidArgumentError, match="filename cannot be empty"):
        read(steps, np.array(b"", object))


def test_a_node_that_leaves_things_out_reads_all_lines_from_the_first_on(steps: Tables, vocabulary: Any) -> None:
    handle = steps.table("HashTableV2", shared_name=b"")
    attrs = {"key_index": 0, "value_index": -1}
    node = make_node("InitializeTableFromTextFileV2", [handle, vocabulary], attrs, steps.resources, "n")
    bare = replace(node, attrs=attrs)
    registry.lookup(bare, "CPU")(bare)(handle, vocabulary)
    assert entries(held(handle)) == {b"a": 0, b"b": 1}
