"""A tunnel's steps in order: who is let in, what is connected, what ends it, and in which words. No sockets.

tests/cluster/test_tunnel.py has real ones, with TLS.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
import ssl
import threading
from typing import Any

import pytest

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY, Caller
from tenfold_core.access.roles import Role
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.handler import Failure
from tenfold_services.tunnel import tunnel as tunnel_module
from tenfold_services.tunnel.relay import TunnelSettings
from tenfold_services.tunnel.tunnel import BackgroundTunnel, Tunnel, _why

OWNER, STRANGER = Caller(Role.ADMIN, "user 1"), Caller(Role.NONE, "user 2")
PEER = ("1.2.3.4", 5)
LOGGER = "tenfold_services.tunnel.tunnel"


class Sock:
    def __init__(self, name: str, log: list[Any], certificate: Any = None) -> None:
        self.name, self.log, self.certificate = name, log, certificate

    def close(self) -> None:
        self.log.append(("close", self.name))


class TlsSock(Sock):
    """A TlsSocket."""


class FakeAccepting:
    def __init__(self, port: str, gate: Any, places: Any, take: Any, **more: Any) -> None:
        self.port, self.gate, self.places, self.take, self.more = port, gate, places, take, more
        self.log: list[Any] = []

    def watch(self, *listening: Any) -> None:
        self.log += listening

    def close(self) -> None:
        self.log.append("closed")


class World:
    """What a tunnel touches, in the order in which it does; `fails` has steps that raise."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
        self.log: list[Any] = []
        self.fails: dict[str, BaseException] = {}
        self.certificate: Any = None
        self.first_words = b"hello"
        self.refused: list[tuple[Any, str, Failure]] = []
        self.noted: list[tuple[Any, ...]] = []
        self.caplog = caplog
        for name in ("listening_sockets", "tune", "connected", "secured", "refuse"):
            monkeypatch.setattr(tunnel_module, name, getattr(self, name))
        monkeypatch.setattr(tunnel_module, "AcceptLoop", FakeAccepting)
        monkeypatch.setattr(tunnel_module, "TlsSocket", TlsSock)
        monkeypatch.setattr(tunnel_module, "role_of", lambda shown: shown)
        monkeypatch.setattr(tunnel_module, "name_of", lambda shown: "ps0")
        world = self

        class FakeRelay:
            def __init__(self, near: Any, far: Any, settings: Any, change: Any) -> None:
                self.ends, self.change = (near.name, far.name), change

            async def run(self) -> None:
                world.step("relay", self.ends, self.change)

        monkeypatch.setattr(tunnel_module, "Relay", FakeRelay)
        note = lambda caller, action, why, **more: self.noted.append((caller, action, why, more))  # noqa: E731
        done = lambda caller, action, what, **more: self.noted.append((caller, action, what, more))  # noqa: E731
        monkeypatch.setattr(audit.refusals, "note", note)
        monkeypatch.setattr(audit, "done", done)
        loop = asyncio.get_running_loop()
        monkeypatch.setattr(loop, "sock_recv", self.sock_recv, raising=False)
        monkeypatch.setattr(loop, "sock_sendall", self.sock_sendall, raising=False)

    def step(self, name: str, *more: Any) -> None:
        self.log.append((name, *more))
        if name in self.fails:
            raise self.fails[name]

    async def listening_sockets(self, host: str, port: int) -> Any:
        self.step("listen", host, port)
        return ["first", "second"], 4711

    def tune(self, sock: Sock, seconds: int) -> None:
        self.step("tune", sock.name, seconds)

    async def connected(self, family: int, where: Any) -> Sock:
        assert family == socket.AF_INET
        self.step("connect", *where)
        return Sock("far", self.log)

    async def secured(self, sock: Sock, context: Any, server: str | None) -> Sock:
        self.step("secure", sock.name, context, server)
        return TlsSock(f"{sock.name} with TLS", self.log, self.certificate)

    async def refuse(self, sock: Any, peer: str, failure: Failure) -> None:
        self.refused.append((sock.name, peer, failure))
        self.step("refuse")

    async def sock_recv(self, sock: Sock, size: int) -> bytes:
        self.step("hear", sock.name, size)
        return self.first_words

    async def sock_sendall(self, sock: Sock, data: bytes) -> None:
        self.step("pass on", sock.name, data)

    async def carry(self, tunnel: Tunnel, caller: Caller = OWNER) -> None:
        """One connection, as it is accepted, to its end."""
        with self.caplog.at_level(logging.INFO, LOGGER):
            near: Any = Sock("near", self.log)
            await tunnel._take(near, PEER, caller)


@pytest.fixture
async def world(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> World:
    return World(monkeypatch, caplog)


def made(**more: Any) -> Tunnel:
    return Tunnel("127.0.0.1:0", "[::1]:3222", lambda: "context", **more)  # type: ignore[arg-type, return-value]


THERE = "[::1]:3222"


# -- starting and stopping ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("reverse", [False, True])
async def test_it_listens_within_its_bounds(world: World, reverse: bool) -> None:
    tunnel = made(reverse=reverse, settings=TunnelSettings(connections=3))
    assert await tunnel.start() == 4711
    accepting: Any = tunnel._accepting
    assert world.log == [("listen", "127.0.0.1", 0)]
    assert accepting.log == ["first", "second"]
    assert accepting.port == "the tunnel's port 4711"
    assert accepting.more == {"limit": "TENFOLD_TUNNEL_CONNECTIONS"}
    assert accepting.places.most == 3
    assert (accepting.gate is None) is reverse, "in reverse a certificate shows who it is"
    task = accepting.take(Sock("near", world.log), PEER, OWNER)
    assert len(tunnel.connections) == 1
    assert task.get_name() == "tunnel:1.2.3.4:5"
    await tunnel.stop()
    assert accepting.log[-1] == "closed"
    assert task.cancelled()
    assert not len(tunnel.connections)


async def test_one_that_never_began_stops(world: World) -> None:
    await made().stop()
    assert world.log == []


@pytest.mark.parametrize(("listen", "to"), [("nowhere", "a:1"), ("a:1", "nowhere"), ("a:1", "b:0")])
async def test_addresses_are_checked(listen: str, to: str) -> None:
    with pytest.raises(ValueError, match="port"):
        Tunnel(listen, to, lambda: None)  # type: ignore[arg-type, return-value]


# -- outwards ----------------------------------------------------------------------------------------------------------


async def test_outwards_it_goes_on_over_tls_once_the_task_has_spoken(world: World) -> None:
    tunnel = made()
    await world.carry(tunnel)
    assert world.log == [
        ("tune", "near", 60),
        ("connect", "::1", 3222),
        ("tune", "far", 60),
        ("secure", "far", "context", "::1"),
        ("hear", "far with TLS", 256 << 10),
        ("pass on", "near", b"hello"),
        ("relay", ("near", "far with TLS"), None),
        ("close", "near"),
        ("close", "far with TLS"),
    ]
    assert world.noted == [(OWNER, "tunnel", "opened", {"address": "1.2.3.4:5", "to": THERE})]
    assert world.refused == []


async def test_who_is_let_in_is_known_from_then_on(world: World) -> None:
    tunnel = made()
    tunnel._places.add("other", "group", known=False)  # type: ignore[arg-type]
    seen: list[int] = []
    recognize = tunnel._places.recognize
    tunnel._places.recognize = lambda task: (seen.append(task is asyncio.current_task()), recognize(task))  # type: ignore[method-assign, assignment, func-returns-value]
    await world.carry(tunnel)
    assert seen == [True]


@pytest.mark.parametrize(("reverse", "adds"), [(False, True), (True, False)])
async def test_a_token_is_added_outwards_alone(world: World, reverse: bool, adds: bool) -> None:
    world.certificate = Role.REGISTER
    await world.carry(made(reverse=reverse, token=lambda: "token"))
    (change,) = (step[2] for step in world.log if step[0] == "relay")
    assert (change is not None) is adds
    if adds:
        assert change(memoryview(frames.PREFACE)) == frames.PREFACE


async def test_another_user_is_refused(world: World) -> None:
    await world.carry(made(), STRANGER)
    why = "this tunnel is for the user who runs it, on this machine; this is user 2"
    assert world.noted == [(STRANGER, "tunnel", why, {"address": "1.2.3.4:5", "to": THERE})]
    assert world.refused == [("near", "1.2.3.4:5", Failure(errors.PERMISSION_DENIED, f"tenfold tunnel: {why}"))]
    assert world.log == [("tune", "near", 60), ("refuse",), ("close", "near")]
    assert f"a connection from 1.2.3.4:5 is refused: {why}" in world.caplog.text


@pytest.mark.parametrize(("role", "let_in"), [(Role.READ, False), (Role.RUN, True)])
async def test_a_role_that_may_run_is_enough(world: World, role: Role, let_in: bool) -> None:
    await world.carry(made(), Caller(role, "x"))
    assert bool(world.refused) is not let_in


GONE = ConnectionResetError(errno.ECONNRESET, "whatever")


@pytest.mark.parametrize(
    ("step", "error", "text", "closed"),
    [
        ("connect", ConnectionRefusedError(errno.ECONNREFUSED, "x"), "cannot be reached: connection refused", 1),
        ("connect", TimeoutError(), "cannot be reached: no answer in time", 1),
        ("secure", EOFError(), "came to no handshake of TLS: EOFError", 2),
        ("secure", errors.invalid_argument("no such file"), "came to no handshake of TLS: no such file", 2),
        ("secure", GONE, "came to no handshake of TLS: connection reset by peer", 2),
        ("hear", TimeoutError(), "says nothing, which no server of gRPC does: no answer in time", 2),
        ("hear", GONE, "says nothing, which no server of gRPC does: connection reset by peer", 2),
    ],
)
async def test_a_task_that_cannot_be_reached(world: World, step: str, error: Exception, text: str, closed: int) -> None:
    world.fails[step] = error
    await world.carry(made())
    ((_, _, failure),) = world.refused
    assert failure == Failure(14, f"tenfold tunnel: {THERE} {text}")
    assert len([each for each in world.log if each[0] == "close"]) == closed
    assert world.log[-1][0] == "close"
    assert "relay" not in [each[0] for each in world.log]


async def test_a_task_that_ends_tls_or_hangs_up(world: World) -> None:
    error = ssl.SSLError(1, "x")
    error.reason = "CERTIFICATE_UNKNOWN"
    world.fails["hear"] = error
    await world.carry(made())
    world.fails.clear()
    world.first_words = b""
    await world.carry(made())
    assert [failure.text for _, _, failure in world.refused] == [
        f"tenfold tunnel: {THERE} ended TLS: certificate unknown",
        f"tenfold tunnel: {THERE} hung up",
    ]


async def test_a_handshake_that_is_cancelled_leaves_no_socket(world: World) -> None:
    world.fails["secure"] = asyncio.CancelledError()
    with pytest.raises(asyncio.CancelledError):
        await world.carry(made())
    assert world.log[-2:] == [("close", "far"), ("close", "near")]


@pytest.mark.parametrize("error", [GONE, TimeoutError("refuse")])
async def test_a_refused_peer_that_is_gone_is_no_error(world: World, error: Exception) -> None:
    world.fails["refuse"] = error
    await world.carry(made(), STRANGER)
    assert [record.levelname for record in world.caplog.records] == ["WARNING"]
    assert world.log[-1] == ("close", "near")


@pytest.mark.parametrize(
    ("error", "level", "text"),
    [
        (GONE, "INFO", f"a connection from 1.2.3.4:5 to {THERE} ends: connection reset by peer"),
        (TimeoutError("an end took nothing"), "INFO", f"a connection from 1.2.3.4:5 to {THERE} ends: an end took"),
        (frames.ConnectionFault(frames.Code.PROTOCOL_ERROR, "no HTTP/2"), "WARNING", "from 1.2.3.4:5 ends: no HTTP/2"),
    ],
)
async def test_a_connection_that_breaks(world: World, error: Exception, level: str, text: str) -> None:
    world.fails["relay"] = error
    await world.carry(made())
    (record,) = world.caplog.records
    assert record.levelname == level
    assert text in record.getMessage()
    assert world.refused == []
    assert world.log[-2:] == [("close", "near"), ("close", "far with TLS")]


# -- in reverse --------------------------------------------------------------------------------------------------------


async def test_in_reverse_it_speaks_tls_and_goes_on_in_the_clear(world: World) -> None:
    world.certificate = Role.REGISTER
    await world.carry(made(reverse=True), NOBODY)
    assert world.log == [
        ("tune", "near", 60),
        ("secure", "near", "context", None),
        ("connect", "::1", 3222),
        ("tune", "far", 60),
        ("relay", ("near with TLS", "far"), None),
        ("close", "near with TLS"),
        ("close", "far"),
    ]
    who = Caller(Role.REGISTER, "certificate ps0")
    assert world.noted == [(who, "tunnel", "opened", {"address": "1.2.3.4:5", "to": THERE})]


@pytest.mark.parametrize(
    ("certificate", "name", "has"),
    [(None, "nobody known", "none is shown"), (Role.RUN, "certificate ps0", "this one has run")],
)
async def test_in_reverse_a_task_s_certificate_is_asked_for(
    world: World, certificate: Any, name: str, has: str
) -> None:
    world.certificate = certificate
    await world.carry(made(reverse=True), NOBODY)
    why = f"this tunnel is for certificates with the role register; {has}"
    assert [(caller.name, what) for caller, _, what, _ in world.noted] == [(name, why)]
    assert world.refused == [
        ("near with TLS", "1.2.3.4:5", Failure(errors.PERMISSION_DENIED, f"tenfold tunnel: {why}"))
    ]


async def test_in_reverse_one_without_a_handshake_gets_no_answer(world: World) -> None:
    """It speaks TLS, or nothing that an answer could be read in."""
    world.fails["secure"] = ConnectionAbortedError(errno.ECONNABORTED, "x")
    await world.carry(made(reverse=True), NOBODY)
    assert world.refused == []
    assert "there is no handshake of TLS: software caused connection abort" in world.caplog.text
    assert world.log[-1] == ("close", "near")


# -- words -------------------------------------------------------------------------------------------------------------


def test_errors_in_words_that_name_what_to_mend() -> None:
    bad = ssl.SSLError(1, "x")
    bad.reason = "WRONG_VERSION"
    for error, text in (
        (errors.unknown("said so"), "said so"),
        (bad, "wrong version"),
        (TimeoutError(), "no answer in time"),
        (TimeoutError("words"), "words"),
        (OSError(errno.EHOSTUNREACH, "x"), "no route to host"),
        (OSError("words"), "words"),
        (socket.gaierror(-2, "Name or service not known"), "[Errno -2] Name or service not known"),
        (EOFError(), "EOFError"),
    ):
        assert _why(error) == text


# -- on a thread of its own --------------------------------------------------------------------------------------------


class Threaded:
    """A Tunnel that notes on which thread it is started and stopped."""

    def __init__(self, fails: bool = False) -> None:
        self.fails, self.log = fails, []

    async def start(self) -> int:
        self.log.append(("start", threading.current_thread().name))
        if self.fails:
            raise OSError("taken")
        return 4711

    async def stop(self) -> None:
        self.log.append(("stop", threading.current_thread().name))


@pytest.mark.parametrize("fails", [False, True])
def test_a_tunnel_has_its_own_thread_from_start_to_stop(fails: bool) -> None:
    tunnel = Threaded(fails)
    running = BackgroundTunnel(tunnel)  # type: ignore[arg-type]
    if fails:
        with pytest.raises(OSError, match="taken"):
            running.start()
    else:
        assert running.start() == 4711
    assert running._thread.daemon
    running.stop()
    running.stop()
    assert tunnel.log == [("start", "tunnel"), ("stop", "tunnel")]
    assert not running._thread.is_alive()
    assert running._loop.is_closed()
