"""What leaves a blocking link: frames to the socket, and blocks of shared memory that go back to the peer.

The sending half of link.py, which owns the socket. Any thread sends, one at a time; `give_back` may also be called
from within the garbage collector. The asyncio end's is tenfold_link/aio/outbound.py.
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_link.wire.frames import FrameKind, pack, pack_release
from tenfold_link.wire.packing import PIECES, unsent

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.packing import Piece


class BlockingOutbound:
    """The way out of one link. The socket ends a write that gets nowhere after a moment (SO_SNDTIMEO)."""

    def __init__(self, sock: socket.socket, peer: str, settings: LinkSettings, lost: Callable[[str], None]) -> None:
        """The bound method `lost(reason)` is called when nothing can leave any more."""
        # a piece that is Spread goes to a StreamsSocket alone
        self._sock: Any = sock
        self._peer, self._settings = peer, settings
        # weak: a link that is no longer held goes at once, and its socket with it
        self._lost = weakref.WeakMethod(lost)
        #: The link has ended: what is given back goes nowhere.
        self.closed = False
        #: Held while a frame is written.
        self._writing = threading.Lock()
        #: Blocks of the peer's arena that are no longer used here. Appended to by finalizers.
        self._returned: deque[int] = deque()

    def send(self, pieces: list[Piece], deadline: float | None = None) -> None:
        """Writes a frame. Raises DeadlineExceededError; a frame that is cut off in the middle ends the link."""
        with self._writing:
            if self._returned:
                pieces = [pack_release(self._returned), *pieces]
            self._write(pieces, deadline)
        if self._returned:
            self._send_returns()

    def say_goodbye(self, reason: str) -> None:
        """As much as fits, for the peer's error message."""
        if self._writing.acquire(blocking=False):
            try:
                with contextlib.suppress(OSError):
                    self._sock.send(pack(FrameKind.GOODBYE, header=reason.encode()), socket.MSG_DONTWAIT)
            finally:
                self._writing.release()

    def give_back(self, block: int) -> None:
        """The peer's block is no longer used here. Any thread, also from within the garbage collector."""
        self._returned.append(block)
        if not self.closed:
            self._send_returns()

    def _send_returns(self) -> None:
        """Unless another thread writes just now: that one calls this afterwards."""
        while self._returned and self._writing.acquire(blocking=False):
            try:
                if self._returned:
                    self._write([pack_release(self._returned)], None)
            finally:
                self._writing.release()

    def _write(self, pieces: list[Piece], deadline: float | None) -> None:
        rest, begun = pieces, False
        stuck_since = 0.0
        try:
            while rest:
                try:
                    sent = self._sock.send(rest[0]) if len(rest) == 1 else self._sock.sendmsg(rest[:PIECES])
                except (BlockingIOError, InterruptedError):
                    now = time.monotonic()
                    stuck_since = stuck_since or now
                    if deadline is not None and now >= deadline:
                        raise late(self._peer) from None
                    if now - stuck_since > self._settings.ping_every_seconds + self._settings.ping_answer_seconds:
                        self._end(f"it has not read anything for {now - stuck_since:.0f} s, it hangs")
                        return
                    continue
                except OSError as error:
                    self._end(f"the connection broke: {error.strerror or error}")
                    return
                begun, stuck_since = True, 0.0
                if len(rest) == 1 and sent == len(rest[0]):
                    return
                rest = unsent(rest, sent)
        except BaseException as error:
            # also an interrupt right after `send`: how much that sent is unknown
            if begun or getattr(self._sock, "half_sent", False) or not isinstance(error, errors.DeadlineExceededError):
                self._end("sending to it was interrupted in the middle of a message")
            raise

    def _end(self, reason: str) -> None:
        lost = self._lost()
        if lost is not None:
            lost(reason)


def late(peer: str) -> errors.OpError:
    """What a caller gets whose deadline is over."""
    return errors.DeadlineExceededError(None, None, f"{peer} did not answer in time.")
