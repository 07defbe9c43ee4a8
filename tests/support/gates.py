"""A place where programs under test come to and wait, until the test tells each a word; for tests with real runs."""

from __future__ import annotations

import socket

from support.task_processes import PATIENCE


class Gate:
    """Where tasks come to and wait; each is let go with a word."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.there: dict[str, socket.socket] = {}

    def wait_for(self, *names: str, seconds: float = PATIENCE) -> None:
        """Until the tasks ("worker/0 1": the task and its attempt) have come, each within so many seconds."""
        self._server.settimeout(seconds)
        while not set(names) <= self.there.keys():
            connection, _ = self._server.accept()
            connection.settimeout(PATIENCE)
            self.there[connection.recv(100).decode()] = connection

    def tell(self, name: str, word: str = "go") -> None:
        with self.there.pop(name) as connection:
            connection.sendall(word.encode())

    def close(self) -> None:
        for connection in (self._server, *self.there.values()):
            connection.close()
