"""Datasets of files by their ops: names that match, examples, snapshots, records; what is refused before a file is."""

from __future__ import annotations

import gzip
import sqlite3
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, drained, numbers, plain, result
from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.records import RecordReader
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.core import Dataset, Run, dataset_of
from tenfold_kernels.resources.datasets.sources import Listed
from tenfold_protos import example_pb2

if TYPE_CHECKING:
    from pathlib import Path

S, FLOAT, LONG, VARIANT = dtypes.string, dtypes.float32, dtypes.int64, dtypes.variant
ONE = {"output_types": list(INT), "output_shapes": list(SCALAR)}


@pytest.fixture
def steps() -> Steps:
    return Steps()


def scalar(value: Any) -> np.ndarray:
    array = np.empty((), object)
    array[()] = str(value).encode() if not isinstance(value, bytes) else value
    return array


def strings(*values: bytes) -> np.ndarray:
    array = np.empty(len(values), object)
    array[:] = values
    return array


def test_names_that_match_patterns(steps: Steps, tmp_path: Path) -> None:
    for name in ("a1", "a2", "b1"):
        (tmp_path / name).write_bytes(b"")
    attrs: dict[str, Any] = {}
    found = steps("MatchingFilesDataset", scalar(f"{tmp_path}/a*"), **attrs)
    assert drained(dataset_of(found)) == [f"{tmp_path}/a{n}".encode() for n in (1, 2)]
    several = steps("MatchingFilesDataset", strings(*(f"{tmp_path}/{p}".encode() for p in ("b*", "a1"))), **attrs)
    assert sorted(drained(dataset_of(several))) == [f"{tmp_path}/{n}".encode() for n in ("a1", "b1")]
    with pytest.raises(errors.InvalidArgumentError, match="`patterns` must be a scalar or a vector"):
        steps("MatchingFilesDataset", strings(b"x").reshape(1, 1), **attrs)


SNAPSHOT = {"compression": b"", **ONE}


def snapshot(steps: Steps, source: Dataset, folder: Any, **attrs: Any) -> Dataset:
    return dataset_of(steps("SnapshotDataset", source.as_array(), scalar(folder), **{**SNAPSHOT, **attrs}))


def test_a_snapshot_is_written_once_and_read_from_then_on(steps: Steps, tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "folder"
    first = snapshot(steps, numbers(3), folder)
    assert drained(first) == [0, 1, 2]
    assert [path.name for path in folder.iterdir()] == ["snapshot.tenfold"]
    assert drained(snapshot(steps, numbers(5), folder)) == [0, 1, 2], "what is there"
    assert drained(snapshot(steps, numbers(5), folder, mode=b"read")) == [0, 1, 2]
    assert drained(snapshot(steps, numbers(5), folder, mode=b"passthrough")) == [0, 1, 2, 3, 4]
    assert drained(snapshot(steps, numbers(5), folder, mode=b"write")) == [0, 1, 2, 3, 4]
    assert drained(snapshot(steps, numbers(9), folder)) == [0, 1, 2, 3, 4], "written anew"
    assert drained(snapshot(steps, numbers(9), folder, snapshot_name=b"other")) == list(range(9))
    assert sorted(path.name for path in folder.iterdir()) == ["other.tenfold", "snapshot.tenfold"]


def test_a_snapshot_that_is_passed_by_makes_no_folder(steps: Steps, tmp_path: Path) -> None:
    snapshot(steps, numbers(5), tmp_path / "f", mode=b"passthrough")
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(errors.NotFoundError, match="Snapshot mode is read, and there is no snapshot in"):
        snapshot(steps, numbers(5), tmp_path / "f", mode=b"read")


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"mode": b"odd"}, "mode must be one of auto, read, write, passthrough: odd"),
        ({"compression": b"ZLIB"}, "compression must be either '', 'GZIP' or 'SNAPPY'"),
        ({"shuffle_on_read": True}, "shuffle_on_read is not done here"),
        ({"output_types": [dtypes.int32]}, "Data type mismatch at component 0"),
    ],
)
def test_snapshots_that_cannot_be(steps: Steps, tmp_path: Path, attrs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        snapshot(steps, numbers(5), tmp_path, **attrs)
    for compression in (b"GZIP", b"SNAPPY", b"NONE"):
        snapshot(steps, numbers(1), tmp_path, compression=compression)


def example(**features: Any) -> bytes:
    made = example_pb2.Example()
    for name, values in features.items():
        kind = made.features.feature[name]
        if isinstance(values[0], float):
            kind.float_list.value.extend(values)
        else:
            kind.int64_list.value.extend(values)
    return made.SerializeToString()


def parsed(steps: Steps, source: Dataset, *defaults: Any, calls: int = 1, **attrs: Any) -> Dataset:
    given = {
        "sparse_keys": [b"a", b"z"],
        "dense_keys": [b"m"],
        "sparse_types": [LONG, FLOAT],
        "Tdense": [FLOAT],
        "dense_shapes": [TensorShape([2])],
        "output_types": [VARIANT, FLOAT, VARIANT],
        "output_shapes": [TensorShape([3]), TensorShape([None, 2]), TensorShape([3])],
        **attrs,
    }
    inputs = [source.as_array(), np.array(calls, np.int64), *defaults]
    return dataset_of(steps("ParseExampleDataset", *inputs, **given))


def serialized(*rows: bytes) -> Dataset:
    return Listed((S,), (TensorShape(None),), [(strings(*rows),)])


NO_DEFAULT = np.zeros(0, np.float32)


def test_examples_become_features_in_the_order_of_their_keys(steps: Steps) -> None:
    rows = example(a=[1, 2], m=[1.0, 2.0], z=[0.5]), example(m=[3.0, 4.0])
    for calls in (1, -1):
        ((a, m, z),) = drained(parsed(steps, serialized(*rows), NO_DEFAULT, calls=calls))
        assert a == [[[0, 0], [0, 1]], [1, 2], [2, 2]]
        assert m == [[1, 2], [3, 4]]
        assert z == [[[0, 0]], [0.5], [2, 1]]


def test_what_is_missing_is_the_default(steps: Steps) -> None:
    default = np.array([7, 8], np.float32)
    ((_, m, _),) = drained(parsed(steps, serialized(example(a=[1])), default))
    assert m == [[7, 8]]
    with pytest.raises(errors.InvalidArgumentError, match="m"):
        drained(parsed(steps, serialized(example(a=[1])), NO_DEFAULT))


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"sparse_keys": [b"a", b"m"]}, "Duplicate key not allowed: m"),
        ({"calls": 0}, "num_parallel_calls must be greater than zero"),
        ({"calls": -2}, "num_parallel_calls must be greater than zero"),
    ],
)
def test_examples_that_cannot_be_read(steps: Steps, attrs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        parsed(steps, serialized(example(a=[1])), NO_DEFAULT, **attrs)


def test_examples_come_in_batches(steps: Steps) -> None:
    single = Listed((S,), SCALAR, [(scalar(example(m=[1.0, 2.0])),)])
    with pytest.raises(errors.InvalidArgumentError, match="Expected serialized to be a vector: batch the dataset"):
        drained(parsed(steps, single, NO_DEFAULT))


@pytest.mark.parametrize("compression", [b"", b"GZIP", b"ZLIB"])
def test_elements_are_written_as_records(steps: Steps, tmp_path: Path, compression: bytes) -> None:
    source = Listed((S,), SCALAR, [(scalar(b"one"),), (scalar(b"two"),)])
    name = tmp_path / "records"
    found = steps("DatasetToTFRecord", source.as_array(), scalar(name), scalar(compression))
    result(found)
    with RecordReader(str(name), compression.decode()) as reader:
        assert [reader.read(), reader.read(), reader.read()] == [b"one", b"two", None]


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"output_shapes": [TensorShape([1])]}, r"must be a scalar; component 0 is \(1,\)"),
        ({"output_types": [dtypes.complex64]}, "component 0 is complex64"),
        ({"output_types": [dtypes.float16]}, "component 0 is float16"),
    ],
)
def test_columns_of_a_database(steps: Steps, attrs: Any, message: str) -> None:
    inputs = [scalar("sqlite"), scalar("x"), scalar("select 1")]
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps("SqlDataset", *inputs, **{**ONE, **attrs})
    steps("SqlDataset", *inputs, **{**ONE, "output_shapes": [TensorShape(None)]})
    with pytest.raises(errors.InvalidArgumentError, match="The database type, mysql, is not supported by SqlDataset"):
        steps("SqlDataset", scalar("mysql"), *inputs[1:], **ONE)


def csv(steps: Steps, name: Any, **changed: Any) -> Dataset:
    """Of two columns, numbers and texts."""
    values = {
        "compression": scalar(""),
        "buffer_size": np.array(1000, np.int64),
        "header": np.array(False),
        "delimiter": scalar(","),
        "quotes": np.array(True),
        "missing": scalar("NA"),
        "selected": np.zeros(0, np.int64),
        "first": np.array([7], np.int64),
        "second": strings(b"none"),
        "excluded": np.zeros(0, np.int64),
        **changed,
    }
    types = {"output_types": [LONG, S], "output_shapes": [TensorShape([])] * 2}
    return dataset_of(steps("CSVDatasetV2", scalar(name), *values.values(), **types))


@pytest.mark.parametrize(
    ("changed", "wanted"),
    [
        ({}, [(1, b"a"), (7, b"none"), (3, b"c,d")]),
        ({"header": np.array(True)}, [(7, b"none"), (3, b"c,d")]),
        ({"missing": scalar("a")}, [(1, b"none")]),
        ({"first": np.array(9, np.int64)}, [(1, b"a"), (9, b"none"), (3, b"c,d")]),
    ],
)
def test_a_table_of_text_is_read_as_its_inputs_say(
    steps: Steps, tmp_path: Path, changed: dict[str, Any], wanted: list[Any]
) -> None:
    (tmp_path / "t").write_bytes(b'1,a\nNA,NA\n3,"c,d"\n')
    found = csv(steps, tmp_path / "t", **changed).iterate(Run())
    assert [plain(found.following() or ()) for _ in wanted] == wanted


def test_columns_of_text_are_chosen(steps: Steps, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"x;1;y;a\n")
    for changed in ({"selected": np.array([1, 3])}, {"excluded": np.array([0, 2])}):
        assert drained(csv(steps, tmp_path / "t", delimiter=scalar(";"), **changed)) == [(1, b"a")]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"first": np.array([[7]], np.int64)}, "Each record default should be at most rank 1"),
        ({"first": np.array([7, 8], np.int64)}, "only be 1 default per field but field 0 has 2"),
        ({"second": strings(b"a", b"b")}, "only be 1 default per field but field 1 has 2"),
        ({"selected": np.array(1)}, "`select_cols` must be a vector"),
        ({"buffer_size": np.array(0)}, "buffer_size should be positive"),
        ({"delimiter": scalar("")}, "field_delim should be only 1 char"),
        ({"delimiter": scalar(";;")}, "field_delim should be only 1 char"),
        ({"delimiter": strings(b";")}, "field_delim should be only 1 char"),
        ({"selected": np.array([1])}, "select_cols should match output size"),
        (
            {"selected": np.array([1, 2]), "excluded": np.array([0])},
            "Either select_cols or exclude_cols should be empty",
        ),
        ({"selected": np.array([2, 2])}, "select_cols should be strictly increasing indices"),
        ({"excluded": np.array([2, 1])}, "exclude_cols should be strictly increasing indices"),
        ({"selected": np.array([-1, 2])}, "select_cols should be non-negative indices"),
        ({"excluded": np.array([-1, 0])}, "exclude_cols should be non-negative indices"),
    ],
)
def test_tables_of_text_that_cannot_be_read(steps: Steps, changed: dict[str, Any], message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        csv(steps, "t", **changed)
    csv(steps, "t", buffer_size=np.array(1), selected=np.array([0, 1]), first=np.zeros(0, np.int64))


# ---- by each op's own inputs -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["CSVDataset", "ExperimentalCSVDataset"])
def test_tables_of_text_without_columns_to_leave_out(steps: Steps, tmp_path: Path, op: str) -> None:
    """Of the last default nothing is taken for columns that are left out."""
    (tmp_path / "t").write_bytes(gzip.compress(b"x,1\n,2\n"))
    inputs = [
        scalar(tmp_path / "t"), scalar("GZIP"), np.array(1, np.int64), np.array(False), scalar(","), np.array(False),
        scalar(""), np.zeros(0, np.int64), strings(b"none"), np.array([7], np.int64),
    ]  # fmt: skip
    found = dataset_of(steps(op, *inputs, output_types=[S, LONG], output_shapes=[TensorShape([])] * 2))
    assert drained(found) == [(b"x", 1), (b"none", 2)]
    assert [dtype.name for dtype in found.types] == ["string", "int64"]


def test_blocks_of_a_table_know_defaults_and_what_is_missing(steps: Steps, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b"1,a\nNA,NA\n3,\n,d\n")
    machine = csv(steps, tmp_path / "t").iterate(Run())
    machine()
    assert machine.block is not None
    block = machine.block(9)
    assert block is not None
    assert [column.tolist() for column in block] == [[7, 3, 7], [b"none", b"none", b"d"]]


def test_quotes_are_letters_where_they_are_to_be(steps: Steps, tmp_path: Path) -> None:
    (tmp_path / "t").write_bytes(b'1,"a"\n')
    assert drained(csv(steps, tmp_path / "t", quotes=np.array(False))) == [(1, b'"a"')]
    assert drained(csv(steps, tmp_path / "t", quotes=np.array(True))) == [(1, b"a")]


@pytest.mark.parametrize("name", ["buffer_size", "missing", "compression"])
def test_inputs_of_a_table_are_scalars(steps: Steps, name: str) -> None:
    wrong = np.array([1], np.int64) if name == "buffer_size" else strings(b"")
    with pytest.raises(errors.InvalidArgumentError, match="must be a scalar"):
        csv(steps, "t", **{name: wrong})
    with pytest.raises(errors.InvalidArgumentError, match="Unsupported compression_type"):
        csv(steps, "t", compression=scalar("LZMA"))
    with pytest.raises(errors.InvalidArgumentError, match="buffer_size should be positive"):
        csv(steps, "t", buffer_size=np.array(-1))


@pytest.mark.parametrize("op", ["SqlDataset", "ExperimentalSqlDataset"])
def test_rows_of_a_database(steps: Steps, tmp_path: Path, op: str) -> None:
    source = str(tmp_path / "a.db")
    with sqlite3.connect(source) as connection:
        connection.execute("CREATE TABLE t (n INTEGER)")
        connection.executemany("INSERT INTO t VALUES (?)", [(3,), (4,)])
    connection.close()
    found = dataset_of(steps(op, scalar("sqlite"), scalar(source), scalar("SELECT n FROM t"), **ONE))
    assert drained(found) == [3, 4]
    for place, name in enumerate(("driver_name", "data_source_name", "query")):
        inputs = [scalar("sqlite"), scalar(source), scalar("SELECT n FROM t")]
        inputs[place] = strings(b"sqlite")
        with pytest.raises(errors.InvalidArgumentError, match=f"^{name} must be a scalar"):
            steps(op, *inputs, **ONE)


@pytest.mark.parametrize("kind", [dtypes.variant, dtypes.resource, dtypes.bfloat16, dtypes.complex128])
def test_types_that_no_column_has(steps: Steps, kind: dtypes.DType) -> None:
    inputs = [scalar("sqlite"), scalar("x"), scalar("select 1")]
    with pytest.raises(errors.InvalidArgumentError, match=f"or a number; component 1 is {kind.name}$"):
        steps("SqlDataset", *inputs, output_types=[LONG, kind], output_shapes=[TensorShape([])] * 2)


def test_columns_have_as_many_shapes_as_types(steps: Steps) -> None:
    inputs = [scalar("sqlite"), scalar("x"), scalar("select 1")]
    with pytest.raises(
        errors.InvalidArgumentError, match="output_shapes must be as many, got 1 and 2"
    ):
        steps("SqlDataset", *inputs, output_types=[LONG], output_shapes=[TensorShape([])] * 2)


def test_names_by_the_older_op(steps: Steps, tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"")
    found = steps("ExperimentalMatchingFilesDataset", scalar(f"{tmp_path}/*"))
    assert drained(dataset_of(found)) == [f"{tmp_path}/a".encode()]


@pytest.mark.parametrize("op", ["ParseExampleDataset", "ParseExampleDatasetV2", "ExperimentalParseExampleDataset"])
def test_examples_by_each_op(steps: Steps, op: str) -> None:
    """In the order of their keys' bytes, whatever the order of the attributes; dense ones among sparse ones."""
    attrs: dict[str, Any] = {
        "sparse_keys": [b"z", b"b"], "dense_keys": [b"y", b"a"], "sparse_types": [LONG, LONG], "Tdense": [FLOAT, LONG],
        "dense_shapes": [TensorShape([1]), TensorShape([2])], "output_types": [LONG, VARIANT, FLOAT, VARIANT],
        "output_shapes": [TensorShape(None)] * 4,
    }  # fmt: skip
    inputs = [serialized(example(z=[1], b=[2, 3], y=[0.5], a=[7, 8])).as_array(), np.array(1, np.int64)]
    found = steps(op, *inputs, NO_DEFAULT, np.zeros(0, np.int64), **attrs)
    ((a, b, y, z),) = drained(dataset_of(found))
    assert (a, y) == ([[7, 8]], [[0.5]])
    assert (b[1], z[1]) == ([2, 3], [1])
    with pytest.raises(errors.InvalidArgumentError, match="num_parallel_calls must be a scalar"):
        steps(op, inputs[0], np.array([1], np.int64), NO_DEFAULT, np.zeros(0, np.int64), **attrs)


def test_examples_that_are_torn_and_ragged_ones(steps: Steps) -> None:
    with pytest.raises(errors.InvalidArgumentError):
        drained(parsed(steps, serialized(b"\xff\xff"), NO_DEFAULT))
    with pytest.raises(errors.InvalidArgumentError, match="ragged features are not read here"):
        parsed(
            steps, serialized(example(a=[1])), NO_DEFAULT, ragged_keys=[b"r"], ragged_value_types=[LONG],
            ragged_split_types=[LONG],
        )  # fmt: skip


def test_what_is_not_written_as_records(steps: Steps, tmp_path: Path) -> None:
    def write(source: Dataset, kind: str = "", name: Any = None) -> Any:
        given = scalar(tmp_path / "r") if name is None else name
        return result(steps("DatasetToTFRecord", source.as_array(), given, scalar(kind)))

    with pytest.raises(errors.InvalidArgumentError, match="must have a single component of type string"):
        write(numbers(3))
    torn = Listed((S,), SCALAR, [(scalar(b"one"),), (strings(b"two"),)])
    with pytest.raises(errors.InvalidArgumentError, match="must be scalar strings"):
        write(torn)
    with RecordReader(str(tmp_path / "r"), "") as reader:
        assert [reader.read(), reader.read()] == [b"one", None], "what was written before is in the file"
    with pytest.raises(errors.InvalidArgumentError, match="Unsupported compression_type"):
        write(numbers(3), "LZMA")
    with pytest.raises(errors.InvalidArgumentError, match="filename must be a scalar"):
        write(numbers(3), name=strings(b"r"))
    single = Listed((S,), SCALAR, [(scalar(b"one"),)])
    older = steps("ExperimentalDatasetToTFRecord", single.as_array(), scalar(tmp_path / "o"), scalar(""))
    assert result(older) is None
    assert (tmp_path / "o").is_file()


@pytest.mark.parametrize("op", ["LMDBDataset", "ExperimentalLMDBDataset"])
def test_what_is_not_read_says_why(steps: Steps, op: str) -> None:
    with pytest.raises(errors.OpError, match=r"a crafted one ends the server\. Write the pairs to TFRecord files"):
        steps(op, strings(b"name"), **ONE)
