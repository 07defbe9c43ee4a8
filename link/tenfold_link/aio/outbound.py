"""What leaves a link: frames to the socket, what the socket does not take in a queue, blocks that go back to the peer.

The sending half of link.py, which owns the socket and the limits. Everything happens on the loop's thread but
`give_back`, which finalizers call. docs/link.md has the bounds.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_link.wire.frames import FrameKind, pack, pack_release
from tenfold_link.wire.packing import PIECES, rest_of, unsent
from tenfold_link.wire.streams import as_streams

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.inflow import Inflow
    from tenfold_link.wire.packing import Piece

#: Bytes written in one callback before others have their turn.
_TURN_BYTES = 16 << 20


class PeerShare:
    """What the links of one peer have together: how many there are, how much waits for it to read, and how much of what
    it sends is worked on."""

    __slots__ = ("bytes", "inflow", "links", "most_bytes")

    def __init__(self, most_bytes: int, inflow: Inflow) -> None:
        self.most_bytes, self.inflow = most_bytes, inflow
        self.bytes = self.links = 0


class AioOutbound:
    """The way out of one link, from its handshake to its end."""

    def __init__(
        self, sock: socket.socket, settings: LinkSettings, lost: Callable[[str], None], share: PeerShare | None = None
    ) -> None:
        """`lost(reason)` is called in a later round of the loop, when nothing can leave any more; until `close`.
        `share` is the peer's, of a link that it has opened."""
        self._share = share
        self._loop = asyncio.get_running_loop()
        # a piece that is Spread goes to a StreamsSocket alone
        self._sock: Any = sock
        # of several connections one descriptor tells, by becoming readable
        streams = as_streams(sock)
        self._fd = sock.fileno() if streams is None else streams.out_fileno()
        self._watch = self._loop.add_writer if streams is None else self._loop.add_reader
        self._unwatch = self._loop.remove_writer if streams is None else self._loop.remove_reader
        self._settings = settings
        self._when_lost = lost
        #: Nothing leaves any more.
        self.closed = False
        #: What the socket has not taken yet, in order.
        self.queue: deque[Piece] = deque()
        #: The loop watches for the socket to become writable.
        self._watching = False
        self.queued_bytes = 0
        #: Of what was ever in the queue: bytes that the socket has taken.
        self.taken_bytes = 0
        #: Frames are collected in the queue and flushed together.
        self.corked = False
        #: Set where little waits for the socket, and at the end: who waits for that looks again.
        self._moved = asyncio.Event()
        #: Blocks of the peer's arena that are no longer used here. Appended to by finalizers, on any thread.
        self._returned: deque[int] = deque()
        self._return_scheduled = False

    def send(self, pieces: list[Piece]) -> None:
        """Writes the frame, or what the socket takes of it, and queues the rest. Never blocks, never raises."""
        if self.closed:
            return
        if self._returned:
            pieces = [pack_release(self._returned), *pieces]
        if self.queue or self.corked:
            self._enqueue(pieces)
            return
        try:
            sent = self._sock.send(pieces[0]) if len(pieces) == 1 else self._sock.sendmsg(pieces[:PIECES])
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError as error:
            self._lost(f"the connection broke: {error.strerror or error}")
            return
        if len(pieces) > 1 or sent < len(pieces[0]):
            rest = unsent(pieces, sent)
            if rest:
                self._enqueue(rest)

    def _enqueue(self, pieces: list[Piece]) -> None:
        size = sum(map(len, pieces))
        self.queue.extend(pieces)
        self.queued_bytes += size
        share = self._share
        if share is not None:
            share.bytes += size
            # what it waits for is older: this frame is not simply a large one
            if share.bytes > share.most_bytes and self._watching:
                self._lost(
                    f"it does not read: {share.bytes} bytes wait for it over its links, and {share.most_bytes} may "
                    "(TENFOLD_LINK_PEER_OUTBOUND_BYTES)"
                )
        if not self.corked and not self._watching:
            self._watching = True
            self._watch(self._fd, self.flush)
        if self.queued_bytes > self._settings.outbound_bytes:
            self._lost(f"it does not read: {self.queued_bytes} bytes wait for it")

    def flush(self) -> None:
        """Writes what the socket takes of the queue; goes on when it is writable again."""
        queue, budget = self.queue, _TURN_BYTES
        while queue and budget > 0:
            try:
                sent = self._sock.sendmsg([queue[index] for index in range(min(len(queue), PIECES))])
            except (BlockingIOError, InterruptedError):
                break
            except OSError as error:
                self._lost(f"the connection broke: {error.strerror or error}")
                return
            self.queued_bytes -= sent
            self.taken_bytes += sent
            if self._share is not None:
                self._share.bytes -= sent
            budget -= sent
            while queue and sent >= len(queue[0]):
                sent -= len(queue.popleft())
            if sent:
                queue[0] = rest_of(queue[0], sent)
        if bool(queue) != self._watching:
            self._watching = bool(queue)
            if self._watching:
                self._watch(self._fd, self.flush)
            else:
                self._unwatch(self._fd)
        if self.queued_bytes <= self._settings.outbound_high_water:
            self._moved.set()

    async def room(self) -> None:
        """Waits until little enough waits for the socket, or the link has ended."""
        while self.queued_bytes > self._settings.outbound_high_water and not self.closed:
            self._moved.clear()
            await self._moved.wait()

    def say_goodbye(self, reason: str) -> None:
        """As much as fits, for the peer's error message."""
        if not self.queue:
            with contextlib.suppress(OSError):
                self._sock.send(pack(FrameKind.GOODBYE, header=reason.encode()))

    async def drain(self, seconds: float) -> None:
        """Gives what is queued up to `seconds` to leave. Never raises."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self.queue and not self.closed:
                    self._moved.clear()
                    await self._moved.wait()

    def close(self) -> None:
        """Drops what is queued, and wakes what waits for it. Before the socket is closed."""
        self.closed = True
        # the link holds us: what goes with it goes at once, and not with the garbage collector
        self._when_lost = _ignore
        self._unwatch(self._fd)
        self.queue.clear()
        if self._share is not None:
            self._share.bytes -= self.queued_bytes
        self.queued_bytes = 0
        self._moved.set()

    def _lost(self, reason: str) -> None:
        """Ends the link in a later round of the loop: a user inside a call of the link expects no callbacks there."""
        self._loop.call_soon(self._when_lost, reason)

    # -- the peer's shared memory ------------------------------------------------------------------------------------

    def give_back(self, block: int) -> None:
        """The peer's block is no longer used here. Any thread, also from within the garbage collector."""
        self._returned.append(block)
        if not self._return_scheduled and not self.closed:
            self._return_scheduled = True
            # the loop may be closed already, and then so is the link, for all practical purposes
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._send_returns)

    def _send_returns(self) -> None:
        self._return_scheduled = False
        if self._returned and not self.closed:
            self.send([])


def _ignore(reason: str) -> None:
    """What a closed one calls when it is lost."""
