"""A client's way to a link: what it asks for, each way in turn, the handshake's end in time, and nothing left open."""

from __future__ import annotations

import dataclasses
import socket
from types import SimpleNamespace
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_link.blocking import dial
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS
from tenfold_link.wire import handshake, sockets
from tenfold_link.wire.frames import FrameKind
from tenfold_protos import link_pb2

NAMES = {name: getattr(socket, name) for name in dir(socket) if name.isupper()}
SETTINGS = dataclasses.replace(DEFAULT_LINK_SETTINGS, hello_seconds=5.0)
UNIX, TCP = {"unix_name": b"there"}, {"tcp_port": 9000}


class Sock:
    """What is done to it is noted; `fails` is raised by its connecting."""

    fails: Exception | None = None

    def __init__(self, family: int, *done: Any) -> None:
        self.family, self.done = family, list(done)
        self.closed = False

    def settimeout(self, seconds: float) -> None:
        self.done.append(("settimeout", seconds))

    def connect(self, where: Any) -> None:
        self.done.append(("connect", where))
        if self.fails is not None:
            raise self.fails


class Net:
    """Sockets, the clock, and the other end of handshakes, played."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.made: list[Sock] = []
        self.begun: list[Any] = []
        self.agreed: list[Any] = []
        self.greetings: list[Any] = []
        #: What each read of the greeting gives; None takes `seconds`.
        self.headers: list[Any] = [None, link_pb2.LinkWelcome(task="it").SerializeToString()]
        self.seconds, self.now = 1.0, 100.0
        self.refused: Exception | None = None
        names = {**NAMES, "socket": self.socket, "create_connection": self.create_connection}
        monkeypatch.setattr(dial, "socket", SimpleNamespace(**names))
        monkeypatch.setattr(dial, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(sockets, "close", lambda sock: setattr(sock, "closed", True))
        monkeypatch.setattr(handshake, "begin", self.begin)
        monkeypatch.setattr(handshake, "agree", self.agree)
        monkeypatch.setattr(handshake.Greeting, "receive", self.receive)
        monkeypatch.setattr(handshake.Greeting, "close", lambda greeting: self.greetings.append(greeting))

    def socket(self, family: int, kind: int) -> Sock:
        assert kind == socket.SOCK_STREAM
        self.made.append(Sock(family))
        return self.made[-1]

    def create_connection(self, where: Any, timeout: float) -> Sock:
        if self.refused is not None:
            raise self.refused
        self.made.append(Sock(socket.AF_INET, ("create", where, timeout)))
        return self.made[-1]

    def begin(self, sock: Any, answer: Any, settings: Any, *, always_reads: bool) -> str:
        self.begun.append((sock, always_reads))
        return "arena"

    def receive(self, sock: Any) -> Any:
        found = self.headers.pop(0)
        if found is None:
            self.now += self.seconds
        elif isinstance(found, Exception):
            raise found
        return found

    def agree(self, sock: Any, greeting: Any, message: Any, arena: Any, settings: Any, *, version: int) -> str:
        assert greeting._kind is FrameKind.WELCOME
        self.agreed.append((sock, message.task, arena, version))
        return "agreed"


@pytest.fixture
def net(monkeypatch: pytest.MonkeyPatch) -> Net:
    return Net(monkeypatch)


def made(sock: Any, **options: Any) -> Any:
    return sock, options


def connect(answer: dict[str, Any], peer: str = "", **more: Any) -> Any:
    offered = link_pb2.OpenLinkResponse(task="/job:ps", **answer)
    return dial.connect(offered, "host:1", peer=peer, settings=SETTINGS, make=made, **more)  # type: ignore[arg-type]


def test_a_unix_socket_comes_first_and_without_tls(net: Net) -> None:
    sock, options = connect({**UNIX, **TCP, "tls": True})

    assert net.made == [sock]
    assert (sock.family, sock.closed) == (socket.AF_UNIX, False)
    assert sock.done == [("settimeout", 5.0), ("connect", "\0there")]
    assert options == {"peer": "/job:ps", "settings": SETTINGS, "agreed": "agreed"}
    assert (net.begun, net.agreed) == ([(sock, False)], [(sock, "it", "arena", 1)])
    assert len(net.greetings) == 1


def test_over_tcp_where_the_answer_came_from(net: Net) -> None:
    sock, options = connect({**TCP, "version": 1}, peer="the master")
    assert sock.done == [("create", ("host", 9000), 5.0), ("settimeout", 5.0)]
    assert options["peer"] == "the master"
    net.headers.append(link_pb2.LinkWelcome().SerializeToString())
    offered = link_pb2.OpenLinkResponse(tcp_port=9000)
    nameless: Any = dial.connect(offered, "host:1", settings=SETTINGS, make=made)  # type: ignore[arg-type]
    assert nameless[1]["peer"] == "host:1"


def test_tls_is_spoken_before_the_first_frame(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    secured: list[Any] = []

    class Tls:
        family, closed, heard = socket.AF_INET, False, 0

        def __init__(self, sock: Any, context: Any, *, server_hostname: str) -> None:
            self.arguments = sock, context, server_hostname
            secured.append(self)

        def handshake(self) -> bool:
            return self.heard == 2

        def hear(self) -> None:
            self.heard += 1

    monkeypatch.setattr(dial, "TlsSocket", Tls)
    credentials: Any = SimpleNamespace(certificates=SimpleNamespace(client_context=lambda: "context"))
    sock, _ = connect({**TCP, "tls": True}, credentials=credentials)
    assert (secured, sock.heard) == ([sock], 2)
    assert sock.arguments == (net.made[0], "context", "host")
    assert net.begun == [(sock, False)]
    with pytest.raises(errors.UnavailableError, match="no certificate is set here"):
        connect({**TCP, "tls": True})
    assert net.made[1].closed


@pytest.mark.parametrize(("seconds", "in_time"), [(5.0, True), (5.1, False)])
def test_the_handshake_has_its_time(net: Net, seconds: float, in_time: bool) -> None:
    net.seconds = seconds
    if in_time:
        connect(TCP)
    else:
        with pytest.raises(errors.UnavailableError, match=r"No link to /job:ps at host:1: TCP host:9000: no answer in"):
            connect(TCP)
    assert (net.made[0].closed, len(net.greetings), len(net.agreed)) == (not in_time, 1, in_time)


def test_each_way_is_tried_and_named(net: Net, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sock, "fails", ConnectionRefusedError("nobody there"))
    sock, _ = connect({**UNIX, **TCP})
    assert [each.closed for each in net.made] == [True, False]
    assert sock is net.made[1]
    net.refused = OSError("no route")
    with pytest.raises(errors.UnavailableError) as caught:
        connect({**UNIX, **TCP})
    assert caught.value.message == (
        "No link to /job:ps at host:1: Unix socket @there: nobody there; TCP host:9000: no route."
    )
    assert len(net.greetings) == 3, "where none could connect there is none"
    net.refused, net.headers = None, [ValueError("a fault of ours")]
    with pytest.raises(ValueError, match="a fault of ours"):
        connect(TCP)
    assert net.made[-1].closed


def test_a_version_that_is_not_spoken_here_is_not_tried(net: Net) -> None:
    with pytest.raises(errors.FailedPreconditionError, match="/job:ps"):
        connect({**TCP, "version": 99})
    assert net.made == []


@pytest.mark.parametrize("tls", [True, False])
def test_a_link_is_asked_for_and_made_of_the_answer(monkeypatch: pytest.MonkeyPatch, tls: bool) -> None:
    def ask(request: link_pb2.OpenLinkRequest) -> Any:
        assert (request.tls, request.tcp_only) == (tls, True)
        return "answer"

    calls: list[Any] = []
    monkeypatch.setattr(dial, "connect", lambda *arguments, **more: (calls.append((arguments, more)), "link")[1])
    settings = dataclasses.replace(SETTINGS, mode="tcp")
    credentials: Any = SimpleNamespace(of=lambda address: object() if tls and address == "host:1" else None)
    assert dial.open_link(ask, "host:1", settings=settings, credentials=credentials) == "link"  # type: ignore[comparison-overlap]
    assert calls == [(("answer", "host:1"), {"settings": settings, "credentials": credentials})]


def test_where_links_are_off_none_is_asked_for() -> None:
    off = dataclasses.replace(SETTINGS, mode="off")
    with pytest.raises(errors.FailedPreconditionError, match="TENFOLD_LINK=off"):
        dial.open_link(lambda request: pytest.fail("it was asked"), "host:1", settings=off, credentials=NO_CREDENTIALS)
