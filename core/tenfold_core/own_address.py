"""By which address of this machine another host is reached: what it, and those beside it, can dial in turn.

A machine has several interfaces, and its name may stand for loopback, or for nothing elsewhere. So a task that
registers listens on the address from which its control service is reached. Used by the command line
(cli/reachable.py) and by programs that take a place by themselves (runs/given_place.py).
"""

from __future__ import annotations

import socket
from urllib.parse import urlsplit

from tenfold_core.loopback import is_loopback


def local_address(host: str, port: int) -> str:
    """The address of this machine, in brackets if it is IPv6, from which `host` is reached.

    Sends nothing to it, but may ask DNS. Raises OSError if there is no way to it.
    """
    error: OSError | None = None
    for family, kind, number, _, place in socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM):
        with socket.socket(family, kind, number) as asking:
            try:
                # of a datagram socket this only chooses the way
                asking.connect(place)
            except OSError as refused:
                error = refused
                continue
            mine = str(asking.getsockname()[0]).partition("%")[0]
            return f"[{mine}]" if family == socket.AF_INET6 else mine
    raise error or OSError(f"{host} has no address")


def beyond_loopback(urls: str) -> tuple[str, int] | None:
    """Host and port of the first of these URLs, which commas separate; None where it is on this machine, or names no
    host."""
    parts = urlsplit(urls.partition(",")[0].strip())
    host = parts.hostname or ""
    if not host or is_loopback(host):
        return None
    return host, parts.port or (443 if parts.scheme == "https" else 80)
