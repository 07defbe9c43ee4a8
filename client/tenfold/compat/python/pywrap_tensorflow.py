"""`tensorflow.python.pywrap_tensorflow`: of TensorFlow's C interface the part that programs call."""

from __future__ import annotations

import socket
import time
from typing import Any

from tenfold.summary.file_writer import FILE_VERSION
from tenfold.train.checkpoint_utils import CheckpointReader, NewCheckpointReader
from tenfold.versions import VERSION
from tenfold_core.records import RecordReader, RecordWriter
from tenfold_protos.event_pb2 import Event
from tenfold_protos.graph_pb2 import GraphDef

__all__ = [
    "CheckpointReader",
    "EqualGraphDefWrapper",
    "EventsWriter",
    "NewCheckpointReader",
    "PyRecordReader_New",
    "__version__",
]

__version__ = VERSION


def EqualGraphDefWrapper(actual: bytes, expected: bytes) -> bytes:
    """What differs between two GraphDefs, each serialized; empty if they have the same nodes, in whatever order."""
    from tenfold.test import assert_equal_graph_def

    try:
        assert_equal_graph_def(GraphDef.FromString(actual), GraphDef.FromString(expected))
    except AssertionError as difference:
        return str(difference).encode()
    return b""


class _Records:
    """Reads a TFRecord file record by record, as TensorFlow's PyRecordReader."""

    def __init__(self, filename: str, compression: str) -> None:
        self._reader = RecordReader(filename, compression)
        self._records = iter(self._reader)
        self._record: bytes | None = None

    def GetNext(self) -> bool:
        """Reads on; False at the end."""
        self._record = next(self._records, None)
        return self._record is not None

    def record(self) -> bytes | None:
        return self._record

    def Close(self) -> None:
        self._reader.close()


class EventsWriter:
    """Writes events into `<prefix>.out.tfevents.<time>.<host>`, on the caller's thread. As TensorFlow's.

    Methods that give True raise OSError where TensorFlow's give False.
    """

    def __init__(self, file_prefix: Any) -> None:
        from tenfold.compat import as_text

        self._prefix, self._suffix = as_text(file_prefix), ""
        self._file: RecordWriter | None = None
        self._name = ""

    def InitWithSuffix(self, suffix: Any) -> bool:
        """Adds an ending to the file's name, and begins the file."""
        from tenfold.compat import as_text

        self.Close()
        self._suffix, self._name = as_text(suffix), ""
        self._open()
        return True

    def _open(self) -> RecordWriter:
        if self._file is None:
            now = time.time()
            self._name = f"{self._prefix}.out.tfevents.{int(now):010d}.{socket.gethostname()}{self._suffix}"
            self._file = RecordWriter(self._name)
            self._file.write(Event(wall_time=now, file_version=FILE_VERSION).SerializeToString())
        return self._file

    def FileName(self) -> bytes:
        """The file's path; begins it if nothing was written yet."""
        self._open()
        return self._name.encode()

    def WriteEvent(self, event: Event) -> None:
        """Adds an event; `Flush` brings it to the disk."""
        self._open().write(event.SerializeToString())

    def Flush(self) -> bool:
        """Blocks until all events are in the file."""
        self._open().flush()
        return True

    def Close(self) -> bool:
        """Flushes and closes; a later event begins a new file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        return True


def PyRecordReader_New(filename: Any, offset: int, compression_type: Any, status: Any = None) -> _Records:
    """A reader of TFRecords. Raises ValueError for an offset, which would begin within a record."""
    from tenfold.compat import as_text

    if offset:
        raise ValueError(f"a reader begins at the first record, not at byte {offset}")
    return _Records(as_text(filename), as_text(compression_type))
