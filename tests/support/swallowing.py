"""A relay in front of a server that, once told, swallows some requests: their connections stay, nothing comes back.

So a connection looks whose other end lost its power: half-open. Other requests pass. For HTTP/1.1.
"""

from __future__ import annotations

import socket
import threading
from contextlib import suppress
from typing import Self

from support.moments import PATIENCE


class SwallowingRelay:
    """Listens at `port` for `upstream`; swallows requests that contain `word` once `swallows` is set."""

    def __init__(self, upstream: int, word: bytes) -> None:
        self._upstream, self._word = upstream, word
        self.swallows = threading.Event()
        #: Set once a request was swallowed.
        self.swallowed = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._sockets: list[socket.socket] = []
        self._threads = [threading.Thread(target=self._accept, name="relay")]

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        for sock in [self._listener, *self._sockets]:
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)
            sock.close()
        for thread in self._threads:
            thread.join(PATIENCE)

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self._upstream))
                self._sockets += [near, far]
                for source, sink, asks in ((near, far, True), (far, near, False)):
                    pump = threading.Thread(target=self._pump, args=(source, sink, asks), name="relay")
                    self._threads.append(pump)
                    pump.start()

    def _pump(self, source: socket.socket, sink: socket.socket, asks: bool) -> None:
        gone = False
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if asks and self.swallows.is_set() and self._word in data:
                    gone = True
                    self.swallowed.set()
                if not gone:
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)
