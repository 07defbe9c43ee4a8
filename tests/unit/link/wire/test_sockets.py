"""Sockets of links: who is at the other end, how one is closed, its options, and waking a reader less often."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any

import pytest

from tenfold_link.wire import sockets
from tenfold_link.wire.sockets import LowWaterMark


class Sock:
    def __init__(self, family: int = socket.AF_INET, number: int = 3) -> None:
        self.family, self.number = family, number
        self.options: list[Any] = []
        self.closed = 0
        self.microseconds = 999

    def fileno(self) -> int:
        return self.number

    def setsockopt(self, *option: int) -> None:
        self.options.append(option)

    def getsockopt(self, *option: int) -> bytes:
        if option != (socket.IPPROTO_TCP, socket.TCP_INFO, 72):
            raise OSError
        return bytes(68) + self.microseconds.to_bytes(4, sys.byteorder)

    def close(self) -> None:
        self.closed += 1


class Apart:
    def __init__(self) -> None:
        self.closed: list[Any] = []

    def close(self, closing: Any) -> None:
        self.closed.append(closing.__self__)


def test_the_owner_of_a_unix_socket() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        assert sockets.owner(ours) == os.getuid() == sockets.user()
        assert sockets.is_own(ours)
        assert sockets.may_share_memory(ours)


@pytest.mark.parametrize(("uid", "own"), [(0, True), (1_234, True), (1_235, False), (-1, False)])
def test_the_same_user_and_root_are_own(monkeypatch: pytest.MonkeyPatch, uid: int, own: bool) -> None:
    monkeypatch.setattr(sockets, "user", lambda: 1_234)
    monkeypatch.setattr(sockets, "owner", lambda _: uid)
    sock: Any = Sock()
    assert sockets.is_own(sock) is own
    assert sockets.may_share_memory(sock) is own


def test_one_that_cannot_be_asked_is_not_own(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Any) -> int:
        raise OSError

    monkeypatch.setattr(sockets, "owner", fails)
    assert not sockets.is_own(Sock())  # type: ignore[arg-type]


def test_a_system_that_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert sockets.owner(Sock()) == -1  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("family", "number", "own", "apart"),
    [
        (socket.AF_UNIX, 3, False, True),
        (socket.AF_UNIX, 0, False, True),
        (socket.AF_UNIX, 3, True, False),
        (socket.AF_UNIX, -1, False, False),
        (socket.AF_INET, 3, False, False),
    ],
)
def test_what_another_user_may_have_filled_is_closed_apart(
    monkeypatch: pytest.MonkeyPatch, family: int, number: int, own: bool, apart: bool
) -> None:
    elsewhere, sock = Apart(), Sock(family, number)
    monkeypatch.setattr(sockets, "apart", elsewhere)
    monkeypatch.setattr(sockets, "is_own", lambda _: own)
    sockets.close(sock)  # type: ignore[arg-type]
    assert (elsewhere.closed == [sock]) is apart
    assert sock.closed == (not apart)


BUFFERS = [(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20), (socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)]
TCP = [
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 5),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 5),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 15_000),
]


def test_options_of_a_unix_socket() -> None:
    sock: Any = Sock(socket.AF_UNIX)
    sockets.tune(sock)
    assert sock.options == BUFFERS


def largest(sending: int, receiving: int, growing: int = 4 << 20) -> Any:
    """What the system allows: fixed buffers, and those that grow by themselves."""
    return {
        "core/wmem_max": sending,
        "core/rmem_max": receiving,
        "ipv4/tcp_wmem": growing,
        "ipv4/tcp_rmem": growing,
    }.__getitem__


@pytest.mark.parametrize(
    ("sending", "receiving", "buffers"),
    [(4 << 20, 4 << 20, BUFFERS), ((4 << 20) - 1, 4 << 20, BUFFERS[1:]), (4 << 20, (4 << 20) - 1, BUFFERS[:1])],
)
def test_options_of_a_tcp_socket(
    monkeypatch: pytest.MonkeyPatch, sending: int, receiving: int, buffers: list[Any]
) -> None:
    monkeypatch.setattr(sockets, "_largest_buffer", largest(sending, receiving, 64 << 20))
    sock: Any = Sock()
    sockets.tune(sock)
    assert sock.options == [TCP[0], *buffers, *TCP[1:]]


@pytest.mark.parametrize(
    ("most", "growing", "sizes"),
    [
        (64 << 20, 4 << 20, [16 << 20, 16 << 20]),
        (5 << 20, 4 << 20, [5 << 20, 5 << 20]),
        (16 << 20, 32 << 20, []),
        (16 << 20, (32 << 20) - 1, [16 << 20, 16 << 20]),
        (4 << 20, 8 << 20, []),
        ((4 << 20) - 1, 4 << 20, []),
    ],
)
def test_a_far_peer_has_more_under_way(
    monkeypatch: pytest.MonkeyPatch, most: int, growing: int, sizes: list[int]
) -> None:
    """By a buffer of a fixed size, unless the system lets its own grow further."""
    monkeypatch.setattr(sockets, "_largest_buffer", largest(most, most, growing))
    sock: Any = Sock()
    sock.microseconds = 1000
    sockets.tune(sock)
    assert [size for _, option, size in sock.options if option in (socket.SO_SNDBUF, socket.SO_RCVBUF)] == sizes


def test_the_largest_buffer_is_the_system_s() -> None:
    for name in ("core/rmem_max", "ipv4/tcp_rmem"):
        with open(f"/proc/sys/net/{name}") as file:
            assert sockets._largest_buffer(name) == int(file.read().split()[-1])
    assert sockets._largest_buffer("core/no_such_thing") == 0


def test_the_round_trip_is_the_system_s(monkeypatch: pytest.MonkeyPatch) -> None:
    sock: Any = Sock()
    sock.microseconds = 250_000
    assert sockets.round_trip(sock) == 0.25
    sock.getsockopt = lambda *_: b"short"
    assert sockets.round_trip(sock) == 0
    sock.getsockopt = Sock().getsockopt
    monkeypatch.setattr(socket, "TCP_INFO", 1_000)
    with socket.socket(socket.AF_UNIX) as unix:
        assert sockets.round_trip(unix) == 0
    monkeypatch.delattr(socket, "TCP_INFO")
    assert sockets.round_trip(sock) == 0


def test_processes_of_one_host_have_one_identity(monkeypatch: pytest.MonkeyPatch) -> None:
    identity = sockets.host_identity()
    boot, _, namespace = identity.partition("/")
    assert len(boot) == 36
    assert int(namespace) == os.stat("/proc/self/ns/net").st_ino

    def fails(*_: Any) -> None:
        raise OSError

    monkeypatch.setattr(os, "stat", fails)
    assert sockets.host_identity() == ""


def test_a_reader_is_woken_for_what_it_waits_for() -> None:
    sock: Any = Sock()
    mark = LowWaterMark(sock)
    assert not mark.is_set
    mark.follow(1)
    mark.follow(0)
    assert sock.options == [], "that is how it is anyway"
    for awaited in (100, 100, 1 << 30, 512 << 10, 0, 0):
        mark.follow(awaited)
        assert mark.is_set is (awaited > 1)
    assert [value for _, _, value in sock.options] == [100, 512 << 10, 1]
    assert {option[:2] for option in sock.options} == {(socket.SOL_SOCKET, socket.SO_RCVLOWAT)}


def test_a_link_that_was_closed_meanwhile_is_no_error() -> None:
    def fails(*_: int) -> None:
        raise OSError

    sock: Any = Sock()
    sock.setsockopt = fails
    LowWaterMark(sock).follow(100)
