"""Sockets that listen for TCP at every address of a host, all on one port, and the options of those that are connected.

Used by server.py and by tunnels.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import socket
from typing import Any

_BACKLOG = 512
#: What a system says that has no IPv6, or has it switched off.
NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


async def listening_sockets(host: str, port: int) -> tuple[list[socket.socket], int]:
    """The sockets, which do not block, and their port; 0 takes a free one. Raises OSError if none can be had.

    "::" is every address, of IPv4 too, and those of IPv4 alone on a system that has no IPv6.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host.strip("[]") or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    failure: OSError | None = None
    for family, kind, number, _, address in dict.fromkeys(found):
        try:
            sockets.append(_listening(family, kind, number, (address[0], port, *address[2:])))
        except OSError as error:
            failure = failure or error
            if error.errno == errno.EADDRINUSE:
                break  # another process would get half of our callers
            continue
        port = port or sockets[-1].getsockname()[1]
    if not sockets and failure is not None and failure.errno in NO_IPV6 and host.strip("[]") == "::":
        return await listening_sockets("0.0.0.0", port)
    if not sockets or (failure is not None and failure.errno == errno.EADDRINUSE):
        for sock in sockets:
            sock.close()
        raise failure or OSError(f"{host} has no address")
    return sockets, port


def _listening(family: int, kind: int, number: int, address: Any) -> socket.socket:
    sock = socket.socket(family, kind, number)
    try:
        sock.setblocking(False)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            # "::" means every address, of IPv4 too; another one means itself
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address[0] == "::" else 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
    except OSError:
        sock.close()
        raise
    return sock


def tune(sock: socket.socket, keepalive_seconds: int) -> None:
    """Small answers leave at once, and the system notices a host that is gone: it asks for a sign of life where nothing
    happens, every so often; three without an answer are the end."""
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, keepalive_seconds)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, max(1, keepalive_seconds // 3))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
