"""Packed blocks: literals and copies of every form, and damage at every place."""

from __future__ import annotations

import pytest

from tenfold_core.checkpoint.coding import put_varint
from tenfold_core.checkpoint.snappy import decompress


def literal(content: bytes) -> bytes:
    size = len(content) - 1
    if size < 60:
        return bytes((size << 2,)) + content
    extra = (size.bit_length() + 7) // 8
    return bytes(((59 + extra) << 2,)) + size.to_bytes(extra, "little") + content


def copy1(offset: int, length: int) -> bytes:
    return bytes((offset >> 8 << 5 | (length - 4) << 2 | 1, offset & 255))


def copy2(offset: int, length: int) -> bytes:
    return bytes(((length - 1) << 2 | 2,)) + offset.to_bytes(2, "little")


def copy4(offset: int, length: int) -> bytes:
    return bytes(((length - 1) << 2 | 3,)) + offset.to_bytes(4, "little")


def block(size: int, *elements: bytes) -> bytes:
    return put_varint(size) + b"".join(elements)


@pytest.mark.parametrize("size", [1, 59, 60, 61, 256, 257, 65536, 65537])
def test_a_literal_of_any_length(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    assert decompress(block(size, literal(content)), size) == content


@pytest.mark.parametrize("copy", [copy1, copy2, copy4])
@pytest.mark.parametrize(("offset", "length"), [(8, 4), (8, 8), (8, 11), (1, 4), (3, 11), (4, 7), (2, 8)])
def test_a_copy_repeats_what_came_before(copy: object, offset: int, length: int) -> None:
    before = b"abcdefgh"
    expected = bytearray(before)
    for _ in range(length):
        expected.append(expected[-offset])
    packed = block(8 + length, literal(before), copy(offset, length))  # type: ignore[operator]
    assert decompress(packed, 100) == bytes(expected)


def test_copies_reach_as_far_as_their_form_can() -> None:
    before = bytes(number % 251 for number in range(70000))
    for copy, offset in ((copy1, 2047), (copy1, 1792), (copy2, 65535), (copy4, 70000)):
        expected = before + before[len(before) - offset :][:5]
        assert decompress(block(70005, literal(before), copy(offset, 5)), 70005) == expected
    assert decompress(block(70064, literal(before), copy2(64, 64)), 70064)[70000:] == before[-64:]


def test_elements_follow_each_other() -> None:
    packed = block(12, literal(b"ab"), copy1(2, 4), literal(b"cd"), copy2(8, 4))
    assert decompress(packed, 12) == b"abababcdabab"


def test_nothing_is_nothing() -> None:
    assert decompress(block(0), 0) == b""


@pytest.mark.parametrize(
    ("packed", "words"),
    [
        (block(3, literal(b"abc"))[:-1], "a packed block ends within a literal"),
        (block(61, literal(b"x" * 61))[:-1], "a packed block ends within a literal"),
        (block(8, literal(b"abcd"), copy1(4, 4))[:-1], "a packed block ends within a copy"),
        (block(8, literal(b"abcd"), copy2(4, 4))[:-1], "a packed block ends within a copy"),
        (block(8, literal(b"abcd"), copy4(4, 4))[:-1], "a packed block ends within a copy"),
        (block(8, literal(b"abcd"), copy2(0, 4)), "a packed block copies from 0 bytes before, 4 are there"),
        (block(8, literal(b"abcd"), copy2(5, 4)), "a packed block copies from 5 bytes before, 4 are there"),
        (block(5, literal(b"abcd")), "a packed block gives 4 bytes instead of 5"),
        (block(3, literal(b"abcd"), literal(b"efgh")), "a packed block gives 4 bytes instead of 3"),
    ],
)
def test_damage_is_said(packed: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=f"^{words}$"):
        decompress(packed, 100)


def test_a_claim_is_bounded_by_the_limit_and_by_what_is_there() -> None:
    packed = block(4, literal(b"abcd"))
    assert decompress(packed, 4) == b"abcd"
    with pytest.raises(ValueError, match=r"^a packed block of 6 bytes claims to hold 4$"):
        decompress(packed, 3)
    assert len(put_varint(64 * 3)) == 2
    with pytest.raises(ValueError, match=r"^a packed block of 3 bytes claims to hold 193$"):
        decompress(put_varint(193) + b"\0", 1000)
    with pytest.raises(ValueError, match="ends within a literal"):
        decompress(put_varint(192) + b"\0", 1000)
