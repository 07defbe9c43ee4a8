"""Whether bytes move on a connection over which nothing is heard: a large message takes its time on a slow network.

A PING travels behind what was sent before it, so a peer may be well and its answer late. What the peer's host has
taken, and what has come from it and is too little yet to wake the reader (sockets.LowWaterMark), the system counts
for TCP. Elsewhere what waited and the socket took counts: a Unix socket takes more once the peer has read. Both ends
look before they take a peer for dead. A process that stands still takes nothing once its buffer is full, and a host
that is gone takes nothing at all.
"""

from __future__ import annotations

import socket
import struct
import sys
import time

from tenfold_link.wire.streams import connections

#: Bytes a second that count as moving: more than PINGs are.
LEAST_RATE = 1024.0
#: Of Linux's struct tcp_info, since 4.1: bytes acknowledged by the peer, bytes received.
_COUNTS = struct.Struct("=120xQQ")


class Moving:
    """Of a link's connections. One thread at a time."""

    __slots__ = ("_seen", "_since", "_socks")

    def __init__(self, sock: socket.socket) -> None:
        told = sys.platform == "linux" and sock.family != socket.AF_UNIX
        self._socks = connections(sock) if told else []
        self._seen, self._since = 0, time.monotonic()

    def look(self, taken: int = 0) -> bool:
        """Whether bytes have moved since the last look, as fast as LEAST_RATE or faster. Never blocks, never raises.
        `taken` is how many the socket has ever taken of those that waited for it; it counts where the system does not
        tell."""
        total = 0 if self._socks else taken
        for sock in self._socks:
            try:
                counts = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _COUNTS.size)
            except OSError:
                return False
            if len(counts) < _COUNTS.size:
                return False
            total += sum(_COUNTS.unpack(counts))
        return self.moved(total, time.monotonic())

    def moved(self, total: int, now: float) -> bool:
        """As `look`, where `total` bytes have ever moved."""
        fast = total - self._seen >= LEAST_RATE * max(now - self._since, 0.1)
        self._seen, self._since = total, now
        return fast
