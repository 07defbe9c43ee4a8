"""TFRecord files: records one after the other, each with its length and two checksums; plain, GZIP or ZLIB.

    length uint64 | masked crc32c of the length | bytes | masked crc32c of the bytes

Used by the readers of kernels/cpu, by event files and by programs that write training data. Follows record_reader.cc
and record_writer.cc.
"""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING, cast

from tenfold_core import crc32c, errors
from tenfold_core.file_errors import os_error, os_errors
from tenfold_core.file_names import file_path, is_url
from tenfold_core.files import EVERYWHERE, Files

if TYPE_CHECKING:
    from collections.abc import Iterator
    from io import BufferedWriter

_LENGTH, _CRC = struct.Struct("<Q"), struct.Struct("<I")
_HEADER_BYTES = _LENGTH.size + _CRC.size
#: Read from the disk, and unpacked, this much at a time: memory follows what is really there, not what is claimed.
_PIECE = 1 << 18
#: Packed bytes given to zlib at a time, and unpacked ones taken from it: it copies the rest of what it was given each
#: time, and records may be of a few bytes, or gzip files that follow one another.
_PORTION = 1 << 14
#: Bytes of records that wait to be written together.
_WAITING_BYTES = 1 << 16
#: Bytes of a file elsewhere that are sent again with each flush, at most.
_MOST_RESENT = 16 << 20
#: zlib's window bits: 15, and 16 more for gzip's frame.
_WINDOWS = {"ZLIB": 15, "GZIP": 31}


class ByteStream:
    """The bytes of a file, unpacked on the way. Not thread-safe; blocks on the disk.

    Raises InvalidArgumentError for an unknown compression, the step's error for what the disk says, DataLossError for
    packed data that is damaged.
    """

    def __init__(self, path: str, compression: str = "", *, files: Files = EVERYWHERE) -> None:
        if compression not in ("", "NONE", *_WINDOWS):
            raise errors.InvalidArgumentError(
                None, None, f"Unsupported compression_type: {compression}; there are '', 'NONE', 'GZIP' and 'ZLIB'"
            )
        self.path = path
        self._opener = files
        self._window = _WINDOWS.get(compression, 0)
        self._unpacker = zlib.decompressobj(self._window) if self._window else None
        self._packed = b""
        #: What was unpacked; from `_at` on it was not read yet.
        self._unpacked, self._at = b"", 0
        with os_errors(path):
            self._file = files.open_to_read(file_path(path))

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> ByteStream:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def read(self, count: int) -> bytes:
        """The next `count` bytes, fewer only at the end. Raises ResourceExhaustedError for more than may be read."""
        self._opener.check_bytes(self.path, count)
        pieces = []
        while count > 0:
            piece = self._some(min(count, _PIECE))
            if not piece:
                break
            pieces.append(piece)
            count -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_line(self) -> bytes | None:
        """The next line with its end, or None at the end of the file."""
        if self._unpacker is not None:
            return self._unpacked_line()
        try:
            line = self._file.readline(min(self._opener.most_bytes, 1 << 62) + 1)
        except OSError as error:
            raise os_error(self.path, error) from None
        self._opener.check_bytes(self.path, len(line))
        return line or None

    def _unpacked_line(self) -> bytes | None:
        pieces = []
        while True:
            end = self._unpacked.find(b"\n", self._at) + 1
            pieces.append(self._unpacked[self._at : end or None])
            self._opener.check_bytes(self.path, sum(map(len, pieces)))
            self._at = end or len(self._unpacked)
            if end:
                return b"".join(pieces)
            first = self._some(1)
            if not first:
                return b"".join(pieces) or None
            self._at -= 1  # it was only looked at

    def skip(self, count: int) -> bool:
        """Moves on by `count` bytes; False if the end comes first."""
        while count > 0:
            got = len(self._some(min(count, _PIECE)))
            if not got:
                return False
            count -= got
        return True

    def _some(self, most: int) -> bytes:
        try:
            if self._unpacker is None:
                return self._file.read(most)
            if self._at == len(self._unpacked):
                self._unpacked, self._at = self._unpack(), 0
            data = self._unpacked[self._at : self._at + most]
            self._at += len(data)
            return data
        except OSError as error:
            raise os_error(self.path, error) from None
        except zlib.error as error:
            raise errors.DataLossError(None, None, f"{self.path}: packed data is damaged: {error}") from None

    def _unpack(self) -> bytes:
        """The next portion; nothing at the end."""
        assert self._unpacker is not None
        while True:
            if self._unpacker.eof:  # gzip files may follow one another
                self._packed = self._unpacker.unused_data or self._packed or self._file.read(_PORTION)
                if not self._packed:
                    return b""
                self._unpacker = zlib.decompressobj(self._window)
            source = self._unpacker.unconsumed_tail or self._packed or self._file.read(_PORTION)
            self._packed = b""
            data = self._unpacker.decompress(source, _PORTION)
            if data:
                return data
            if not source:
                raise errors.DataLossError(None, None, f"{self.path}: packed data ends too early")


class RecordReader:
    """The records of one file, in order. `offset` is where the next begins, in unpacked bytes.

    `read` raises DataLossError for a record that is cut short or whose checksum does not hold.
    """

    def __init__(self, path: str, compression: str = "", *, files: Files = EVERYWHERE) -> None:
        self._stream = ByteStream(path, compression, files=files)
        self.path = path
        self.offset = 0

    def close(self) -> None:
        self._stream.close()

    def __enter__(self) -> RecordReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[bytes]:
        while (record := self.read()) is not None:
            yield record

    def read(self) -> bytes | None:
        """The next record, or None at the end."""
        header = self._stream.read(_HEADER_BYTES)
        if not header:
            return None
        if len(header) < _HEADER_BYTES:
            raise self._damaged("truncated")
        (length,), (check,) = _LENGTH.unpack_from(header), _CRC.unpack_from(header, _LENGTH.size)
        if crc32c.masked(header[: _LENGTH.size]) != check:
            raise self._damaged("corrupted")
        data = self._stream.read(length)
        footer = self._stream.read(_CRC.size)
        if len(data) < length or len(footer) < _CRC.size:
            raise self._damaged("truncated")
        if crc32c.masked(data) != _CRC.unpack(footer)[0]:
            raise self._damaged("corrupted")
        self.offset += _HEADER_BYTES + length + _CRC.size
        return data

    def _damaged(self, how: str) -> errors.DataLossError:
        return errors.DataLossError(None, None, f"{how} record at {self.offset} in {self.path}")


class RecordWriter:
    """Writes records to a file: `with RecordWriter(path) as out: out.write(b"…")`. Not thread-safe.

    A disk that is full cuts no record short for good: what it did not take waits, and goes on where it ended once the
    disk takes it. A record is taken or refused as a whole.
    """

    def __init__(self, path: str, compression: str = "", *, files: Files = EVERYWHERE) -> None:
        if compression not in ("", "NONE", *_WINDOWS):
            raise errors.InvalidArgumentError(
                None, None, f"Unsupported compression_type: {compression}; there are '', 'NONE', 'GZIP' and 'ZLIB'"
            )
        window = _WINDOWS.get(compression)
        self.path = path
        self._packer = None if window is None else zlib.compressobj(wbits=window)
        #: What the file does not have yet, in order, and how many bytes that is.
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._size = 0
        with os_errors(path):
            self._file = cast("BufferedWriter", files.create(file_path(path)))

    def write(self, record: bytes) -> None:
        """Adds a record. Raises the disk's error, and has not taken it, where those before cannot be written."""
        if self._waiting_bytes >= _WAITING_BYTES:
            self._write_out()
        data = frame(record)
        self._add(data if self._packer is None else self._packer.compress(data))

    def flush(self) -> None:
        """Hands what was written to the operating system; readers see whole records. After an error all of it is still
        to be written."""
        if self._packer is not None:
            self._add(self._packer.flush(zlib.Z_SYNC_FLUSH))
        self._write_out()
        with os_errors(self.path):
            self._file.raw.flush()  # a file elsewhere is sent

    @property
    def size(self) -> int:
        """Bytes that were written, but for those that a packer holds back."""
        return self._size

    def close(self) -> None:
        """Writes what is left. Harmless when it is closed already."""
        if self._file.closed:
            return
        try:
            if self._packer is not None:
                self._add(self._packer.flush())
            self._write_out()
        finally:
            with os_errors(self.path):
                self._file.close()

    def _add(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        self._waiting_bytes += len(data)

    def _write_out(self) -> None:
        data = self._waiting[0] if len(self._waiting) == 1 else b"".join(self._waiting)
        done = 0
        try:
            with os_errors(self.path):
                while done < len(data):
                    # past its buffer, which keeps a part of what it could not write, and loses another
                    done += self._file.raw.write(memoryview(data)[done:]) or 0
        finally:
            self._waiting, self._waiting_bytes = [data[done:]] if done < len(data) else [], len(data) - done

    def __enter__(self) -> RecordWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def is_full(file: RecordWriter) -> bool:
    """Whether a file of events is to be followed by another: one elsewhere, which each flush sends as a whole."""
    return file.size >= _MOST_RESENT and is_url(file.path)


def frame(record: bytes) -> bytes:
    """A record as it stands in a file."""
    length = _LENGTH.pack(len(record))
    return b"".join((length, _CRC.pack(crc32c.masked(length)), record, _CRC.pack(crc32c.masked(record))))
