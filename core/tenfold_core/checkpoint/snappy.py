"""Unpacks Snappy, which older tools may have packed the blocks of a table with. Used by table.py; nothing packs.

The format: the unpacked size as a varint, then elements, each a literal run or a copy of what came before. Follows
Snappy's format_description.txt.
"""

from __future__ import annotations

from tenfold_core.checkpoint.coding import get_varint


def decompress(data: bytes, limit: int) -> bytes:
    """The unpacked bytes. Raises ValueError for damaged data, and for a claimed size beyond `limit`."""
    size, at = get_varint(data, 0)
    # No element gives more than 64 bytes for 2 (a copy) beyond its literal bytes: a larger claim is a lie.
    if size > limit or size > 64 * len(data):
        raise ValueError(f"a packed block of {len(data)} bytes claims to hold {size}")
    out = bytearray()
    while at < len(data):
        tag = data[at]
        at += 1
        kind = tag & 3
        if kind == 0:
            length = (tag >> 2) + 1
            if length > 60:
                extra = length - 60
                length = int.from_bytes(data[at : at + extra], "little") + 1
                at += extra
            if at + length > len(data):
                raise ValueError("a packed block ends within a literal")
            out += data[at : at + length]
            at += length
        else:
            extra = (1, 2, 4)[kind - 1]
            if at + extra > len(data):
                raise ValueError("a packed block ends within a copy")
            offset = int.from_bytes(data[at : at + extra], "little")
            at += extra
            length = (tag >> 2) + 1
            if kind == 1:
                offset |= (tag >> 5) << 8
                length = ((tag >> 2) & 7) + 4
            if not 0 < offset <= len(out):
                raise ValueError(f"a packed block copies from {offset} bytes before, {len(out)} are there")
            start = len(out) - offset
            if offset >= length:
                out += out[start : start + length]
            else:  # the copy runs into what it writes: a repetition
                piece = bytes(out[start:])
                out += (piece * (length // offset + 1))[:length]
        if len(out) > size:
            break
    if len(out) != size:
        raise ValueError(f"a packed block gives {len(out)} bytes instead of {size}")
    return bytes(out)
