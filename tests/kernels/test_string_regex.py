"""Regular expressions: what is replaced by what, as RE2 does it, and patterns and rewrites that are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors, memory_limits


def words(*values: bytes) -> Any:
    out = np.empty(len(values), object)
    out[:] = values
    return out


def replaced(ops: Any, value: bytes, pattern: bytes, rewrite: bytes, everywhere: bool = True) -> bytes:
    """By both ops, which give the same."""
    fixed = ops.run("StaticRegexReplace", [words(value)], pattern=pattern, rewrite=rewrite, replace_global=everywhere)
    given = ops.run("RegexReplace", [words(value), pattern, rewrite], replace_global=everywhere)
    assert fixed.tolist() == given.tolist()
    result: bytes = given.item()
    return result


@pytest.mark.parametrize(
    ("value", "pattern", "rewrite", "all_of_them", "first"),
    [
        (b"aXaX", b"a", b"-", b"-X-X", b"-XaX"),
        (b"XX", b"a", b"-", b"XX", b"XX"),
        (b"", b"a", b"-", b"", b""),
        (b"", b"a*", b"-", b"-", b"-"),
        (b"abab", b"(a)(b)", rb"\2\1\0", b"baabbaab", b"baabab"),
        (b"ab", b"(a)(x)?", rb"<\1\2>", b"<a>b", b"<a>b"),
        (b"ab", b"a", rb"\\", rb"\b", rb"\b"),
        (b"ab", b"a", rb"x\\y", rb"x\yb", rb"x\yb"),
        # an empty match does not count right behind another one
        (b"baac", b"a*", b"-", b"-b-c-", b"-baac"),
        (b"abc", b"", b"-", b"-a-b-c-", b"-abc"),
        (b"ab", rb"\B", b"-", b"a-b", b"a-b"),
        ("é€".encode(), b"", b"-", "-é-€-".encode(), "-é€".encode()),
        (b"ab", b"b$", b"-", b"a-", b"a-"),
        (b"aab", b"^a", b"-", b"-ab", b"-ab"),
        # an escape that there is not: where all are replaced what is before it is written, else nothing is replaced
        (b"ab", b"a", rb"x\qy", b"xb", b"ab"),
        (b"ab", b"a", b"x\\", b"xb", b"ab"),
        (b"ab", b"a", rb"\qx\\", b"b", b"ab"),
        # a group that there is not
        (b"ab", b"a", rb"x\1", b"ab", b"ab"),
        (b"ab", b"(a)", rb"x\2", b"ab", b"ab"),
        (b"ab", b"a", rb"\q\1", b"ab", b"ab"),
        (b"ab", b"(a)", rb"x\1", b"xab", b"xab"),
    ],
)  # fmt: skip
def test_what_is_replaced(
    ops: Any, value: bytes, pattern: bytes, rewrite: bytes, all_of_them: bytes, first: bytes
) -> None:
    assert replaced(ops, value, pattern, rewrite) == all_of_them
    assert replaced(ops, value, pattern, rewrite, everywhere=False) == first


def test_all_of_a_text_must_match(ops: Any) -> None:
    texts = words(b"ab", b"abc", b"xab", b"", b"a\nb")
    for pattern, expected in (
        (b"ab", [True, False, False, False, False]),
        (b"a.*b", [True, False, False, False, False]),
        (b"(?s)a.*b", [True, False, False, False, True]),
        (b".*", [True, True, True, True, False]),
    ):
        found = ops.run("RegexFullMatch", [texts, pattern])
        assert (found.dtype, found.tolist()) == (np.bool_, expected)
        assert ops.run("StaticRegexFullMatch", [texts], pattern=pattern).tolist() == expected


@pytest.mark.parametrize("op", ["RegexFullMatch", "StaticRegexFullMatch", "RegexReplace", "StaticRegexReplace"])
def test_a_pattern_that_cannot_be(ops: Any, op: str) -> None:
    inputs: list[Any] = [words(b"a")]
    attrs = {}
    if op.startswith("Static"):
        attrs = {"pattern": b"\xff("} | ({"rewrite": b""} if op.endswith("Replace") else {})
    else:
        inputs += [b"\xff(", b""][: 2 if op.endswith("Replace") else 1]
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid pattern: \ufffd\(, error: .+"):
        ops.run(op, inputs, **attrs)


def test_patterns_and_rewrites_are_single_texts(ops: Any) -> None:
    many, one = words(b"a", b"b"), b"a"
    for op, inputs, what in (
        ("RegexFullMatch", [many, many], "Pattern"),
        ("RegexReplace", [many, many, one], "Pattern"),
        ("RegexReplace", [many, one, many], "Rewrite"),
    ):
        with pytest.raises(errors.InvalidArgumentError, match=rf"^{what} must be scalar, but received \[2\]$"):
            ops.run(op, inputs)


def test_room_for_what_comes(ops: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text, and what stands in the place of each match."""
    for inputs, size, expected in (
        ([words(b"aab", b"a"), b"a", b"xyz"], 3 + 1 + 3 * 3, [b"xyzxyzb", b"xyz"]),
        ([words(b"aXbbb"), b"[a-z]+", rb"\0\0"], 5 + 2 + 6, [b"aaXbbbbbb"]),
    ):
        monkeypatch.setattr(memory_limits, "_limit", size)
        assert ops.run("RegexReplace", inputs).tolist() == expected
        monkeypatch.setattr(memory_limits, "_limit", size - 1)
        with pytest.raises(errors.ResourceExhaustedError, match=rf"^OOM: RegexReplace would give strings of {size} by"):
            ops.run("RegexReplace", inputs)


def test_what_is_wrong_with_a_pattern_is_told_once(ops: Any, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=r"^Invalid pattern: \(, error: missing \)"):
        ops.run("RegexFullMatch", [words(b"a"), b"("])
    assert capfd.readouterr() == ("", "")
