"""Strings to pieces and many strings to one: every way to split, to join, and to make n-grams, and what is refused."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tenfold_core import errors, memory_limits
from tenfold_kernels.cpu import string_split


def words(*values: Any) -> Any:
    flat = np.array(values, object)
    return flat if values else np.empty(0, object)


def longs(*values: Any) -> Any:
    return np.array(values, np.int64)


def refusal(ops: Any, op: str, inputs: list[Any], kind: Any = errors.InvalidArgumentError, **attrs: Any) -> str:
    with pytest.raises(kind) as refused:
        ops.run(op, inputs, **attrs)
    message: str = refused.value.message
    return message


# ---- pieces ----------------------------------------------------------------------------------------------------------


def pieces(ops: Any, op: str, values: Any, delimiter: bytes, **attrs: Any) -> list[list[bytes]]:
    """The rows of the sparse matrix, whose places and shape are looked at."""
    indices, parts, shape = ops.run(op, [values, delimiter], **attrs)
    rows: list[list[bytes]] = [[] for _ in range(len(values))]
    for (row, at), part in zip(indices.tolist(), parts.tolist(), strict=True):
        assert at == len(rows[row])
        rows[row].append(part)
    assert shape.tolist() == [len(values), max(map(len, rows), default=0)]
    assert {indices.dtype, shape.dtype} == {np.dtype(np.int64)}
    assert indices.shape == (len(parts), 2)
    return rows


@pytest.mark.parametrize(
    ("value", "delimiter", "parts", "with_empty"),
    [
        (b"a b", b" ", [b"a", b"b"], [b"a", b"b"]),
        (b" a,,b;", b" ,;", [b"a", b"b"], [b"", b"a", b"", b"b", b""]),
        (b"a]b^c-d\\e", b"]^-\\", [b"a", b"b", b"c", b"d", b"e"], [b"a", b"b", b"c", b"d", b"e"]),
        (b"abc", b"", [b"a", b"b", b"c"], [b"a", b"b", b"c"]),
        (b"", b"", [], []),
        (b"", b",", [], []),
        (b",", b",", [], [b"", b""]),
        (b"aXYb", b"XY", [b"a", b"b"], [b"a", b"", b"b"]),
    ],
)
def test_each_byte_of_a_delimiter_splits(
    ops: Any, value: bytes, delimiter: bytes, parts: list[bytes], with_empty: list[bytes]
) -> None:
    values = words(value, b"q")
    assert pieces(ops, "StringSplit", values, delimiter) == [parts, [b"q"]]
    assert pieces(ops, "StringSplit", values, delimiter, skip_empty=False) == [with_empty, [b"q"]]


@pytest.mark.parametrize(
    ("value", "separator", "most", "parts"),
    [
        (b"a<>b<>c", b"<>", -1, [b"a", b"b", b"c"]),
        (b"a<>b<>c", b"<>", 1, [b"a", b"b<>c"]),
        (b"a<>b<>c", b"<>", 2, [b"a", b"b", b"c"]),
        (b"a<>b<>c", b"<>", 0, [b"a<>b<>c"]),
        (b"a<>b", b"<>", 2, [b"a", b"b"]),
        (b"<>", b"<>", -1, [b"", b""]),
        (b"", b"<>", -1, [b""]),
        (b"  a \t b\n", b"", -1, [b"a", b"b"]),
        (b" a b c ", b"", 1, [b"a", b"b c "]),
        (b" a  b ", b"", 0, [b" a  b "]),
        (b"a b", b"", 2, [b"a", b"b", b""]),
        (b"a b", b"", 3, [b"a", b"b"]),
        (b"", b"", -1, []),
    ],
)
def test_the_whole_separator_splits(ops: Any, value: bytes, separator: bytes, most: int, parts: list[bytes]) -> None:
    """Where it is empty, white space does, and TensorFlow adds what is left if it has split as often as it may."""
    assert pieces(ops, "StringSplitV2", words(value), separator, maxsplit=most) == [parts]


def test_nothing_and_what_is_no_vector_to_split(ops: Any) -> None:
    for op, what, name in (("StringSplit", "delimiter must be scalar, but received", "[1]"),
                           ("StringSplitV2", "sep must be a scalar, got shape:", "[1]")):  # fmt: skip
        assert pieces(ops, op, words(), b",") == []
        assert refusal(ops, op, [words(b"a")[None], b","]) == "input must be a vector, got shape: [1,1]"
        assert refusal(ops, op, [b"a", b","]) == "input must be a vector, got shape: []"
        assert refusal(ops, op, [words(b"a"), words(b",")]) == f"{what} {name}"


# ---- joined along axes -----------------------------------------------------------------------------------------------


TABLE = words([b"a", b"b"], [b"c", b"d"], [b"e", b"f"])


@pytest.mark.parametrize(
    ("axes", "joined", "shape"),
    [
        ([], TABLE.tolist(), [3, 2]),
        ([0], [b"a.c.e", b"b.d.f"], [1, 2]),
        ([1], [b"a.b", b"c.d", b"e.f"], [3, 1]),
        ([-2], [b"a.c.e", b"b.d.f"], [1, 2]),
        ([0, 1], b"a.c.e.b.d.f", [1, 1]),
        ([1, 0], b"a.b.c.d.e.f", [1, 1]),
        ([-1, 0], b"a.b.c.d.e.f", [1, 1]),
    ],
)
def test_joined_along_axes_in_their_order(ops: Any, axes: list[int], joined: Any, shape: list[int]) -> None:
    given = np.array(axes, np.int32)
    assert ops.run("ReduceJoin", [TABLE, given], separator=b".").tolist() == joined
    kept = ops.run("ReduceJoin", [TABLE, given], separator=b".", keep_dims=True)
    assert list(kept.shape) == shape
    assert kept.ravel().tolist() == np.array(joined, object).ravel().tolist()


def test_nothing_is_joined_to_an_empty_text(ops: Any) -> None:
    for shape, axis, expected in (((2, 0), 1, [b"", b""]), ((2, 0), 0, []), ((0, 3), 0, [b""] * 3)):
        found = ops.run("ReduceJoin", [np.empty(shape, object), np.int32([axis])], separator=b".")
        assert found.tolist() == expected


def test_axes_that_there_are_not(ops: Any) -> None:
    for axis in (2, -3):
        said = refusal(ops, "ReduceJoin", [TABLE, np.int32([0, axis])], errors.OutOfRangeError)
        assert said == f"Invalid reduction dimension {axis} for input with 2 dimension(s)"
    assert refusal(ops, "ReduceJoin", [TABLE, np.int32([1, 0, -1])]) == "Duplicate reduction dimension 1"
    assert refusal(ops, "ReduceJoin", [TABLE, np.int32([1, 0, 0])]) == "Duplicate reduction dimension 0"


@pytest.mark.parametrize(
    ("op", "inputs", "size"),
    [
        ("ReduceJoin", [words([b"aa", b"b"], [b"", b""]), np.int32([1])], 3 + 2 * 2),
        ("ReduceJoin", [words([b"aa"], [b"bbb"]), np.int32([1])], 5),
        ("UnsortedSegmentJoin", [words(b"aa", b"b", b"ccc"), longs(1, 1, 0), np.int32(2)], 6 + 2 * 3),
        ("UnsortedSegmentJoin", [words([b"aa", b"b"]), longs(0), np.int32(1)], 3 + 2 * 2),
    ],
)
def test_room_for_what_is_joined(
    ops: Any, monkeypatch: pytest.MonkeyPatch, op: str, inputs: list[Any], size: int
) -> None:
    monkeypatch.setattr(memory_limits, "_limit", size)
    ops.run(op, inputs, separator=b"--")
    monkeypatch.setattr(memory_limits, "_limit", size - 1)
    with pytest.raises(errors.ResourceExhaustedError, match=rf"^OOM: {op} would give strings of {size} bytes or more"):
        ops.run(op, inputs, separator=b"--")


# ---- joined by segments ----------------------------------------------------------------------------------------------


def test_segments_are_joined_in_order(ops: Any) -> None:
    texts = words(b"a", b"b", b"c", b"d")
    found = ops.run("UnsortedSegmentJoin", [texts, longs(2, 0, 2, 2), np.int32(4)], separator=b":")
    assert found.tolist() == [b"b", b"", b"a:c:d", b""]
    # a separator stands behind what there is: not behind nothing
    texts = words(b"", b"a", b"", b"b", b"")
    assert ops.run("UnsortedSegmentJoin", [texts, longs(*[0] * 5), np.int32(1)], separator=b":").tolist() == [b"a::b:"]
    assert ops.run("UnsortedSegmentJoin", [texts[:1], longs(0), np.int32(1)], separator=b":").tolist() == [b""]
    table = words([b"a", b""], [b"b", b"x"], [b"c", b"y"])
    found = ops.run("UnsortedSegmentJoin", [table, longs(1, 0, 1), np.int64(2)], separator=b"-")
    assert found.tolist() == [[b"b", b"x"], [b"a-c", b"y"]]
    found = ops.run("UnsortedSegmentJoin", [table, longs([0, 1], [1, 0], [0, 0]), np.int32(2)], separator=b"-")
    assert found.tolist() == [b"a-x-c-y", b"b"]
    none = ops.run("UnsortedSegmentJoin", [np.empty((0, 2), object), longs(), np.int32(0)])
    assert none.shape == (0, 2)


def test_segments_that_cannot_be(ops: Any) -> None:
    op, texts = "UnsortedSegmentJoin", words(b"a", b"b")
    assert refusal(ops, op, [texts, longs(0, 1), longs(2)]) == "Number of segments must be a scalar"
    said = refusal(ops, op, [texts, longs(0, 1), np.int32(-1)])
    assert said == "Number of segments must be non-negative but got -1"
    assert refusal(ops, op, [texts, longs(0)[0], np.int32(1)]) == "Segment_id cannot have rank 0"
    said = refusal(ops, op, [texts, longs([0, 1]), np.int32(2)], errors.OutOfRangeError)
    assert said == "Invalid segment_id rank 2 for input with 1 dimension(s)"
    said = refusal(ops, op, [texts, longs(0, 1, 0), np.int32(2)])
    assert said == "Segment dimension is 3 while input dimension is 1 in rank 0"
    said = refusal(ops, op, [words([b"a", b"b"]), longs([0]), np.int32(2)])
    assert said == "Segment dimension is 1 while input dimension is 2 in rank 1"
    for wrong in (-1, 2):
        said = refusal(ops, op, [texts, longs(0, wrong), np.int32(2)])
        assert said == "segment_ids are not allowed to exceed num_segments or to have negative values."


# ---- n-grams ---------------------------------------------------------------------------------------------------------


def grams(ops: Any, tokens: Any, splits: Any, widths: list[int], **attrs: Any) -> Any:
    given = {"separator": b"|", "left_pad": b"<", "right_pad": b">", "pad_width": 0,
             "preserve_short_sequences": False, "ngram_widths": widths, **attrs}  # fmt: skip
    found, ends = ops.run("StringNGrams", [tokens, splits], **given)
    assert ends.dtype == splits.dtype
    return [found[a:b].tolist() for a, b in itertools.pairwise(ends)]


TOKENS, SPLITS = words(b"a", b"b", b"c", b"d"), longs(0, 3, 3, 4)


@pytest.mark.parametrize("kind", [np.int32, np.int64])
@pytest.mark.parametrize(
    ("widths", "pad", "rows"),
    [
        ([1], 0, [[b"a", b"b", b"c"], [], [b"d"]]),
        ([2], 0, [[b"a|b", b"b|c"], [], []]),
        ([3, 1], 0, [[b"a|b|c", b"a", b"b", b"c"], [], [b"d"]]),
        ([2], 1, [[b"<|a", b"a|b", b"b|c", b"c|>"], [b"<|>"], [b"<|d", b"d|>"]]),
        ([2], 5, [[b"<|a", b"a|b", b"b|c", b"c|>"], [b"<|>"], [b"<|d", b"d|>"]]),
        ([2], -1, [[b"<|a", b"a|b", b"b|c", b"c|>"], [b"<|>"], [b"<|d", b"d|>"]]),
        ([3], 1, [[b"<|a|b", b"a|b|c", b"b|c|>"], [], [b"<|d|>"]]),
        ([4], 1, [[b"<|a|b|c", b"a|b|c|>"], [], []]),
        ([1], -1, [[b"a", b"b", b"c"], [], [b"d"]]),
    ],
)
def test_ngrams(ops: Any, widths: list[int], pad: int, rows: Any, kind: Any) -> None:
    assert grams(ops, TOKENS, SPLITS.astype(kind), widths, pad_width=pad) == rows


def test_short_rows_are_kept_whole(ops: Any) -> None:
    keep = {"preserve_short_sequences": True}
    assert grams(ops, TOKENS, SPLITS, [2], **keep) == [[b"a|b", b"b|c"], [], [b"d"]]
    assert grams(ops, TOKENS, SPLITS, [5], **keep) == [[b"a|b|c"], [], [b"d"]]
    assert grams(ops, TOKENS, SPLITS, [6], pad_width=1, **keep) == [[b"<|a|b|c|>"], [], [b"<|d|>"]]
    assert grams(ops, TOKENS, SPLITS, [], **keep) == [[b"a|b|c"], [], [b"d"]]
    assert grams(ops, TOKENS, SPLITS, []) == [[], [], []]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Pad width should be >= 0 when preserve_sh.*, got -1$"):
        grams(ops, TOKENS, SPLITS, [], pad_width=-1, **keep)


def test_no_tokens_have_no_ngrams(ops: Any) -> None:
    for splits, rows in ((longs(0), []), (longs(0, 0), [[]])):
        assert grams(ops, words(), splits, [2], pad_width=1) == rows
    found, ends = ops.run("StringNGrams", [words(), longs()], separator=b"", left_pad=b"", right_pad=b"", pad_width=0,
                          preserve_short_sequences=False, ngram_widths=[1])  # fmt: skip
    assert (found.shape, ends.shape) == ((0,), (0,))


@pytest.mark.parametrize(
    ("splits", "widths", "text"),
    [
        (SPLITS, [1, 0], "^ngram_widths must contain positive values$"),
        (SPLITS, [-1], "^ngram_widths must contain positive values$"),
        (longs(1, 4), [1], "^First split value must be 0, got 1$"),
        (longs(-1, 4), [1], "^First split value must be 0, got -1$"),
        (longs(0, 3, 2, 4), [1], r"^Invalid split value 2, must be in \[3, 4\]$"),
        (longs(0, 5), [1], r"^Invalid split value 5, must be in \[0, 4\]$"),
        (longs(0, 3), [1], r"^Last split value must be data size\. Expected 4, got 3$"),
        (longs(0), [1], r"^Last split value must be data size\. Expected 4, got 0$"),
    ],
)
def test_ngrams_that_cannot_be(ops: Any, splits: Any, widths: list[int], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        grams(ops, TOKENS, splits, widths)


def test_ngrams_that_are_too_many(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three tokens with two pads at each end have five n-grams of three."""
    text = "^Pad width could lead to integer overflow, got pad_width = "
    with pytest.raises(errors.InvalidArgumentError, match=f"{text}{1 << 31}$"):
        grams(ops, TOKENS, SPLITS, [(1 << 31) + 1], pad_width=-1)
    monkeypatch.setattr(string_split, "_MAX_NGRAMS", 10)
    assert len(grams(ops, TOKENS, SPLITS, [3], pad_width=2)[0]) == 5
    monkeypatch.setattr(string_split, "_MAX_NGRAMS", 9)
    with pytest.raises(errors.InvalidArgumentError, match=f"{text}2$"):
        grams(ops, TOKENS, SPLITS, [3], pad_width=2)


def test_memory_is_asked_for_first(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(string_split, "allow", lambda dims, dtype: asked.append((*dims, np.dtype(dtype))))
    grams(ops, TOKENS, longs(0, 4), [3], pad_width=1)
    assert asked == [(4, 3, np.uint8), (2, 1, np.dtype(object))]
    asked.clear()
    grams(ops, TOKENS, longs(0, 4), [], pad_width=7, preserve_short_sequences=True, left_pad=b"ab", right_pad=b"abc")
    grams(ops, TOKENS, longs(0, 4), [], pad_width=7, preserve_short_sequences=True, left_pad=b"", right_pad=b"")
    assert asked == [(2, 7, 3, np.dtype(object)), (2, 7, 1, np.dtype(object))]
    asked.clear()
    ops.run("UnsortedSegmentJoin", [words([b"a", b"b"]), longs(0), np.int32(5)])
    assert asked == [(5, 2, np.dtype(object))]
    assert np.iinfo(np.int32).max == string_split._MAX_NGRAMS
