"""Event files as resources: when events reach the file, what a full disk leaves, and files that are opened anew."""

from __future__ import annotations

import gc
import os
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_core import errors
from tenfold_core.records import RecordReader
from tenfold_kernels.resources import summary_writers
from tenfold_kernels.resources.summary_writers import SummaryWriter
from tenfold_protos import event_pb2

if TYPE_CHECKING:
    from pathlib import Path


class Clock:
    """In place of `time`."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds

    def time(self) -> float:
        return 7.0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(summary_writers, "time", clock)
    monkeypatch.setattr(summary_writers.socket, "gethostname", lambda: "host")
    return clock


def opened(folder: Path, *, queue: int = 0, millis: int = 1_000_000, suffix: str = "") -> SummaryWriter:
    writer = SummaryWriter("w")
    writer.open(str(folder), queue, millis, suffix)
    return writer


def event(step: int) -> bytes:
    return event_pb2.Event(step=step).SerializeToString()


def steps(path: Path) -> list[int]:
    """Of the events in a file, after the one that says its version."""
    with RecordReader(str(path)) as reader:
        events = [event_pb2.Event.FromString(record) for record in iter(reader.read, None)]
    assert events[0].file_version == "brain.Event:2"
    assert events[0].wall_time == 7
    return [each.step for each in events[1:]]


def test_a_file_is_there_with_its_version_once_it_is_open(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "a" / "b"
    writer = opened(folder, suffix=".x")
    (path,) = folder.iterdir()
    assert path.name == "events.out.tfevents.0000000007.host.x"
    assert steps(path) == []
    writer.open(str(tmp_path / "other"), 0, 0, "")
    assert not (tmp_path / "other").exists(), "one is open"


def test_files_of_one_second_have_numbers(tmp_path: Path, clock: Clock) -> None:
    for _ in range(3):
        opened(tmp_path, suffix=".x").close()
    stem = "events.out.tfevents.0000000007.host"
    assert sorted(os.listdir(tmp_path)) == [f"{stem}.1.x", f"{stem}.2.x", f"{stem}.x"]


def test_without_a_folder_it_is_the_current_one(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = SummaryWriter("w")
    writer.open("", 0, 0, "")
    assert len(os.listdir(tmp_path)) == 1


@pytest.mark.parametrize("suffix", ["/x", "a\0"])
def test_a_suffix_is_part_of_a_name(tmp_path: Path, suffix: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="must be a part of a file's name"):
        opened(tmp_path, suffix=suffix)
    assert os.listdir(tmp_path) == []


def test_events_wait_until_the_queue_is_full(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=2)
    (path,) = tmp_path.iterdir()
    for step in (1, 2):
        writer.add(event(step))
        assert steps(path) == []
    writer.add(event(3))
    assert steps(path) == [1, 2, 3]
    writer.add(event(4))
    assert steps(path) == [1, 2, 3]
    writer.flush()
    assert steps(path) == [1, 2, 3, 4]


def test_a_queue_of_none_writes_each(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=0)
    (path,) = tmp_path.iterdir()
    writer.add(event(1))
    assert steps(path) == [1]


def test_the_queue_is_bounded_in_bytes(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summary_writers, "_MAX_WAITING_BYTES", 2 * len(event(1)))
    writer = opened(tmp_path, queue=100)
    (path,) = tmp_path.iterdir()
    for _ in range(2):
        for step in (1, 2):
            writer.add(event(step))
        written = steps(path)
        writer.add(event(3))
        assert len(steps(path)) == len(written) + 3
    assert steps(path) == [1, 2, 3, 1, 2, 3]


def test_64_mib_of_events_wait_at_most() -> None:
    assert summary_writers._MAX_WAITING_BYTES == 64 * 1024**2


def test_an_old_event_is_written_with_the_next(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=100, millis=2000)
    (path,) = tmp_path.iterdir()
    clock.seconds += 2
    writer.add(event(1))
    assert steps(path) == [], "exactly so old is not older"
    clock.seconds += 0.5
    writer.add(event(2))
    assert steps(path) == [1, 2]
    clock.seconds += 1.5
    writer.add(event(3))
    assert steps(path) == [1, 2], "counted from the last time that it wrote"
    clock.seconds += 1
    writer.add(event(4))
    assert steps(path) == [1, 2, 3, 4]


def test_a_writer_is_closed_and_opened_anew(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=9)
    (path,) = tmp_path.iterdir()
    writer.add(event(1))
    file = writer._file
    writer.close()
    assert file is not None
    assert file._file.closed
    assert steps(path) == [1]
    for call in (writer.flush, writer.close, lambda: writer.add(event(2))):
        with pytest.raises(errors.NotFoundError, match="Summary writer 'w' has no file open: run its init operation"):
            call()
    clock.seconds += 9000
    writer.open(str(tmp_path / "again"), 9, 1000, "")
    writer.add(event(3))
    (again,) = (tmp_path / "again").iterdir()
    assert steps(again) == []
    writer.flush()
    assert steps(again) == [3]


def test_one_that_never_had_a_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(errors.NotFoundError, match="'w' has no file open"):
        SummaryWriter("w").add(event(1))


def test_one_that_is_forgotten_loses_no_event(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=9)
    (path,) = tmp_path.iterdir()
    writer.add(event(1))
    file = writer._file
    del writer
    gc.collect()
    assert file is not None
    assert file._file.closed
    assert steps(path) == [1]


def test_one_that_was_closed_leaves_nothing_to_be_done_at_the_end(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=9)
    finalizer: Any = writer._finalizer
    writer.close()
    assert not finalizer.alive


class FullDisk:
    """A file that takes some records more."""

    path, size = "here", 0

    def __init__(self, takes: int) -> None:
        self.takes = takes
        self.records: list[bytes] = []
        self.flushes = 0

    def write(self, record: bytes) -> None:
        if not self.takes:
            raise errors.ResourceExhaustedError(None, None, "No space left on device")
        self.takes -= 1
        self.records.append(record)

    def flush(self) -> None:
        self.flushes += 1

    def close(self) -> None:
        pass


def test_what_a_full_disk_does_not_take_is_written_once_later(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(summary_writers, "_MAX_WAITING_BYTES", 4 * len(event(1)))
    writer = opened(tmp_path, queue=100)
    disk = FullDisk(1)
    kept, writer._file = writer._file, disk  # type: ignore[assignment]
    for step in (1, 2, 3):
        writer.add(event(step))
    with pytest.raises(errors.ResourceExhaustedError):
        writer.flush()
    assert (disk.records, disk.flushes) == ([event(1)], 0)
    for step in (4, 5):
        writer.add(event(step))
    assert disk.records == [event(1)], "four wait, as many as may"
    with pytest.raises(errors.ResourceExhaustedError):
        writer.add(event(6))
    disk.takes = 9
    writer.flush()
    assert disk.records == [event(step) for step in (1, 2, 3, 4, 5)], "the one that was refused was not queued"
    assert disk.flushes == 1
    writer._file = kept
    writer.close()


def test_an_event_that_a_full_disk_did_not_take_is_not_queued_twice(tmp_path: Path, clock: Clock) -> None:
    writer = opened(tmp_path, queue=1)
    disk = FullDisk(0)
    kept, writer._file = writer._file, disk  # type: ignore[assignment]
    writer.add(event(1))
    with pytest.raises(errors.ResourceExhaustedError):
        writer.add(event(2))
    disk.takes = 9
    writer.add(event(2))
    assert disk.records == [event(1), event(2)]
    writer._file = kept
    writer.close()
