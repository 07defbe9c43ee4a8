"""The receiving half of a link's end: bytes of the socket into their places, and cut into frames.

Used by both ends (aio/link.py, blocking/link.py), which do what the frames say. The pieces of a large buffer come so
fast that sleeping between them would take longer than they do: `receive_pieces` spins for them, within a bound.
"""

from __future__ import annotations

import socket
from time import perf_counter
from typing import TYPE_CHECKING

from tenfold_core.access.tls_socket import TlsSocket
from tenfold_core.buffer_pool import BufferPool
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.spin_wait import STREAMED, poll_again
from tenfold_link.wire.frames import Frame, FrameReader
from tenfold_link.wire.sockets import LowWaterMark
from tenfold_link.wire.streams import as_streams

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.traffic import Traffic
    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Incoming
    from tenfold_link.wire.inflow import Inflow
    from tenfold_link.wire.spread import Gathering

#: What receiving raises at the end of a link, besides BlockingIOError and InterruptedError, which end only one attempt.
RECEIVE_ERRORS = (OSError, EOFError, ProtocolError, MemoryError)


class Inbound:
    """One thread at a time."""

    __slots__ = ("_low_water_mark", "_reader", "_receive_into", "_streams", "_take", "exhausted", "pool", "streaming")

    def __init__(
        self,
        sock: socket.socket,
        settings: LinkSettings,
        open_block: Callable[[int, int, int], Incoming] | None,
        traffic: Traffic,
    ) -> None:
        """`open_block(block, offset, size)` gives a buffer in the peer's arena; None where it has none.

        `traffic` counts what comes.
        """
        self._receive_into = sock.recv_into
        #: Of a connection with TLS: takes what was received and not asked for yet. The system does not tell of that.
        self._take = sock.take if isinstance(sock, TlsSocket) else None
        #: Of a link with further connections.
        self._streams = as_streams(sock)
        plain_tcp = sock.family != socket.AF_UNIX and self._take is None
        # encrypted, more or fewer bytes come than are awaited
        self._low_water_mark = LowWaterMark(sock) if plain_tcp else None
        #: Memory for large buffers that come in the socket.
        self.pool = BufferPool(settings.receive_keep_bytes)
        gather = None if self._streams is None else self._streams.gather
        self._reader = FrameReader(settings, open_block or _no_arena, self.pool.allocate, traffic, gather)
        #: Much of one buffer is still to come: time for `receive_pieces`.
        self.streaming = False
        #: The last attempt got all that there was.
        self.exhausted = True

    def limit(self, inflow: Inflow) -> None:
        """Has what comes counted by `inflow` from now on."""
        self._reader.inflow = inflow

    def receive(self, flags: int = 0) -> list[Frame]:
        """Receives once; the frames that are complete now. Raises RECEIVE_ERRORS, EOFError at the end of the stream.

        BlockingIOError or InterruptedError: nothing has come.
        """
        reader = self._reader
        if reader.spread is not None:
            return self._receive_spread(reader.spread, flags)
        space = reader.buffer()
        count = self._receive_into(space, 0, flags)
        if not count:
            raise EOFError
        self.exhausted = count < len(space)
        frames = reader.received(count)
        if self._take is not None:
            while count := self._take(reader.buffer()):
                frames += reader.received(count)
        awaited = reader.awaited
        self.streaming = awaited >= STREAMED
        mark = self._low_water_mark
        if mark is not None and (awaited or mark.is_set):
            mark.follow(0 if reader.spread is not None else awaited)
        return frames

    def _receive_spread(self, into: Gathering, flags: int) -> list[Frame]:
        assert self._streams is not None
        reader = self._reader
        frames = reader.received(self._streams.receive_spread(into, flags))
        if reader.spread is None:
            self._streams.gathered()
        self.streaming = reader.awaited >= STREAMED
        # what is left the system tells of
        self.exhausted = True
        return frames

    def receive_pieces(self, seconds: float) -> list[Frame]:
        """Receives the rest of a large buffer: the frames that are complete then. As `receive`.

        [] where the next piece does not come soon, or the rest takes longer than `seconds`.
        """
        came = begin = perf_counter()
        while self._reader.awaited and came - begin < seconds:
            try:
                frames = self.receive(socket.MSG_DONTWAIT)
            except (BlockingIOError, InterruptedError):
                # pieces over further connections come at the pace of a network
                if self._reader.spread is not None or not poll_again(came):
                    break
                continue
            if frames:
                return frames
            came = perf_counter()
        return []

    def close(self) -> None:
        """Releases the peer's arena. Nothing that comes after this is a frame."""
        self._reader.close()

    def drop(self) -> None:
        """Frees what was received in part, and the memory that was kept for more. Only once nobody receives any more:
        a link that has ended may be held for long, by an error's traceback or until the garbage collector comes."""
        self._reader.drop()
        self.pool.close()


def why_ended(error: Exception) -> str:
    """What to say of one of RECEIVE_ERRORS."""
    if isinstance(error, ProtocolError):
        return f"it broke the protocol: it sent {error}"
    if isinstance(error, MemoryError):
        return "there is no memory for what it sends"
    if isinstance(error, OSError):
        return f"the connection broke: {error.strerror or error}"
    return "the connection broke, its process ended"


def _no_arena(block: int, offset: int, size: int) -> Incoming:
    raise ProtocolError("a shared block without an arena")
