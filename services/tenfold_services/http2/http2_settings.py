"""Every size, count and time that a peer of the HTTP/2 server controls, in one frozen dataclass read once at the edge.

server.py makes it, tests make tighter ones. A connection that goes beyond a bound ends with GOAWAY, a call
with a status; where there are two numbers for it, a burst and a rate, time gives back what was used up.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, cast

from tenfold_core import env_settings, errors

from .frame_types import MAX_FRAME, MAX_WINDOW

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Of the variables that set a field of Http2Settings, `TENFOLD_HTTP2_STREAMS` and so on.
PREFIX = "TENFOLD_HTTP2_"
#: What serves gRPC on a task's port: this package, or gRPC's own library.
Transport = Literal["http2", "grpcio"]


def transport_from_environment(environment: Mapping[str, str] = os.environ) -> Transport:
    """TENFOLD_GRPC=http2|grpcio. Raises InvalidArgumentError."""
    value = environment.get("TENFOLD_GRPC", "") or "http2"
    if value not in ("http2", "grpcio"):
        raise errors.invalid_argument(f"TENFOLD_GRPC is {value!r}; it may be http2 or grpcio.")
    return cast("Transport", value)


@dataclass(frozen=True, slots=True)
class Http2Settings:
    """Sizes are bytes, times are seconds."""

    #: One DATA frame: large ones cost less. Other frames are bounded by what they hold.
    frame_bytes: int = MAX_FRAME
    #: What may be on its way to us, for a call and for a connection. Flow control need not hold back what is taken from
    #: the socket at once; memory is bounded below.
    stream_window: int = MAX_WINDOW
    connection_window: int = MAX_WINDOW
    #: Answers on all connections together that their peers do not read: a call whose answer comes on top of that is
    #: refused instead, but where nothing else waits on its connection. 0: what one tensor may take.
    unread_bytes: int = 0
    #: One message, of which gRPC sends four GiB at most. Protocol buffers take 2 GiB.
    message_bytes: int = (1 << 31) - 1
    #: Requests on all connections together, from their first byte to the end of the call. 0: what one tensor may take.
    buffered_bytes: int = 0
    #: Memory of received messages that are no longer used, kept for the next ones.
    keep_bytes: int = 64 << 20

    #: Calls of one connection, and of all connections, at the same time. One connection gets half of all at most, and
    #: fewer the more others have (peer_limits.py): a client waits for a stream, but a refused call has failed.
    streams: int = 8_192
    calls: int = 16_384
    #: A request's headers, as gRPC bounds them; and as they come in HEADERS and CONTINUATIONs.
    header_list_bytes: int = 16 << 10
    header_block_bytes: int = 32 << 10
    continuations: int = 16
    #: Frames that cost us work and bring the peer nothing: PING, SETTINGS, RST_STREAM, PRIORITY, empty DATA, unknown.
    control_burst: int = 20_000
    control_per_second: float = 2_000.0
    #: All frames of a connection that nobody knows yet, a refused call's headers among them.
    strangers_burst: int = 200
    strangers_per_second: float = 50.0
    #: The part of the loop's time that all such connections have together, and seconds of it that may be saved up.
    strangers_share: float = 0.2
    strangers_seconds: float = 0.005
    #: What waits for a peer that does not read, beside answers of calls.
    control_bytes: int = 1 << 20

    connections: int = 8_192
    #: From the connection to the end of the peer's first SETTINGS, and how many may be at that stage.
    handshake_seconds: float = 10.0
    handshakes: int = 1_024
    #: A connection ends when for so long less moved than so many bytes a second though something should: half a
    #: request, an answer unread.
    stall_seconds: float = 300.0
    least_bytes_per_second: float = 1_024.0
    #: The system asks for a sign of life on connections where nothing happens, every so often; three unanswered end it.
    keepalive_seconds: int = 60
    #: A connection that ends waits so long for the peer to read the reason.
    linger_seconds: float = 1.0

    @classmethod
    def from_environment(cls, calls: int, environment: Mapping[str, str] = os.environ) -> Http2Settings:
        """The settings of a task that works on so many `calls`, by variables of PREFIX. InvalidArgumentError."""
        return env_settings.read(cls(calls=calls, streams=max(1, calls // 2)), PREFIX, environment)


DEFAULT_HTTP2_SETTINGS = Http2Settings()
