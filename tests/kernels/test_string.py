"""Strings and files: object arrays of bytes in and out."""

from __future__ import annotations

import base64
import contextlib
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors, memory_limits
from tenfold_kernels.cpu.string import tensor_text

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


# ---- string.py, op by op ---------------------------------------------------------------------------------------------


def refusal(ops: Any, op: str, inputs: list[Any], **attrs: Any) -> str:
    with pytest.raises(errors.InvalidArgumentError) as refused:
        ops.run(op, inputs, **attrs)
    return refused.value.message


def needs(ops: Any, monkeypatch: pytest.MonkeyPatch, size: int, op: str, inputs: list[Any], **attrs: Any) -> None:
    """Asserts that the op takes exactly so many bytes of the room for strings."""
    monkeypatch.setattr(memory_limits, "_limit", size)
    ops.run(op, inputs, **attrs)
    monkeypatch.setattr(memory_limits, "_limit", size - 1)
    with pytest.raises(errors.ResourceExhaustedError, match=rf"^OOM: {op} would give strings of {size} bytes or more"):
        ops.run(op, inputs, **attrs)


def test_join(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert ops.run("StringJoin", [], N=0).tolist() == b""
    assert ops.run("StringJoin", [b"-", [[b"a"], [b"b"]]], separator=b"+").tolist() == [[b"-+a"], [b"-+b"]]
    assert ops.run("StringJoin", [np.empty((0, 2), object), b"a"]).shape == (0, 2)
    assert refusal(ops, "StringJoin", [[b"a"], b"b", [[b"c"]]]) == "Input shapes do not match: [1] vs. [1,1]"
    # the texts of the vector, the scalar twice, and two separators for each
    needs(ops, monkeypatch, 3 + 2 * 3 + 2 * 2 * 2, "StringJoin", [[b"aa", b"b"], b"ccc", [b"", b""]], separator=b", ")
    needs(ops, monkeypatch, 3, "StringJoin", [[b"aa", b"b"]], separator=b", ")


def test_case_and_space(ops: Any) -> None:
    text = "ÀbC\u00df".encode()
    assert ops.run("StringLower", [text], encoding=b"utf-8").tolist() == "àbc\u00df".encode()
    assert ops.run("StringUpper", [text], encoding=b"utf-8").tolist() == "ÀBCSS".encode()
    assert ops.run("StringLower", [text]).tolist() == "Àbc\u00df".encode()
    assert ops.run("StringUpper", [text]).tolist() == "ÀBC\u00df".encode()
    assert ops.run("StringUpper", [b"\xffa"], encoding=b"utf-8").tolist() == "\ufffdA".encode()
    for op in ("StringLower", "StringUpper"):
        assert refusal(ops, op, [b"a"], encoding=b"latin1") == "only utf8 or '' (no encoding) is supported"
    assert ops.run("StringStrip", [b" \t\n\r\f\v a\0 \v"]).tolist() == b"a\0"


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("position", "length", "part"),
    [(0, 2, b"he"), (4, 9, b"o"), (5, 1, b""), (-5, 2, b"he"), (-1, 9, b"o"), (1, -1, b"ello"), (-2, -9, b"lo"),
     (2, 0, b""), (1, 4, b"ello")],
)  # fmt: skip
def test_parts(ops: Any, position: int, length: int, part: bytes, kind: Any) -> None:
    assert ops.run("Substr", [b"hello", np.array(position, kind), np.array(length, kind)]).tolist() == part
    wide = "hé€o\U0001f600".encode()  # five characters
    characters = [character.encode() for character in wide.decode()]
    start = position % 5 if position < 5 else 5
    expected = b"".join(characters[start:] if length < 0 else characters[start : start + length])
    found = ops.run("Substr", [wide, np.array(position, kind), np.array(length, kind)], unit=b"UTF8_CHAR")
    assert found.tolist() == expected


def test_parts_out_of_range(ops: Any) -> None:
    for position in (6, -6):
        text = f"pos {position} out of range for string"
        assert refusal(ops, "Substr", [b"hello", position, 1]) == f"{text} b'hello' at index 0"
        assert refusal(ops, "Substr", ["héllo".encode(), position, 1], unit=b"UTF8_CHAR") == f"{text} at index 0"
    texts, pairs = [[b"abc", b"x"], [b"y", b"abc"]], [[0, 0], [2, 0]]
    assert refusal(ops, "Substr", [texts, pairs, pairs]) == "pos 2 out of range for string b'y' at index 2"
    assert refusal(ops, "Substr", [texts, [2, 0], [1, 1]]).endswith("b'y' at index (1, 0)")
    assert refusal(ops, "Substr", [texts, [2, 0], [1, 1]], unit=b"UTF8_CHAR").endswith("at index 2")
    assert refusal(ops, "Substr", [[b"a", b"b"], 2, 0]) == "pos 2 out of range for string b'a' at index 0"


def test_shapes_of_parts(ops: Any) -> None:
    texts = [b"abc", b"defg"]
    assert refusal(ops, "Substr", [texts, [0, 1], [1]]) == ("pos and len should have the same shape, got: [2] vs. [1]")
    assert refusal(ops, "Substr", [texts, [0, 1, 2], [1, 1, 1]]) == "Incompatible shapes: [2] vs. [3]"
    deep = [[[b"abc"], [b"defg"]]]
    assert ops.run("Substr", [deep, 1, 2]).tolist() == [[[b"bc"], [b"ef"]]]
    assert ops.run("Substr", [deep, [[[0], [1]]], [[[1], [2]]]]).tolist() == [[[b"a"], [b"ef"]]]
    with pytest.raises(errors.UnimplementedError, match=r"^Substr broadcast not implemented for 3 dimensions$"):
        ops.run("Substr", [b"abc", [[[0]]], [[[1]]]])
    assert ops.run("Substr", [b"abc", [0, 1], [1, 2]]).tolist() == [b"a", b"bc"]


def test_room_for_several_parts_of_one_text(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two bytes, no more than there are, and all of them where the length says nothing."""
    inputs: list[Any] = [b"hello", [0, 1, 2, 3], [2, 9, -1, 0]]
    needs(ops, monkeypatch, 2 + 5 + 5, "Substr", inputs)
    needs(ops, monkeypatch, 4 * 5, "Substr", inputs, unit=b"UTF8_CHAR")
    monkeypatch.setattr(memory_limits, "_limit", 1)
    assert ops.run("Substr", [[b"hello", b"world"], [0, 0], [5, 5]]).tolist() == [b"hello", b"world"]


@pytest.mark.parametrize("value", [b"", b"a", b"ab", b"abc", b"\xfb\xff\xbf", bytes(range(256))])
def test_base64_there_and_back(ops: Any, value: bytes) -> None:
    for pad in (False, True):
        text = ops.run("EncodeBase64", [value], pad=pad).tolist()
        whole = base64.b64encode(value, altchars=b"-_")
        assert text == (whole if pad else whole.rstrip(b"="))
        assert ops.run("DecodeBase64", [text]).tolist() == value


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (b"+/+/", "Invalid character found in base64."),
        (b"A", "Base64 string length cannot be 1 modulo 4."),
        (b"AAA==", "Base64 string length cannot be 1 modulo 4."),
        (b"A=A=", "Invalid character found in base64."),
        (b"AAAA==", "Invalid character found in base64."),
        (b"A===", "Invalid character found in base64."),
    ],
)
def test_what_is_no_base64(ops: Any, text: bytes, says: str) -> None:
    assert refusal(ops, "DecodeBase64", [[b"AA", text]]) == says


# ---- tensors as texts ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "limit", "text"),
    [
        (np.int32(7), 3, "7"),
        (np.arange(5), 2, "[0 1 ... 3 4]"),
        (np.arange(4), 2, "[0 1 2 3]"),
        (np.arange(3), 2, "[0 1 2]"),
        (np.arange(5), 1, "[0 ... 4]"),
        (np.arange(5), -1, "[0 1 2 3 4]"),
        (np.arange(3), 0, "[ ...]"),
        (np.zeros(0), 3, "[]"),
        (np.zeros((0, 2)), 3, "[]"),
        (np.zeros((2, 0)), 3, "[\n ...]"),
        (np.zeros((2, 0)), -1, "[\n ...]"),
        (np.zeros((2, 0, 3)), 3, "[\n\n ...]"),
        (np.arange(4).reshape(2, 2), 3, "[[0 1]\n [2 3]]"),
        (np.arange(4).reshape(2, 2, 1), 3, "[[[0]\n  [1]]\n\n [[2]\n  [3]]]"),
        (np.arange(12).reshape(4, 3), 1, "[[0 ... 2]\n ...\n [9 ... 11]]"),
        (np.arange(24).reshape(3, 2, 4), 1, "[[[0 ... 3]\n  [4 ... 7]]\n\n ...\n\n [[16 ... 19]\n  [20 ... 23]]]"),
        (np.arange(8).reshape(2, 4), -1, "[[0 1 2 3]\n [4 5 6 7]]"),
        (np.array([True, False]), 3, "[1 0]"),
        (np.float32([0.1, 1 / 3, 1e10, 1e-7, 16777216, 0.5]), 3, "[0.1 0.333333343 1e+10 1e-07 16777216 0.5]"),
        (np.array([0.1, 1 / 3, 2**53, 1e300]), 3, "[0.1 0.33333333333333331 9007199254740992 1e+300]"),
        (np.float16([0.1]), 3, "[0.0999755859]"),
        (np.float32([np.nan, np.inf, -np.inf]), 3, "[nan inf -inf]"),
        (np.array([np.nan]), 3, "[nan]"),
        (np.complex64([1 / 3 + 2j]), 3, "[(0.333333343,2)]"),
        (np.complex128([1 / 3 - 1j]), 3, "[(0.33333333333333331,-1)]"),
        (np.uint8([255]), 3, "[255]"),
    ],
)
def test_numbers_as_texts(value: Any, limit: int, text: str) -> None:
    assert tensor_text(np.asarray(value), limit) == text


def test_texts_in_texts_are_escaped() -> None:
    value = np.empty(3, object)
    value[:] = [b"a\n\r\t\"'\\~ ", b"\0\x1f\x7f\x80", "é\x80".encode()]
    expected = '["a\\n\\r\\t\\"\\\'\\\\~ " "\\000\\037\\177\udc80" "é\x80"]'
    assert tensor_text(value, 3) == expected


def test_templates(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    def filled(*inputs: Any, **attrs: Any) -> Any:
        types = [dtypes.as_dtype(np.asarray(each).dtype) for each in inputs]
        return ops.run("StringFormat", [np.asarray(each) for each in inputs], **{"T": types, **attrs}).tolist()

    one = np.int32([1, 2, 3])
    assert filled(one, one, template=b"a{}b{}c", placeholder=b"{}") == b"a[1 2 3]b[1 2 3]c"
    assert filled(np.arange(9, dtype=np.int32)) == b"[0 1 2 ... 6 7 8]"
    assert filled(np.arange(9, dtype=np.int32), summarize=-1) == b"[0 1 2 3 4 5 6 7 8]"
    assert filled(template=b"plain", placeholder=b"{}") == b"plain"
    assert filled(template="é".encode(), placeholder=b"") == "é".encode()
    text = "num placeholders in template and num inputs must match: "
    assert refusal(ops, "StringFormat", [one], template=b"%s %s") == f"{text}2 vs. 1"
    assert refusal(ops, "StringFormat", [one, one]) == f"{text}1 vs. 2"
    assert refusal(ops, "StringFormat", [one], placeholder=b"") == f"{text}0 vs. 1"
    needs(ops, monkeypatch, len("[1 2 3]"), "StringFormat", [one], template=b"%s and more")
    needs(ops, monkeypatch, 2 * 3 + len("[1 2 3]"), "StringFormat", [one], summarize=-1)
    needs(ops, monkeypatch, len("[ ...]"), "StringFormat", [one], summarize=0)
