"""`tf.summary.FileWriter`: Event messages into an event file, by a thread of its own.

An event file is a file of records (tenfold_core/records.py) whose first event names its version. Follows TF 1.15's
summary/writer/*.py; TensorBoard is the reader.
"""

from __future__ import annotations

import os
import queue
import socket
import threading
import time
import warnings
from typing import TYPE_CHECKING, Any

from tenfold import logging
from tenfold.session import observing
from tenfold.summary.distributions import distribution_of
from tenfold_core.file_names import file_path
from tenfold_core.files import EVERYWHERE
from tenfold_core.records import RecordWriter, is_full
from tenfold_protos import event_pb2, graph_pb2, meta_graph_pb2, summary_pb2

if TYPE_CHECKING:
    from types import TracebackType

    from tenfold.summary.session_writer import SessionEventWriter
    from tenfold_protos.config_pb2 import RunMetadata

#: The version in the first event of a file.
FILE_VERSION = "brain.Event:2"
#: Seconds that `close` and `flush` wait for the disk.
_DISK_SECS = 120.0


class EventFileWriter:
    """Writes events in the order of `add_event`, which blocks only while `max_queue` of them wait."""

    def __init__(
        self, logdir: str, max_queue: int = 10, flush_secs: float = 120, filename_suffix: str | None = None
    ) -> None:
        self._logdir = os.fspath(logdir)
        self._max_queue, self._flush_secs, self._suffix = max(1, max_queue), flush_secs, filename_suffix or ""
        self._open()

    def get_logdir(self) -> str:
        return self._logdir

    def _open(self) -> None:
        folder = file_path(self._logdir)
        EVERYWHERE.make_folders(folder or os.curdir)
        self._file = self._begin_file(folder)
        if observing.observer is not None:
            observing.observer.note_logdir(self._logdir)
        #: Records to write; an Event is set once all before it are on the disk; None ends the thread.
        self._queue: queue.Queue[bytes | threading.Event | None] = queue.Queue(self._max_queue)
        self._error: Exception | None = None
        self._closed = False
        self._thread = threading.Thread(target=self._write, name="event-file-writer", daemon=True)
        self._thread.start()

    def _begin_file(self, folder: str) -> RecordWriter:
        name = f"events.out.tfevents.{int(time.time()):010d}.{socket.gethostname()}"
        path = os.path.join(folder, name + self._suffix)
        number = 0
        while EVERYWHERE.exists(path):
            # two writers within a second
            number += 1
            path = os.path.join(folder, f"{name}.{number}{self._suffix}")
        file = RecordWriter(path)
        version = event_pb2.Event(wall_time=time.time(), file_version=FILE_VERSION)
        file.write(version.SerializeToString())
        file.flush()
        return file

    def add_event(self, event: event_pb2.Event) -> None:
        """Queues an event; does nothing if the writer is closed. Raises what writing an earlier one raised."""
        if not self._closed:
            self._raise_error()
            self._queue.put(event.SerializeToString())

    def flush(self) -> None:
        """Blocks until every event so far is in the file. Raises what writing raised."""
        if self._closed:
            return
        written = threading.Event()
        self._queue.put(written)
        written.wait(_DISK_SECS)
        self._raise_error()

    def close(self) -> None:
        """Flushes and closes. Twice is no error."""
        if self._closed:
            return
        self._closed = True
        self._queue.put(None)
        self._thread.join(_DISK_SECS)
        self._file.close()
        self._raise_error()

    def reopen(self) -> None:
        """Opens a new file after `close`; does nothing before."""
        if self._closed:
            self._open()

    def _raise_error(self) -> None:
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _write(self) -> None:
        """Body of the thread. After an error the queue is still emptied, so that no producer waits for ever."""
        flushed = time.monotonic()
        while (item := self._queue.get()) is not None:
            try:
                if isinstance(item, bytes):
                    self._file.write(item)
                if isinstance(item, threading.Event) or time.monotonic() > flushed + self._flush_secs:
                    self._file.flush()
                    flushed = time.monotonic()
                    if is_full(self._file):
                        full, self._file = self._file, self._begin_file(file_path(self._logdir))
                        full.close()
            except Exception as error:
                logging.error("Event file in %s: %s", self._logdir, error)
                self._error = error
            if isinstance(item, threading.Event):
                item.set()


class FileWriter:
    """An event file in `logdir`, made at once. Also a context manager that closes it.

    `graph` is added if given. Events are written by a thread: at most `max_queue` of them wait, and they are flushed
    every `flush_secs` seconds. With a `session`, events are written by steps of it, into a file of its task.
    """

    def __init__(
        self,
        logdir: str,
        graph: Any = None,
        max_queue: int = 10,
        flush_secs: float = 120,
        graph_def: Any = None,
        filename_suffix: str | None = None,
        session: Any = None,
    ) -> None:
        self.event_writer: EventFileWriter | SessionEventWriter
        if session is None:
            self.event_writer = EventFileWriter(logdir, max_queue, flush_secs, filename_suffix)
        else:
            from tenfold.summary.session_writer import SessionEventWriter

            self.event_writer = SessionEventWriter(session, logdir, max_queue, flush_secs, filename_suffix)
        self._closed = False
        self._run_tags: set[str] = set()
        self._summary_tags: set[str] = set()
        if graph is not None or graph_def is not None:
            from tenfold.train.meta_graph import create_meta_graph_def

            self.add_graph(graph, graph_def=graph_def)
            definition = graph_def if graph is None else graph
            if hasattr(definition, "as_graph_def"):
                definition = definition.as_graph_def(add_shapes=True)
            # as in TensorFlow, `graph` may be a GraphDef; the collections are the default graph's in either case
            self.add_meta_graph(create_meta_graph_def(graph_def=definition))

    def __enter__(self) -> FileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def get_logdir(self) -> str:
        return self.event_writer.get_logdir()

    def add_summary(self, summary: Any, global_step: Any = None) -> None:
        """Adds a Summary, given as a message or serialized, as a summary op's value is."""
        message = summary_pb2.Summary()
        if isinstance(summary, bytes):
            message.ParseFromString(summary)
        else:
            message.CopyFrom(summary)
        for value in message.value:
            # the metadata of a tag is written once per file
            if value.tag in self._summary_tags:
                value.ClearField("metadata")
            elif value.HasField("metadata"):
                self._summary_tags.add(value.tag)
        if observing.observer is not None:
            told: dict[str | None, list[Any]] = {"simple_value": [], "histo": []}
            for value in message.value:
                told.setdefault(value.WhichOneof("value"), []).append(value)
            step = None if global_step is None else int(global_step)
            observing.observer.note_scalars(step, {value.tag: value.simple_value for value in told["simple_value"]})
            found = {value.tag: distribution_of(value.histo) for value in told["histo"][: observing.DISTRIBUTIONS]}
            observing.observer.note_distributions(step, {tag: each for tag, each in found.items() if each is not None})
        self._add(event_pb2.Event(summary=message), global_step)

    def add_session_log(self, session_log: event_pb2.SessionLog, global_step: Any = None) -> None:
        self._add(event_pb2.Event(session_log=session_log), global_step)

    def add_graph(self, graph: Any, global_step: Any = None, graph_def: Any = None) -> None:
        """Adds a Graph or a GraphDef. Raises ValueError for both, TypeError for neither."""
        if graph is not None and graph_def is not None:
            raise ValueError("Please pass only graph, or graph_def (deprecated), but not both.")
        given = graph_def if graph is None else graph
        if hasattr(given, "as_graph_def"):
            from tenfold.summary.plugin_asset import write_plugin_assets

            write_plugin_assets(self.get_logdir(), given)
            given = given.as_graph_def(add_shapes=True)
        if not isinstance(given, graph_pb2.GraphDef):
            raise TypeError("The passed graph must be an instance of `Graph` or the deprecated `GraphDef`")
        self._add(event_pb2.Event(graph_def=given.SerializeToString()), global_step)

    def add_meta_graph(self, meta_graph_def: meta_graph_pb2.MetaGraphDef, global_step: Any = None) -> None:
        if not isinstance(meta_graph_def, meta_graph_pb2.MetaGraphDef):
            raise TypeError(f"meta_graph_def must be type MetaGraphDef, saw type: {type(meta_graph_def)}")
        self._add(event_pb2.Event(meta_graph_def=meta_graph_def.SerializeToString()), global_step)

    def add_run_metadata(self, run_metadata: RunMetadata, tag: str, global_step: Any = None) -> None:
        """Adds the metadata of a traced step. Raises ValueError if the tag was used before."""
        if tag in self._run_tags:
            raise ValueError("The provided tag was already used for this event type")
        self._run_tags.add(tag)
        tagged = event_pb2.TaggedRunMetadata(tag=tag, run_metadata=run_metadata.SerializeToString())
        self._add(event_pb2.Event(tagged_run_metadata=tagged), global_step)

    def add_event(self, event: event_pb2.Event) -> None:
        """Adds any event as it is."""
        self._warn_if_closed()
        self.event_writer.add_event(event)

    def flush(self) -> None:
        """Blocks until every event so far is in the file."""
        self._warn_if_closed()
        self.event_writer.flush()

    def close(self) -> None:
        """Writes what is left and closes the file. Twice is no error."""
        self.event_writer.close()
        self._closed = True

    def reopen(self) -> None:
        """Opens a new file of the same folder after `close`."""
        self.event_writer.reopen()
        self._closed = False

    def _add(self, event: event_pb2.Event, global_step: Any) -> None:
        event.wall_time = time.time()
        if global_step is not None:
            event.step = int(global_step)
        self.add_event(event)

    def _warn_if_closed(self) -> None:
        if self._closed:
            warnings.warn(
                "Attempting to use a closed FileWriter. The operation will be a noop unless the FileWriter is "
                "explicitly reopened.",
                stacklevel=3,
            )


class FileWriterCache:
    """One FileWriter per folder, shared by the hooks of a process."""

    _lock = threading.Lock()
    _writers: dict[str, FileWriter] = {}  # noqa: RUF012 (shared on purpose; guarded by _lock)

    @staticmethod
    def get(logdir: str) -> FileWriter:
        """The folder's writer, made at the first call."""
        with FileWriterCache._lock:
            writer = FileWriterCache._writers.get(logdir)
            if writer is None:
                from tenfold.graph import get_default_graph

                writer = FileWriterCache._writers[logdir] = FileWriter(logdir, graph=get_default_graph())
            return writer

    @staticmethod
    def clear() -> None:
        """Closes and forgets all writers."""
        with FileWriterCache._lock:
            for writer in FileWriterCache._writers.values():
                writer.close()
            FileWriterCache._writers.clear()
