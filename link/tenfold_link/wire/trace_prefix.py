"""Calls over links that belong to a trace: the method's number with a bit set, and a traceparent before the header.

Sent by aio/link.py and blocking/link.py while somebody listens, only to peers that said in the handshake that they know
it (the ability "trace", core/protocol.py). Every end removes it again (aio/serving.py), if it writes traces or not.
"""

from __future__ import annotations

from tenfold_core import errors, telemetry

#: The ability to take such calls.
ABILITY = "trace"
#: Set in the number of a method whose header begins with a traceparent.
TRACED = 1 << 30


def in_trace(method: int, header: bytes) -> tuple[int, bytes]:
    """Method and header as they are sent where a span is open; else as they are."""
    parent = telemetry.traceparent()
    return (method | TRACED, parent.encode("ascii") + header) if parent else (method, header)


def without_trace(header: bytes) -> tuple[str, bytes]:
    """The traceparent, and the header as it was. Raises InvalidArgumentError for one that is too short."""
    length = telemetry.TRACEPARENT_LENGTH
    if len(header) < length:
        raise errors.invalid_argument(f"A link's frame is malformed: a traceparent has {length} bytes.")
    return bytes(header[:length]).decode("latin-1"), header[length:]
