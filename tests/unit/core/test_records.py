"""Record files: framing, packing, damage."""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import struct
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tenfold_core import crc32c, errors
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


class Counted(Files):
    """Opens files that say how much is asked of them at once, and reads no more than `most_bytes` into memory."""

    def __init__(self, most_bytes: int = 1 << 30, *, broken: bool = False) -> None:
        self._most_bytes = most_bytes
        self.broken = broken
        self.asked: list[int] = []

    @property
    def most_bytes(self) -> int:
        return self._most_bytes

    def open_to_read(self, path: str) -> BinaryIO:
        return _CountedFile(path, self)


class _CountedFile(io.BufferedReader):
    def __init__(self, path: str, files: Counted) -> None:
        super().__init__(io.FileIO(path))
        self._files = files

    def _ask(self, count: int | None) -> None:
        self._files.asked.append(count or -1)
        if self._files.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def read(self, count: int | None = -1, /) -> bytes:
        self._ask(count)
        return super().read(count)

    def readline(self, count: int | None = -1, /) -> bytes:
        self._ask(count)
        return super().readline(count)


PACKED = {"": bytes, "GZIP": gzip.compress, "ZLIB": zlib.compress}


@pytest.mark.parametrize(("compression", "piece"), [("", 1 << 18), ("GZIP", 1 << 14), ("ZLIB", 1 << 14)])
def test_a_long_record_is_read_piece_by_piece(tmp_path: Path, compression: str, piece: int) -> None:
    record = os.urandom(600_000)
    with RecordWriter(str(tmp_path / "r"), compression) as out:
        out.write(record)
        out.write(b"next")
    files = Counted()

    with RecordReader(str(tmp_path / "r"), compression, files=files) as reader:
        assert list(reader) == [record, b"next"]
    assert max(files.asked) == piece


def test_little_is_unpacked_at_a_time_however_much_there_is(tmp_path: Path) -> None:
    (tmp_path / "z").write_bytes(zlib.compress(bytes(10_000_000)))

    with ByteStream(str(tmp_path / "z"), "ZLIB") as stream:
        assert stream.read(1) == b"\0"
        assert len(stream._unpacked) == 1 << 14


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize(("skipped", "there"), [(0, True), (299_999, True), (300_000, True), (300_001, False)])
def test_skipping_says_whether_there_was_so_much(tmp_path: Path, compression: str, skipped: int, there: bool) -> None:
    data = bytes(range(250)) * 1200
    (tmp_path / "f").write_bytes(PACKED[compression](data))

    with ByteStream(str(tmp_path / "f"), compression) as stream:
        assert stream.skip(skipped) is there
        assert stream.read(5) == data[skipped : skipped + 5]
        assert stream.read(0) == b""


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
def test_lines_have_their_ends_and_mix_with_other_reads(tmp_path: Path, compression: str) -> None:
    lines = [b"first\n", b"\n", b"x" * 40_000 + b"\n", b"\n", b"y" * 16_383 + b"\n", b"no end"]
    (tmp_path / "f").write_bytes(PACKED[compression](b"01234" + b"".join(lines)))
    (tmp_path / "ends").write_bytes(PACKED[compression](b"one\n"))
    (tmp_path / "empty").write_bytes(PACKED[compression](b""))

    with ByteStream(str(tmp_path / "f"), compression) as stream:
        assert stream.read(5) == b"01234"
        assert [stream.read_line() for _ in lines] == lines
        assert (stream.read_line(), stream.read(1)) == (None, b"")
    with ByteStream(str(tmp_path / "ends"), compression) as stream:
        assert [stream.read_line(), stream.read_line()] == [b"one\n", None]
    with ByteStream(str(tmp_path / "empty"), compression) as stream:
        assert stream.read_line() is None


@pytest.mark.parametrize("compression", ["", "GZIP", "ZLIB"])
@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_may_be_as_long_as_what_may_be_in_memory(tmp_path: Path, compression: str, end: bytes) -> None:
    line = b"x" * (20_000 - len(end)) + end
    (tmp_path / "fits").write_bytes(PACKED[compression](line))
    (tmp_path / "long").write_bytes(PACKED[compression](b"x" + line))

    with ByteStream(str(tmp_path / "fits"), compression, files=Counted(20_000)) as stream:
        assert stream.read_line() == line
    with (
        ByteStream(str(tmp_path / "long"), compression, files=Counted(20_000)) as stream,
        pytest.raises(errors.ResourceExhaustedError, match="long; 20001 bytes are more than the 20000"),
    ):
        stream.read_line()


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_a_record_may_be_as_long_as_what_may_be_in_memory(tmp_path: Path, compression: str) -> None:
    with RecordWriter(str(tmp_path / "r"), compression) as out:
        out.write(b"x" * 1000)

    with RecordReader(str(tmp_path / "r"), compression, files=Counted(1000)) as reader:
        assert reader.read() == b"x" * 1000
    with (
        RecordReader(str(tmp_path / "r"), compression, files=Counted(999)) as reader,
        pytest.raises(errors.ResourceExhaustedError, match="1000 bytes are more than the 999"),
    ):
        reader.read()


@pytest.mark.parametrize("compression", ["", "GZIP"])
def test_what_the_disk_says_while_it_is_read_is_told_with_the_file(tmp_path: Path, compression: str) -> None:
    (tmp_path / "f").write_bytes(PACKED[compression](b"abc\n"))

    with ByteStream(str(tmp_path / "f"), compression, files=Counted(broken=True)) as stream:
        for ask in (stream.read_line, lambda: stream.read(1), lambda: stream.skip(1)):
            with pytest.raises(errors.OpError, match=f"{tmp_path / 'f'}; Input/output error"):
                ask()


@pytest.mark.parametrize(
    ("compression", "said"), [("GZIP", "packed data is damaged"), ("ZLIB", "packed data is damag")]
)
def test_packed_data_that_are_none_are_told(tmp_path: Path, compression: str, said: str) -> None:
    (tmp_path / "f").write_bytes(b"this is not packed")

    with ByteStream(str(tmp_path / "f"), compression) as stream:
        for ask in (stream.read_line, lambda: stream.read(1)):
            with pytest.raises(errors.DataLossError, match=f"{tmp_path / 'f'}: {said}"):
                ask()


@pytest.mark.parametrize("size", [10, 16 << 10, 100_000])
def test_packed_files_that_follow_one_another_are_one(tmp_path: Path, size: int) -> None:
    parts = [os.urandom(size), b"", os.urandom(size // 2), b"end"]
    for compression in ("GZIP", "ZLIB"):
        (tmp_path / "f").write_bytes(b"".join(map(PACKED[compression], parts)))
        with ByteStream(str(tmp_path / "f"), compression) as stream:
            assert stream.read(10 * size) == b"".join(parts)


def test_what_comes_before_damage_is_read(tmp_path: Path) -> None:
    data = os.urandom(100_000)
    (tmp_path / "cut").write_bytes(zlib.compress(data)[:50_000])

    with ByteStream(str(tmp_path / "cut"), "ZLIB") as stream:
        assert stream.read(1 << 14) == data[: 1 << 14]
        assert stream.skip(1 << 14)
        assert stream.read(1 << 14) == data[1 << 15 : 3 << 14]
        with pytest.raises(errors.DataLossError, match="ends too early"):
            stream.read(1 << 14)


def test_records_wait_until_64_kib_are_together(tmp_path: Path) -> None:
    path = tmp_path / "r"
    with RecordWriter(str(path)) as out:
        out.write(b"x" * (65_535 - len(frame(b""))))
        out.write(b"")
        assert path.stat().st_size == 0, "one byte less than 64 KiB waited"
        out.write(b"")
        written = 65_535 + len(frame(b""))
        assert path.stat().st_size == written
        out.write(b"x" * (65_536 - 2 * len(frame(b""))))  # the third frame, and this one
        assert path.stat().st_size == written
        out.write(b"")
        assert path.stat().st_size == written + 65_536
    assert len(read(path)) == 5


def test_nothing_stays_open(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    before = descriptors()
    with RecordWriter(str(tmp_path / "r"), "GZIP") as out:
        out.write(b"abc")
    with RecordReader(str(tmp_path / "r"), "GZIP") as reader:
        assert reader.path == str(tmp_path / "r")
        assert list(reader) == [b"abc"]
    with ByteStream(str(tmp_path / "r")):
        pass
    stream, again = ByteStream(str(tmp_path / "r")), RecordReader(str(tmp_path / "r"))
    stream.close()
    again.close()
    full = RecordWriter(str(tmp_path / "full"), files=SmallDisk())
    full.write(b"abc")
    with pytest.raises(errors.ResourceExhaustedError):
        full.close()
    assert descriptors() == before


def test_damage_is_told_with_the_place_of_its_record_among_others(tmp_path: Path) -> None:
    whole = frame(b"abc") + frame(b"d") + frame(b"efgh")
    for at in range(len(whole)):
        raw = bytearray(whole)
        raw[at] ^= 1
        (tmp_path / "r").write_bytes(raw)
        place = 0 if at < 19 else 19 if at < 36 else 36
        with pytest.raises(errors.DataLossError, match=f"^corrupted record at {place} in {tmp_path}/r$"):
            read(tmp_path / "r")


def test_what_cannot_be_opened_says_why(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="none; No such file or directory"):
        RecordReader(str(tmp_path / "none"))
    for opened in (RecordWriter, RecordReader, ByteStream):
        with pytest.raises(errors.InvalidArgumentError, match="Unsupported compression_type: LZ4"):
            opened(str(tmp_path / "x"), "LZ4")
    with pytest.raises(errors.NotFoundError, match="folder/x; No such file or directory"):
        RecordWriter(str(tmp_path / "folder" / "x"))
