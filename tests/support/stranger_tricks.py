"""What another user of the machine may try: functions that support/stranger.py runs in a process of that user.

Each takes and gives what JSON has; sockets stay open in `held` until the process ends. Standard library only: once it
is another user the process may read little.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import threading
import time
from typing import Any

#: Everything that was opened and is to stay so.
held: list[socket.socket] = []
_RESET = struct.pack("ii", 1, 0)


def bind(host: str, family: int = socket.AF_INET, count: int = 1) -> int:
    """Takes a port with so many sockets, without listening at it, so that others may listen there; the port."""
    port = 0
    for _ in range(count):
        sock = socket.socket(family)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
        held.append(sock)
        port = int(sock.getsockname()[1])
    return port


def send_and_reset(target: list[Any], data: str, bound: int | None = None, read_first: int = 0) -> int:
    """Connects from the socket that is bound to port `bound`, sends hexadecimal `data`, once `read_first` bytes came,
    and ends the connection by RST; its port."""
    if bound is None:
        sock = socket.socket(socket.AF_INET6 if ":" in target[0] else socket.AF_INET)
    else:
        sock = next(each for each in held if each.getsockname()[1] == bound)
        held.remove(sock)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
    sock.connect(tuple(target))
    port = int(sock.getsockname()[1])
    if read_first:
        sock.recv(read_first)
    sock.sendall(bytes.fromhex(data))
    sock.close()
    return port


def send_and_reset_often(bound: int, target: list[Any], data: str, read: int) -> int:
    """`send_and_reset` from each socket that is bound to that port, a little later each time; how often that was."""
    done = 0
    for sock in [each for each in held if each.getsockname()[1] == bound]:
        held.remove(sock)
        with contextlib.suppress(OSError), sock:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            sock.settimeout(5)
            sock.connect(tuple(target))
            sock.recv(read)
            sock.sendall(bytes.fromhex(data))
            time.sleep(0.00025 * (done % 8))
            done += 1
    return done


def connect(target: list[Any], data: str = "", count: int = 1) -> int:
    """Opens so many connections, says `data` over each, and keeps them; how many came about."""
    family = socket.AF_INET6 if ":" in target[0] else socket.AF_INET
    for number in range(count):
        sock = socket.socket(family)
        sock.settimeout(5)
        try:
            sock.connect(tuple(target))
            sock.sendall(bytes.fromhex(data))
        except OSError:
            sock.close()
            return number
        held.append(sock)
    return count


def exchange(target: list[Any], data: str, seconds: float = 10.0) -> str:
    """Sends and reads until the other end closes, or for so long; what came, hexadecimal."""
    came = b""
    end = time.monotonic() + seconds
    with contextlib.suppress(OSError), socket.create_connection(tuple(target), timeout=seconds) as sock:
        sock.sendall(bytes.fromhex(data))
        while time.monotonic() < end and (part := sock.recv(1 << 16)):
            came += part
    return came.hex()


def pass_blocking_socket(name: str, first: str, then: str, seconds: int, count: int = 1, close: bool = True) -> int:
    """Over the abstract Unix socket `name`: `first` with `count` descriptors of TCP sockets whose last close lasts so
    long, then `then`. How many bytes the other end took."""
    kept = []
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(5)
        sock.connect("\0" + name)
        passed = []
        for _ in range(count):
            near = socket.create_connection(listening.getsockname())
            far, _ = listening.accept()
            kept.append(far)
            near.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                while True:
                    near.send(bytes(1 << 16))
            near.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, seconds))
            passed.append(near)
        sent = 0
        with contextlib.suppress(OSError):
            sent = socket.send_fds(sock, [bytes.fromhex(first)], [near.fileno() for near in passed])
        for near in passed:
            # a lingering socket closed here would make this process wait: the other end has it still
            near.close() if sent else held.append(near)
        with contextlib.suppress(OSError):
            sent += sock.send(bytes.fromhex(then))
        if close:
            sock.close()
        else:
            held.append(sock)
    held.extend(kept)
    return sent


def flood(target: list[Any], before: str, again: str, connections: int, seconds: float) -> dict[str, int]:
    """`before`, then `again` and again, over so many connections at once, for so long; how many bytes went, and how
    often a connection was ended by the other side. Each that ends is opened anew. Where a busy machine has let none
    come so far as to be ended, it goes on for twenty seconds more at most."""
    done = {"bytes": 0, "ended": 0}
    piece, until = bytes.fromhex(again), time.monotonic() + seconds

    def goes_on() -> bool:
        return time.monotonic() < (until if done["ended"] else until + 20)

    def one() -> None:
        while goes_on():
            with contextlib.suppress(OSError), socket.create_connection(tuple(target), timeout=2) as sock:
                sock.sendall(bytes.fromhex(before))
                while goes_on():
                    sock.sendall(piece)
                    done["bytes"] += len(piece)
            if goes_on():
                done["ended"] += 1

    threads = [threading.Thread(target=one) for _ in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return done


TRICKS = {
    each.__name__: each
    for each in (bind, send_and_reset, send_and_reset_often, connect, exchange, pass_blocking_socket, flood)
}
