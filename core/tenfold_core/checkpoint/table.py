"""The sorted table that holds a checkpoint's index: LevelDB's format, as TensorFlow's lib/io writes it.

A table is blocks of (key, value) in key order, keys cut by what they share with the one before; an index block that
maps the last key of each block to its place; and a footer of 48 bytes. Blocks end with a type byte and a masked
checksum. `TableWriter` never holds more than a block; `SSTable` maps the file. Follows table_builder.cc, format.cc.
"""

from __future__ import annotations

import bisect
import struct
from typing import TYPE_CHECKING, BinaryIO, TypeVar

from tenfold_core import crc32c, errors
from tenfold_core.checkpoint.coding import get_varint, put_varint
from tenfold_core.checkpoint.snappy import decompress
from tenfold_core.file_errors import os_errors
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BLOCK_SIZE = 262144
RESTART_INTERVAL = 16
MAGIC = 0xDB4775248B80FB57
FOOTER_BYTES = 48
_TRAILER_BYTES = 5
#: Searches of a block after which all of its entries are read: one search reads some tens of them.
_FEW_SEARCHES = 16
_NO_COMPRESSION, _SNAPPY = 0, 1
#: A packed block claims a size; more than this is taken for damage. TensorFlow's blocks hold 256 KiB and one entry.
_MAX_UNPACKED = 1 << 30

T = TypeVar("T")


def _shared(a: bytes, b: bytes) -> int:
    """How many leading bytes are the same."""
    size = min(len(a), len(b))
    if a[:size] == b[:size]:
        return size
    return next(i for i in range(size) if a[i] != b[i])


class _BlockBuilder:
    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._out = bytearray()
        self._restarts = [0]
        self._since = 0
        self.last_key = b""

    def add(self, key: bytes, value: bytes) -> None:
        shared = 0
        if self._since < self._interval:
            shared = _shared(self.last_key, key)
        else:
            self._restarts.append(len(self._out))
            self._since = 0
        self._out += put_varint(shared) + put_varint(len(key) - shared) + put_varint(len(value)) + key[shared:] + value
        self.last_key = key
        self._since += 1

    @property
    def size(self) -> int:
        return len(self._out) + 4 * len(self._restarts) + 4

    @property
    def is_empty(self) -> bool:
        return not self._out

    def finish(self) -> bytes:
        return bytes(self._out) + struct.pack(f"<{len(self._restarts) + 1}I", *self._restarts, len(self._restarts))


class TableWriter:
    """Writes a table to an open file: `add` in strictly rising order of keys, then `finish`."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._at = 0
        self._block = _BlockBuilder(RESTART_INTERVAL)
        self._index = _BlockBuilder(1)
        self._last_key: bytes | None = None

    def add(self, key: bytes, value: bytes) -> None:
        """Adds an entry. Raises ValueError for a key that does not come after the last one."""
        if self._last_key is not None and key <= self._last_key:
            raise ValueError(f"table keys must rise: {key!r} after {self._last_key!r}")
        self._last_key = key
        self._block.add(key, value)
        if self._block.size >= BLOCK_SIZE:
            self._flush()

    def finish(self) -> None:
        """Writes what is left: the last block, the (empty) meta index, the index and the footer."""
        self._flush()
        handles = self._write(_BlockBuilder(RESTART_INTERVAL).finish()) + self._write(self._index.finish())
        self._out.write(handles.ljust(FOOTER_BYTES - 8, b"\x00") + struct.pack("<Q", MAGIC))

    def _flush(self) -> None:
        if not self._block.is_empty:
            # Any key from the block's last up to the next block's first may stand in the index: the last one does.
            last = self._block.last_key
            self._index.add(last, self._write(self._block.finish()))
            self._block = _BlockBuilder(RESTART_INTERVAL)

    def _write(self, block: bytes) -> bytes:
        handle = put_varint(self._at) + put_varint(len(block))
        kind = bytes((_NO_COMPRESSION,))
        crc = crc32c.mask(crc32c.extend(crc32c.value(block), kind))
        self._out.write(block + kind + struct.pack("<I", crc))
        self._at += len(block) + _TRAILER_BYTES
        return handle


class _Loaded:
    """A block in memory."""

    def __init__(self, number: int, contents: bytes) -> None:
        self.number, self.contents = number, contents
        #: What was searched for, and all entries once so much was that all are worth reading.
        self.found: dict[bytes, bytes | None] = {}
        self.entries: list[tuple[bytes, bytes]] | None = None

    def all_entries(self) -> list[tuple[bytes, bytes]]:
        if self.entries is None:
            self.entries = _parse_block(self.contents)
        return self.entries

    def get(self, key: bytes) -> bytes | None:
        if self.entries is None and key not in self.found and len(self.found) < _FEW_SEARCHES:
            self.found[key] = _search(self.contents, key)
        if key in self.found:
            return self.found[key]
        entries = self.all_entries()
        at = bisect.bisect_left(entries, (key,))
        return entries[at][1] if at < len(entries) and entries[at][0] == key else None


class SSTable:
    """A table in a file, of which a block is in memory at a time. Every block's checksum is verified when it is read.

    Raises DataLossError, naming the file and the offset, wherever the bytes make no sense. Close it when done.
    """

    def __init__(self, path: str, *, files: Files = EVERYWHERE) -> None:
        self.path = path
        with os_errors(path):
            self._map = files.mapped(path)
        try:
            size = len(self._map)
            if size < FOOTER_BYTES:
                raise self._damaged(0, f"file is too short to be an sstable: {size} bytes")
            index = self._read_footer(size)
            entries = self._entries(index)
        except BaseException:
            self.close()
            raise
        self._last_keys = [key for key, _ in entries]
        self._handles = self._decoded(lambda: [_handle(value) for _, value in entries], index)
        #: The block read last, by its number: entries that lie together are asked for together.
        self._loaded: _Loaded | None = None

    def close(self) -> None:
        self._map.close()

    def __enter__(self) -> SSTable:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def get(self, key: bytes) -> bytes | None:
        """The value of `key`, or None."""
        number = bisect.bisect_left(self._last_keys, key)
        if number == len(self._last_keys):
            return None
        block = self._block(number)
        return self._decoded(lambda: block.get(key), self._handles[number])

    def items(self) -> Iterator[tuple[bytes, bytes]]:
        """Every entry, in key order."""
        for number in range(len(self._handles)):
            yield from self._decoded(self._block(number).all_entries, self._handles[number])

    def _block(self, number: int) -> _Loaded:
        loaded = self._loaded
        if loaded is None or loaded.number != number:
            self._loaded = loaded = _Loaded(number, self._contents(self._handles[number]))
        return loaded

    def _damaged(self, offset: int, what: str) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{self.path} is corrupted at offset {offset}: {what}")

    def _decoded(self, read: Callable[[], T], handle: tuple[int, int]) -> T:
        try:
            return read()
        except (ValueError, IndexError, struct.error) as error:
            raise self._damaged(handle[0], str(error)) from None

    def _read_footer(self, size: int) -> tuple[int, int]:
        footer = bytes(self._map[size - FOOTER_BYTES :])
        if struct.unpack("<Q", footer[-8:])[0] != MAGIC:
            raise self._damaged(size - 8, "not an sstable (bad magic number)")

        def index_handle() -> tuple[int, int]:
            _, at = get_varint(footer, 0)
            _, at = get_varint(footer, at)
            return _handle(footer[at:])

        return self._decoded(index_handle, (size - FOOTER_BYTES, FOOTER_BYTES))

    def _entries(self, handle: tuple[int, int]) -> list[tuple[bytes, bytes]]:
        block = self._contents(handle)
        return self._decoded(lambda: _parse_block(block), handle)

    def _contents(self, handle: tuple[int, int]) -> bytes:
        offset, size = handle
        end = offset + size
        if end + _TRAILER_BYTES > len(self._map):
            raise self._damaged(offset, f"truncated block read: {size} bytes asked for, the file has {len(self._map)}")
        data = bytes(self._map[offset:end])
        kind = self._map[end]
        stored = struct.unpack("<I", self._map[end + 1 : end + _TRAILER_BYTES])[0]
        actual = crc32c.extend(crc32c.value(data), bytes((kind,)))
        if crc32c.unmask(stored) != actual:
            raise self._damaged(offset, "block checksum mismatch")
        if kind == _NO_COMPRESSION:
            return data
        if kind == _SNAPPY:
            return self._decoded(lambda: decompress(data, _MAX_UNPACKED), handle)
        raise self._damaged(offset, f"bad block type {kind}")


def _handle(value: bytes) -> tuple[int, int]:
    offset, at = get_varint(value, 0)
    size, _ = get_varint(value, at)
    return offset, size


def _parse_block(block: bytes) -> list[tuple[bytes, bytes]]:
    """The entries of a block, in order. Raises ValueError where they make no sense."""
    return list(_entries_from(block, 0, _layout(block)[1]))


def _search(block: bytes, key: bytes) -> bytes | None:
    """The value of `key` in a block, of which few entries are read: those at the places where keys are written in full,
    by halves, and those that follow the right one. Raises ValueError where they make no sense."""
    restarts, end = _layout(block)

    def entries(number: int) -> Iterator[tuple[bytes, bytes]]:
        (at,) = struct.unpack_from("<I", block, end + 4 * number)
        return _entries_from(block, at, end)

    low, high = 0, restarts
    while high - low > 1:
        middle = (low + high) // 2
        first = next(entries(middle), None)
        if first is None:
            raise ValueError("bad block contents: a restart point is beyond the entries")
        low, high = (middle, high) if first[0] <= key else (low, middle)
    for found, value in entries(low) if restarts else ():
        if found >= key:
            return value if found == key else None
    return None


def _layout(block: bytes) -> tuple[int, int]:
    """How many restart points a block has, and where its entries end."""
    if len(block) < 4:
        raise ValueError("bad block contents: too short")
    (restarts,) = struct.unpack("<I", block[-4:])
    end = len(block) - 4 - 4 * restarts
    if end < 0:
        raise ValueError(f"bad block contents: {restarts} restart points in {len(block)} bytes")
    return restarts, end


def _entries_from(block: bytes, at: int, end: int) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a block from one on whose key is written in full."""
    key, is_first = b"", True
    while at < end:
        shared, fresh, length = block[at : at + 3].ljust(3, b"\xff")
        if shared | fresh | length < 0x80:
            at += 3
        else:
            shared, at = get_varint(block, at)
            fresh, at = get_varint(block, at)
            length, at = get_varint(block, at)
        if shared > len(key) or at + fresh + length > end:
            raise ValueError("bad entry in block")
        before, key = key, key[:shared] + block[at : at + fresh]
        at += fresh
        if not is_first and key <= before:
            raise ValueError("bad entry in block: keys are not in order")
        is_first = False
        yield key, block[at : at + length]
        at += length
