"""The server's order: who is taken, how it stops, and that a second stop waits for what is left. Sockets are fakes."""

from __future__ import annotations

import asyncio
import logging
import socket
from typing import Any

import pytest

from tenfold_core.access.gate import Caller
from tenfold_core.access.roles import Role
from tenfold_core.open_files import TOLD
from tenfold_services.http2 import server as server_module
from tenfold_services.http2.frame_types import Code
from tenfold_services.http2.handler import Failure
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.server import Http2Server

from .peers import split

OWNER, STRANGER = Caller(Role.ADMIN, "user 1"), Caller(Role.NONE, "user 2")


class FakeAccepting:
    """What the server makes of AcceptLoop."""

    def __init__(self, port: str, gate: Any, places: Any, take: Any, **more: Any) -> None:
        self.port, self.gate, self.places, self.take, self.more = port, gate, places, take, more
        self.watched: list[Any] = []
        self.closed = 0

    def watch(self, *listening: Any) -> None:
        self.watched += listening

    def close(self) -> None:
        self.closed += 1


class FakeConnection:
    """A ConnectionSocket; `greeted` is its connection's."""

    def __init__(self, sock: Any, name: str, calls: Any, on_end: Any, caller: Any, context: Any) -> None:
        self.sock, self.name, self.calls, self.on_end, self.caller, self.context = (
            sock, name, calls, on_end, caller, context,
        )  # fmt: skip
        self.connection, self.greeted, self.closed = self, True, sock == "gone"
        self.done: list[Any] = []

    def say_goodbye(self) -> None:
        self.done.append("goodbye")

    def flush(self) -> None:
        self.done.append("flush")

    def leave(self, seconds: float) -> None:
        self.done.append(("leave", seconds))

    def look(self, seconds: float) -> None:
        self.done.append(("look", seconds))

    def close(self) -> None:
        self.on_end(self)


class Sock:
    family = socket.AF_INET


async def listening(host: str, port: int) -> tuple[list[Any], int]:
    assert (host, port) == ("localhost", 0)
    return ["first", "second"], 4711


@pytest.fixture
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "AcceptLoop", FakeAccepting)
    monkeypatch.setattr(server_module, "ConnectionSocket", FakeConnection)
    monkeypatch.setattr(server_module, "listening_sockets", listening)


async def started(**settings: Any) -> tuple[Http2Server, Any]:
    server = Http2Server(lambda path: None, Http2Settings(**settings))
    assert await server.start("localhost", 0) == 4711
    return server, server._accepting


@pytest.mark.usefixtures("fakes")
async def test_it_listens_and_accepts_within_its_bounds() -> None:
    server, accepting = await started(connections=7)
    assert accepting.port == "gRPC's port 4711"
    assert accepting.watched == ["first", "second"]
    assert accepting.places is server._places
    assert accepting.places.most == 7
    assert accepting.gate is server.calls.gate
    assert accepting.more["limit"] == "TENFOLD_HTTP2_CONNECTIONS"
    assert accepting.more["strangers"] is server.calls.strangers
    assert (server.connections, server.calls.open, server.calls.unread.bytes) == (set(), {}, 0)
    await server.stop()


@pytest.mark.usefixtures("fakes")
async def test_who_is_taken_is_a_connection_until_it_ends() -> None:
    server, accepting = await started()
    made = accepting.take(Sock(), ("1.2.3.4", 5), OWNER)
    assert (made.name, made.caller, made.context) == ("ipv4:1.2.3.4:5", OWNER, None)
    assert made.calls is server.calls
    assert len(server.connections) == 1
    server._places.add(made, "group", known=True)
    made.close()
    assert not server.connections
    assert len(server._places) == 0
    await server.stop()


@pytest.mark.usefixtures("fakes")
async def test_one_that_is_over_while_it_is_made_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """The peer is gone when the greeting is sent: nothing would ever end it, and `stop` would wait for it."""
    monkeypatch.setattr(server_module, "shown", lambda *_: "x")
    server, accepting = await started()
    assert accepting.take("gone", ("1.2.3.4", 5), OWNER) is None
    assert not server.connections
    async with asyncio.timeout(20):
        await server.stop()


@pytest.mark.usefixtures("fakes")
async def test_each_connection_gets_the_certificate_as_it_is_then() -> None:
    class Certificates:
        count = 0

        def server_context(self) -> int:
            self.count += 1
            return self.count

    server = Http2Server(lambda path: None, certificates=Certificates())  # type: ignore[arg-type]
    assert [server._take(Sock(), ("1", 2), OWNER).context for _ in range(2)] == [1, 2]  # type: ignore[union-attr, arg-type]


@pytest.mark.usefixtures("fakes")
@pytest.mark.parametrize(("begun", "greeted", "full"), [(64, 0, False), (65, 0, True), (65, 64, False), (65, 63, True)])
async def test_few_may_be_without_a_handshake(begun: int, greeted: int, full: bool) -> None:
    _, accepting = await started(handshakes=2)
    for number in range(begun):
        accepting.take(Sock(), ("1", 2), STRANGER).greeted = number < greeted
    assert accepting.more["full"]() == ("too many have begun none yet" if full else None)


@pytest.mark.usefixtures("fakes")
async def test_connections_are_looked_at_ten_times_as_often_as_they_may_stall() -> None:
    server, accepting = await started(stall_seconds=0.1)
    made = accepting.take(Sock(), ("1", 2), OWNER)
    twice = asyncio.Event()
    look = made.look
    made.look = lambda seconds: (look(seconds), twice.set() if len(made.done) > 1 else None)
    async with asyncio.timeout(20):
        await twice.wait()
    assert made.done == [("look", 0.01)] * 2
    made.close()
    await server.stop()
    assert server._look_timer is not None
    assert server._look_timer.cancelled()


@pytest.mark.usefixtures("fakes")
async def test_stopping_ends_calls_and_then_connections_and_waits_for_both() -> None:
    server, accepting = await started()
    made = accepting.take(Sock(), ("1", 2), OWNER)
    given_up: list[Failure] = []

    class Call:
        def give_up(self, failure: Failure) -> None:
            given_up.append(failure)
            made.done.append("given up")
            server.calls.over(self)

    made.host = ""
    server.calls.begin(Call(), made)
    stops = [asyncio.create_task(server.stop(0)), asyncio.create_task(server.stop(0))]
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert accepting.closed == 2
    assert made.done[:4] == ["goodbye", "flush", "given up", ("leave", 0.2)]
    assert given_up == [Failure(14, "The server is shutting down.")]
    assert not any(stop.done() for stop in stops)
    made.close()
    async with asyncio.timeout(20):
        await asyncio.gather(*stops)


@pytest.mark.usefixtures("fakes")
async def test_calls_get_their_grace() -> None:
    server, _ = await started()
    call: Any = type("Call", (), {"give_up": lambda self, failure: given_up.append(failure)})()
    given_up: list[Failure] = []
    wire: Any = type("Wire", (), {"host": ""})()
    server.calls.begin(call, wire)
    stop = asyncio.create_task(server.stop(60.0))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not stop.done()
    assert given_up == []
    server.calls.over(call)
    async with asyncio.timeout(20):
        await stop
    assert given_up == []


@pytest.mark.usefixtures("fakes")
async def test_a_call_that_does_not_end_holds_nothing_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_LINGER_SECONDS", 0.001)
    server, _ = await started()
    given_up: list[Failure] = []
    call: Any = type("Call", (), {"give_up": lambda self, failure: given_up.append(failure)})()
    wire: Any = type("Wire", (), {"host": ""})()
    server.calls.begin(call, wire)
    async with asyncio.timeout(20):
        await server.stop(0.001)
    assert len(given_up) == 1


async def test_one_that_never_listened_stops_at_once() -> None:
    await Http2Server(lambda path: None).stop(60)


async def test_where_it_cannot_listen_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fails(host: str, port: int) -> Any:
        raise OSError("taken")

    monkeypatch.setattr(server_module, "listening_sockets", fails)
    server = Http2Server(lambda path: None)
    with pytest.raises(OSError, match="taken"):
        await server.start("localhost", 0)
    await server.stop(60)


class Away:
    """A socket that is sent away."""

    def __init__(self) -> None:
        self.said, self.done = b"", []

    def send(self, data: bytes) -> None:
        self.said += data
        self.done.append("send")

    def shutdown(self, how: int) -> None:
        self.done.append(how)

    def recv(self, size: int) -> bytes:
        self.done.append("recv")
        assert size == 1 << 16
        return b""


@pytest.mark.parametrize("tls", [False, True])
async def test_who_is_sent_away_reads_why_unless_it_speaks_tls(tls: bool, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    server, sock = Http2Server(lambda path: None, certificates=object() if tls else None), Away()  # type: ignore[arg-type]
    server._say_no_room(sock)  # type: ignore[arg-type]
    if tls:
        assert (sock.said, sock.done) == (b"", [])
        return
    assert sock.done == ["send", socket.SHUT_WR, "recv"]
    ((_, _, stream, payload),) = split(sock.said)
    assert (stream, payload[:4], payload[4:8], payload[8:].decode()) == (
        0, bytes(4), Code.ENHANCE_YOUR_CALM.to_bytes(4, "big"), TOLD,
    )  # fmt: skip
