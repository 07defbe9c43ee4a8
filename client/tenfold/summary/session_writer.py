"""The event writer of `FileWriter(session=…)`: events go into a file through ops of the session's graph.

The file is one of the task that runs those ops, and is shared with every writer of the same folder in the session.
file_writer.py's EventFileWriter is the one without a session. Follows TF 1.15's summary/writer/event_file_writer_v2.py.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from tenfold.graph import name_scope
from tenfold.ops import array
from tenfold.summary.task_writers import create_file_writer
from tenfold.summary.writer_ops import import_event
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold_protos import event_pb2


class SessionEventWriter:
    """Writes events by steps of `session`, each of which blocks until the event is queued there."""

    def __init__(
        self,
        session: Any,
        logdir: str,
        max_queue: int = 10,
        flush_secs: float = 120,
        filename_suffix: str | None = None,
    ) -> None:
        self._session, self._logdir, self._closed = session, os.fspath(logdir), False
        with session.graph.as_default(), name_scope("filewriter"):
            writer = create_file_writer(self._logdir, max_queue, int(flush_secs * 1000), filename_suffix or "")
            with writer.as_default():
                self._event = array.placeholder_with_default(array.constant("unused", dtypes.string), shape=[])
                self._add_op = import_event(self._event)
            self._init_op, self._flush_op, self._close_op = writer.init(), writer.flush(), writer.close()
        session.run(self._init_op)

    def get_logdir(self) -> str:
        return self._logdir

    def add_event(self, event: event_pb2.Event) -> None:
        """Adds an event; does nothing if the writer is closed."""
        if not self._closed:
            self._session.run(self._add_op, feed_dict={self._event: event.SerializeToString()})

    def flush(self) -> None:
        """Blocks until every event so far is in the file."""
        if not self._closed:
            self._session.run(self._flush_op)

    def close(self) -> None:
        """Flushes and closes the file, for every writer that shares it. Twice is no error."""
        if not self._closed:
            self._session.run(self._close_op)
            self._closed = True

    def reopen(self) -> None:
        """Opens a new file after `close`; does nothing before."""
        if self._closed:
            self._closed = False
            self._session.run(self._init_op)
