"""The TCP sockets of a simulated world: what `socket.socket` is there.

So links run over them as they are, with their handshake and their frames. A socket takes what fits into its window and
now and then less; what has been sent arrives by network.py. Nothing here blocks.
"""

from __future__ import annotations

import errno
import socket as constants
import struct
from collections import deque
from typing import TYPE_CHECKING, Any

from simulated.inside import inside

if TYPE_CHECKING:
    from simulated.world import Process

#: Bytes that one direction of a connection holds, not yet read.
_WINDOW = 64 << 10
#: What links read of Linux's struct tcp_info.
_INFO = struct.Struct("=120xQQ")


class SimulatedSocket:
    """A TCP socket of the process in whose turn it was made. Never blocks."""

    family = constants.AF_INET

    def __init__(self, family: int = -1, kind: int = -1, proto: int = -1) -> None:
        world = inside.world
        if world is None:
            raise OSError(errno.EAFNOSUPPORT, "no sockets outside of a simulated world here")
        self._network = world.network
        self.process: Process = self._network.process_of_this_turn()
        self._fd = self._network.new_number(self)
        self.type, self.proto = kind, proto
        self.closed = False
        #: The other end; None before connecting and for a listening one.
        self.peer: SimulatedSocket | None = None
        #: What has arrived; b"" is the end of the stream.
        self.inbox: deque[bytes] = deque()
        #: Sent by us and not read by the peer: what has not arrived, in order, and how much of all.
        self.under_way: deque[bytes] = deque()
        self.unread = 0
        #: When the last piece arrives, which no later one overtakes.
        self.arrives = 0.0
        #: Bytes that the peer's host has taken, and that have come from it.
        self.taken = self.received = 0
        self.error: OSError | None = None
        self.looks_for_life = False
        self.told_readable = self.told_writable = False
        #: A listening one: its port, and connections that were not accepted yet.
        self.port = 0
        self.backlog: deque[SimulatedSocket] | None = None

    # -- what links use of a socket ----------------------------------------------------------------------------------

    def fileno(self) -> int:
        return self._fd

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def setsockopt(self, level: int, option: int, value: Any) -> None:
        if level == constants.SOL_SOCKET and option == constants.SO_KEEPALIVE:
            self.looks_for_life = bool(value)

    def getsockopt(self, level: int, option: int, size: int = 0) -> int | bytes:
        if (level, option) == (constants.IPPROTO_TCP, constants.TCP_INFO):
            return _INFO.pack(self.taken, self.received)[:size]
        return 0

    def bind(self, address: tuple[str, int]) -> None:
        self.port = address[1] or self._network.new_port()

    def listen(self, backlog: int = 0) -> None:
        self.backlog = deque()
        self._network.listeners[self.port] = self

    def getsockname(self) -> tuple[str, int]:
        return ("127.0.0.1", self.port)

    def getpeername(self) -> tuple[str, int]:
        if self.peer is None:
            raise OSError(errno.ENOTCONN, "not connected")
        return self.peer.getsockname()

    def accept(self) -> tuple[SimulatedSocket, tuple[str, int]]:
        if not self.backlog:
            raise BlockingIOError(errno.EAGAIN, "no connection waits")
        return self.backlog.popleft(), ("127.0.0.1", 1)

    def send(self, data: Any) -> int:
        """Takes what fits, now and then less."""
        if self.closed:
            raise OSError(errno.EBADF, "closed")
        if self.error is not None:
            raise self.error
        if self.peer is None:
            raise BrokenPipeError(errno.EPIPE, "Broken pipe")
        room = _WINDOW - self.unread
        if room <= 0:
            raise BlockingIOError(errno.EAGAIN, "no room")
        chance = self._network.world.chance.random
        if chance() < 0.02:
            room = min(room, 1 + int(chance() * 200))
        piece = bytes(data[:room])
        self._network.carry(self, piece)
        return len(piece)

    def sendmsg(self, pieces: list[Any]) -> int:
        return self.send(b"".join(pieces) if len(pieces) != 1 else pieces[0])

    def recv_into(self, buffer: Any, size: int = 0, flags: int = 0) -> int:
        data = self._take(size or len(buffer), flags)
        buffer[: len(data)] = data
        return len(data)

    def recv(self, size: int, flags: int = 0) -> bytes:
        return self._take(size, flags)

    def recvmsg(self, size: int, ancillary: int = 0, flags: int = 0) -> tuple[bytes, list[Any], int, Any]:
        return self._take(size, flags), [], 0, None

    def _take(self, size: int, flags: int) -> bytes:
        if not self.inbox:
            if self.error is not None:
                raise self.error
            raise BlockingIOError(errno.EAGAIN, "nothing has come")
        piece = self.inbox[0]
        data = piece[:size]
        if not flags & constants.MSG_PEEK and piece:
            if len(data) < len(piece):
                self.inbox[0] = piece[size:]
            else:
                self.inbox.popleft()
            self._network.was_read(self, len(data))
        return data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            self._network.closed(self)

    # -- for the world -----------------------------------------------------------------------------------------------

    @property
    def is_readable(self) -> bool:
        return not self.closed and bool(self.inbox or self.backlog or self.error is not None)

    @property
    def is_writable(self) -> bool:
        return not self.closed and (self.error is not None or self.peer is None or self.unread < _WINDOW)

    def fail(self, error: OSError) -> None:
        """The connection has ended: reads and writes say so. What has arrived can be read before."""
        if not self.closed and self.error is None:
            self.error = error
            self.process.loop.tell_readable(self)
            self.process.loop.tell_writable(self)
