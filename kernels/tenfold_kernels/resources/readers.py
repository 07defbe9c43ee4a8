"""Readers: file names come out of a queue, records come out of the files. Reads stand in line, first come first served.

A synchronous machine: `read` gives its records at once, or a Waiting while the queue has no name to give. One reader
serves one read at a time; whichever thread brings what was missing carries the line on. A record is handed over or
kept for the next read, never lost to a step that has ended. Used by cpu/io_readers.py. Follows reader_base.cc.
"""

from __future__ import annotations

import functools
import threading
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import invalid, objects, scalar_object
from tenfold_kernels.resources.waiting import Lack, Waiting
from tenfold_protos import reader_base_pb2

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tenfold_kernels.resources.queues import Queue

#: The key and the value of one record.
Record = tuple[bytes, bytes]


class Source(NamedTuple):
    """What a kind of reader does with a work unit (a file name, as a rule)."""

    kind: str
    #: Opens the work unit and gives its records; closed when done with. Raises OpError.
    records: Callable[[bytes], Iterator[Record]]
    #: A work unit is one record, and so is finished with it; the state between two is just counters.
    is_single: bool = False


class _Read:
    """A read in line. Guarded by the reader's lock."""

    __slots__ = ("error", "is_over", "queue", "records", "waiting", "wanted")

    def __init__(self, queue: Queue, wanted: int | None) -> None:
        self.queue = queue
        #: Records wanted at most, or None for one as scalars.
        self.wanted = wanted
        self.records: list[Record] = []
        self.is_over = False
        self.error: errors.OpError | None = None
        self.waiting: Waiting | None = None

    def outputs(self) -> tuple[Any, Any]:
        if self.wanted is None:
            return scalar_object(self.records[0][0]), scalar_object(self.records[0][1])
        return objects([key for key, _ in self.records]), objects([value for _, value in self.records])


class Reader:
    """One reader. Thread-safe; blocks on the disk, never on the queue."""

    def __init__(self, name: str, source: Source) -> None:
        self.name = f"{source.kind} '{name}'"
        self._source = source
        self._lock = threading.Lock()
        self._line: deque[_Read] = deque()
        #: A thread is serving the line; another one that comes leaves it the news.
        self._is_serving = False
        self._has_news = False
        #: The dequeue under way, and what it gave.
        self._fetching: Waiting | None = None
        self._fetched: tuple[Any, errors.OpError | None] | None = None
        self._work = b""
        self._records: Iterator[Record] | None = None
        #: Read for a step that ended before it could have them.
        self._unread: deque[Record] = deque()
        self._started = self._finished = self._produced = 0

    @property
    def num_records_produced(self) -> int:
        with self._lock:
            return self._produced

    @property
    def num_work_units_completed(self) -> int:
        with self._lock:
            return self._finished

    def read(self, queue: Queue, wanted: int | None = None) -> Any:
        """A record, as (key, value); or up to `wanted` of one work unit, as two vectors; else a Waiting.

        Raises OutOfRangeError once the queue is closed and empty, and what opening or reading the file raises.
        """
        read = _Read(queue, wanted)
        if wanted == 0:
            return read.outputs()
        with self._lock:
            self._line.append(read)
        self._serve()
        with self._lock:
            if not read.is_over:
                read.waiting = Waiting(functools.partial(self._leave, read))
                read.waiting.lack = self._lack
                return read.waiting
        if read.error is not None:
            raise read.error
        return read.outputs()

    def _lack(self) -> Lack | None:
        """A file's name, as long as there is none in the queue; None while a file is read."""
        fetching = self._fetching
        return None if fetching is None or fetching.lack is None else fetching.lack()

    def reset(self) -> None:
        """Back to the start: counters at zero, the work unit given up."""
        with self._lock:
            self._reset()

    def serialize_state(self) -> bytes:
        """The counters. Raises UnimplementedError for a reader that stands within a file."""
        if not self._source.is_single:
            raise errors.unimplemented("Reader SerializeState")
        with self._lock:
            return reader_base_pb2.ReaderBaseState(
                work_started=self._started,
                work_finished=self._finished,
                num_records_produced=self._produced,
                current_work=self._work,
            ).SerializeToString()

    def restore_state(self, state: bytes) -> None:
        """Goes on from what `serialize_state` gave. Raises InvalidArgumentError, and resets, for anything else."""
        from google.protobuf.message import DecodeError

        if not self._source.is_single:
            self.reset()
            raise errors.unimplemented("Reader RestoreState")
        proto = reader_base_pb2.ReaderBaseState()
        why = ""
        try:
            proto.ParseFromString(state)
            numbers = proto.work_started, proto.work_finished, proto.num_records_produced
            if min(numbers) < 0:
                why = f"Unexpected negative value when restoring in {self.name}: {proto}"
            elif proto.work_started > proto.work_finished:
                why = f"Inconsistent work started vs. finished when restoring in {self.name}: {proto}"
        except DecodeError:
            why = f"Could not parse state for {self.name}: {state!r}"
        with self._lock:
            self._reset()
            if why:
                raise invalid(why)
            self._started, self._finished, self._produced = numbers
            self._work = proto.current_work

    def _reset(self) -> None:
        self._started = self._finished = self._produced = 0
        self._work = b""
        self._records = None
        self._unread.clear()

    def _leave(self, read: _Read) -> None:
        """The step of a waiting read has ended."""
        with self._lock:
            if read not in self._line:
                return
            was_first = self._line[0] is read
            self._line.remove(read)
            self._unread.extend(read.records)
            fetching = self._fetching
            if was_first and fetching is not None and fetching.claim():
                # The dequeue had nothing yet, and now never will: it leaves the queue's line too.
                self._fetching = None
            else:
                fetching = None
        if fetching is not None:
            fetching.on_cancel()
        self._serve()

    def _arrived(self, outputs: Any, error: errors.OpError | None) -> None:
        with self._lock:
            self._fetching = None
            self._fetched = outputs, error
        self._serve()

    def _serve(self) -> None:
        """Lets the first in line go on as far as it can, and then the next."""
        with self._lock:
            self._has_news = True
            if self._is_serving:
                return
            self._is_serving = True
        while True:
            with self._lock:
                if not self._has_news:
                    self._is_serving = False
                    return
                self._has_news = False
                read = self._line[0] if self._line else None
            if read is not None:
                self._serve_one(read)

    def _serve_one(self, read: _Read) -> None:
        try:
            is_done = self._advance(read)
        except errors.OpError as error:
            self._end(read, error)
            return
        if is_done:
            self._end(read, None)

    def _end(self, read: _Read, error: errors.OpError | None) -> None:
        with self._lock:
            if read not in self._line:
                self._unread.extend(read.records)
                return
            waiting = read.waiting
            if waiting is not None and not waiting.claim():
                return  # its _leave comes, and keeps the records
            self._line.remove(read)
            read.is_over, read.error = True, error
            if error is None:
                self._produced += len(read.records)
            self._has_news = True
        if waiting is not None:
            waiting.deliver(None if error is not None else read.outputs(), error)

    def _advance(self, read: _Read) -> bool:
        """Reads for the first in line; only the serving thread comes here. False if the queue has to give first."""
        wanted = read.wanted or 1
        while len(read.records) < wanted:
            with self._lock:
                if self._unread:
                    read.records.append(self._unread.popleft())
                    continue
            if self._records is None and not self._next_work(read.queue):
                return False
            records = self._records
            assert records is not None
            try:
                record = next(records, None)
            except errors.OpError:
                # TensorFlow stays in the work unit too; but an iterator that failed has no more to give.
                self._finish_work()
                raise
            if record is not None:
                read.records.append(record)
            if record is None or self._source.is_single:
                self._finish_work()
                if read.records:
                    break
        return True

    def _finish_work(self) -> None:
        with self._lock:
            self._records = None
            self._finished = self._started

    def _next_work(self, queue: Queue) -> bool:
        """Takes the next work unit from the queue and opens it; False while there is none."""
        with self._lock:
            if self._fetching is not None:
                return False
            fetched, self._fetched = self._fetched, None
        if fetched is None:
            outputs = queue.dequeue()
            if isinstance(outputs, Waiting):
                with self._lock:
                    self._fetching = outputs
                outputs.listen(self._arrived)
                return False
            fetched = outputs, None
        outputs, error = fetched
        if error is not None:
            raise error
        work = _work_of(outputs)
        records = self._source.records(work)
        with self._lock:
            self._work, self._records = work, records
            self._started += 1
        return True


def _work_of(outputs: Any) -> bytes:
    if isinstance(outputs, tuple):
        raise invalid("Expected single component queue")
    value = np.asarray(outputs)
    if value.dtype != object:
        raise invalid("Expected queue with single string component")
    if value.size != 1:
        raise invalid("Expected to dequeue a one-element string tensor")
    return bytes(value.item())
