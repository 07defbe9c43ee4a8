"""What counts as moving, on a connection over which nothing is heard."""

from __future__ import annotations

import socket
import struct
import sys
from typing import Any

import pytest

from tenfold_link.wire import moving as moving_module
from tenfold_link.wire.moving import LEAST_RATE, Moving


@pytest.fixture
def moving() -> Moving:
    with socket.socket(socket.AF_UNIX) as sock:
        made = Moving(sock)
    made.moved(0, 100.0)
    return made


def test_a_slow_message_moves_and_pings_do_not(moving: Moving) -> None:
    assert moving.moved(int(LEAST_RATE * 2.5), 102.5)
    assert not moving.moved(int(LEAST_RATE * 2.5) + 48, 105.0)
    assert not moving.moved(int(LEAST_RATE * 2.5) + 48, 107.5)


def test_two_looks_at_once_need_no_more_than_a_moment_s_worth(moving: Moving) -> None:
    assert not moving.moved(48, 100.0)
    assert moving.moved(48 + int(LEAST_RATE), 100.0)


def test_of_a_unix_socket_counts_what_it_took() -> None:
    with socket.socket(socket.AF_UNIX) as sock:
        moving = Moving(sock)
    assert not moving.look()
    assert moving.look(1 << 20)
    assert not moving.look(1 << 20)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux counts what a peer has taken")
def test_what_the_peer_s_host_has_taken_counts_without_being_read() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        socket.create_connection(listening.getsockname()) as ours,
        listening.accept()[0] as theirs,
    ):
        sending, receiving = Moving(ours), Moving(theirs)
        ours.sendall(bytes(100_000))
        # once they are all there, most of them are acknowledged, too
        theirs.recv(100_000, socket.MSG_PEEK | socket.MSG_WAITALL)
        assert receiving.look()
        assert sending.look()
        assert not receiving.look()


def test_the_first_bytes_count_from_none() -> None:
    for bytes_moved, fast in ((127, False), (128, True)):
        with socket.socket() as sock:
            fresh = Moving(sock)
        assert fresh.moved(bytes_moved, fresh._since + 0.125) is fast


class Sock:
    """Says of itself what the test says."""

    def __init__(self, said: bytes | OSError, family: int = socket.AF_INET) -> None:
        self.said, self.family, self.asked = said, family, 0

    def getsockopt(self, *_: int) -> bytes:
        self.asked += 1
        if isinstance(self.said, OSError):
            raise self.said
        return self.said


def counts(acknowledged: int, received: int) -> bytes:
    return bytes(120) + struct.pack("=QQ", acknowledged, received)


def test_what_the_system_does_not_tell_does_not_move(monkeypatch: pytest.MonkeyPatch) -> None:
    much = 1 << 40
    for said, family, platform, asked, moves in (
        (counts(much, 0), socket.AF_INET, "linux", 1, True),
        (counts(0, much), socket.AF_INET6, "linux", 1, True),
        (counts(0, 0), socket.AF_INET, "linux", 1, False),
        (counts(much, 0)[:-1], socket.AF_INET, "linux", 1, False),
        (OSError("closed"), socket.AF_INET, "linux", 1, False),
        (counts(much, 0), socket.AF_UNIX, "linux", 0, False),
        (counts(much, 0), socket.AF_INET, "darwin", 0, False),
    ):
        monkeypatch.setattr(moving_module.sys, "platform", platform)
        sock: Any = Sock(said, family)
        assert (Moving(sock).look(), sock.asked) == (moves, asked), (said, family, platform)
        # where the system tells, what a buffer of this host took does not count
        assert Moving(sock).look(much) == (moves or not asked), (said, family, platform)
