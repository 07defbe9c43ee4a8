"""Several TCP connections as the one socket of a link: large buffers are spread over the further ones (spread.py).

    first      frame's prefix, table, header, small buffers │ the next frame …
    further    pieces of large buffers …
    further    pieces of large buffers …

One connection carries at most a window in each round trip, and many networks give a single flow only a part of what
they have. Which peers are far enough for more is handshake.py's affair, which buffers packing.py's. A StreamsSocket has
the calls that the two ends of a link make, and one descriptor to wait at, where the system knows many sockets. With TLS
a link has one connection alone.
"""

from __future__ import annotations

import contextlib
import select
import socket
from typing import TYPE_CHECKING, Any, cast

from tenfold_link.wire.spread import CHUNK, TURN_BYTES, Gathering, Leaving, Spread, Stream

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

#: Unsent bytes that one connection holds: beyond that, another one may be faster.
_UNSENT_BYTES = 4 * CHUNK
#: Whether this system has what it takes; elsewhere a link has one connection.
CAN = hasattr(select, "epoll")


class StreamsSocket:
    """`first` with `further` connections to the same peer. One thread may read while another one writes."""

    def __init__(
        self, first: socket.socket, further: Sequence[socket.socket], wait_seconds: float | None = None
    ) -> None:
        """Takes over the sockets. A call that gets nowhere waits up to `wait_seconds`, then raises BlockingIOError;
        None: at once. Raises OSError where the system has no descriptors for it; `further` are closed then."""
        self._first, self._wait = first, wait_seconds
        self._further = [Stream(sock) for sock in further]
        self.family = first.family
        #: What a reader, and a writer, waits for.
        try:
            self._readable, self._writable = _Watched(select.EPOLLIN), _Watched(select.EPOLLOUT)
        except OSError:
            for sock in further:
                sock.close()
            raise
        for sock in self.connections:
            sock.setblocking(False)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            for sock in further:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, _UNSENT_BYTES)
        self._readable.watch((first,))
        self._writable.watch((first,))
        #: Buffers that were begun, of either direction.
        self._sent = self._received = 0
        #: The one that is being sent.
        self._leaving: Leaving | None = None

    def __getattr__(self, name: str) -> Any:
        # options, names and what a handshake does are the first one's
        return getattr(self._first, name)

    @property
    def connections(self) -> list[socket.socket]:
        """All of them, the first one first."""
        return [self._first, *(stream.sock for stream in self._further)]

    @property
    def half_sent(self) -> bool:
        """Whether a large buffer was sent in part."""
        return self._leaving is not None

    def fileno(self) -> int:
        """Is readable while there is something to read; -1 once it is closed."""
        return self._readable.fileno()

    def out_fileno(self) -> int:
        """Is readable, as well, while what was not sent can go on."""
        return self._writable.fileno()

    def setblocking(self, blocking: bool) -> None:
        """Nothing: whether it waits was settled when it was made."""

    def settimeout(self, seconds: float | None) -> None:
        """Nothing: see `setblocking`."""

    # -- sending -----------------------------------------------------------------------------------------------------

    def send(self, data: Any, flags: int = 0) -> int:
        """As a socket's; `data` may be Spread."""
        return self.sendmsg([data], (), flags)

    def sendmsg(self, pieces: Sequence[Any], ancillary: Any = (), flags: int = 0) -> int:
        """As a socket's, without descriptors; of a piece that is Spread the rest must be brought again."""
        while True:
            try:
                return self._send_now(pieces)
            except BlockingIOError:
                if self._wait is None or flags & socket.MSG_DONTWAIT or not self._writable.wait(self._wait):
                    raise

    def _send_now(self, pieces: Sequence[Any]) -> int:
        plain: list[Any] = []
        for piece in pieces:
            if isinstance(piece, Spread):
                break
            plain.append(piece)
        total = 0
        if plain:
            self._writable.watch((self._first,))
            total = self._first.sendmsg(plain)
            if total < sum(map(len, plain)):
                return total
        if len(plain) < len(pieces):
            try:
                total += self._send_spread(pieces[len(plain)])
            except BlockingIOError:
                if not total:
                    raise
        return total

    def _send_spread(self, piece: Spread) -> int:
        leaving = self._leaving
        if leaving is None:
            leaving = self._leaving = Leaving(self._sent, piece.memory)
            self._sent += 1
        total, going = 0, self._further
        while going and total < TURN_BYTES:
            # a piece each: whoever is done takes the next one, and those that are full are left alone
            going = [stream for stream in going if stream.leaving or leaving.give(stream)]
            sent = [stream.send() for stream in going]
            total += sum(sent)
            going = [stream for stream, count in zip(going, sent, strict=True) if count]
        waiting = [stream.sock for stream in self._further if stream.leaving or not leaving.given]
        if waiting:
            self._writable.watch(waiting)
            if not total:
                raise BlockingIOError
        else:
            self._leaving = None
            self._writable.watch((self._first,))
        return total

    # -- receiving ---------------------------------------------------------------------------------------------------

    def recv_into(self, space: Any, nbytes: int = 0, flags: int = 0) -> int:
        """As a socket's: what the first connection brings."""
        while True:
            try:
                return self._first.recv_into(space, nbytes, flags)
            except BlockingIOError:
                if self._wait is None or flags & socket.MSG_DONTWAIT or not self._readable.wait(self._wait):
                    raise

    def gather(self, memory: memoryview) -> Gathering:
        """The next buffer that comes over the further connections goes to `memory`; until `gathered`, the first
        connection is not waited for."""
        into = Gathering(self._received, memory)
        self._received += 1
        self._readable.watch(stream.sock for stream in self._further)
        return into

    def gathered(self) -> None:
        """All of it has come: the first connection goes on."""
        self._readable.watch((self._first,))

    def receive_spread(self, into: Gathering, flags: int = 0) -> int:
        """Bytes of the buffer that came. Raises BlockingIOError where none did, EOFError at the end of a connection,
        ProtocolError for what belongs nowhere, OSError."""
        while True:
            ready = self._readable.ready()
            total = sum(stream.receive(into) for stream in self._further if stream.sock.fileno() in ready)
            # those that are at a later buffer have something to read, and are left alone until then
            self._readable.watch(stream.sock for stream in self._further if not stream.is_ahead)
            if total:
                return total
            if self._wait is None or flags & socket.MSG_DONTWAIT or not self._readable.wait(self._wait):
                raise BlockingIOError

    # -- the end -----------------------------------------------------------------------------------------------------

    def shutdown(self, how: int) -> None:
        """As a socket's, of all connections. Never raises."""
        for sock in self.connections:
            with contextlib.suppress(OSError):
                sock.shutdown(how)

    def close(self) -> None:
        """As a socket's, of all connections."""
        for sock in self.connections:
            sock.close()
        self._readable.close()
        self._writable.close()


def streams_over(
    first: socket.socket, further: Sequence[socket.socket], wait_seconds: float | None = None
) -> socket.socket:
    """A StreamsSocket, which has a socket's calls as far as links make them, as one."""
    return cast("socket.socket", StreamsSocket(first, further, wait_seconds))


def as_streams(sock: Any) -> StreamsSocket | None:
    """What `streams_over` gave; None for any other socket."""
    return sock if isinstance(sock, StreamsSocket) else None


def connections(sock: socket.socket) -> list[socket.socket]:
    """The sockets that the system knows of a link's."""
    streams = as_streams(sock)
    return [sock] if streams is None else streams.connections


class _Watched:
    """Sockets that are waited for at one descriptor."""

    __slots__ = ("_event", "_poll", "_there")

    def __init__(self, event: int) -> None:
        """Raises OSError."""
        self._event, self._poll = event, select.epoll()
        self._there: frozenset[int] = frozenset()

    def watch(self, sockets: Iterable[socket.socket]) -> None:
        """These, and no other ones, from now on. Nothing once it is closed, or they are."""
        wanted = frozenset(sock.fileno() for sock in sockets)
        if wanted == self._there or -1 in wanted:
            return
        # another thread may end the link meanwhile
        with contextlib.suppress(ValueError):
            for descriptor in self._there - wanted:
                self._poll.unregister(descriptor)
            for descriptor in wanted - self._there:
                self._poll.register(descriptor, self._event)
            self._there = wanted

    def ready(self) -> set[int]:
        """The descriptors of those that are ready. Never blocks."""
        try:
            return {descriptor for descriptor, _ in self._poll.poll(0)}
        except ValueError:
            return set()

    def wait(self, seconds: float) -> bool:
        """Whether one of them is ready within that time. Blocks."""
        try:
            return bool(self._poll.poll(seconds))
        except ValueError:
            return False

    def fileno(self) -> int:
        return -1 if self._poll.closed else self._poll.fileno()

    def close(self) -> None:
        self._poll.close()
