"""Strings and files: object arrays of bytes in and out."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from pathlib import Path

#: op, inputs, attrs, expected.
CASES: list[tuple[str, list[Any], dict[str, Any], Any]] = [
    ("StringJoin", [[b"a", b"b"], b"-", [b"x", b"y"]], {}, [b"a-x", b"b-y"]),
    ("StringJoin", [b"a", b"b"], {"separator": b"/"}, b"a/b"),
    ("StaticRegexFullMatch", [[b"s3://x", b"as3://"]], {"pattern": b"^s3://.*"}, [True, False]),
    ("RegexFullMatch", [[b"ab"], b"a."], {}, [True]),
    ("StaticRegexReplace", [[b"aXa"]], {"pattern": b"a", "rewrite": b"b"}, [b"bXb"]),
    ("StaticRegexReplace", [[b"aXa"]], {"pattern": b"a", "rewrite": b"b", "replace_global": False}, [b"bXa"]),
    ("RegexReplace", [[b"ab"], b"(a)(b)", rb"\2\1\0"], {}, [b"baab"]),
    ("StringLength", [[b"abc", "é".encode()]], {}, [3, 2]),
    ("StringLength", [[b"abc", "é".encode()]], {"unit": b"UTF8_CHAR"}, [3, 1]),
    ("StringLower", [[b"AbC"]], {}, [b"abc"]),
    ("StringUpper", [[b"AbC"]], {}, [b"ABC"]),
    ("StringStrip", [[b" a\n"]], {}, [b"a"]),
    ("Substr", [[b"hello", b"world"], 1, 3], {}, [b"ell", b"orl"]),
    ("Substr", [b"hello", -2, 9], {}, b"lo"),
    ("StringToNumber", [[b"1.5", b"-2"]], {}, [1.5, -2]),
    ("StringToNumber", [[b"7"]], {"out_type": dtypes.int64}, [7]),
    ("AsString", [[1, -2]], {}, [b"1", b"-2"]),
    ("AsString", [[1.5]], {}, [b"1.500000"]),
    ("AsString", [[1.5]], {"precision": 2, "width": 7, "fill": b"0"}, [b"0001.50"]),
    ("AsString", [[1.5]], {"scientific": True, "precision": 1}, [b"1.5e+00"]),
    ("AsString", [np.array([True])], {}, [b"true"]),
    ("ReduceJoin", [[[b"a", b"b"], [b"c", b"d"]], [0]], {}, [b"ac", b"bd"]),
    ("ReduceJoin", [[[b"a", b"b"], [b"c", b"d"]], [0, 1]], {"separator": b"."}, b"a.c.b.d"),
    ("ReduceJoin", [[[b"a", b"b"]], [-1]], {"keep_dims": True}, [[b"ab"]]),
    ("EncodeBase64", [[b"\xff\xfe"]], {}, [b"__4"]),
    ("EncodeBase64", [[b"\xff\xfe"]], {"pad": True}, [b"__4="]),
    ("DecodeBase64", [[b"__4"]], {}, [b"\xff\xfe"]),
    ("DecodeBase64", [[b"__4=", b"_w==", b""]], {}, [b"\xff\xfe", b"\xff", b""]),
    ("StringFormat", [[1, 2, 3, 4]], {"template": b"x=%s", "placeholder": b"%s"}, b"x=[1 2 3 4]"),
    ("ShardedFilename", [b"m/part", 1, 3], {}, b"m/part-00001-of-00003"),
    ("ShardedFilespec", [b"m/part", 3], {}, b"m/part-?????-of-00003"),
    ("DecodeRaw", [[b"\x01\x00\x02\x00"]], {"out_type": dtypes.int16}, [[1, 2]]),
    ("DecodeRaw", [[b"\x00\x01"]], {"out_type": dtypes.int16, "little_endian": False}, [[1]]),
]


@pytest.mark.parametrize(("op", "inputs", "attrs", "expected"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_case(ops: Any, op: str, inputs: list[Any], attrs: dict[str, Any], expected: Any) -> None:
    assert ops.run(op, inputs, **attrs).tolist() == expected


def test_splits_are_sparse_matrices(ops: Any) -> None:
    indices, values, shape = ops.run("StringSplit", [[b"a b", b"", b"c  d"], b" "])
    v2 = ops.run("StringSplitV2", [[b"a<>b<>c"], b"<>"], maxsplit=1)

    assert indices.tolist() == [[0, 0], [0, 1], [2, 0], [2, 1]]
    assert values.tolist() == [b"a", b"b", b"c", b"d"]
    assert shape.tolist() == [3, 2]
    assert v2[1].tolist() == [b"a", b"b<>c"]


def test_files(ops: Any, tmp_path: Path) -> None:
    name = str(tmp_path / "folder" / "a.txt").encode()

    ops.run("WriteFile", [name, b"\x00content"])

    assert ops.run("ReadFile", [name]).tolist() == b"\x00content"
    assert ops.run("MatchingFiles", [[str(tmp_path / "*" / "*.txt").encode()]]).tolist() == [name]
    with pytest.raises(errors.NotFoundError, match="No such file or directory"):
        ops.run("ReadFile", [name + b".missing"])


@pytest.mark.parametrize(
    ("op", "inputs", "attrs", "text"),
    [
        ("StringJoin", [[b"a", b"b"], [b"a", b"b", b"c"]], {}, r"^Input shapes do not match: \[2\] vs\. \[3\]$"),
        ("StringToNumber", [b"zz"], {}, "^StringToNumberOp could not correctly convert string: zz$"),
        ("Substr", [b"abc", 5, 1], {}, "^pos 5 out of range for string b'abc' at index 0$"),
        ("StaticRegexFullMatch", [b"a"], {"pattern": b"("}, r"^Invalid pattern: \("),
        ("DecodeBase64", [b"*"], {}, "Invalid character"),
        ("DecodeBase64", [b"===="], {}, "Invalid character"),
        ("DecodeBase64", [b"AAAAA"], {}, "length cannot be 1 modulo 4"),
        ("DecodeBase64", [b"AA="], {}, "Invalid character"),
        ("DecodeBase64", [b"AAAA="], {}, "length cannot be 1 modulo 4"),
        ("DecodeJSONExample", [b"[" * 50_000], {}, "Error while parsing JSON"),
        ("UnicodeTranscode", [b"a"], {"input_encoding": "idna", "output_encoding": "UTF-8"}, "input encoding: idna"),
        ("DecodeRaw", [[b"abc"]], {"out_type": dtypes.int16}, "length 3 that is not a multiple of 2"),
    ],
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_wrong_inputs(ops: Any, op: str, inputs: list[Any], attrs: dict[str, Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **attrs)


def test_parts_of_strings_are_broadcast_over_two_dimensions(ops: Any) -> None:
    texts, position, length = [[b"abc"], [b"defg"]], [0, 1], [1, 2]

    assert ops.run("Substr", [texts, position, length]).tolist() == [[b"a", b"bc"], [b"d", b"ef"]]
    with pytest.raises(errors.UnimplementedError, match=r"^Substr broadcast not implemented for 3 dimensions$"):
        ops.run("Substr", [[texts], position, length])
    with pytest.raises(errors.InvalidArgumentError, match=r"at index \(0, 1\)$"):
        ops.run("Substr", [texts, [0, 4], length])


def test_what_is_malformed_is_told_piece_by_piece(ops: Any) -> None:
    text = b"a\xff\xe2\x82z\xc3\xa9\xe2\x82\xac\xed\xbf\xbf"

    splits, codes, starts = ops.run("UnicodeDecodeWithOffsets", [[text]], input_encoding="UTF-8", Tsplits=dtypes.int64)

    bad = 0xFFFD
    assert codes.tolist() == [ord("a"), bad, bad, ord("z"), 0xE9, 0x20AC, bad, bad, bad]
    assert starts.tolist() == [0, 1, 2, 4, 5, 7, 10, 11, 12]
    assert splits.tolist() == [0, len(codes)]


@pytest.mark.timeout(20)
@pytest.mark.parametrize(
    ("op", "text", "attrs"),
    [
        ("StringToNumber", b"1" * 200_000 + b"x", {}),
        ("UnicodeDecodeWithOffsets", b"\xff" * 1_000_000, {"input_encoding": "UTF-8"}),
        ("UnicodeTranscode", b"\xff" * 1_000_000, {"input_encoding": "UTF-8", "output_encoding": "UTF-8"}),
    ],
)
def test_long_texts_take_time_in_proportion(ops: Any, op: str, text: bytes, attrs: dict[str, Any]) -> None:
    """With the square of the length, each would take minutes."""
    with contextlib.suppress(errors.InvalidArgumentError):
        ops.run(op, [text], **attrs)
