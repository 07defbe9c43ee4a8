"""Record files: framing, packing, damage."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold_core import errors
from tenfold_core.files import Files
from tenfold_core.records import ByteStream, RecordReader, RecordWriter, frame

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path, compression: str = "") -> list[bytes]:
    with RecordReader(str(path), compression) as reader:
        return list(reader)


def test_a_record_is_framed_as_tensorflow_does() -> None:
    assert frame(b"abc").hex() == "0300000000000000b099490e6162636e57f121"


@pytest.mark.parametrize("compression", ["", "NONE", "GZIP", "ZLIB"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=20, deadline=None)
@given(st.lists(st.binary(max_size=3000), max_size=10))
def test_records_come_back(tmp_path: Path, compression: str, records: list[bytes]) -> None:
    with RecordWriter(str(tmp_path / "r"), compression) as out:
        for record in records:
            out.write(record)

    assert read(tmp_path / "r", compression) == records


def test_offsets_are_those_of_the_unpacked_stream(tmp_path: Path) -> None:
    with RecordWriter(str(tmp_path / "r"), "ZLIB") as out:
        out.write(b"abc")
        out.write(b"")

    with RecordReader(str(tmp_path / "r"), "ZLIB") as reader:
        assert [reader.offset, reader.read(), reader.offset, reader.read(), reader.offset] == [0, b"abc", 19, b"", 35]
        assert reader.read() is None


class SmallDisk(Files):
    """Opens files of a disk that has room for so many bytes more."""

    def __init__(self) -> None:
        self.room = 0

    def create(self, path: str) -> BinaryIO:
        return io.BufferedWriter(_Raw(path, self))


class _Raw(io.FileIO):
    def __init__(self, path: str, disk: SmallDisk) -> None:
        super().__init__(path, "w")
        self._disk = disk

    def write(self, data: Any, /) -> int:
        fits = memoryview(data)[: self._disk.room]
        if not len(fits):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._disk.room -= len(fits)
        return super().write(fits) or 0


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_full_disk_cuts_no_record_short(tmp_path: Path, compression: str) -> None:
    disk, path, taken = SmallDisk(), tmp_path / "r", []
    out = RecordWriter(str(path), compression, files=disk)
    for number in range(60):
        record = bytes([number]) * 1000 + os.urandom(5000)
        with contextlib.suppress(errors.ResourceExhaustedError):
            out.write(record)
            taken.append(record)
            out.flush()
        disk.room += 3000
    with pytest.raises(errors.ResourceExhaustedError, match=rf"{path}; No space left on device"):
        out.flush()
    disk.room = 1 << 20
    out.close()

    # what waits has a bound: then records are refused, as a whole
    assert 20 < len(taken) < 60
    assert read(path, compression) == taken


def test_what_was_flushed_can_be_read(tmp_path: Path) -> None:
    out = RecordWriter(str(tmp_path / "r"))
    out.write(b"first")
    out.flush()

    assert read(tmp_path / "r") == [b"first"]
    out.close()
    out.close()


@pytest.mark.parametrize(
    ("at", "text"), [(0, "corrupted record at 0"), (9, "corrupted"), (13, "corrupted"), (-1, "corrupted record at 19")]
)
def test_flipped_bits_are_told_with_their_place(tmp_path: Path, at: int, text: str) -> None:
    raw = bytearray(frame(b"abc") + frame(b"def"))
    raw[at] ^= 4
    (tmp_path / "r").write_bytes(raw)

    with pytest.raises(errors.DataLossError, match=text):
        read(tmp_path / "r")


def test_a_cut_file_is_told(tmp_path: Path) -> None:
    whole = frame(b"abc") + frame(b"def")
    for size in range(1, len(whole)):
        (tmp_path / "r").write_bytes(whole[:size])
        if size == len(frame(b"abc")):
            assert read(tmp_path / "r") == [b"abc"]
            continue
        with pytest.raises(errors.DataLossError, match="truncated record"):
            read(tmp_path / "r")


def test_an_absurd_length_takes_no_memory(tmp_path: Path) -> None:
    import struct

    from tenfold_core import crc32c

    length = struct.pack("<Q", 1 << 60)
    (tmp_path / "r").write_bytes(length + struct.pack("<I", crc32c.masked(length)) + b"little")

    with pytest.raises(errors.DataLossError, match="truncated record at 0"):
        read(tmp_path / "r")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(st.binary(max_size=200), st.sampled_from(["", "GZIP", "ZLIB"]))
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes, compression: str) -> None:
    (tmp_path / "r").write_bytes(data)
    try:
        read(tmp_path / "r", compression)
    except errors.DataLossError as error:
        assert str(tmp_path) in error.message  # noqa: PT017


def test_streams_read_skip_and_end(tmp_path: Path) -> None:
    (tmp_path / "g").write_bytes(gzip.compress(b"0123") + gzip.compress(b"4567"))
    (tmp_path / "cut").write_bytes(zlib.compress(b"x" * 5000)[:-9])

    with ByteStream(str(tmp_path / "g"), "GZIP") as stream:
        assert stream.skip(3)
        assert stream.read(3) == b"345"
        assert not stream.skip(9)
        assert stream.read(1) == b""
    with (
        ByteStream(str(tmp_path / "cut"), "ZLIB") as stream,
        pytest.raises(errors.DataLossError, match="ends too early"),
    ):
        stream.read(6000)


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="none; No such file or directory"):
        RecordReader(str(tmp_path / "none"))
    with pytest.raises(errors.InvalidArgumentError, match="Unsupported compression_type: LZ4"):
        RecordWriter(str(tmp_path / "x"), "LZ4")
