"""Tensors as a link carries them: every kind there and back, the bounds, and records that are malformed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tenfold_core import errors
from tenfold_core.dtypes import FIXED_SIZE
from tenfold_link.wire.values import INLINE_BYTES, ValueReader, pack_dead, pack_value


class Proto:
    """Stands for a TensorProto of `content`."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    def SerializeToString(self) -> bytes:
        return self.content


def packed(*values: Any, proto: bytes = b"proto") -> tuple[bytes, list[Any]]:
    parts: list[bytes] = []
    buffers: list[Any] = []
    for value in values:
        if value is None:
            pack_dead(parts)
        else:
            pack_value(value, parts, buffers, lambda _: Proto(proto))  # type: ignore[arg-type, return-value]
    return b"".join(parts), buffers


def read(header: bytes, buffers: list[Any], count: int = 1, offset: int = 0) -> list[Any]:
    reader = ValueReader(header, offset, buffers, lambda content: ("proto", content))
    return [reader.read() for _ in range(count)]


@pytest.mark.parametrize("number", sorted(FIXED_SIZE))
def test_every_type_of_fixed_form(number: int) -> None:
    value = np.zeros((2, 3), FIXED_SIZE[number])
    header, buffers = packed(value)
    assert header[1] == number
    ((found, dead),) = read(header, buffers)
    assert (dead, buffers) == (False, [])
    assert (found.dtype, found.shape) == (value.dtype, value.shape)
    assert found.tobytes() == value.tobytes()
    assert found.flags.writeable


def test_the_layout_of_a_record() -> None:
    header, _ = packed(np.array([[1, 2]], np.uint8))
    assert (
        header
        == bytes((0, 4, 2, 0))
        + (2).to_bytes(4, "little")
        + (1).to_bytes(8, "little")
        + (2).to_bytes(8, "little")
        + b"\1\2"
    )
    assert packed(None)[0] == bytes((4, 0, 0, 0, 0, 0, 0, 0))


@pytest.mark.parametrize(("size", "inline"), [(INLINE_BYTES, True), (INLINE_BYTES + 1, False)])
def test_large_contents_stand_beside_the_header(size: int, inline: bool) -> None:
    value = (np.arange(size) % 251).astype(np.uint8)
    header, buffers = packed(value)
    assert len(buffers) == (not inline)
    assert len(header) == 16 + (size if inline else 0)
    assert int.from_bytes(header[4:8], "little") == (size if inline else 0)
    ((found, _),) = read(header, buffers)
    np.testing.assert_array_equal(found, value)
    if not inline:
        assert np.shares_memory(found, buffers[0]), "no copy"
        assert np.shares_memory(value, buffers[0]), "nor where it is sent"


def test_what_is_not_contiguous_is_sent_in_its_order() -> None:
    value = np.arange(10_000, dtype=np.int32).reshape(100, 100).T
    header, buffers = packed(value)
    ((found, _),) = read(header, buffers)
    np.testing.assert_array_equal(found, value)


def test_bytes_of_another_order_are_turned_round() -> None:
    header, buffers = packed(np.array([1, 2], ">i4"))
    ((found, _),) = read(header, buffers)
    np.testing.assert_array_equal(found, [1, 2])
    assert found.dtype == np.int32


@pytest.mark.parametrize("rank", [0, 8, 9, 20])
def test_ranks(rank: int) -> None:
    header, buffers = packed(np.ones((1,) * rank, np.float32))
    assert header[2] == rank
    ((found, _),) = read(header, buffers)
    assert found.shape == (1,) * rank


def test_python_numbers_are_values_too() -> None:
    ((found, _),) = read(*packed(3.5))
    assert (found.dtype, float(found)) == (np.float64, 3.5)


@pytest.mark.parametrize("size", [0, INLINE_BYTES, INLINE_BYTES + 1])
def test_strings_travel_as_a_proto(size: int) -> None:
    content = bytes(size)
    header, buffers = packed(np.array([b"x"], object), proto=content)
    assert header[:8] == bytes((2 if size <= INLINE_BYTES else 3, 0, 0, 0)) + (
        size if size <= INLINE_BYTES else 0
    ).to_bytes(4, "little")
    assert len(buffers) == (size > INLINE_BYTES)
    assert read(header, buffers) == [(("proto", content), False)]


def test_records_follow_one_another() -> None:
    large = np.ones(5000, np.uint8)
    other = np.zeros(6000, np.uint8)
    header, buffers = packed(large, None, np.int32(7), other, np.array([b"s"], object), large)
    found = read(b"xy" + header, buffers, 6, offset=2)
    assert [dead for _, dead in found] == [False, True, False, False, False, False]
    assert [len(np.atleast_1d(found[index][0])) for index in (0, 3, 5)] == [5000, 6000, 5000]
    assert found[1][0] is None
    assert int(found[2][0]) == 7
    assert found[4][0] == ("proto", b"proto")
    reader = ValueReader(header, 0, buffers, lambda content: content)
    for _ in range(6):
        reader.read()
    assert reader.offset == len(header)


def record(kind: int, number: int, rank: int, length: int, *dims: int) -> bytes:
    head = bytes((kind, number, rank, 0)) + length.to_bytes(4, "little")
    return head + b"".join(dim.to_bytes(8, "little", signed=True) for dim in dims)


@pytest.mark.parametrize(
    ("header", "buffers", "text"),
    [
        (b"", [], ""),
        (record(0, 4, 0, 1)[:-1], [], ""),
        (record(0, 4, 1, 1), [], ""),
        (record(0, 4, 1, 2, 2) + b"x", [], ""),
        (record(0, 4, 1, 3, 2) + b"xxx", [], r"3 bytes of content for shape \[2\] of uint8"),
        (record(0, 4, 1, 1, -1) + b"x", [], r"1 bytes of content for shape \[-1\] of uint8"),
        (record(0, 4, 1, 1, -2) + b"x", [], "negative dimensions"),
        (record(1, 4, 1, 0, -1), [bytearray(3)], r"3 bytes of content for shape \[-1\] of uint8"),
        (record(1, 4, 2, 0, -1, -3), [bytearray(3)], "negative dimensions"),
        (record(0, 99, 1, 1, 1) + b"x", [], r"data type 99, shape \[1\]"),
        (record(0, 7, 0, 1) + b"x", [], "data type 7"),
        (record(0, 4, 255, 1, *[1] * 255) + b"x", [], "data type 4"),
        (record(2, 0, 0, 5) + b"four", [], "5 bytes of content, but only 4 are there"),
        (record(3, 0, 0, 0), [], ""),
        (record(1, 4, 1, 0, 2), [], ""),
        (record(1, 4, 1, 0, 2), [bytearray(3)], r"3 bytes of content for shape \[2\] of uint8"),
        (record(1, 4, 1, 0, 2), [bytearray(1)], ""),
        (record(1, 4, 2, 0, 1 << 62, 1 << 62), [bytearray(1)], ""),
        (record(5, 4, 1, 0, 2), [bytearray(2)], "a record of kind 5"),
    ],
)
def test_malformed_records_are_refused_with_their_place(header: bytes, buffers: list[Any], text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"malformed tensor at byte 3: .*{text}"):
        read(b"abc" + header, buffers, offset=3)


def test_the_largest_rank() -> None:
    with pytest.raises(errors.InvalidArgumentError):
        read(record(0, 4, 254, 1, *[1] * 254) + b"x", [])
