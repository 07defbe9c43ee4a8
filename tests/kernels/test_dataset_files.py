"""Datasets of files by their ops: names that match, examples, snapshots, records; what is refused before a file is."""

from __future__ import annotations

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
