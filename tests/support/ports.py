"""Ports of loopback for servers whose ports must be known before they start; the others listen on port 0.

They lie below those that Linux gives to connections: until a server listens there, which may take half a minute, a
connection of another process could take its port. Tests run in several processes, of which each has its own share.
"""

from __future__ import annotations

import os
import random
import socket
from collections import deque
from contextlib import suppress

#: This process among those of pytest-xdist, and how many they are.
_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_COUNT = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
#: Linux's connections begin at 32768.
_PORTS = range(20000 + _NUMBER, 32000, _COUNT)
#: What was given out lately: a server may be about to listen there.
_given: deque[int] = deque(maxlen=len(_PORTS) // 2)


def free_ports(count: int) -> list[int]:
    """Ports where nothing listens now, and none that were given out lately; held together, so that they differ."""
    sockets: list[socket.socket] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        if len(sockets) == count:
            break
        if port in _given:
            continue
        with suppress(OSError):
            sockets.append(socket.create_server(("127.0.0.1", port)))
    assert len(sockets) == count
    ports = [int(each.getsockname()[1]) for each in sockets]
    for each in sockets:
        each.close()
    _given.extend(ports)
    return ports


def free_port() -> int:
    """A port where nothing listens now."""
    return free_ports(1)[0]


def free_addresses(count: int) -> list[str]:
    """Addresses of loopback where nothing listens now."""
    return [f"localhost:{port}" for port in free_ports(count)]
