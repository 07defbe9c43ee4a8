"""Datasets of tensors, ranges, files and generators by their ops: elements, and arguments that are refused."""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import INT, SCALAR, drained, ints, one, plain
from support.dataset_ops import DatasetSteps, refused
from tenfold_core import dtypes, errors
from tenfold_core.records import RecordWriter
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import scalar_object
from tenfold_kernels.cpu import dataset_sources
from tenfold_kernels.resources.datasets.core import Run
from tenfold_protos.attr_value_pb2 import NameAttrList

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def strings(*values: bytes) -> Any:
    array = np.empty(len(values), object)
    array[:] = values
    return array


# ---- arguments -------------------------------------------------------------------------------------------------------


def test_scalars() -> None:
    assert dataset_sources.number(one(-7), "n") == -7
    assert dataset_sources.text(scalar_object(b"a\xc3\xa9"), "t") == "aé"
    assert dataset_sources.text(np.array("plain"), "t") == "plain"
    for read in (dataset_sources.number, dataset_sources.text):
        with refused("^it must be a scalar$"):
            read(ints(1), "it")


def test_names_and_kinds_of_files() -> None:
    assert dataset_sources.names_of(scalar_object(b"a")) == [b"a"]
    assert dataset_sources.names_of(strings(b"a", b"b")) == [b"a", b"b"]
    with refused(r"^`filenames` must be a scalar or a vector, got shape \[1,2\]$"):
        dataset_sources.names_of(strings(b"a", b"b").reshape(1, 2))
    assert [dataset_sources.compression_of(scalar_object(kind)) for kind in (b"", b"ZLIB", b"GZIP")] == [
        "", "ZLIB", "GZIP",
    ]  # fmt: skip
    with refused("Unsupported compression_type"):
        dataset_sources.compression_of(scalar_object(b"gzip"))
    with refused("compression_type must be a scalar"):
        dataset_sources.compression_of(strings(b""))


def test_a_function_needs_a_library(steps: DatasetSteps) -> None:
    with refused("^Function body is not defined: the graph of node 'mine' has no library"):
        steps.build("FlatMapDataset", scalar_object(None), f=NameAttrList(name="body"), Targuments=[], name="mine")


# ---- tensors and ranges ----------------------------------------------------------------------------------------------


def test_an_element_of_tensors(steps: DatasetSteps) -> None:
    how: dict[str, Any] = {"Toutput_types": [dtypes.int64, dtypes.string], "output_shapes": [TensorShape(None)] * 2}
    values = ints(1, 2)
    made = steps.dataset("TensorDataset", values, strings(b"a"), **how)
    assert drained(made) == [([1, 2], [b"a"])]
    assert [shape.ndims for shape in made.shapes] == [None, None]
    assert [dtype.name for dtype in made.types] == ["int64", "string"]
    assert not values.flags.writeable, "kept as it is"
    part = np.arange(4)[1:3]
    kept = steps.dataset("TensorDataset", part)
    part[:] = 0
    assert drained(kept) == [[1, 2]], "a copy of what belongs to another"


def test_an_element_for_each_row(steps: DatasetSteps) -> None:
    whole = np.arange(6)
    rows = whole.reshape(3, 2)
    made = steps.dataset("TensorSliceDataset", rows, output_shapes=[TensorShape([2])])
    whole[:] = 0
    assert drained(made) == [[0, 1], [2, 3], [4, 5]]
    assert (made.types, made.shapes[0].as_list()) == (INT, [2])
    with refused("All components must be at least 1-dimensional"):
        steps("TensorSliceDataset", one(1))


def test_an_element_for_each_row_of_a_sparse_tensor(steps: DatasetSteps) -> None:
    indices, values = np.array([[0, 1], [2, 0]], np.int64), np.array([5, 6], np.float32)
    made = steps.dataset("SparseTensorSliceDataset", indices, values, ints(3, 4), Tvalues=dtypes.float32)
    assert drained(made) == [([[1]], [5], [4]), ([], [], [4]), ([[0]], [6], [4])]
    assert [dtype.name for dtype in made.types] == ["int64", "float32", "int64"]


@pytest.mark.parametrize(
    ("indices", "values", "shape", "text"),
    [
        (np.zeros(2, np.int64), ints(1, 2), ints(3, 4), "must be a matrix, values and dense_shape vectors"),
        (np.zeros((2, 2, 1), np.int64), ints(1, 2), ints(3, 4), "must be a matrix"),
        (np.zeros((2, 2), np.int64), ints([1, 2]), ints(3, 4), "must be a matrix"),
        (np.zeros((2, 2), np.int64), one(1), ints(3, 4), "must be a matrix"),
        (np.zeros((2, 2), np.int64), ints(1, 2), one(3), "must be a matrix"),
        (np.zeros((2, 2), np.int64), ints(1, 2), ints([3, 4]), "must be a matrix"),
        (np.zeros((0, 0), np.int64), ints(), ints(), "must be a matrix"),
        (np.zeros((2, 2), np.int64), ints(1), ints(3, 4), r"Number of values 1 does not match the indices \[2,2\]"),
        (np.zeros((2, 2), np.int64), ints(1, 2), ints(3), r"Number of values 2 does not match the indices \[2,2\]"),
    ],
)
def test_parts_that_are_no_sparse_tensor(steps: DatasetSteps, indices: Any, values: Any, shape: Any, text: str) -> None:
    with refused(text):
        steps("SparseTensorSliceDataset", indices, values, shape, Tvalues=dtypes.int64)


def test_ranges(steps: DatasetSteps) -> None:
    made = steps.dataset("RangeDataset", 2, 9, 3)
    assert drained(made) == [2, 5, 8]
    small = steps.dataset("RangeDataset", 0, 2, 1, output_types=[dtypes.int32])
    element = small.iterate(Run())()
    assert element is not None
    assert element[0].dtype == np.int32
    for place, name in enumerate(("start", "stop", "step")):
        values: list[Any] = [0, 3, 1]
        values[place] = ints(1)
        with refused(f"^{name} must be a scalar"):
            steps("RangeDataset", *values)
    with refused("step must be a non-zero integer"):
        steps("RangeDataset", 0, 3, 0)


# ---- files -----------------------------------------------------------------------------------------------------------

LINES = b"a\r\nb\n\r\n\nc\r\r\nd"


@pytest.mark.parametrize(
    ("kind", "pack"), [("", bytes), ("GZIP", gzip.compress), ("ZLIB", zlib.compress)], ids=["plain", "gzip", "zlib"]
)
def test_lines(steps: DatasetSteps, tmp_path: Path, kind: str, pack: Any) -> None:
    (tmp_path / "t").write_bytes(pack(LINES))
    wanted = [b"a", b"b", b"", b"", b"c\r", b"d"]
    made = steps.dataset("TextLineDataset", str(tmp_path / "t"), kind, 0)
    assert drained(made) == wanted
    assert [dtype.name for dtype in made.types] == ["string"]
    twice = steps.dataset("TextLineDataset", strings(*[str(tmp_path / "t").encode()] * 2), kind, 0)
    assert drained(twice) == wanted * 2


@pytest.mark.parametrize("op", ["TextLineDataset", "TFRecordDataset"])
def test_kinds_of_files_that_are_not_read(steps: DatasetSteps, op: str) -> None:
    with refused("Unsupported compression_type"):
        steps(op, "name", "LZMA", 0)
    with refused("`filenames` must be a scalar or a vector"):
        steps(op, strings(b"name").reshape(1, 1), "", 0)


@pytest.mark.parametrize("kind", ["", "GZIP", "ZLIB"])
def test_records(steps: DatasetSteps, tmp_path: Path, kind: str) -> None:
    name = str(tmp_path / "r")
    writer = RecordWriter(name, kind)
    for record in (b"one", b"", b"three"):
        writer.write(record)
    writer.close()
    wanted = [b"one", b"", b"three"]
    assert drained(steps.dataset("TFRecordDataset", name, kind, 0)) == wanted
    for offsets in (ints(), ints(0), ints(0, 0)):
        assert drained(steps.dataset("TFRecordDatasetV2", name, kind, 0, offsets)) == wanted
    with refused("byte_offsets other than 0 are not read here"):
        steps("TFRecordDatasetV2", name, kind, 0, ints(0, 8))


def fixed(steps: DatasetSteps, name: Any, header: Any, record: Any, footer: Any, kind: str | None = None) -> Any:
    op = "FixedLengthRecordDataset" if kind is None else "FixedLengthRecordDatasetV2"
    return steps.dataset(op, str(name), header, record, footer, 0, *(() if kind is None else (kind,)))


@pytest.mark.parametrize("kind", [None, "", "GZIP", "ZLIB"])
@pytest.mark.parametrize(
    ("text", "header", "record", "footer", "wanted"),
    [
        (b"abcdef", 0, 3, 0, [b"abc", b"def"]),
        (b"abcdef", 0, 1, 0, [b"a", b"b", b"c", b"d", b"e", b"f"]),
        (b"HHabcdefF", 2, 2, 1, [b"ab", b"cd", b"ef"]),
        (b"HabcdFFFF", 1, 2, 4, [b"ab", b"cd"]),
        (b"HF", 1, 2, 1, []),
        (b"", 0, 2, 0, []),
    ],
)
def test_records_of_one_length(
    steps: DatasetSteps, tmp_path: Path, kind: str | None, text: bytes, header: int, record: int, footer: int,
    wanted: list[bytes],
) -> None:  # fmt: skip
    pack: Any = {"GZIP": gzip.compress, "ZLIB": zlib.compress}.get(kind or "", bytes)
    (tmp_path / "f").write_bytes(pack(text))
    made = fixed(steps, tmp_path / "f", header, record, footer, kind)
    assert drained(made) == wanted


@pytest.mark.parametrize("kind", [None, ""])
def test_a_body_is_so_many_records(steps: DatasetSteps, tmp_path: Path, kind: str | None) -> None:
    (tmp_path / "f").write_bytes(b"Habcdf")
    machine = fixed(steps, tmp_path / "f", 1, 3, 1, kind).iterate(Run())
    with refused(
        r'^Excluding the header \(1 bytes\) and footer \(1 bytes\), input file ".*f" has body length 4 bytes, which is '
        r"not an exact multiple of the record length \(3 bytes\)\.$"
    ):
        machine()
    with pytest.raises(errors.NotFoundError, match="none"):
        fixed(steps, tmp_path / "none", 1, 3, 1, kind).iterate(Run())()


def test_a_packed_body_ends_with_its_last_whole_record(steps: DatasetSteps, tmp_path: Path) -> None:
    """How long it is shows only at its end."""
    (tmp_path / "f").write_bytes(gzip.compress(b"Habcdef"))
    assert drained(fixed(steps, tmp_path / "f", 1, 4, 0, "GZIP")) == [b"abcd"]


@pytest.mark.parametrize(
    ("lengths", "text"),
    [
        ((-1, 1, 0), "`header_bytes` and `footer_bytes` must be >= 0"),
        ((0, 1, -1), "`header_bytes` and `footer_bytes` must be >= 0"),
        ((0, 0, 0), "`record_bytes` must be > 0 and at most 2147483648"),
        ((0, -1, 0), "`record_bytes` must be > 0 and at most 2147483648"),
        ((0, (1 << 31) + 1, 0), "`record_bytes` must be > 0 and at most 2147483648"),
        ((ints(1), 1, 1), "^header_bytes must be a scalar"),
        ((1, ints(1), 1), "^record_bytes must be a scalar"),
        ((1, 1, ints(1)), "^footer_bytes must be a scalar"),
    ],
)
def test_lengths_that_cannot_be(steps: DatasetSteps, lengths: Any, text: str) -> None:
    with refused(text):
        fixed(steps, "f", *lengths)
    fixed(steps, "f", 0, 1 << 31, 0)
    with refused("Unsupported compression_type"):
        fixed(steps, "f", 0, 1, 0, "LZMA")


# ---- generators ------------------------------------------------------------------------------------------------------


def test_a_generator_s_functions_have_captured_values_of_their_own(steps: DatasetSteps) -> None:
    left, seen = [3, 2], list[Any]()

    def begin(a: Any, b: Any) -> Any:
        seen.append(("begin", int(a), int(b)))
        return one(7)

    def following(state: Any, c: Any) -> Any:
        seen.append(("next", int(state), int(c)))
        if not left:
            raise errors.OutOfRangeError(None, None, "over")
        return one(left.pop())

    def end(state: Any, d: Any, e: Any, f: Any) -> Any:
        seen.append(("end", int(state), int(d), int(e), int(f)))
        return one(0)

    values = [one(n) for n in range(6)]
    made = steps.dataset(
        "GeneratorDataset", *values, init_func=begin, next_func=following, finalize_func=end,
        Tinit_func_args=list(INT * 2), Tnext_func_args=list(INT), Tfinalize_func_args=list(INT * 3),
        output_shapes=list(SCALAR),
    )  # fmt: skip
    machine = made.iterate(Run())
    assert [plain(machine()), plain(machine()), machine(), machine()] == [2, 3, None, None]
    assert seen == [("begin", 0, 1), *[("next", 7, 2)] * 3, ("end", 7, 3, 4, 5)]
