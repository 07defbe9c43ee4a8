"""HTTP/1.1 for uvicorn: its httptools protocol, with bounds on what a sender may hold without sending.

Used by main.py. httptools parses in C, in a third of the time that h11 takes for a small request (GET /healthz in
benchmarks/control_service.py); but it collects header lines without a bound, and neither it nor uvicorn ends a
connection whose request never comes. Here a head has a size and a time, a body a pace, and connections a number.
"""

from __future__ import annotations

import json
import resource
from functools import partial
from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from tenfold_control_api.asgi import PROBLEM_JSON
from tenfold_control_api.entry import CONNECTION, Connection
from tenfold_control_api.problems import ApiError
from tenfold_core.access.places import Places

if TYPE_CHECKING:
    import asyncio
    import socket
    from collections.abc import Callable

    from tenfold_control_api.entry import Entry
    from tenfold_control_api.service_settings import Settings
    from tenfold_core.access.gate import Caller

#: Bytes of request line and headers: uvicorn's default for h11.
HEAD_BYTES = 64 << 10
#: Bytes of a body that are read, and dropped, after its request was refused.
DROPPED_BYTES = 512 << 20
#: Files that a service needs beside its connections: database, logs, masters.
_OTHER_FILES = 128


class BoundedHttp(HttpToolsProtocol):
    """One connection. Answers a request whose head is longer than HEAD_BYTES with 431, one that is sent too slowly with
    408, one connection too many with 503, and closes the connection. Strangers' go first where places are short."""

    #: Seconds for a head to come, from the connection or the head's first byte on.
    head_seconds: float
    #: Seconds after which a body must have brought `body_pace` bytes for each second, again and again.
    body_seconds: float
    body_pace: float
    #: Connections at a time, and who has their places.
    limit: int
    places: Places[BoundedHttp]
    #: Who is at the other end of a socket that was just accepted.
    ask: Callable[[socket.socket], Caller]

    #: Bytes since the request's head began; None where no head is being read.
    _head: int | None = None
    #: Ends the connection unless what is awaited comes in time; None while nothing is.
    _patience: asyncio.TimerHandle | None = None
    #: Bytes of the body since its pace was last looked at.
    _body = 0
    #: Bytes of it that came after its answer.
    _dropped = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """As HttpToolsProtocol; refuses one connection too many."""
        super().connection_made(transport)
        self._connection = Connection(transport, self.ask, partial(self.places.recognize, self))
        why = self.places.enter(self, self._connection.group, known=self._connection.is_own)
        if why is not None:
            text = f"{self.limit} connections are open, which is the limit. Connect again later."
            self._refuse(ApiError("too-many-connections", text, headers={"Retry-After": "1"}), answerable=True)
            return
        self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """As HttpToolsProtocol."""
        self._await_nothing()
        self.places.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """As HttpToolsProtocol; counts what came while a head was not complete."""
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_BYTES and not self.transport.is_closing():
                text = f"the line and headers of this request have more than {HEAD_BYTES} bytes."
                self._refuse(ApiError("head-too-large", text), answerable=self._between_answers())

    def send_400_response(self, msg: str) -> None:
        """As HttpToolsProtocol, with a problem: what came is no request."""
        self._refuse(ApiError("malformed-head", "what came is not HTTP/1.1."), answerable=self._between_answers())

    def on_message_begin(self) -> None:
        """As HttpToolsProtocol."""
        super().on_message_begin()
        self.scope[CONNECTION] = self._connection  # type: ignore[literal-required]
        self._head = 0
        self._await_head()

    def on_headers_complete(self) -> None:
        """As HttpToolsProtocol."""
        self._head = None
        super().on_headers_complete()
        self._body = self._dropped = 0
        self._patience = self._later(self.body_seconds, self._look_at_pace)

    def on_body(self, body: bytes) -> None:
        """As HttpToolsProtocol."""
        self._body += len(body)
        if self.cycle.response_complete:
            # Refused before it was here. A sender that is cut off would not get to see why, so the rest is dropped.
            self._dropped += len(body)
            if self._dropped > DROPPED_BYTES:
                self.transport.close()
        super().on_body(body)

    def on_message_complete(self) -> None:
        """As HttpToolsProtocol. Once it is answered, uvicorn's own time for the next request begins."""
        if self.cycle.response_complete:  # before its body was here, and that time was over with the body's next part
            self._await_head()
        else:
            self._await_nothing()
        super().on_message_complete()

    def _await_head(self) -> None:
        self._patience = self._later(self.head_seconds, self._head_is_late)

    def _await_nothing(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _later(self, seconds: float, then: object) -> asyncio.TimerHandle:
        self._await_nothing()
        return self.loop.call_later(seconds, then)  # type: ignore[arg-type]

    def _head_is_late(self) -> None:
        text = f"the head of a request did not come within {self.head_seconds:g} s."
        self._refuse(ApiError("request-too-slow", text), answerable=self._between_answers())

    def _look_at_pace(self) -> None:
        # while the service itself holds the sender back, the pace is not the sender's
        if not self.flow.read_paused and self._body < self.body_pace * self.body_seconds:
            text = (
                f"{self._body} bytes of the body came in {self.body_seconds:g} s; it must come with at least "
                f"{self.body_pace:g} bytes a second."
            )
            self._refuse(ApiError("request-too-slow", text), answerable=not self.cycle.response_started)
            return
        self._body = 0
        self._patience = self._later(self.body_seconds, self._look_at_pace)

    def _between_answers(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _refuse(self, error: ApiError, *, answerable: bool) -> None:
        """Answers, unless another answer has begun, and closes the connection."""
        self._await_nothing()
        if self.transport.is_closing():
            return
        if answerable:
            path = self.scope.get("path", "") if self.scope else ""
            body = json.dumps(error.body(path)).encode()
            head = {"content-type": PROBLEM_JSON, "content-length": str(len(body)), "connection": "close"}
            head["x-content-type-options"] = "nosniff"
            lines = [f"{name}: {value}\r\n".encode() for name, value in {**head, **error.headers}.items()]
            self.transport.write(b"".join([STATUS_LINE[error.http_status], *lines, b"\r\n", body]))
        self.transport.close()


def bounded_http(settings: Settings, entry: Entry) -> type[BoundedHttp]:
    """The protocol with the bounds of `settings`; `entry` says whose a connection is. Connections are bounded by the
    files that may be open, too."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    limit = settings.max_connections
    if files != resource.RLIM_INFINITY:
        limit = min(limit, max(1, files - _OTHER_FILES))

    class Bounded(BoundedHttp):
        head_seconds = settings.head_timeout
        body_seconds = settings.body_timeout
        body_pace = settings.body_pace

    Bounded.limit = limit
    Bounded.places = Places(limit, lambda stranger: stranger.transport.abort())
    Bounded.ask = staticmethod(entry.neighbour)
    return Bounded
