"""Sockets of links: which processes share a host, options of a connected socket, the user at its other end, and how
one is closed that is another user's (apart.py)."""

from __future__ import annotations

import contextlib
import os
import socket
import struct
from functools import lru_cache

from tenfold_link.wire.apart import apart

_CREDENTIALS = struct.Struct("3i")
#: Socket buffers: one system call moves this much, and a small message never waits for room.
_SOCKET_BYTES = 4 << 20
#: The same where a peer is far: what is on its way meanwhile is kept until it is acknowledged.
_FAR_BYTES, _FAR_SECONDS = 16 << 20, 0.001
#: Of Linux's struct tcp_info: the smoothed round trip in microseconds.
_ROUND_TRIP = struct.Struct("=68xI")
#: Few enough that a slow network brings them long before silence is taken for death (settings.ping_answer_seconds).
_WAKE_BYTES = 512 << 10


def host_identity() -> str:
    """The same for two processes when one can reach the other's abstract Unix sockets; "" where there are none."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return f"{file.read().strip()}/{os.stat('/proc/self/ns/net').st_ino}"
    except OSError:
        return ""


def user() -> int:
    """The user that this process runs as."""
    return os.getuid()


def owner(sock: socket.socket) -> int:
    """The user at the other end of a Unix socket; -1 where the system does not tell."""
    if not hasattr(socket, "SO_PEERCRED"):
        return -1
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(raw)[1])


def may_share_memory(sock: socket.socket) -> bool:
    """Whether the other end of a Unix socket is the same user, or root: others get no memory file of ours."""
    return owner(sock) in (user(), 0)


def is_own(sock: socket.socket) -> bool:
    """Whether the other end of a Unix socket is the same user, or root. Where it is not, or the system does not tell,
    nothing is read from it and it is closed by `close`: what it passes must not come in, not even to be dropped."""
    try:
        return owner(sock) in (user(), 0)
    except OSError:
        return False


def close(sock: socket.socket) -> None:
    """Closes any socket without blocking: a Unix socket of another user's apart, because of what may lie in it."""
    if sock.fileno() >= 0 and sock.family == socket.AF_UNIX and not is_own(sock):
        apart.close(sock.close)
    else:
        sock.close()


def round_trip(sock: socket.socket) -> float:
    """Seconds to the peer of a connected TCP socket and back, as the system has measured it; 0 where it does not tell.
    """
    if not hasattr(socket, "TCP_INFO"):
        return 0.0
    try:
        info = sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _ROUND_TRIP.size)
    except OSError:
        return 0.0
    return _ROUND_TRIP.unpack(info)[0] / 1e6 if len(info) == _ROUND_TRIP.size else 0.0


def tune(sock: socket.socket) -> None:
    """Sets the options of a connected socket."""
    if sock.family == socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BYTES)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _SOCKET_BYTES)
        return
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    far = round_trip(sock) >= _FAR_SECONDS
    for option, largest, growing in (
        (socket.SO_SNDBUF, "core/wmem_max", "ipv4/tcp_wmem"),
        (socket.SO_RCVBUF, "core/rmem_max", "ipv4/tcp_rmem"),
    ):
        fixed = min(_largest_buffer(largest), _FAR_BYTES if far else _SOCKET_BYTES)
        # where the system allows less, its own growing buffers are better than a small one of a fixed size; of a fixed
        # one it takes twice as much
        if fixed >= _SOCKET_BYTES and not (far and _largest_buffer(growing) >= 2 * fixed):
            sock.setsockopt(socket.SOL_SOCKET, option, fixed)
    # the kernel notices a host that vanished, also at an end that is not read
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 5), ("TCP_KEEPINTVL", 2), ("TCP_KEEPCNT", 5), ("TCP_USER_TIMEOUT", 15_000)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


@lru_cache
def _largest_buffer(name: str) -> int:
    """The largest socket buffer that the system gives, the last number of a setting; 0 where it does not tell."""
    try:
        with open(f"/proc/sys/net/{name}") as file:
            return int(file.read().split()[-1])
    except (OSError, ValueError, IndexError):
        return 0


class LowWaterMark:
    """Lets a TCP socket wake its reader less often while a large buffer comes in: each wake-up costs a switch."""

    __slots__ = ("_set_to", "_sock", "is_set")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._set_to = 1
        #: It is above 1.
        self.is_set = False

    def follow(self, awaited: int) -> None:
        """`awaited` bytes of one buffer are still to come: neither fewer, nor _WAKE_BYTES, need wake the reader."""
        mark = max(1, min(awaited, _WAKE_BYTES))
        if mark != self._set_to:
            self._set_to = mark
            self.is_set = mark > 1
            # the link may have been closed meanwhile
            with contextlib.suppress(OSError):
                self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, mark)
