"""A writer of event files as a resource of a task: what SummaryWriter names and CreateSummaryFileWriter opens.

The handle exists before the file does, and after it is closed; a file that was closed is opened anew by another
CreateSummaryFileWriter. The kernels are cpu/summary_writer.py. Follows summary_file_writer.cc; there is one file a
writer, made with it, whose name no other has.
"""

from __future__ import annotations

import os
import socket
import threading
import time
import weakref

from tenfold_core import errors
from tenfold_core.graph_files import graph_files
from tenfold_core.records import RecordWriter, is_full
from tenfold_kernels.arrays import invalid
from tenfold_protos import event_pb2

#: What the first event of a file says.
_FILE_VERSION = "brain.Event:2"

#: Bytes of events that wait in memory, at most, whatever `max_queue` says.
_MAX_WAITING_BYTES = 1 << 26


class SummaryWriter:
    """An event file, or none yet. Thread-safe; methods block on the disk."""

    #: Of the open file: how many events wait at most, and how long, since when.
    _max_queue: int
    _flush_seconds: float
    _flushed: float
    #: Where its file is, for the one after it.
    _logdir: str
    _suffix: str

    def __init__(self, name: str) -> None:
        self.name = name
        self._lock = threading.Lock()
        self._file: RecordWriter | None = None
        #: Serialized events that are not in the file yet, and their bytes.
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._finalizer: weakref.finalize[..., SummaryWriter] | None = None

    def open(self, logdir: str, max_queue: int, flush_millis: int, suffix: str) -> None:
        """Makes the folder and a new file in it; nothing, while one is open. Raises the disk's error."""
        with self._lock:
            if self._file is not None:
                return
            graph_files().make_folders(logdir or ".")
            self._max_queue, self._flush_seconds = max_queue, flush_millis / 1000
            self._flushed = time.monotonic()
            self._logdir, self._suffix = logdir, suffix
            self._begin_file()

    def _begin_file(self) -> None:
        file = RecordWriter(_new_path(self._logdir, self._suffix), files=graph_files())
        version = event_pb2.Event(wall_time=time.time(), file_version=_FILE_VERSION)
        file.write(version.SerializeToString())
        file.flush()
        self._file = file
        # A session that ends without closing its writers loses nothing that was written.
        self._finalizer = weakref.finalize(self, _finish, file, self._waiting)

    def add(self, event: bytes) -> None:
        """Queues a serialized event; writes when the queue is long or old. Raises NotFoundError if no file is open, and
        the disk's error, without having queued it where the queue is full."""
        with self._lock:
            self._opened()
            full = len(self._waiting) >= self._max_queue or self._waiting_bytes + len(event) > _MAX_WAITING_BYTES
            if full:
                self._write()
            self._waiting.append(event)
            self._waiting_bytes += len(event)
            if full or time.monotonic() - self._flushed > self._flush_seconds:
                self._write()

    def flush(self) -> None:
        """Blocks until every event so far is in the file. Raises NotFoundError if no file is open."""
        with self._lock:
            self._opened()
            self._write()

    def close(self) -> None:
        """Flushes and closes the file. Raises NotFoundError if none is open."""
        with self._lock:
            file = self._opened()
            self._write()
            if self._finalizer is not None:
                self._finalizer.detach()
            self._file = None
            file.close()

    def _opened(self) -> RecordWriter:
        if self._file is None:
            raise errors.not_found(
                f"Summary writer '{self.name}' has no file open: run its init operation first, or again after close."
            )
        return self._file

    def _write(self) -> None:
        """What the disk does not take stays in the queue, or with the file: nothing is written twice."""
        file = self._opened()
        done = 0
        try:
            for event in self._waiting:
                file.write(event)
                done += 1
        finally:
            self._waiting_bytes -= sum(map(len, self._waiting[:done]))
            del self._waiting[:done]
        self._flushed = time.monotonic()
        file.flush()
        if is_full(file):
            finalizer = self._finalizer
            self._begin_file()
            if finalizer is not None:
                finalizer.detach()
            file.close()


def _new_path(logdir: str, suffix: str) -> str:
    if "/" in suffix or "\0" in suffix:
        raise invalid(f"filename_suffix '{suffix}' must be a part of a file's name")
    name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
    path, number = os.path.join(logdir, name + suffix), 0
    while graph_files().exists(path):
        # Two writers within a second.
        number += 1
        path = os.path.join(logdir, f"{name}.{number}{suffix}")
    return path


def _finish(file: RecordWriter, waiting: list[bytes]) -> None:
    """Writes what waits and closes: the writer is not held any more."""
    try:
        for event in waiting:
            file.write(event)
    finally:
        file.close()
