"""The further connections of a link: to whom there are some, how many, and how the two ends come to them.

    HELLO {token, streams: 4}      ──►                                     of the link's own connection
                                   ◄──  WELCOME {streams: 4, key}
    HELLO {joins: key}             ──►                                     of each further one, at the same port
                                   ◄──  WELCOME
    STREAMS 4                      ──►                                     all of them, or 0: none
                                   ◄──  STREAMS 4                          the link is made; then frames

Used by listener.py and the two dial.py, which do the I/O. What goes over them: streams.py.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import sockets
from tenfold_link.wire.frames import MAGIC, PREFIX, FrameKind, pack
from tenfold_link.wire.streams import CAN

if TYPE_CHECKING:
    from tenfold_link.link_settings import LinkSettings
    from tenfold_protos import link_pb2

#: The ability to have them.
ABILITY = "streams"


def wanted(sock: socket.socket, answer: link_pb2.OpenLinkResponse, settings: LinkSettings) -> int:
    """How many to ask for, once `sock` is connected: none to a peer that is near, that does not know them, or with TLS,
    which costs more than the way."""
    possible = CAN and settings.streams > 1 and ABILITY in answer.can
    if not possible or sock.family == socket.AF_UNIX or isinstance(sock, TlsSocket):
        return 0
    return settings.streams if sockets.round_trip(sock) >= settings.far_seconds else 0


def granted(message: link_pb2.LinkHello | link_pb2.LinkWelcome, settings: LinkSettings) -> int:
    """How many of those in the peer's `message` this end has, by its own settings."""
    return min(message.streams, settings.streams) if CAN and settings.streams > 1 else 0


def joined(count: int) -> bytes:
    """The frame that ends the handshake: so many have joined."""
    return pack(FrameKind.STREAMS, call=count)


class Joined:
    """Collects that frame, and not a byte of what follows it."""

    def __init__(self) -> None:
        self._data = b""

    def receive(self, sock: socket.socket) -> int | None:
        """Reads once; how many have joined, when the frame is complete. Raises ProtocolError for anything else,
        UnavailableError where the peer hung up, and what the socket raises."""
        data = sock.recv(PREFIX.size - len(self._data))
        if not data:
            raise errors.UnavailableError(None, None, "it hung up during the handshake")
        self._data += data
        if len(self._data) < PREFIX.size:
            return None
        magic, kind, zero, method, size, rows, count = PREFIX.unpack(self._data)
        if magic != MAGIC or kind != FrameKind.STREAMS or zero or method or size or rows:
            raise ProtocolError("no STREAMS frame")
        return int(count)


class Party:
    """At the accepting end: the connections that have joined a link whose handshake is not over."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._sockets: list[socket.socket] = []

    def join(self, sock: socket.socket) -> None:
        """From now on `sock` is the party's. Raises ProtocolError where there are enough."""
        if len(self._sockets) >= self.most:
            raise ProtocolError(f"more than {self.most} further connections")
        self._sockets.append(sock)

    def take(self, count: int) -> list[socket.socket]:
        """The connections, which are the caller's then; none for 0. Raises ProtocolError for any other count."""
        if not count:
            return []
        if count != len(self._sockets):
            raise ProtocolError(f"{count} further connections, where {len(self._sockets)} have joined")
        taken, self._sockets = self._sockets, []
        return taken

    def close(self) -> None:
        """Closes those that were not taken."""
        for sock in self._sockets:
            sock.close()
