"""Readers: records, as keys and values, of files whose names come from a queue. Follows TF 1.15's ops/io_ops.py.

`read` takes a file name from the queue when it needs one, and waits for it. train/input.py has the producers of names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation


class ReaderReadOutput(NamedTuple):
    """The result of `read`."""

    key: Any
    value: Any


class ReaderUpToOutput(NamedTuple):
    """The result of `read_up_to`: two vectors of strings."""

    keys: Any
    values: Any


class ReaderBase:
    """Base of readers. The task of the reader keeps its position."""

    def __init__(self, reader_ref: Any, supports_serialize: bool = False) -> None:
        self._reader_ref, self._supports_serialize = reader_ref, supports_serialize

    @property
    def reader_ref(self) -> Any:
        """The handle of the reader."""
        return self._reader_ref

    @property
    def supports_serialize(self) -> bool:
        return self._supports_serialize

    def read(self, queue: Any, name: str | None = None) -> ReaderReadOutput:
        """The next record. The step waits for a file's name; OutOfRangeError once the queue is closed and empty."""
        key, value = self._apply("Read", name, queue_handle=_handle(queue))
        return ReaderReadOutput(key, value)

    def read_up_to(self, queue: Any, num_records: Any, name: str | None = None) -> ReaderUpToOutput:
        """Up to `num_records` records, of one file."""
        keys, values = self._apply("ReadUpTo", name, queue_handle=_handle(queue), num_records=num_records)
        return ReaderUpToOutput(keys, values)

    def num_records_produced(self, name: str | None = None) -> Any:
        """How many records were read, an int64 scalar."""
        return self._apply("NumRecordsProduced", name)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """How many files were read to their end, an int64 scalar."""
        return self._apply("NumWorkUnitsCompleted", name)

    def serialize_state(self, name: str | None = None) -> Any:
        """The reader's position as a string; not supported by every reader."""
        return self._apply("SerializeState", name)

    def restore_state(self, state: Any, name: str | None = None) -> Operation:
        """An op that restores a position from `serialize_state`."""
        operation: Operation = self._apply("RestoreState", name, state=state)
        return operation

    def reset(self, name: str | None = None) -> Operation:
        """An op that starts from the beginning."""
        operation: Operation = self._apply("Reset", name)
        return operation

    def _apply(self, what: str, name: str | None, **arguments: Any) -> Any:
        return apply_op(f"Reader{what}V2", reader_handle=self._reader_ref, name=name, **arguments)


class WholeFileReader(ReaderBase):
    """The file's name and its whole content."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("WholeFileReaderV2", name=name), supports_serialize=True)


class TextLineReader(ReaderBase):
    """ "FILE:LINE" and the line without its end."""

    def __init__(self, skip_header_lines: int | None = None, name: str | None = None) -> None:
        super().__init__(apply_op("TextLineReaderV2", skip_header_lines=skip_header_lines or 0, name=name))


class FixedLengthRecordReader(ReaderBase):
    """ "FILE:RECORD" and `record_bytes` bytes; header and footer are skipped, records may overlap by `hop_bytes`."""

    def __init__(
        self,
        record_bytes: int,
        header_bytes: int | None = None,
        footer_bytes: int | None = None,
        hop_bytes: int | None = None,
        name: str | None = None,
        encoding: str | None = None,
    ) -> None:
        ref = apply_op(
            "FixedLengthRecordReaderV2",
            record_bytes=record_bytes,
            header_bytes=header_bytes or 0,
            footer_bytes=footer_bytes or 0,
            hop_bytes=hop_bytes or 0,
            encoding=encoding or "",
            name=name,
        )
        super().__init__(ref)


class TFRecordReader(ReaderBase):
    """ "FILE:OFFSET" and the record. `options` may have a `compression_type`: "GZIP" or "ZLIB"."""

    def __init__(self, name: str | None = None, options: Any = None) -> None:
        compression = getattr(options, "compression_type", options) or ""
        super().__init__(apply_op("TFRecordReaderV2", compression_type=str(compression), name=name))


class IdentityReader(ReaderBase):
    """The file's name as both key and value."""

    def __init__(self, name: str | None = None) -> None:
        super().__init__(apply_op("IdentityReaderV2", name=name), supports_serialize=True)


def _handle(queue: Any) -> Any:
    return getattr(queue, "queue_ref", queue)
