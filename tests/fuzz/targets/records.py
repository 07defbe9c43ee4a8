"""TFRecord files: byte 0 says how the file is compressed, and whether the pieces are records, framed here with the
checksums that they need, or the file as it is. Read as records, in lines, and by jumps.
"""

from __future__ import annotations

import gzip
import zlib
from typing import TYPE_CHECKING

from fuzz import pieces, scratch
from fuzz.harness import Fault, refusals
from tenfold_core import crc32c
from tenfold_core.records import ByteStream, RecordReader, frame

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

_COMPRESSIONS = ("", "GZIP", "ZLIB", "NONE")
_WINDOWS = {"GZIP": 31, "ZLIB": 15}
#: What a byte 0 says: the compression, records, compressed here, each piece with a length of its own, repeated.
_FRAMED, _PACKED, _CLAIMED, _REPEATED = 4, 8, 16, 32
#: A repeated piece is as long as this.
_LONG = 1 << 18


def one_input(data: bytes) -> None:
    if not data:
        return
    how, parts = data[0], pieces.split(data[1:])
    compression = _COMPRESSIONS[how & 3]
    if how & _REPEATED:
        parts = [part * (_LONG // max(len(part), 1)) for part in parts]
    if how & _CLAIMED:
        content = b"".join(_claimed(part) for part in parts)
    else:
        content = b"".join(frame(part) for part in parts) if how & _FRAMED else b"".join(parts)
    if how & _PACKED and compression in _WINDOWS:
        packer = zlib.compressobj(wbits=_WINDOWS[compression])
        content = packer.compress(content) + packer.flush()
    path = scratch.put("records", content)
    read: list[bytes] | None = None
    with refusals(), RecordReader(path, compression, files=scratch.files()) as reader:
        read = list(reader)
    whole = how & _FRAMED and not how & _CLAIMED and (how & _PACKED or compression not in _WINDOWS)
    if whole and max(map(len, parts), default=0) <= scratch.FILE_BYTES and read != parts:
        raise Fault(f"{len(parts)} records were written, {read!r} were read")
    with refusals(), ByteStream(path, compression, files=scratch.files()) as stream:
        while stream.skip(7) and stream.read(100):
            pass
    with refusals(), ByteStream(path, files=scratch.files()) as stream:
        while stream.read_line():
            pass


def _claimed(part: bytes) -> bytes:
    """A record whose first bytes say how long it is, with a checksum that says so, too."""
    length, content = part[:8].ljust(8, b"\0"), part[8:]
    check = crc32c.masked(length).to_bytes(4, "little")
    return length + check + content + crc32c.masked(content).to_bytes(4, "little")


def mutated(data: bytes, chance: random.Random) -> bytes:
    how, parts = data[:1] or b"\0", pieces.split(data[1:])
    if chance.random() < 0.2:
        how = bytes((chance.randrange(64),))
    return how + pieces.join(pieces.mutated(parts, chance))


def seeds() -> Iterator[bytes]:
    records = [b"", b"one", bytes(range(256)), b"line\nline\r\n"]
    for how in (0, _FRAMED, _FRAMED | _PACKED | 1, _FRAMED | _PACKED | 2, _FRAMED | 3, 1, 2):
        yield bytes((how,)) + pieces.join(records)
    for length in (3, 1 << 20, 1 << 40, (1 << 64) - 1):
        yield bytes((_CLAIMED | _PACKED | 1,)) + pieces.join([length.to_bytes(8, "little") + b"abc"])
    yield bytes((_CLAIMED | _PACKED | _REPEATED | 1,)) + pieces.join([(1 << 30).to_bytes(8, "little") + bytes(3000)])
    yield bytes((1 | _REPEATED,)) + pieces.join([gzip.compress(b"")])
    yield bytes((1 | _REPEATED | _PACKED,)) + pieces.join([frame(b"")])
    two = b"".join(zlib.compressobj(wbits=31).flush() + b"junk" for _ in range(2))
    yield bytes((1,)) + pieces.join([two])
