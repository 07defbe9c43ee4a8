"""Numbers and names of checkpoint files: TensorFlow's bytes, each limit, and what makes no sense."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tenfold_core.checkpoint import coding

if TYPE_CHECKING:
    from collections.abc import Callable

MOST, MOST_SIGNED, LEAST_SIGNED = (1 << 64) - 1, (1 << 63) - 1, -(1 << 63)


Codec = tuple["Callable[[Any], bytes]", "Callable[[bytes, int], tuple[Any, int]]"]

VARINT: Codec = (coding.put_varint, coding.get_varint)
NUMBER: Codec = (coding.put_ordered_number, coding.get_ordered_number)
STRING: Codec = (coding.put_ordered_string, coding.get_ordered_string)
SIGNED: Codec = (coding.put_signed, coding.get_signed)

NUMBERS, STRINGS, INTEGERS = st.integers(0, MOST), st.binary(max_size=12), st.integers(LEAST_SIGNED, MOST_SIGNED)


@settings(max_examples=40)
@given(STRINGS, STRINGS, NUMBERS, STRINGS, INTEGERS)
def test_what_is_put_is_read_between_other_bytes_and_not_where_it_is_cut(
    before: bytes, after: bytes, number: int, string: bytes, signed: int
) -> None:
    for (put, get), value in ((VARINT, number), (NUMBER, number), (STRING, string), (SIGNED, signed)):
        code = put(value)

        assert get(before + code + after, len(before)) == (value, len(before) + len(code))
        assert get(before + code, len(before)) == (value, len(before) + len(code))
        for size in range(len(code)):
            with pytest.raises(ValueError, match="offset"):
                get(before + code[:size], len(before))


@settings(max_examples=40)
@given(st.tuples(NUMBERS, NUMBERS), st.tuples(STRINGS, STRINGS), st.tuples(INTEGERS, INTEGERS))
def test_ordered_codes_sort_as_what_they_stand_for(
    numbers: tuple[int, int], strings: tuple[bytes, bytes], signed: tuple[int, int]
) -> None:
    pairs: list[tuple[Codec, tuple[Any, Any]]] = [(NUMBER, numbers), (STRING, strings), (SIGNED, signed)]
    for (put, _), (one, other) in pairs:
        assert (put(one) < put(other)) == (one < other)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8001"),
        (300, "ac02"),
        (16_383, "ff7f"),
        (16_384, "808001"),
        (MOST, "ffffffffffffffffff01"),
    ],
)
def test_varints_are_protobufs(value: int, code: str) -> None:
    assert coding.put_varint(value).hex() == code
    assert coding.get_varint(bytes.fromhex(code), 0) == (value, len(code) // 2)


@pytest.mark.parametrize(
    ("data", "at", "said"),
    [
        (b"", 0, "offset 0 does not end"),
        (b"\x01", 1, "offset 1 does not end"),
        (b"\x01\x80", 1, "offset 1 does not end"),
        (b"\xff" * 10 + b"\x01", 0, "offset 0 does not end"),  # an eleventh byte
        (b"\xff" * 9 + b"\x02", 0, "offset 0 takes more than 64 bits"),
    ],
)
def test_varints_that_make_no_sense(data: bytes, at: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        coding.get_varint(data, at)


@pytest.mark.parametrize(
    ("value", "code"),
    [(0, "00"), (1, "0101"), (255, "01ff"), (256, "020100"), (0x123456, "03123456"), (MOST, "08" + 8 * "ff")],
)
def test_ordered_numbers_are_tensorflows(value: int, code: str) -> None:
    assert coding.put_ordered_number(value).hex() == code
    assert coding.get_ordered_number(bytes.fromhex(code), 0) == (value, len(code) // 2)


@pytest.mark.parametrize(
    ("data", "at"), [(b"", 0), (b"\x00", 1), (b"\x01", 0), (b"\x02\x01", 0), (b"\x09" + bytes(9), 0)]
)
def test_ordered_numbers_that_make_no_sense(data: bytes, at: int) -> None:
    with pytest.raises(ValueError, match=f"no ordered number at offset {at}"):
        coding.get_ordered_number(data, at)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (b"", "0001"),
        (b"ab", "61620001"),
        (b"\x00", "00ff0001"),
        (b"\xff", "ff000001"),
        (b"a\x00\xff\x01", "6100ffff00010001"),
    ],
)
def test_ordered_strings_are_tensorflows(value: bytes, code: str) -> None:
    assert coding.put_ordered_string(value).hex() == code
    assert coding.get_ordered_string(bytes.fromhex(code), 0) == (value, len(code) // 2)


@pytest.mark.parametrize("data", ["", "61", "6100", "610061", "610002", "61000061", "61ff01610001", "61ffff0001", "ff"])
def test_ordered_strings_that_make_no_sense(data: str) -> None:
    with pytest.raises(ValueError, match="an ordered string does not end"):
        coding.get_ordered_string(bytes.fromhex(data), 0)


@pytest.mark.parametrize(
    ("value", "code"),
    [
        (0, "80"),
        (63, "bf"),
        (64, "c040"),
        (-64, "40"),
        (-65, "3fbf"),
        (8191, "dfff"),
        (8192, "e02000"),
        ((1 << 48) - 1, "fe" + 6 * "ff"),
        (1 << 48, "ff01" + 6 * "00"),
        ((1 << 55) - 1, "ff7f" + 6 * "ff"),
        (1 << 55, "ff8080" + 6 * "00"),
        (1 << 62, "ffc040" + 7 * "00"),
        (MOST_SIGNED, "ffc07f" + 7 * "ff"),
        (LEAST_SIGNED, "003f80" + 7 * "00"),
    ],
)
def test_signed_numbers_of_every_length_are_tensorflows(value: int, code: str) -> None:
    assert coding.put_signed(value).hex() == code
    assert coding.get_signed(bytes.fromhex(code), 0) == (value, len(code) // 2)


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "no signed number at offset 0"),
        ("c0", "no signed number"),
        ("ff", "no signed number"),
        ("ffff" + 12 * "00", "no signed number"),  # sixteen bytes
        ("ffe0" + 9 * "00", "no signed number"),  # eleven bytes
        ("001f" + 9 * "ff", "no signed number"),
        ("ffc080" + 7 * "00", "takes more than 64 bits"),
        ("003f7f" + 7 * "ff", "takes more than 64 bits"),
    ],
)
def test_signed_numbers_that_make_no_sense(code: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        coding.get_signed(bytes.fromhex(code), 0)
