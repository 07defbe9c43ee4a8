"""Files, checkpoints, parsing and hashes as kernels; the numbers are TensorFlow 2.21's own."""

# ruff: noqa: E501 (a case stays on one line)

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_protos import example_pb2

if TYPE_CHECKING:
    from pathlib import Path


def text(*items: bytes) -> Any:
    out = np.empty(len(items), object)
    out[:] = items
    return out


def save(ops: Any, prefix: str, **tensors: Any) -> None:
    names = [name.encode() for name in tensors]
    ops.run("SaveV2", [prefix.encode(), text(*names), text(*[b""] * len(names)), *tensors.values()])


def test_variables_are_saved_and_restored(ops: Any, tmp_path: Path) -> None:
    a, s = np.arange(6, dtype=np.float32).reshape(2, 3), text(b"x", b"")
    save(ops, str(tmp_path / "m"), a=a, s=s)

    found = ops.run(
        "RestoreV2",
        [str(tmp_path / "m").encode(), text(b"s", b"a", b"a"), text(b"", b"", b"2 3 -:1,2")],
        dtypes=[dtypes.string, dtypes.float32, dtypes.float32],
    )

    assert found[0].tolist() == [b"x", b""]
    assert np.array_equal(found[1], a)
    assert np.array_equal(found[2], a[:, 1:3])
    assert found[1].flags.writeable


@pytest.mark.parametrize(
    ("names", "specs", "kinds", "error", "message"),
    [
        ([b"b"], [b""], [dtypes.float32], errors.NotFoundError, "Key b not found in checkpoint"),
        ([b"a"], [b""], [dtypes.int32], errors.InvalidArgumentError, "tensor_name = a; expected dtype int32 does not equal original dtype float"),
        ([b"a"], [b"3 3 -:-"], [dtypes.float32], errors.InvalidArgumentError, "tensor_name = a; shape in shape_and_slice spec .3,3. does not match"),
        ([b"a", b"a"], [b""], [dtypes.float32] * 2, errors.InvalidArgumentError, "different number of elements: 2 vs. 1"),
        ([b"a"], [b""], [dtypes.float32] * 2, errors.InvalidArgumentError, "Got 1 tensor names, but 2 expected dtypes."),
    ],
)  # fmt: skip
def test_wrong_restores(ops: Any, tmp_path: Path, names: Any, specs: Any, kinds: Any, error: Any, message: str) -> None:
    save(ops, str(tmp_path / "m"), a=np.zeros((2, 3), np.float32))

    with pytest.raises(error, match=message):
        ops.run("RestoreV2", [str(tmp_path / "m").encode(), text(*names), text(*specs)], dtypes=kinds)


def test_no_checkpoint_at_all(ops: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="Failed to find any matching files for"):
        ops.run("RestoreV2", [str(tmp_path / "m").encode(), text(b"a"), text(b"")], dtypes=[dtypes.float32])


def test_a_slice_of_another_shape_is_not_saved(ops: Any, tmp_path: Path) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Slice in shape_and_slice specification does not match"):
        ops.run("SaveV2", [str(tmp_path / "m").encode(), text(b"a"), text(b"4 0,2"), np.zeros(3)])
    assert list(tmp_path.iterdir()) == []


def test_a_sharded_save_is_merged_and_its_folders_go(ops: Any, tmp_path: Path) -> None:
    folder = tmp_path / "m_temp"
    prefixes = [str(folder / f"part-0000{i}-of-00002") for i in range(2)]
    save(ops, prefixes[0], a=np.zeros(2))
    save(ops, prefixes[1], b=np.ones(2))

    ops.run("MergeV2Checkpoints", [text(*(p.encode() for p in prefixes)), str(tmp_path / "m").encode()])

    assert not folder.exists()
    found = ops.run(
        "RestoreV2", [str(tmp_path / "m").encode(), text(b"a", b"b"), text(b"", b"")], dtypes=[dtypes.float64] * 2
    )
    assert [f.tolist() for f in found] == [[0, 0], [1, 1]]


def test_the_old_format(ops: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "v1").encode()
    ops.run("SaveSlices", [path, text(b"w", b"v"), text(b"4 0,4", b""), np.arange(4.0), np.array(7, np.int32)])

    assert ops.run("RestoreSlice", [path, b"w", b"4 1,2"], dt=dtypes.float64).tolist() == [1, 2]
    assert ops.run("Restore", [path, b"v"], dt=dtypes.int32) == 7
    assert ops.run("RestoreV2", [path, text(b"v"), text(b"")], dtypes=[dtypes.int32]) == 7
    with pytest.raises(errors.NotFoundError, match='Tensor name "x" not found in checkpoint files'):
        ops.run("Restore", [path, b"x"], dt=dtypes.int32)
    with pytest.raises(
        errors.InvalidArgumentError, match="Expected to restore a tensor of type float, got a tensor of type int32"
    ):
        ops.run("Restore", [path, b"v"], dt=dtypes.float32)


def test_files_by_name(ops: Any, tmp_path: Path) -> None:
    name = str(tmp_path / "new" / "file").encode()
    ops.run("WriteFile", [name, b"contents"])

    assert ops.run("ReadFile", [name])[()] == b"contents"
    assert ops.run("MatchingFiles", [text(str(tmp_path / "new" / "*").encode(), name)]).tolist() == [name]
    with pytest.raises(errors.NotFoundError, match="No such file or directory"):
        ops.run("ReadFile", [name + b"x"])
    with pytest.raises(errors.FailedPreconditionError, match="Is a directory"):
        ops.run("ReadFile", [str(tmp_path).encode()])
    with pytest.raises(errors.InvalidArgumentError, match="null byte"):
        ops.run("ReadFile", [b"a\x00b"])


@pytest.mark.parametrize(
    ("op", "attrs", "expected"),
    [
        (
            "StringToHashBucket",
            {},
            [
                142163811899,
                825286642172,
                798522768714,
                574566410860,
                113887197997,
                715711129721,
                557618826648,
                482060009871,
            ],
        ),
        (
            "StringToHashBucketFast",
            {},
            [
                254201053263,
                436859794915,
                726675229928,
                295136511211,
                135542558148,
                234512175070,
                897446945304,
                819959214875,
            ],
        ),
        (
            "StringToHashBucketStrong",
            {"key": [123, 456]},
            [
                1014134345198,
                1017933744300,
                579617894099,
                512682803509,
                1002528463933,
                269113763715,
                105739747781,
                51867546116,
            ],
        ),
    ],
)
def test_hashes(ops: Any, op: str, attrs: dict[str, Any], expected: list[int]) -> None:
    words = text(b"", b"a", b"hello", b"0123456789", b"x" * 20, b"y" * 40, b"z" * 64, b"tensorflow" * 20)

    assert ops.run(op, [words], num_buckets=1 << 40, **attrs).tolist() == expected


def test_examples(ops: Any) -> None:
    example = example_pb2.Example()
    example.features.feature["i"].int64_list.value.extend([1, 2])
    example.features.feature["s"].bytes_list.value.append(b"x")
    rows = text(example.SerializeToString(), example_pb2.Example().SerializeToString())

    indices, values, shape, dense = ops.run(
        "ParseExampleV2",
        [rows, text(), text(b"s"), text(b"i"), text(), np.array([-1], np.int64)],
        Tdense=[dtypes.int64], num_sparse=1, sparse_types=[dtypes.string], ragged_value_types=[], ragged_split_types=[],
        dense_shapes=[TensorShape([None])],
    )  # fmt: skip

    assert (indices.tolist(), values.tolist(), shape.tolist()) == ([[0, 0]], [b"x"], [2, 1])
    assert dense.tolist() == [[1, 2], [-1, -1]]


def test_an_example_that_does_not_parse(ops: Any) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="Could not parse example input"):
        ops.run(
            "ParseSingleExample", [b"\xff\xff"],
            num_sparse=1, sparse_keys=["s"], dense_keys=[], sparse_types=[dtypes.string], Tdense=[], dense_shapes=[],
        )  # fmt: skip


def test_csv(ops: Any) -> None:
    defaults = [np.array([7], np.int32), np.empty(0, np.float32)]

    numbers, halves = ops.run(
        "DecodeCSV", [text(b'1,"2.5"', b",3"), *defaults], OUT_TYPE=[dtypes.int32, dtypes.float32]
    )

    assert numbers.tolist() == [1, 7]
    assert halves.tolist() == [2.5, 3]
    with pytest.raises(errors.InvalidArgumentError, match="Field 1 is required but missing in record 0!"):
        ops.run("DecodeCSV", [text(b"1,"), *defaults], OUT_TYPE=[dtypes.int32, dtypes.float32])


CSV_TYPES = [dtypes.int32, dtypes.float32, dtypes.string, dtypes.int64, dtypes.float64]


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_many_records_are_read_as_each_by_itself(ops: Any, delimiter: str) -> None:
    choose = np.random.default_rng(5)
    defaults = [np.array([each], t.as_numpy_dtype) for each, t in zip([-1, 0.5, b"?", 9, 2.5], CSV_TYPES, strict=True)]
    fields = [
        [b"7", b"-2147483648", b"+12", b" 4 ", b""],
        [b"0.1", b"-3.", b"1e9", b"nan", b"16777217", b""],
        [b"a", b"b\x00", b"", b"NA", b"1"],
        [b"9223372036854775807", b"-1", b"000000000000000000000012", b"NA"],
        [b"3.141592653589793", b".5", b"inf", b"2"],
    ]
    rows = [delimiter.encode().join(each[choose.integers(len(each))] for each in fields) for _ in range(40)]
    attrs = {"OUT_TYPE": CSV_TYPES, "field_delim": delimiter, "na_value": "NA"}

    together = ops.run("DecodeCSV", [text(*rows), *defaults], **attrs)

    alone = [ops.run("DecodeCSV", [text(row), *defaults], **attrs) for row in rows]
    for number, column in enumerate(together):
        assert column.dtype == np.dtype(CSV_TYPES[number].as_numpy_dtype)
        np.testing.assert_array_equal(column, np.concatenate([each[number] for each in alone]))


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b"1;x", "Field 1 in record 5 is not a valid float: x"),
        (b"2147483648;1", "Field 0 in record 5 is not a valid int32"),
        (b"1,2;1", "Field 0 in record 5 is not a valid int32: 1,2"),
        (b"1", "Expect 2 fields but have 1 in record 5"),
        (b"1;", "Field 1 is required but missing in record 5!"),
        (b'1;2"', "Unquoted fields cannot have quotes/CRLFs inside"),
    ],
)
def test_a_wrong_record_among_many_is_named(ops: Any, record: bytes, message: str) -> None:
    defaults = [np.array([7], np.int32), np.empty(0, np.float32)]
    rows = text(*[b"1;2.5"] * 5, record, *[b"3;4"] * 5)

    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run("DecodeCSV", [rows, *defaults], OUT_TYPE=[dtypes.int32, dtypes.float32], field_delim=";")


def test_tensors_are_serialized_and_parsed(ops: Any) -> None:
    for value in (np.arange(6, dtype=np.float16).reshape(2, 3), text(b"a", b"\xff")):
        packed = ops.run("SerializeTensor", [value])
        assert np.array_equal(ops.run("ParseTensor", [packed], out_type=dtypes.as_dtype(value.dtype)), value)
    with pytest.raises(
        errors.InvalidArgumentError, match=r"Type mismatch between parsed tensor \(string\) and dtype \(float\)"
    ):
        ops.run("ParseTensor", [packed], out_type=dtypes.float32)


def test_patterns_cannot_take_exponential_time(ops: Any) -> None:
    assert ops.run("RegexFullMatch", [text(b"a" * 5000), b"(a+)+b"]).tolist() == [False]
    with pytest.raises(errors.InvalidArgumentError, match=r"Invalid pattern: .*, error: invalid perl operator"):
        ops.run("RegexFullMatch", [text(b"a"), b"(?=a)"])


def test_learned_samplers_learn(ops: Any) -> None:
    attrs = {"num_true": 1, "num_sampled": 400, "unique": False, "range_max": 4, "seed": 1, "seed2": 2}
    compute, _ = ops.build("LearnedUnigramCandidateSampler", [np.array([[3]])], attrs)
    for _ in range(40):
        compute(np.array([[3]]))

    candidates, true_count, _ = compute(np.array([[3]]))

    assert (candidates == 3).mean() > 0.8
    assert true_count[0, 0] == pytest.approx(400 * 41 / 44)


def test_raw_bytes_become_numbers(ops: Any) -> None:
    rows = text(b"\x01\x02\x03\x04", b"\xff\xff\x00\x80")
    found = ops.run("DecodeRaw", [rows], out_type=dtypes.int16)
    assert found.tolist() == [[0x201, 0x403], [-1, -32768]]
    assert found.flags.writeable
    assert ops.run("DecodeRaw", [rows], out_type=dtypes.int16, little_endian=False).tolist()[0] == [0x102, 0x304]
    assert ops.run("DecodeRaw", [rows.reshape(2, 1)], out_type=dtypes.int32).shape == (2, 1, 1)
    empty = ops.run("DecodeRaw", [np.empty((0, 3), object)], out_type=dtypes.int32)
    assert (empty.shape, empty.dtype) == ((0, 3, 0), np.int32)
    with pytest.raises(errors.InvalidArgumentError, match=r"to all be the same size, but element has size 2 != 1$"):
        ops.run("DecodeRaw", [text(b"1", b"22")], out_type=dtypes.uint8)
    message = r"^Input to DecodeRaw has length 3 that is not a multiple of 2, the size of int16$"
    with pytest.raises(errors.InvalidArgumentError, match=message):
        ops.run("DecodeRaw", [text(b"123")], out_type=dtypes.int16)


def test_raw_bytes_are_cut_or_filled_up(ops: Any) -> None:
    rows = text(b"\x01\x02\x03\x04\x05", b"\x07", b"")

    def decoded(length: Any, **attrs: Any) -> Any:
        return ops.run("DecodePaddedRaw", [rows, np.array(length, np.int32)], out_type=dtypes.int16, **attrs)

    assert decoded(4).tolist() == [[0x201, 0x403], [7, 0], [0, 0]]
    assert decoded(2, little_endian=False).tolist() == [[0x102], [0x700], [0]]
    for length, message in (
        ([4], r"^k must be scalar, got shape \[1\]$"),
        (3, r"^fixed_length \(3\) must be a multiple of the size of out_type \(2\)$"),
        (0, r"^fixed_length \(0\) must be greater than zero\.$"),
        (-2, r"^fixed_length \(-2\) must be greater than zero\.$"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=message):
            decoded(length)


def test_names_of_shards(ops: Any) -> None:
    assert ops.run("ShardedFilename", [b"f", 3, 12])[()] == b"f-00003-of-00012"
    assert ops.run("ShardedFilespec", [b"f", 12])[()] == b"f-?????-of-00012"
    for op, numbers in (("ShardedFilename", [1, 2]), ("ShardedFilespec", [2])):
        with pytest.raises(errors.InvalidArgumentError, match=r"^basename must be a scalar, got shape \[1\]$"):
            ops.run(op, [text(b"f"), *numbers])


def test_names_and_contents_are_scalars(ops: Any, tmp_path: Path) -> None:
    name = str(tmp_path / "f").encode()
    refused = r"^Input filename tensor must be a scalar tensor, got shape \[1\]$"
    for op, inputs in (("ReadFile", []), ("WriteFile", [b"x"])):
        with pytest.raises(errors.InvalidArgumentError, match=refused):
            ops.run(op, [text(name), *inputs])
    with pytest.raises(errors.InvalidArgumentError, match=r"^Contents tensor must be scalar, got shape \[1\]$"):
        ops.run("WriteFile", [name, text(b"x")])
    assert list(tmp_path.iterdir()) == []


_WHOLE = [np.array([7], np.int32), text(b"?")]
_KINDS = {"OUT_TYPE": [dtypes.int32, dtypes.string]}


@pytest.mark.parametrize(
    ("record", "field"),
    [
        (b'1,"a,b"', b"a,b"),
        (b'1,"a""b"', b'a"b'),
        (b'1,""', b"?"),
        (b"1,", b"?"),
        (b"\r\n1,a", b"a"),
        (b'"1",a', b"a"),
        (b'1,"a\nb"', b"a\nb"),
    ],
)
def test_quoted_fields(ops: Any, record: bytes, field: bytes) -> None:
    assert [column.tolist() for column in ops.run("DecodeCSV", [text(record), *_WHOLE], **_KINDS)] == [[1], [field]]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b'1,"a"b"', "Quote inside a string has to be escaped by another quote"),
        (b'1,"a', "Quoted field has to end with quote followed by delim or end"),
        (b'1,"', "Quoted field has to end with quote followed by delim or end"),
        (b'1,a"', "Unquoted fields cannot have quotes/CRLFs inside"),
        (b"1,a\n", "Unquoted fields cannot have quotes/CRLFs inside"),
        (b"1,a\r", "Unquoted fields cannot have quotes/CRLFs inside"),
        (b"", "Expect 2 fields but have 0 in record 0"),
        (b"1,2,3", "Expect 2 fields but have 3 in record 0"),
        (b"x,2", "Field 0 in record 0 is not a valid int32: x"),
    ],
)
def test_lines_that_cannot_be_read(ops: Any, record: bytes, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^{message}$"):
        ops.run("DecodeCSV", [text(record), *_WHOLE], **_KINDS)


def test_quotes_may_be_letters_like_others(ops: Any) -> None:
    found = ops.run("DecodeCSV", [text(b'1,"a"'), *_WHOLE], use_quote_delim=False, **_KINDS)
    assert found[1].tolist() == [b'"a"']


@pytest.mark.parametrize("record", [b"0,1,2,a,4", b'0,"1",2,a,4', b'0,"1",2,"a"', b"0,1,2,a"])
def test_some_columns_are_selected(ops: Any, record: bytes) -> None:
    for count in (1, 4):
        found = ops.run("DecodeCSV", [text(*[record] * count), *_WHOLE], select_cols=[1, 3], **_KINDS)
        assert [column.tolist() for column in found] == [[1] * count, [b"a"] * count]


def test_a_selected_last_column_may_be_empty(ops: Any) -> None:
    for record in (b'0,1,"2",', b"0,1,2,"):
        found = ops.run("DecodeCSV", [text(record), *_WHOLE], select_cols=[1, 3], **_KINDS)
        assert [column.tolist() for column in found] == [[1], [b"?"]]


@pytest.mark.parametrize(
    ("attrs", "message"),
    [
        ({"field_delim": b""}, "field_delim should be only 1 char"),
        ({"field_delim": b",,"}, "field_delim should be only 1 char"),
        ({"select_cols": [1]}, "select_cols should match output size"),
        ({"select_cols": [1, 1]}, "select_cols should be strictly increasing indices"),
        ({"select_cols": [-1, 1]}, "select_cols should be non-negative indices"),
    ],
)
def test_nodes_that_read_no_lines(ops: Any, attrs: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"^{message}$"):
        ops.run("DecodeCSV", [text(b"1,a"), *_WHOLE], **_KINDS, **attrs)


def test_a_default_is_one_value_or_none(ops: Any) -> None:
    scalars = [np.array(7, np.int32), text(b"?").reshape(())]
    assert [column.tolist() for column in ops.run("DecodeCSV", [text(b","), *scalars], **_KINDS)] == [[7], [b"?"]]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Each record default should be at most rank 1$"):
        ops.run("DecodeCSV", [text(b","), np.zeros((1, 1), np.int32), _WHOLE[1]], **_KINDS)
    with pytest.raises(errors.InvalidArgumentError, match=r"only be 1 default per field but field 1 has 2$"):
        ops.run("DecodeCSV", [text(b","), _WHOLE[0], text(b"a", b"b")], **_KINDS)


def test_what_is_no_serialized_tensor(ops: Any) -> None:
    with pytest.raises(
        errors.InvalidArgumentError, match=r"^Could not parse `serialized` as TensorProto, base64: /w==$"
    ):
        ops.run("ParseTensor", [b"\xff"], out_type=dtypes.float32)
    with pytest.raises(errors.InvalidArgumentError, match=r"^Expected `serialized` to be a scalar, got shape: \[1\]$"):
        ops.run("ParseTensor", [text(b"")], out_type=dtypes.float32)


@pytest.mark.parametrize(
    ("record", "fields"),
    [
        (b',"a"', [7, b"a"]),
        (b'1,"a"""', [1, b'a"']),
        (b'1,""""', [1, b'"']),
        (b'1,"""a"', [1, b'"a']),
        (b'"1","a""b""c"', [1, b'a"b"c']),
        (b'"",""', [7, b"?"]),
        (b'1,\r\n"a"', [1, b"a"]),
        (b'1,\r\n\n"a"', [1, b"a"]),
        (b'1,","', [1, b","]),
        (b'"1",', [1, b"?"]),
    ],
)
def test_more_quoted_fields(ops: Any, record: bytes, fields: list[Any]) -> None:
    for count in (1, 4):
        found = ops.run("DecodeCSV", [text(*[record] * count), *_WHOLE], **_KINDS)
        assert [column.tolist() for column in found] == [[each] * count for each in fields]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (b'1,"a",', "Expect 2 fields but have 3 in record 0"),
        (b'1,"a""', "Quoted field has to end with quote followed by delim or end"),
        (b'1,"a""",b', "Expect 2 fields but have 3 in record 0"),
        (b'1,"a"\r', "Quote inside a string has to be escaped by another quote"),
        (b'1,"a"\n,b', "Quote inside a string has to be escaped by another quote"),
        (b'"1"', "Expect 2 fields but have 1 in record 0"),
        (b"\n", "Expect 2 fields but have 0 in record 0"),
        (b'"', "Quoted field has to end with quote followed by delim or end"),
    ],
)
def test_more_lines_that_cannot_be_read(ops: Any, record: bytes, message: str) -> None:
    for count in (1, 4):
        with pytest.raises(errors.InvalidArgumentError, match=f"^{message}$"):
            ops.run("DecodeCSV", [text(*[record] * count), *_WHOLE], **_KINDS)


def test_columns_from_the_first_to_one_that_is_not_there(ops: Any) -> None:
    for count in (1, 4):
        found = ops.run("DecodeCSV", [text(*[b"5,x,a"] * count), *_WHOLE], select_cols=[0, 2], **_KINDS)
        assert [column.tolist() for column in found] == [[5] * count, [b"a"] * count]
        for record in (b"0,1,2", b'0,"1",2'):
            for last in (3, 4):
                with pytest.raises(errors.InvalidArgumentError, match=r"^Expect 2 fields but have 1 in record 0$"):
                    ops.run("DecodeCSV", [text(*[record] * count), *_WHOLE], select_cols=[1, last], **_KINDS)


@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 2), (2, 3), (0,), (0, 4), (0, 0)])
def test_records_of_any_shape(ops: Any, shape: tuple[int, ...]) -> None:
    records = np.empty(shape, object)
    records[...] = b"3"
    found = ops.run("DecodeCSV", [records, _WHOLE[0]], OUT_TYPE=[dtypes.int32])
    assert (found.tolist(), found.shape) == (np.full(shape, 3).tolist(), shape)
    records[...] = b"3,NA"
    found = ops.run("DecodeCSV", [records, *_WHOLE], na_value=b"NA", **_KINDS)
    assert [column.shape for column in found] == [shape, shape]
    assert found[1].tolist() == np.full(shape, b"?", object).tolist()


def test_a_field_that_is_not_there_is_no_default_of_others(ops: Any) -> None:
    """Alone, and column by column."""
    for rest in ([], [b"1,x"] * 3):
        with pytest.raises(errors.InvalidArgumentError, match=r"^Field 0 is required but missing in record 0!$"):
            ops.run("DecodeCSV", [text(b"NA,x", *rest), np.empty(0, np.int32), _WHOLE[1]], na_value=b"NA", **_KINDS)
        found = ops.run("DecodeCSV", [text(b"NA,NA", b",", *rest), *_WHOLE], na_value=b"NA", **_KINDS)
        assert found[0].tolist() == [7, 7] + [1] * len(rest)
        assert found[1].tolist() == [b"?", b"?"] + [b"x"] * len(rest)
        found = ops.run("DecodeCSV", [text(b"1,NA", *rest), *_WHOLE], **_KINDS)
        assert found[1].tolist() == [b"NA"] + [b"x"] * len(rest)
        with pytest.raises(errors.InvalidArgumentError, match=r"^Expect 1 fields but have 0 in record 0$"):
            ops.run("DecodeCSV", [text(b"", *[b"1"] * len(rest)), _WHOLE[0]], OUT_TYPE=[dtypes.int32])


def test_memory_for_padded_bytes_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = np.array([[b"abc", b"d", b""]], object)

    def run() -> Any:
        return ops.run("DecodePaddedRaw", [rows, np.array(4, np.int32)], out_type=dtypes.int16)

    assert_wants(monkeypatch, 3 * 4 * 2, run)
    assert run().shape == (1, 3, 2)
    assert run().flags.writeable


def test_variants_are_serialized_and_parsed(ops: Any) -> None:
    listed = ops.run("TensorListFromTensor", [np.float32([[1, 2], [3, 4]]), [2]], element_dtype=dtypes.float32)
    packed = ops.run("SerializeTensor", [listed], T=dtypes.variant)
    found = ops.run("ParseTensor", [packed], out_type=dtypes.variant)
    assert (type(found.item()), found.shape) == (type(listed.item()), ())
    again = ops.run("TensorListStack", [found, [2]], element_dtype=dtypes.float32)
    assert again.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(errors.InvalidArgumentError, match=r"parsed tensor \(variant\) and dtype \(float\)$"):
        ops.run("ParseTensor", [packed], out_type=dtypes.float32)
    number = ops.run("SerializeTensor", [np.float32(2)])
    with pytest.raises(errors.InvalidArgumentError, match=r"parsed tensor \(float\) and dtype \(variant\)$"):
        ops.run("ParseTensor", [number], out_type=dtypes.variant)
