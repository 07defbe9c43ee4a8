"""`tf.train.summary_iterator`: the events of a file that file_writer.py wrote. Follows TF 1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING

from google.protobuf.message import DecodeError

from tenfold_core import errors
from tenfold_core.records import RecordReader
from tenfold_protos import event_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator


def summary_iterator(path: str) -> Iterator[event_pb2.Event]:
    """The events of the file, in order. Raises NotFoundError, and DataLossError where the file is damaged."""
    with RecordReader(path) as records:
        for record in records:
            try:
                event = event_pb2.Event.FromString(record)
            except DecodeError:
                text = f"{path}: the record that ends at {records.offset} is no event"
                raise errors.DataLossError(None, None, text) from None
            yield event
