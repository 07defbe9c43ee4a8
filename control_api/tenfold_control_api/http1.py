"""HTTP/1.1 for uvicorn: its httptools protocol, with a bound on a request's head.

Used by main.py. httptools parses in C, in a third of the time that h11 takes for a small request (GET /healthz in
benchmarks/control_service.py); but h11 has such a bound, and httptools collects header lines without one.
"""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

#: Bytes of request line and headers: uvicorn's default for h11.
HEAD_BYTES = 64 << 10


class BoundedHttp(HttpToolsProtocol):
    """One connection. Answers a request whose head is longer than HEAD_BYTES with 400, and closes the connection."""

    #: Bytes since the request's head began; None where no head is being read.
    _head: int | None = None

    def data_received(self, data: bytes) -> None:
        """As HttpToolsProtocol; counts what came while a head was not complete."""
        super().data_received(data)
        if self._head is not None:
            self._head += len(data)
            if self._head > HEAD_BYTES and not self.transport.is_closing():
                self.send_400_response("The head of this request is too large.")

    def on_message_begin(self) -> None:
        """As HttpToolsProtocol."""
        super().on_message_begin()
        self._head = 0

    def on_headers_complete(self) -> None:
        """As HttpToolsProtocol."""
        self._head = None
        super().on_headers_complete()
