"""Event files, read by tf.train.summary_iterator: pieces are records, framed here, or with an odd byte 0 the file."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from fuzz import pieces, scratch
from fuzz.harness import refusals
from fuzz.messages import mutated as message_mutated
from fuzz.messages import parsed
from tenfold.summary.summary_iterator import summary_iterator
from tenfold_core import tensor_util
from tenfold_core.memory_limits import limit_tensor
from tenfold_core.records import frame
from tenfold_protos.event_pb2 import Event

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator


def one_input(data: bytes) -> None:
    if not data:
        return
    limit_tensor(16 << 20)
    parts = pieces.split(data[1:])
    content = b"".join(parts) if data[0] & 1 else b"".join(frame(part) for part in parts)
    path = scratch.put("events", content)
    with refusals():
        for event in summary_iterator(path):
            for value in event.summary.value:
                if value.HasField("tensor"):
                    with refusals():
                        tensor_util.make_ndarray(value.tensor)


def mutated(data: bytes, chance: random.Random) -> bytes:
    return (data[:1] or b"\0") + pieces.join(pieces.mutated(pieces.split(data[1:]), chance, _changed))


def _changed(record: bytes, chance: random.Random) -> bytes:
    event = parsed(Event, record)
    message_mutated(event, chance)
    return event.SerializePartialToString()


def seeds() -> Iterator[bytes]:
    events = [Event(wall_time=1.5, file_version="brain.Event:2"), Event(step=3)]
    events[1].summary.value.add(tag="loss", simple_value=0.5)
    events[1].summary.value.add(tag="h").histo.bucket.extend([1.0, 2.0])
    events[1].summary.value.add(tag="t").tensor.CopyFrom(tensor_util.tensor_to_proto(np.ones((2, 2), np.float32)))
    records = [event.SerializeToString() for event in events]
    yield b"\0" + pieces.join(records)
    yield b"\1" + pieces.join([frame(record) for record in records])
