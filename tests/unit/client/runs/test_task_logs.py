"""The files of a run's output: their form as the control service reads it, their bound, and reading them backwards."""

from __future__ import annotations

import errno
import io
import os
from typing import TYPE_CHECKING, Any

import pytest

from tenfold.runs.task_logs import TaskLogs, level_of
from tenfold_control_api.runs import log_files

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("line", "level"),
    [
        ("step 3 loss 0.2", "INFO"),
        ("W1124 03:30:01.123456 1234 trainer.py:3] slow", "WARNING"),
        ("E1124 03:30:01 x", "ERROR"),
        ("WARNING:tensorflow:deprecated", "WARNING"),
        ("[ERROR] no", "ERROR"),
        ("FATAL: gone", "CRITICAL"),
        ("Traceback (most recent call last):", "ERROR"),
        ("INFORMATION", "INFO"),
        ("E is the fifth letter", "INFO"),
    ],
)
def test_a_level_is_read_where_a_library_wrote_it(line: str, level: str) -> None:
    assert level_of(line) == level


def texts(lines: list[log_files.Line]) -> list[str]:
    return [line.text for line in lines]


def test_what_is_written_is_read_by_task_and_in_order_of_time(tmp_path: Path) -> None:
    with TaskLogs(tmp_path) as logs:
        for name, line in (("ps/0", "a"), ("worker/0", "WARNING: b"), ("worker/0", ""), ("worker/10", "ü d")):
            logs.write(name, line)

    assert log_files.tasks_of(tmp_path) == ["ps/0", "worker/0", "worker/10"]
    found = log_files.tail(tmp_path, ["ps/0", "worker/0", "worker/10"], 10)
    assert texts(found) == ["a", "WARNING: b", "", "ü d"]
    assert [(line.task, line.level) for line in found][1] == ("worker/0", "WARNING")
    assert texts(log_files.tail(tmp_path, ["worker/0", "worker/10"], 2)) == ["", "ü d"]
    # a task whose name begins another one's is not mixed up with it
    assert texts(log_files.tail(tmp_path, ["worker/1"], 9)) == []


def test_the_files_of_a_task_stay_within_their_bound_and_the_newest_lines_are_kept(tmp_path: Path) -> None:
    with TaskLogs(tmp_path, segment_bytes=10_000, segments=3) as logs:
        for number in range(5000):
            logs.write("worker/0", f"line {number} " + "x" * 50)

    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 3
    assert max(sizes) <= 10_000
    lines = log_files.tail(tmp_path, ["worker/0"], 100_000)
    numbers = [int(line.text.split()[1]) for line in lines]
    assert numbers == list(range(numbers[0], 5000))
    assert len(numbers) > 150


def test_a_line_longer_than_a_file_is_kept_whole(tmp_path: Path) -> None:
    with TaskLogs(tmp_path, segment_bytes=1000, segments=2) as logs:
        for text in ("short", "x" * 200_000, "short again"):
            logs.write("worker/0", text)

    assert texts(log_files.tail(tmp_path, ["worker/0"], 2)) == ["x" * 200_000, "short again"]


def test_another_process_goes_on_where_the_last_one_ended(tmp_path: Path) -> None:
    for text in ("first", "second"):
        with TaskLogs(tmp_path) as logs:
            logs.write("worker/0", text)

    assert texts(log_files.tail(tmp_path, ["worker/0"], 9)) == ["first", "second"]


def test_reading_on_gives_each_line_once_over_all_files(tmp_path: Path) -> None:
    seen: list[str] = []
    with TaskLogs(tmp_path, segment_bytes=2000, segments=8) as logs:
        logs.write("worker/0", "before")
        places = log_files.ends(tmp_path, ["worker/0"])
        for number in range(100):
            logs.write("worker/0", str(number))
            if number % 7 == 0:
                lines, places = log_files.read_on(tmp_path, places, ["worker/0"])
                seen += texts(lines)
    while fresh := log_files.read_on(tmp_path, places, ["worker/0"]):
        lines, places = fresh
        if not lines:
            break
        seen += texts(lines)

    assert seen == [str(number) for number in range(100)]
    assert texts(log_files.tail(tmp_path, ["worker/0"], 2, {"worker/0": (0, 0)})) == []


def test_a_line_that_is_not_whole_yet_waits_for_its_end(tmp_path: Path) -> None:
    with TaskLogs(tmp_path) as logs:
        logs.write("worker/0", "whole")
    (path,) = tmp_path.iterdir()
    with path.open("ab") as file:
        file.write(b"2026-11-24T03:30:01.123Z INFO    worker/0 ha")
    lines, places = log_files.read_on(tmp_path, {}, ["worker/0"])
    with path.open("ab") as file:
        file.write(b"lf\n")

    assert texts(lines) == ["whole"]
    assert texts(log_files.read_on(tmp_path, places, ["worker/0"])[0]) == ["half"]


def test_lines_that_the_disk_does_not_take_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where it takes a part of one, or no new file can be made."""
    room = 100

    class Disk(io.FileIO):
        def write(self, data: Any, /) -> int:
            nonlocal room
            fits = memoryview(data)[:room]
            room -= len(fits)
            if not len(fits):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            return super().write(fits) or 0

    def opened(path: Path, mode: str, buffering: int) -> Disk:
        if not room:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return Disk(path, mode.replace("b", ""))

    monkeypatch.setattr("pathlib.Path.open", opened)
    with TaskLogs(tmp_path, segment_bytes=350, segments=8) as logs:
        logs.write("worker/0", "whole")
        for _ in range(30):
            logs.write("worker/0", "lost " + "x" * 50)
        room = 10_000
        logs.write("worker/0", "again")
        logs.write("worker/0", "and again")
        room = 0
        for number in range(30):
            logs.write("worker/0", f"also lost {number}")
        room = 10_000
        logs.write("worker/0", "at last")
    monkeypatch.undo()

    full = "could not be kept: No space left on device]"
    found = texts(log_files.tail(tmp_path, ["worker/0"], 99))
    assert [line for line in found if not line.startswith("lost")] == [
        *("whole", f"[30 lines {full}", "again", "and again", f"[30 lines {full}", "at last")
    ]
