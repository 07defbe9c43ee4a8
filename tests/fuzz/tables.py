"""The table of a checkpoint, made of pieces, with checksums that hold: so that its contents are what is tried.

Byte 0 of an input says what the pieces are: the whole file; blocks (a byte with their type, then their bytes), the last
of which is the index; or keys and values in turn, which the writer of checkpoints puts in order.
"""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING, Any

from fuzz import pieces
from fuzz.messages import changed_bytes, parsed
from fuzz.messages import mutated as message_mutated
from tenfold_core import crc32c
from tenfold_core.checkpoint.coding import put_varint
from tenfold_core.checkpoint.table import FOOTER_BYTES, MAGIC, SSTable, TableWriter

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterable

    from google.protobuf.message import Message

WHOLE, BLOCKS, ENTRIES = range(3)


def table_of(how: int, parts: list[bytes]) -> bytes:
    """The file that the pieces make."""
    match how % 3:
        case 0:
            return b"".join(parts)
        case 1:
            return _of_blocks(parts)
        case _:
            return _of_entries(parts)


def _of_blocks(parts: list[bytes]) -> bytes:
    out = b""
    handle = put_varint(0) * 2
    for part in parts:
        kind, block = part[:1].ljust(1, b"\0"), part[1:]
        handle = put_varint(len(out)) + put_varint(len(block))
        out += block + kind + struct.pack("<I", crc32c.mask(crc32c.extend(crc32c.value(block), kind)))
    return out + (handle * 2).ljust(FOOTER_BYTES - 8, b"\0") + struct.pack("<Q", MAGIC)


def _of_entries(parts: list[bytes]) -> bytes:
    out = io.BytesIO()
    writer = TableWriter(out)
    for key, value in sorted(dict(zip(parts[::2], parts[1::2], strict=False)).items()):
        writer.add(key, value)
    writer.finish()
    return out.getvalue()


def entries(path: str) -> list[bytes]:
    """Keys and values of a table in turn."""
    with SSTable(path) as table:
        return [part for entry in table.items() for part in entry]


def blocks(path: str) -> list[bytes]:
    """The one block of data of a small table, and its index."""
    with SSTable(path) as table:
        found = [b"\0" + table._contents(handle) for handle in table._handles]
        index = table._read_footer(len(table._map))
        return [*found, b"\0" + table._contents(index)]


def mutated(
    how: int, parts: list[bytes], chance: random.Random, kind_of: Callable[[bytes], type[Message]]
) -> list[bytes]:
    """Other pieces; `kind_of` tells of which type the value of a key is."""
    if how % 3 != ENTRIES or chance.random() < 0.3:
        return pieces.mutated(parts, chance)
    pairs = [list(pair) for pair in zip(parts[::2], parts[1::2], strict=False)]
    if not pairs:
        return parts
    pair: Any = chance.choice(pairs)
    if chance.random() < 0.15:
        pair[0] = changed_bytes(pair[0], chance)
    elif chance.random() < 0.1:
        pairs.remove(pair)
    else:
        message = parsed(kind_of(pair[0]), pair[1])
        message_mutated(message, chance)
        pair[1] = message.SerializePartialToString()
    return [part for pair in pairs for part in pair]


def pack(how: int, parts: Iterable[bytes]) -> bytes:
    return bytes((how,)) + pieces.join(parts)
