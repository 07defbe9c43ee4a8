"""What kernels of strings share: element by element, attrs as bytes, one string of an input, room for results."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.room import assert_wants
from tenfold_core import errors, memory_limits
from tenfold_kernels.cpu import _strings as strings


def test_a_function_of_each_element() -> None:
    words = np.array([[b"a", b""], [b"ccc", b"dd"]], object)
    lengths = strings.elementwise(words, len, np.int32)
    assert (lengths.tolist(), lengths.dtype) == ([[1, 0], [3, 2]], np.int32)
    doubled = strings.elementwise(words[:, ::-1], lambda word: word * 2)
    assert (doubled.tolist(), doubled.dtype) == ([[b"", b"aa"], [b"dddd", b"cccccc"]], object)
    assert words[0, 0] == b"a"
    scalar = strings.elementwise(np.array(b"x", object), bytes.upper)
    assert (scalar.shape, scalar.item()) == ((), b"X")
    assert strings.elementwise(np.empty((0, 2), object), len).shape == (0, 2)


def test_what_they_take_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    words = np.full((3, 5), b"a", object)
    assert_wants(monkeypatch, 3 * 5 * 64, lambda: strings.elementwise(words, len, np.int8))


def test_strings_of_one_tensor_have_as_much_room_as_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limits, "_limit", 10)
    room = strings.Room("Repeat")
    room.take(4)
    room.take(6)
    with pytest.raises(errors.ResourceExhaustedError) as raised:
        room.take(1)
    assert raised.value.message == (
        "OOM: Repeat would give strings of 11 bytes or more, and 10 is the limit for one tensor here."
    )
    strings.Room("Repeat").take(10)
    with pytest.raises(errors.ResourceExhaustedError):
        strings.Room("Repeat").take(11)


@pytest.mark.parametrize(("attrs", "expected"), [({"a": b"\xff"}, b"\xff"), ({"a": "é"}, "é".encode()), ({}, b"")])
def test_attrs_are_bytes(attrs: Any, expected: bytes) -> None:
    node: Any = SimpleNamespace(attrs=attrs)
    assert strings.bytes_attr(node, "a") == expected
    assert strings.bytes_attr(node, "b", b"other") == b"other"


def test_one_string_of_an_input() -> None:
    found = strings.scalar_bytes(np.array(b"x", object), "sep")
    assert (found, type(found)) == (b"x", bytes)
    for value, text in ((np.array([b"x"], object), r"\[1\]"), (None, r"\[\]")):
        with pytest.raises(errors.InvalidArgumentError, match=f"^sep must be scalar, but received {text}$"):
            strings.scalar_bytes(value, "sep")


def test_texts_for_people_and_where_characters_begin() -> None:
    assert strings.printable(b"a\xffb") == "a\ufffdb"
    text = "aé€😀z".encode()
    assert strings.utf8_starts(text) == [0, 1, 3, 6, 10]
    assert strings.utf8_starts(b"\x80a\xbf\xc0\xff") == [1, 3, 4]
    assert strings.utf8_starts(b"") == []
