"""First frames where descriptors get lost: this process may open no more files, or the peer sent too many."""

from __future__ import annotations

import array
import errno
import os
import socket
from typing import TYPE_CHECKING

import pytest

from support.few_files import few_files
from tenfold_core.open_files import is_out_of_files
from tenfold_link.link_settings import LinkSettings
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import FrameKind, pack
from tenfold_protos import link_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator

HELLO = pack(FrameKind.HELLO, header=b"")


@pytest.fixture
def pair() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


@pytest.mark.parametrize("free", [0, 1])
def test_descriptors_that_found_no_room(pair: tuple[socket.socket, socket.socket], free: int) -> None:
    ours, theirs = pair
    greeting = handshake.Greeting(FrameKind.HELLO)
    fds = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
    socket.send_fds(theirs, [HELLO], fds)

    with few_files(free), pytest.raises(OSError, match="Too many open files") as lost:
        greeting.receive(ours)

    assert is_out_of_files(lost.value)
    for fd in fds:
        os.close(fd)
    greeting.close()


def test_more_descriptors_than_a_hello_has(pair: tuple[socket.socket, socket.socket]) -> None:
    ours, theirs = pair
    greeting = handshake.Greeting(FrameKind.HELLO)
    fds = array.array("i", [0, 1, 2])
    theirs.sendmsg([HELLO], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)])

    with pytest.raises(ProtocolError, match="more than 2 descriptors"):
        greeting.receive(ours)

    greeting.close()


def test_no_arena_where_no_file_may_be_opened() -> None:
    with few_files(), pytest.raises(OSError, match="Too many open files"):
        handshake.make_arena(LinkSettings())


def test_a_dial_that_runs_out_of_files_names_it() -> None:
    text = handshake.failure(("ps-0", 2223), OSError(errno.EMFILE, "Too many open files"))

    assert text.startswith("TCP ps-0:2223: this process has all ")
    assert "RLIMIT_NOFILE" in text


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_an_arena_without_a_file_is_refused_where_no_more_may_be_opened(
    monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def fail(*_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(handshake, "Arena", fail)

    with pytest.raises(OSError, match=os.strerror(number)):
        handshake.make_arena(LinkSettings())


def test_a_link_goes_on_without_an_arena_where_the_system_gives_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(handshake, "Arena", fail)

    assert handshake.make_arena(LinkSettings()) is None


@pytest.mark.parametrize(
    ("mode", "name", "port", "families"),
    [
        ("auto", b"name", 7, [socket.AF_UNIX, socket.AF_UNSPEC]),
        ("auto", b"", 7, [socket.AF_UNSPEC]),
        ("auto", b"name", 0, [socket.AF_UNIX]),
        ("tcp", b"name", 7, [socket.AF_UNSPEC]),
        ("tcp", b"name", 0, []),
    ],
)
def test_what_is_dialled(mode: str, name: bytes, port: int, families: list[int]) -> None:
    answer = link_pb2.OpenLinkResponse(unix_name=name, tcp_port=port)

    found = handshake.targets(answer, "[::1]:99", LinkSettings(mode=mode))

    assert [family for family, _ in found] == families
    assert not port or found[-1][1] == ("::1", 7)
