"""Unicode: every policy for what is malformed, encodings and their marks, offsets, and rows of code points."""

from __future__ import annotations

import codecs
from typing import Any

import numpy as np
import pytest

from tenfold_core import dtypes, errors


def words(*values: bytes) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def decoded(ops: Any, *texts: bytes, encoding: bytes = b"UTF-8", **attrs: Any) -> tuple[list[int], ...]:
    splits, codes, starts = ops.run("UnicodeDecodeWithOffsets", [words(*texts)], input_encoding=encoding, **attrs)
    plain = ops.run("UnicodeDecode", [words(*texts)], input_encoding=encoding, **attrs)
    assert [each.tolist() for each in plain] == [splits.tolist(), codes.tolist()]
    assert (codes.dtype, starts.dtype) == (np.int32, np.int64)
    return splits.tolist(), codes.tolist(), starts.tolist()


def transcoded(ops: Any, text: bytes, encoding: bytes = b"UTF-8", target: bytes = b"UTF-8", **attrs: Any) -> bytes:
    found = ops.run("UnicodeTranscode", [words(text)], input_encoding=encoding, output_encoding=target, **attrs)
    result: bytes = found.item()
    return result


def encoded(ops: Any, codes: list[int], splits: list[int], target: bytes = b"UTF-8", **attrs: Any) -> Any:
    inputs = [np.array(codes, np.int32), np.array(splits, np.int64)]
    return ops.run("UnicodeEncode", inputs, output_encoding=target, **attrs).tolist()


BAD = b"a\xffb"


def test_policies_for_what_is_malformed(ops: Any) -> None:
    assert transcoded(ops, BAD) == "a\ufffdb".encode()
    assert transcoded(ops, BAD, replacement_char=63) == b"a?b"
    assert transcoded(ops, BAD, errors=b"ignore") == b"ab"
    assert decoded(ops, BAD) == ([0, 3], [97, 0xFFFD, 98], [0, 1, 2])
    assert decoded(ops, BAD, replacement_char=63) == ([0, 3], [97, 63, 98], [0, 1, 2])
    assert decoded(ops, BAD, errors=b"ignore") == ([0, 2], [97, 98], [0, 2])
    strict = {"input_encoding": b"UTF-8", "errors": b"strict"}
    for op, attrs in (("UnicodeTranscode", {"output_encoding": b"UTF-8"}), ("UnicodeDecode", {}),
                      ("UnicodeDecodeWithOffsets", {})):  # fmt: skip
        with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid formatting on input string$"):
            ops.run(op, [words(b"fine", BAD)], **strict, **attrs)
        ops.run(op, [words(b"fine", "é\x01".encode())], **strict, **attrs)


def test_control_characters_are_replaced_where_it_is_asked_for(ops: Any) -> None:
    text = b"\0a\x1f \x7f"
    assert transcoded(ops, text) == text
    assert transcoded(ops, text, replace_control_characters=True, replacement_char=63) == b"?a? \x7f"
    assert transcoded(ops, text, replace_control_characters=True, errors=b"ignore") == b"a \x7f"
    assert decoded(ops, text, replace_control_characters=True, replacement_char=63)[1] == [63, 97, 63, 32, 127]
    assert decoded(ops, text, replace_control_characters=True, errors=b"ignore")[2] == [1, 3, 4]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid formatting"):
        transcoded(ops, text, replace_control_characters=True, errors=b"strict")


@pytest.mark.parametrize("op", ["UnicodeTranscode", "UnicodeDecode", "UnicodeEncode"])
@pytest.mark.parametrize(
    ("attrs", "text"),
    [
        ({"errors": b"odd"}, "^errors policy must be one of 'strict', 'replace', or 'ignore'$"),
        ({"replacement_char": -1}, "^replacement_char out of unicode codepoint range$"),
        ({"replacement_char": 0x110000}, "^replacement_char out of unicode codepoint range$"),
        ({"replacement_char": 0}, ""),
        ({"replacement_char": 0x10FFFF}, ""),
    ],
)
def test_policies_that_there_are_not(ops: Any, op: str, attrs: dict[str, Any], text: str) -> None:
    given: dict[str, Any] = {} if op == "UnicodeEncode" else {"input_encoding": b"UTF-8"}
    given |= {} if op == "UnicodeDecode" else {"output_encoding": b"UTF-8"}
    inputs = [np.int32([97]), np.int64([0, 1])] if op == "UnicodeEncode" else [words(b"a")]
    if not text:
        ops.run(op, inputs, **given, **attrs)
        return
    with pytest.raises(errors.InvalidArgumentError, match=text):
        ops.run(op, inputs, **given, **attrs)


@pytest.mark.parametrize(
    "encoding", ["odd", "hex", "rot13", "punycode", "unicode_escape", "raw_unicode_escape", "idna"]
)
def test_encodings_that_are_none(ops: Any, encoding: str) -> None:
    text = f"^Could not create converter for input encoding: {encoding}$"
    for op, attrs in (("UnicodeTranscode", {"output_encoding": b"UTF-8"}), ("UnicodeDecode", {})):
        with pytest.raises(errors.InvalidArgumentError, match=text):
            ops.run(op, [words(b"a")], input_encoding=encoding.encode(), **attrs)


TEXT = "aé€\U0001f600\u07ff\u0800\uffff\x80\U00010000"


@pytest.mark.parametrize(
    ("encoding", "widths"),
    [
        ("UTF-8", [1, 2, 3, 4, 2, 3, 3, 2, 4]),
        ("UTF-16-BE", [2, 2, 2, 4, 2, 2, 2, 2, 4]),
        ("UTF-16-LE", [2, 2, 2, 4, 2, 2, 2, 2, 4]),
        ("UTF-32-BE", [4] * 9),
    ],
)
def test_where_characters_begin(ops: Any, encoding: str, widths: list[int]) -> None:
    starts = [sum(widths[:number]) for number in range(len(widths))]
    found = decoded(ops, TEXT.encode(encoding), b"", encoding=encoding.encode())
    assert found == ([0, 9, 9], [ord(character) for character in TEXT], starts)


def test_plain_and_old_encodings(ops: Any) -> None:
    assert decoded(ops, b"\x7f\x80", encoding=b"US-ASCII") == ([0, 2], [127, 0xFFFD], [0, 1])
    assert decoded(ops, b"\xe9\x80", encoding=b"latin1") == ([0, 2], [0xE9, 0x80], [0, 1])
    assert transcoded(ops, "日本".encode("shift_jis"), b"shift_jis") == "日本".encode()
    assert decoded(ops, "日a".encode("shift_jis"), encoding=b"shift_jis")[2] == [0, 2]
    assert decoded(ops, b"\x7f\x80\xc2", encoding=b"UTF-8")[1:] == ([127, 0xFFFD, 0xFFFD], [0, 1, 2])
    # a piece of several bytes is one character, and as wide as it is
    assert decoded(ops, b"\xe2\x82z", encoding=b"UTF-8")[1:] == ([0xFFFD, 122], [0, 2])
    assert decoded(ops, b"\xd8\0\0a", encoding=b"UTF-16-BE")[1:] == ([0xFFFD, 97], [0, 2])


def test_a_mark_says_the_order_of_bytes(ops: Any) -> None:
    for width, big, little in ((16, codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE),
                               (32, codecs.BOM_UTF32_BE, codecs.BOM_UTF32_LE)):  # fmt: skip
        name = f"utf-{width}"
        for data in ("é€".encode(f"{name}-be"), big + "é€".encode(f"{name}-be"), little + "é€".encode(f"{name}-le")):
            assert transcoded(ops, data, name.encode()) == "é€".encode()


@pytest.mark.parametrize("target", ["UTF-8", "UTF-16-BE", "UTF-32-BE"])
def test_targets(ops: Any, target: str) -> None:
    assert transcoded(ops, TEXT.encode(), target=target.encode()) == TEXT.encode(target)
    codes = [ord(character) for character in TEXT]
    assert encoded(ops, codes, [0, 2, 2, 9], target.encode()) == [
        part.encode(target) for part in (TEXT[:2], "", TEXT[2:])
    ]
    # half a pair that replaces something stays where it can be written
    half = {"UTF-8": b"?", "UTF-16-BE": b"\xdc\x01", "UTF-32-BE": b"\0\0\xdc\x01"}[target]
    assert transcoded(ops, b"\xff", target=target.encode(), replacement_char=0xDC01) == half


def test_code_points_that_are_none(ops: Any) -> None:
    for code in (-1, 0xD800, 0xDFFF, 0x110000):
        assert encoded(ops, [97, code], [0, 2]) == ["a\ufffd".encode()]
        assert encoded(ops, [97, code], [0, 2], replacement_char=63) == [b"a?"]
        assert encoded(ops, [97, code], [0, 2], errors=b"ignore") == [b"a"]
        with pytest.raises(errors.InvalidArgumentError, match=r"^Code point is out of range for Unicode, or is a surr"):
            encoded(ops, [97, code], [0, 2], errors=b"strict")
    for code in (0, 0xD7FF, 0xE000, 0x10FFFF):
        assert encoded(ops, [code], [0, 1], errors=b"strict") == [chr(code).encode()]


@pytest.mark.parametrize(
    ("codes", "splits", "text"),
    [
        ([[97]], [0, 1], r"^Both the input_tensor and input_splits should be of rank 1\. $"),
        ([97], [[0, 1]], r"^Both the input_tensor and input_splits should be of rank 1\. $"),
        ([97], [], "^Input_splits should contain elements, but given input_values has 0 elements$"),
        ([97], [1, 1], r"^First value in input_splits must be zero\.$"),
        ([97], [0, 2], r"^Last value in input_splits must be equal to length of input_tensor\.$"),
        ([97, 98], [0, 1], r"^Last value in input_splits must be equal to length of input_tensor\.$"),
        ([97, 98], [0, 2, 1, 2], r"^Values in input_splits must be equal or in ascending order\.$"),
        ([97, 98], [0, 3, 2], r"^Values in input_splits must be less than or equal to input_tensor length\.$"),
    ],
)
def test_rows_that_cannot_be(ops: Any, codes: Any, splits: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        encoded(ops, codes, splits)


def test_no_rows(ops: Any) -> None:
    assert encoded(ops, [], [0]) == []
    assert encoded(ops, [], [0, 0]) == [b""]
    assert decoded(ops) == ([0], [], [])
    for kind in (dtypes.int32, dtypes.int64):
        splits, _ = ops.run("UnicodeDecode", [words(b"ab")], input_encoding=b"UTF-8", Tsplits=kind)
        assert (splits.dtype, splits.tolist()) == (kind.as_numpy_dtype, [0, 2])


def test_scripts_have_no_kernel_and_say_why(ops: Any) -> None:
    with pytest.raises(errors.NotFoundError, match="Python has no table of the scripts of characters"):
        ops.build("UnicodeScript", [np.int32([97])], {})


def test_half_a_pair_that_a_codec_accepts_is_malformed(ops: Any) -> None:
    assert decoded(ops, b"+3/8-a", encoding=b"utf-7")[1:] == ([0xFFFD, 97], [0, 1])
    assert decoded(ops, b"+3/8-a", encoding=b"utf-7", errors=b"ignore")[1] == [97]
