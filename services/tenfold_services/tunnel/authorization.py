"""Adds a token to the requests of a client that can show none: TensorFlow's, on its way through a tunnel.

HTTP/2 needs no proxy for that. A block of headers may be continued by one more frame, and a literal field that is never
indexed leaves the compression's table as it was at both ends; so the client's bytes stay as they are, but for the flag
that its block is complete. Pure: bytes in, bytes out. Sources: RFC 9113 section 6.10, RFC 7541 section 6.2.3.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hpack.hpack import encode_integer

from tenfold_services.http2 import frame_types as frames

if TYPE_CHECKING:
    from collections.abc import Callable

#: "authorization" of the static table (23), as a field that is never indexed: a prefix of four bits, and the rest.
_AUTHORIZATION = bytes((0x1F, 23 - 15))


class AuthorizedRequests:
    """What one client sends, in order. `token()` is asked for each request: it may change under way."""

    def __init__(self, token: Callable[[], str | None]) -> None:
        self._token = token
        #: Of the greeting, or of a frame's header, as far as it has come.
        self._head = b""
        self._greeted = False
        #: Bytes of the frame's payload that are still to come.
        self._left = 0
        #: What follows the frame's payload: the rest of a block of headers.
        self._rest = b""

    def take(self, data: memoryview) -> bytes:
        """What to send on in place of `data`. Raises ConnectionFault for what is no HTTP/2."""
        out: list[bytes | memoryview] = []
        while len(data):
            if self._left:
                part, data = data[: self._left], data[self._left :]
                self._left -= len(part)
                out.append(part)
            else:
                wanted = (frames.HEADER_BYTES if self._greeted else len(frames.PREFACE)) - len(self._head)
                part, data = data[:wanted], data[wanted:]
                self._head += part
                if not self._greeted and not frames.PREFACE.startswith(self._head):
                    raise frames.ConnectionFault(frames.Code.PROTOCOL_ERROR, "what comes is no HTTP/2")
                if len(part) < wanted:
                    break
                out.append(self._begun())
            if not self._left and self._rest:
                out.append(self._rest)
                self._rest = b""
        return b"".join(out)

    def _begun(self) -> bytes:
        """The greeting, or a frame's header as it is sent on."""
        head, self._head = self._head, b""
        if not self._greeted:
            self._greeted = True
            return head
        upper, lower, kind, flags, stream = frames.HEADER.unpack(head)
        self._left = length = upper << 8 | lower
        token = self._token() if kind in (frames.HEADERS, frames.CONTINUATION) and flags & frames.END_HEADERS else None
        if token is None:
            return head
        value = f"Bearer {token}".encode()
        field = _AUTHORIZATION + encode_integer(len(value), 7) + value
        self._rest = frames.header(len(field), frames.CONTINUATION, frames.END_HEADERS, stream) + field
        return frames.header(length, kind, flags & ~frames.END_HEADERS, stream)
