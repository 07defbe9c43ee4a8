"""How numbers and names become bytes in checkpoint files: varints and the order-preserving code of slice keys.

Used by table.py, bundle_*.py and slices.py. Every reader takes a buffer and a position, gives the value and the
position after it, and raises ValueError where the bytes end or make no sense. Follows coding.cc and ordered_code.cc.
"""

from __future__ import annotations

import re

_SPECIAL = re.compile(rb"[\x00\xff]")
_ESCAPED = {b"\x00": b"\x00\xff", b"\xff": b"\xff\x00"}

#: A varint of 64 bits never takes more bytes.
_MAX_VARINT = 10


def put_varint(value: int) -> bytes:
    """Seven bits a byte, the lowest first; the high bit says that more follow."""
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def get_varint(data: bytes | memoryview, at: int) -> tuple[int, int]:
    """The varint at `at` and where it ends."""
    value = shift = 0
    for i in range(at, min(at + _MAX_VARINT, len(data))):
        byte = data[i]
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            if value >> 64:
                raise ValueError(f"a number at offset {at} takes more than 64 bits")
            return value, i + 1
        shift += 7
    raise ValueError(f"a number at offset {at} does not end")


def put_ordered_number(value: int) -> bytes:
    """A number ≥ 0: how many bytes, then the bytes, highest first."""
    digits = value.to_bytes((value.bit_length() + 7) // 8, "big")
    return bytes((len(digits),)) + digits


def get_ordered_number(data: bytes, at: int) -> tuple[int, int]:
    """The number ≥ 0 at `at` and where it ends."""
    if at >= len(data) or data[at] > 8 or at + 1 + data[at] > len(data):
        raise ValueError(f"no ordered number at offset {at}")
    end = at + 1 + data[at]
    return int.from_bytes(data[at + 1 : end], "big"), end


def put_ordered_string(value: bytes) -> bytes:
    """Bytes with 00 and FF escaped, ended by 00 01."""
    return _SPECIAL.sub(lambda found: _ESCAPED[found[0]], value) + b"\x00\x01"


def get_ordered_string(data: bytes, at: int) -> tuple[bytes, int]:
    """The bytes at `at` and where their end mark ends."""
    out = bytearray()
    while at + 1 < len(data):
        byte, following = data[at], data[at + 1]
        if byte == 0x00:
            at += 2
            if following == 0x01:
                return bytes(out), at
            if following != 0xFF:
                break
            out.append(0x00)
        elif byte == 0xFF:
            at += 2
            if following != 0x00:
                break
            out.append(0xFF)
        else:
            out.append(byte)
            at += 1
    raise ValueError(f"an ordered string does not end at offset {at}")


def put_signed(value: int) -> bytes:
    """A signed number whose bytes sort as the numbers do: sign and length in the leading bits."""
    positive = ~value if value < 0 else value
    length = max(1, -(-(positive.bit_length() + 1) // 7))
    payload = length * 8
    # `length` leading one bits, then a zero bit, then the value; a negative number is the complement of its twin.
    bits = (((1 << length) - 1) << (payload - length)) | positive
    if value < 0:
        bits ^= (1 << payload) - 1
    return bits.to_bytes(length, "big")


def get_signed(data: bytes, at: int) -> tuple[int, int]:
    """The signed number at `at` and where it ends."""
    negative = at < len(data) and data[at] < 0x80
    head = data[at : at + 2].ljust(2, b"\x00")
    ones = int.from_bytes(head, "big") ^ (0xFFFF if negative else 0)
    length = 16 - (ones ^ 0xFFFF).bit_length()
    if at + length > len(data) or not 1 <= length <= _MAX_VARINT:
        raise ValueError(f"no signed number at offset {at}")
    bits = int.from_bytes(data[at : at + length], "big")
    if negative:
        bits ^= (1 << length * 8) - 1
    value = bits & ((1 << length * 7) - 1)
    if value >> 63:
        raise ValueError(f"the signed number at offset {at} takes more than 64 bits")
    return (~value if negative else value), at + length
