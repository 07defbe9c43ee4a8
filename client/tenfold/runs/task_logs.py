"""What the tasks of a run write, in files of a bounded size: one folder a run, a few segments a task.

Written by supervise.py; read by the control service (control_api/log_files.py), which shares the form with this file
only: `JOB-INDEX.NUMBER.log`, numbers growing from 0, and in them lines

    2026-11-24T03:30:01.123456Z INFO    worker/0 the line

A task has at most `segments` files of `segment_bytes`; the oldest goes when a new one begins. Lines that the disk does
not take are lost, and counted: the run goes on.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import re
import threading
from datetime import UTC, datetime
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)

#: 64 MiB a task.
SEGMENT_BYTES, SEGMENTS = 8 << 20, 8

#: How logging libraries begin a line: absl's and glog's `W1124 …`, TensorFlow's and logging's `WARNING:…`, and our own
#: after the time, in text and in JSON (tenfold_core/log_setup.py).
_LEVEL = re.compile(
    r"""(?:(?P<letter>[DIWEF])\d{4}\ \d
        |(?:\d{4}-\d\d-\d\dT[\d:.]+Z\ |\{"time":\ "[^"]*",\ "level":\ ")?
          \[?(?P<word>DEBUG|INFO|WARNING|WARN|ERROR|CRITICAL|FATAL)\b)
        |Traceback\ \(""",
    re.VERBOSE,
)
_LETTERS = {"D": "DEBUG", "I": "INFO", "W": "WARNING", "E": "ERROR", "F": "CRITICAL"}
_WORDS = {"WARN": "WARNING", "FATAL": "CRITICAL"}


def level_of(line: str) -> str:
    """The level that the line names in the way of a logging library; INFO if it names none, ERROR for a traceback."""
    match = _LEVEL.match(line)
    if match is None:
        return "INFO"
    if match["letter"]:
        return _LETTERS[match["letter"]]
    return _WORDS.get(match["word"], match["word"]) if match["word"] else "ERROR"


class TaskLogs:
    """The files of one run in `folder`. A context manager. `write` may be called from any thread."""

    def __init__(self, folder: Path, *, segment_bytes: int = SEGMENT_BYTES, segments: int = SEGMENTS) -> None:
        self._folder, self._segment_bytes, self._segments = folder, segment_bytes, segments
        self._lock = threading.Lock()
        self._open: dict[str, _TaskLog] = {}
        folder.mkdir(parents=True, exist_ok=True)

    def write(self, name: str, line: str) -> None:
        """One line of task `name` ("worker/0"). Never raises for the disk: a line that it does not take is lost, and
        the next one that it takes says so."""
        with self._lock:
            kept = self._open.get(name)
            if kept is None:
                path = self._folder / name.replace("/", "-")
                kept = self._open[name] = _TaskLog(path, self._segment_bytes, self._segments)
            try:
                if kept.lost:
                    kept.write(_line(name, "WARNING", f"[{kept.lost} lines could not be kept: {kept.why}]"))
                    kept.lost = 0
                kept.write(_line(name, level_of(line), line))
            except OSError as error:
                if not kept.lost:
                    log.warning("lines of %s cannot be kept in %s: %s", name, self._folder, error.strerror or error)
                kept.lost, kept.why = kept.lost + 1, error.strerror or str(error)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        with self._lock:
            for kept in self._open.values():
                kept.close()
            self._open.clear()


def _line(name: str, level: str, text: str) -> bytes:
    now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
    return f"{now} {level:8}{name} {text}\n".encode(errors="replace")


class _TaskLog:
    """The segments of one task. A task that is started again goes on where the last one ended."""

    def __init__(self, path: Path, segment_bytes: int, segments: int) -> None:
        self._path, self._segment_bytes, self._segments = path, segment_bytes, segments
        there = sorted(path.parent.glob(f"{path.name}.*.log"))
        self._number = int(there[-1].name.split(".")[-2]) if there else 0
        #: The segment that is written to; None until it could be opened.
        self._file: IO[bytes] | None = None
        self._size = 0
        #: Whether the file ends in the middle of a line.
        self._torn = False
        #: Lines that the disk did not take since the last one that it did, and why.
        self.lost, self.why = 0, ""

    def write(self, text: bytes) -> None:
        """Raises OSError for a line that the file does not have, or not whole."""
        if self._size and self._size + len(text) > self._segment_bytes:
            self.close()
            self._number += 1
            self._segment(self._number - self._segments).unlink(missing_ok=True)
        if self._file is None:
            self._file = self._segment(self._number).open("ab", buffering=0)
            self._size = self._file.tell()
        whole = b"\n" + text if self._torn else text
        written = self._file.write(whole)
        self._size += written
        if written < len(whole):
            self._torn = self._torn or written > 0
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        self._torn = False

    def close(self) -> None:
        file, self._file, self._size = self._file, None, 0
        if file is not None:
            with contextlib.suppress(OSError):  # a disk that tells only now that it has lost something
                file.close()

    def _segment(self, number: int) -> Path:
        return self._path.with_name(f"{self._path.name}.{number:08}.log")
