"""A TCP proxy between two tasks, which resets connections or garbles what goes through them when a test says so.

`Middle(there, target)` listens at `there` and forwards to `target`. A `Fault` strikes once, at a byte of one direction
that is counted from when it was set: so a test hits the middle of a tensor, whichever connection it goes over. `strike`
decides, without I/O; the rest is two threads a connection.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from types import TracebackType

Direction = Literal["there", "back"]
#: Bytes that are forwarded at once.
_PIECE = 64 << 10
#: Bytes that a fault leaves out, or says twice, at most.
_MOST = 3000
#: Seconds for threads to end once their sockets are closed.
_END_S = 30.0


@dataclass(frozen=True)
class Fault:
    """What happens, and where: to the byte `at` that goes `direction` ("there": from who dialled)."""

    kind: Literal["reset", "flip", "cut", "repeat"]
    direction: Direction
    at: int
    seed: int = 0


def strike(fault: Fault, data: bytes, place: int) -> bytes:
    """`data` garbled at `place`: a bit flipped, a piece left out, or a piece said twice."""
    chance = random.Random(fault.seed)
    count = chance.randint(1, _MOST)
    if fault.kind == "flip":
        return data[:place] + bytes([data[place] ^ 1 << chance.randrange(8)]) + data[place + 1 :]
    if fault.kind == "cut":
        return data[:place] + data[place + count :]
    assert fault.kind == "repeat"
    return data[: place + count] + data[place:]


class Middle:
    """`with Middle(("127.0.0.2", 2222), ("127.0.0.1", 2222)) as middle:` … `middle.set(fault)`. From any thread."""

    def __init__(self, there: tuple[str, int], target: tuple[str, int]) -> None:
        self._there, self._target = there, target
        self._lock = threading.Lock()
        #: Guarded by the lock, as all below: the fault to come, and the bytes that it waits for.
        self._fault: Fault | None = None
        self._left = 0
        self._open: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        #: Faults that have struck.
        self.struck = 0

    def __enter__(self) -> Middle:
        self._listening = socket.create_server(self._there)
        self._start(self._accept)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # wakes who accepts, as closing alone does not
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        with self._lock:
            for sock in self._open:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(_END_S)
            assert not thread.is_alive(), thread

    def set(self, fault: Fault | None) -> None:
        """Counts from now on; None takes back one that has not struck."""
        with self._lock:
            self._fault, self._left = fault, fault.at if fault is not None else 0

    def _start(self, work: object, *arguments: object) -> None:
        thread = threading.Thread(target=work, args=arguments, name="middle", daemon=True)  # type: ignore[arg-type]
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):  # the end
            while True:
                near, _ = self._listening.accept()
                try:
                    far = socket.create_connection(self._target)
                except OSError:
                    near.close()
                    continue
                for sock in (near, far):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                pair = _Pair(near, far)
                with self._lock:
                    self._open |= {near, far}
                self._start(self._forward, "there", near, far, pair)
                self._start(self._forward, "back", far, near, pair)

    def _forward(self, direction: Direction, source: socket.socket, destination: socket.socket, pair: _Pair) -> None:
        try:
            while data := source.recv(_PIECE):
                fault, place = self._due(direction, len(data))
                if fault is not None and fault.kind == "reset":
                    destination.sendall(data[:place])
                    pair.reset()
                    return
                destination.sendall(data if fault is None else strike(fault, data, place))
            pair.hand_on_the_end(destination)
        except OSError:
            pair.reset()
        finally:
            if pair.one_less():
                with self._lock:
                    self._open -= {source, destination}

    def _due(self, direction: Direction, count: int) -> tuple[Fault | None, int]:
        """The fault that strikes one of the next `count` bytes, and which of them."""
        with self._lock:
            fault = self._fault
            if fault is None or fault.direction != direction:
                return None, 0
            if self._left >= count:
                self._left -= count
                return None, 0
            self._fault = None
            self.struck += 1
            return fault, self._left


class _Pair:
    """The two sockets of one connection, closed when both directions have ended."""

    def __init__(self, *sockets: socket.socket) -> None:
        self._sockets, self._lock, self._running, self._broken = sockets, threading.Lock(), 2, False

    def hand_on_the_end(self, destination: socket.socket) -> None:
        """One end has said its last byte: the other hears of it, but where the connection is broken."""
        with self._lock:
            if not self._broken:
                destination.shutdown(socket.SHUT_WR)

    def reset(self) -> None:
        """Has both ends told that the connection broke, once both threads have left it."""
        with self._lock:
            self._broken = True
            for sock in self._sockets:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    sock.shutdown(socket.SHUT_RD)

    def one_less(self) -> bool:
        """A thread has left; True for the last one, which has closed both."""
        with self._lock:
            self._running -= 1
            if self._running:
                return False
            for sock in self._sockets:
                sock.close()
            return True
