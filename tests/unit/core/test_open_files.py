"""The limit of open files: raised, told where it is too low, and what is said where it is reached."""

from __future__ import annotations

import errno
import logging
import os
import resource
import socket
from typing import TYPE_CHECKING

import pytest

from support.few_files import few_files
from tenfold_core import errors, open_files
from tenfold_core.access.gate import Gate
from tenfold_core.access.peer_user import CAN_TELL, peer_user

if TYPE_CHECKING:
    from collections.abc import Iterator

NONE = resource.RLIM_INFINITY


class Limits:
    """RLIMIT_NOFILE of a process that the test makes up."""

    def __init__(self, soft: int, hard: int, refuses: bool = False) -> None:
        self.now, self._refuses = (soft, hard), refuses

    def get(self, which: int) -> tuple[int, int]:
        assert which == resource.RLIMIT_NOFILE
        return self.now

    def set(self, which: int, wanted: tuple[int, int]) -> None:
        assert which == resource.RLIMIT_NOFILE
        if self._refuses:
            raise PermissionError("not here")
        self.now = wanted


@pytest.mark.parametrize(
    ("soft", "hard", "then"),
    [
        (1024, 524_288, 524_288),
        (1024, NONE, open_files.ENOUGH),
        (1024, 1 << 30, open_files.ENOUGH),
        (1 << 21, 1 << 30, 1 << 21),
        (4096, 4096, 4096),
        (NONE, NONE, None),
    ],
)
def test_it_is_raised_as_far_as_it_may_be(
    monkeypatch: pytest.MonkeyPatch, soft: int, hard: int, then: int | None
) -> None:
    limits = Limits(soft, hard)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)

    assert open_files.attainable() == then
    assert open_files.raise_limit() == then
    assert limits.now[1] == hard


def test_it_stays_where_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = Limits(1024, 4096, refuses=True)
    monkeypatch.setattr(resource, "getrlimit", limits.get)
    monkeypatch.setattr(resource, "setrlimit", limits.set)

    assert open_files.raise_limit() == 1024


def test_a_limit_that_is_too_low_is_told_once_for_each_larger_need(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(resource, "getrlimit", Limits(1024, 1024).get)
    shortage = open_files.Shortage("/job:ps/replica:0/task:0")

    for tasks in (10, 100, 100, 50, 200):
        shortage.look(open_files.needed_by_task(tasks), f"a cluster of {tasks} tasks")

    assert [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING] == [
        "/job:ps/replica:0/task:0 may have 1024 files and sockets open, and a cluster of "
        f"{tasks} tasks needs about {needed}: connections will be refused. {open_files.REMEDY}."
        for tasks, needed in ((100, 1856), (200, 3456))
    ]


def test_no_limit_is_never_too_low(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(resource, "getrlimit", Limits(NONE, NONE).get)

    open_files.Shortage("it").look(10**9, "anything")

    assert not caplog.records


def test_words_name_the_limit_and_the_way_out() -> None:
    few = open_files.words(OSError(errno.EMFILE, "Too many open files"))

    assert f"all {open_files.limit()} files and sockets open" in few
    assert "RLIMIT_NOFILE" in few
    assert "ulimit -n 65536" in few
    assert "fs.file-max" in open_files.words(OSError(errno.ENFILE, "Too many open files in system"))
    assert open_files.words(OSError(errno.ECONNREFUSED, "Connection refused")) == "[Errno 111] Connection refused"


@pytest.fixture
def listening() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as sock:
        sock.setblocking(False)
        yield sock


def test_the_reserve_takes_those_who_wait_and_tells_them(
    listening: socket.socket, caplog: pytest.LogCaptureFixture
) -> None:
    reserve = open_files.Reserve("The port")
    peers = [socket.create_connection(listening.getsockname(), 30) for _ in range(3)]
    with few_files():
        with pytest.raises(OSError, match="Too many open files"):
            listening.accept()
        for _ in peers:
            reserve.turn_away(listening, lambda sock: sock.sendall(b"later"))
        with pytest.raises(BlockingIOError):
            reserve.turn_away(listening, lambda sock: sock.sendall(b"later"))

    assert [(peer.recv(100), peer.recv(100)) for peer in peers] == [(b"later", b"")] * 3
    assert len([record for record in caplog.records if "The port sends connections away" in record.message]) == 1
    for each in peers:
        each.close()
    reserve.close()
    reserve.close()


def test_a_reserve_that_is_gone_says_so(listening: socket.socket) -> None:
    reserve = open_files.Reserve("The port")
    reserve.close()

    with few_files(), pytest.raises(OSError, match="Too many open files"):
        reserve.turn_away(listening, lambda sock: None)
    reserve.close()


@pytest.mark.skipif(not CAN_TELL, reason="the system does not tell the user of a connection")
def test_a_user_that_cannot_be_asked_for_is_not_let_in_and_told_why(listening: socket.socket) -> None:
    with socket.create_connection(listening.getsockname(), 30) as peer:
        accepted, _ = listening.accept()
        with accepted:
            ends = accepted.getpeername(), accepted.getsockname(), accepted.family
            gate, says = Gate("/job:ps/task:0"), "cannot ask which user calls: .*RLIMIT_NOFILE"
            with few_files(), pytest.raises(errors.ResourceExhaustedError, match=says):
                gate.neighbour(*ends)
            assert peer_user(*ends) == os.geteuid()
            assert peer.fileno() >= 0
