"""The sockets that the control service listens on."""

from __future__ import annotations

import socket

from tenfold_control_api.main import listening_sockets


def test_answers_leave_at_once() -> None:
    (listening,) = listening_sockets("127.0.0.1", 0)
    with listening, socket.create_connection(listening.getsockname()) as client:
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            assert client.getpeername() == listening.getsockname()
