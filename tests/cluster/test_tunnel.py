"""Tunnels for TensorFlow on another host: who gets through in either direction, what arrives, and how they end.

A plaintext gRPC channel stands in for TensorFlow, which tests/interop has. Tasks take every connection for another
user's, so that what lets in is what the tunnel shows. Plain and TLS ends that are no gRPC show bytes and half-closes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from support.certs import access
from tenfold_core.access import audit
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import trusting
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_services import server as server_module
from tenfold_services.server import TaskServer
from tenfold_services.tunnel.relay import TunnelSettings
from tenfold_services.tunnel.tunnel import Tunnel

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Callable

CODES = grpc.StatusCode
PATH = "/tensorflow.MasterService/CreateSession"
WAIT_S = 20.0


@pytest.fixture
def as_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection to a task is another user's."""
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))


@asynccontextmanager
async def tunnel(to: int, context: Callable[[], ssl.SSLContext], **more: Any) -> AsyncIterator[tuple[Tunnel, int]]:
    """A tunnel to that port of this machine, and its own port."""
    made = Tunnel("127.0.0.1:0", f"localhost:{to}", context, **more)
    port = await made.start()
    try:
        yield made, port
    finally:
        await made.stop()


def connecting(settings: AccessSettings) -> Callable[[], ssl.SSLContext]:
    certificates = settings.credentials().certificates
    assert certificates is not None
    return certificates.client_context


def accepting(settings: AccessSettings) -> Callable[[], ssl.SSLContext]:
    certificates = settings.credentials().certificates
    assert certificates is not None
    return certificates.server_context


async def outcome(channel: grpc.aio.Channel) -> tuple[grpc.StatusCode, str]:
    """How a CreateSession ends, and what is said of it."""
    try:
        await channel.unary_unary(PATH)(b"", timeout=WAIT_S)
    except grpc.aio.AioRpcError as error:
        return error.code(), error.details() or ""
    return CODES.OK, ""


def plain(port: int) -> grpc.aio.Channel:
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", [("grpc.use_local_subchannel_pool", 1)])


# -- what a tunnel shows ---------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("as_strangers")
async def test_a_certificate_lets_in_a_client_that_can_show_nothing(tmp_path: Path) -> None:
    mine = access(tmp_path, "client", Role.RUN)
    async with TaskServer({"ps": [""]}, "ps", 0, access=access(tmp_path)) as server:
        async with tunnel(server.port, connecting(mine)) as (_, port), plain(port) as through:
            assert (await outcome(through))[0] is CODES.OK
        async with plain(server.port) as direct:
            assert (await outcome(direct))[0] is CODES.UNAUTHENTICATED


@pytest.mark.usefixtures("as_strangers")
async def test_a_token_does_so_too_and_may_change_under_way(tmp_path: Path) -> None:
    task = access(tmp_path, token="tenfold-new,tenfold-old")
    shown = {"token": "tenfold-old"}
    async with (
        TaskServer({"ps": [""]}, "ps", 0, access=task) as server,
        tunnel(server.port, lambda: trusting(task.tls_ca), token=lambda: shown["token"]) as (made, port),
        plain(port) as channel,
    ):
        found = [(await outcome(channel))[0]]
        for shown["token"] in ("tenfold-new", "tenfold-wrong", "tenfold-old"):
            found.append((await outcome(channel))[0])
        connections = len(made.connections)

    assert found == [CODES.OK, CODES.OK, CODES.UNAUTHENTICATED, CODES.OK]
    assert connections == 1, "all over one connection"


@pytest.mark.usefixtures("as_strangers")
async def test_a_certificate_of_a_reader_stays_a_readers(tmp_path: Path) -> None:
    mine = access(tmp_path, "reader", Role.READ)
    async with (
        TaskServer({"ps": [""]}, "ps", 0, access=access(tmp_path)) as server,
        tunnel(server.port, connecting(mine)) as (_, port),
        plain(port) as channel,
    ):
        assert (await outcome(channel))[0] is CODES.PERMISSION_DENIED


async def told(port: int) -> tuple[grpc.StatusCode, str]:
    """What a client of the tunnel is told."""
    async with plain(port) as channel:
        return await outcome(channel)


@pytest.mark.usefixtures("as_strangers")
@pytest.mark.parametrize(
    ("mine", "words"),
    [
        ("another authority's", "came to no handshake of TLS: its certificate is not good: self-signed certificate"),
        ("an expired one", "alert certificate expired"),
        ("of another cluster", "alert unknown ca"),
    ],
)
async def test_certificates_that_do_not_fit_are_told(tmp_path: Path, mine: str, words: str) -> None:
    ours, theirs = tmp_path / "ours", tmp_path / "theirs"
    task = access(ours)
    shown = {
        "another authority's": access(theirs),
        "an expired one": access(ours, "old", lasts=timedelta(minutes=-1)),
        "of another cluster": replace(access(theirs, "client"), tls_ca=task.tls_ca),
    }[mine]
    async with (
        TaskServer({"ps": [""]}, "ps", 0, access=task) as server,
        tunnel(server.port, connecting(shown)) as (_, port),
    ):
        code, said = await told(port)

    assert code is CODES.UNAVAILABLE
    assert said.startswith(f"tenfold tunnel: localhost:{server.port} ")
    assert words in said


async def test_a_port_where_nobody_listens_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nowhere = taken.getsockname()[1]
        async with tunnel(nowhere, connecting(access(tmp_path))) as (_, port):
            said = await told(port)

    assert said == (CODES.UNAVAILABLE, f"tenfold tunnel: localhost:{nowhere} cannot be reached: connection refused")
    assert f"localhost:{nowhere} cannot be reached: connection refused" in caplog.text


async def test_a_peer_that_says_nothing_is_left_in_time(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = TunnelSettings(connect_seconds=0.2)
        port_there = silent.getsockname()[1]
        async with tunnel(port_there, connecting(access(tmp_path)), settings=settings) as (_, port):
            code, said = await told(port)

    assert code is CODES.UNAVAILABLE
    assert "came to no handshake of TLS: no answer in time" in said


@pytest.mark.usefixtures("as_strangers")
async def test_what_is_no_http2_gets_no_token(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    task = access(tmp_path, token="tenfold-the-token")
    async with (
        TaskServer({"ps": [""]}, "ps", 0, access=task) as server,
        tunnel(server.port, lambda: trusting(task.tls_ca), token=lambda: "tenfold-the-token") as (_, port),
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        async with asyncio.timeout(WAIT_S):
            await reader.read()
        writer.close()

    assert "ends: what comes is no HTTP/2" in caplog.text


# -- who may use it --------------------------------------------------------------------------------------------------


async def test_another_user_gets_nowhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(audit, "refusals", audit.Refusals())
    gate = Gate("this tunnel", find_user=lambda *_: os.geteuid() + 1)
    with socket.create_server(("127.0.0.1", 0)) as far:
        far.setblocking(False)
        async with tunnel(far.getsockname()[1], connecting(access(tmp_path)), gate=gate) as (_, port):
            code, said = await told(port)
        with pytest.raises(BlockingIOError):
            far.accept()

    assert code is CODES.PERMISSION_DENIED
    assert f"for the user who runs it, on this machine; this is user {os.geteuid() + 1}" in said
    (line,) = [record.__dict__["fields"] for record in caplog.records if record.name == "tenfold.audit"]
    assert (line["action"], line["caller"]) == ("tunnel", f"user {os.geteuid() + 1}")


async def test_connections_are_bounded(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = TunnelSettings(connections=2, connect_seconds=WAIT_S)
        port_there = silent.getsockname()[1]
        async with tunnel(port_there, connecting(access(tmp_path)), settings=settings) as (made, port):
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(WAIT_S):
                assert await reader.read() == b""
            assert len(made.connections) == 2
        for each in (writer, *(writer for _, writer in held)):
            each.close()

    assert "there are 2 (TENFOLD_TUNNEL_CONNECTIONS)" in caplog.text


# -- bytes -----------------------------------------------------------------------------------------------------------


HELLO = b"hello"


class Far:
    """A server that says HELLO and then speaks no protocol: `serve(sock)` on a thread of its own, for one connection.
    With `context` it speaks TLS."""

    def __init__(self, context: ssl.SSLContext | None, serve: Callable[[socket.socket], None]) -> None:
        self._context, self._serve = context, serve
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._listening.settimeout(WAIT_S)
        self.port: int = self._listening.getsockname()[1]

    async def __aenter__(self) -> Far:
        self._running = asyncio.create_task(asyncio.to_thread(self._run))
        return self

    async def __aexit__(self, *_: object) -> None:
        async with asyncio.timeout(WAIT_S):
            await self._running

    def _run(self) -> None:
        with self._listening:
            accepted, _ = self._listening.accept()
        accepted.settimeout(WAIT_S)
        with accepted:
            sock: Any = accepted
            if self._context is not None:
                sock = TlsSocket(accepted, self._context)
                while not sock.handshake():
                    sock.hear()
            # as servers of HTTP/2 do, it says something first
            assert sock.send(HELLO) == len(HELLO)
            self._serve(sock)


def everything(sock: socket.socket) -> bytes:
    """All that comes until the peer's end of its half."""
    parts = []
    while part := sock.recv(1 << 16):
        parts.append(part)
    return b"".join(parts)


def assert_end(sock: socket.socket) -> None:
    """Nothing comes but the end."""
    assert everything(sock) == b""


def answer_at_the_end(sock: socket.socket) -> None:
    """Reads to the end of the other half, and only then says the same backwards, and its own end."""
    data = memoryview(everything(sock)[::-1])
    while data:
        data = data[sock.send(data) :]
    sock.shutdown(socket.SHUT_WR)


async def exchanged(port: int, data: bytes) -> bytes:
    """What comes back after `data` and the end of this half."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(data)
    writer.write_eof()
    async with asyncio.timeout(WAIT_S):
        found = await reader.read()
    writer.close()
    return found


async def test_every_byte_arrives_and_half_closes_are_kept(tmp_path: Path) -> None:
    data = os.urandom(3_000_001)
    task = access(tmp_path)
    async with (
        Far(accepting(task)(), answer_at_the_end) as far,
        tunnel(far.port, connecting(task)) as (_, port),
    ):
        assert await exchanged(port, data) == HELLO + data[::-1]


async def test_half_closes_are_kept_in_reverse(tmp_path: Path) -> None:
    data = os.urandom(1_000_001)
    task = access(tmp_path)
    async with (
        Far(None, answer_at_the_end) as far,
        tunnel(far.port, accepting(task), reverse=True) as (_, inner),
        tunnel(inner, connecting(task)) as (_, port),
    ):
        assert await exchanged(port, data) == HELLO + data[::-1]


async def test_an_end_that_takes_nothing_is_left_in_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    task = access(tmp_path)
    settings = TunnelSettings(stall_seconds=0.3, buffer_bytes=1 << 20)
    async with AsyncExitStack() as stack:
        released = asyncio.Event()
        loop = asyncio.get_running_loop()

        def hold(sock: socket.socket) -> None:
            asyncio.run_coroutine_threadsafe(released.wait(), loop).result(WAIT_S)

        far = await stack.enter_async_context(Far(accepting(task)(), hold))
        stack.callback(released.set)
        _, port = await stack.enter_async_context(tunnel(far.port, connecting(task), settings=settings))
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.transport.set_write_buffer_limits(0)
        async with asyncio.timeout(WAIT_S):
            with contextlib.suppress(ConnectionError):
                while True:
                    writer.write(bytes(1 << 20))
                    await writer.drain()
            with contextlib.suppress(ConnectionError):
                await reader.read()
        writer.close()

    assert "an end took less than" in caplog.text


async def test_one_end_that_stays_silent_after_the_other_has_finished_is_left_in_time(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    task = access(tmp_path)
    settings = TunnelSettings(stall_seconds=0.3)

    def read_on(sock: socket.socket) -> None:
        with contextlib.suppress(OSError):
            everything(sock)
            sock.recv(1)

    async with (
        Far(accepting(task)(), read_on) as far,
        tunnel(far.port, connecting(task), settings=settings) as (_, port),
    ):
        # Far's thread ends when the tunnel hangs up
        assert await exchanged(port, b"that is all") == HELLO


async def test_stopping_ends_connections(tmp_path: Path) -> None:
    task = access(tmp_path)
    async with Far(accepting(task)(), assert_end) as far:
        async with tunnel(far.port, connecting(task)) as (_, port):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            async with asyncio.timeout(WAIT_S):
                assert await reader.readexactly(len(HELLO)) == HELLO
        async with asyncio.timeout(WAIT_S):
            assert await reader.read() == b""
        writer.close()


# -- in reverse ------------------------------------------------------------------------------------------------------


def secure(port: int, settings: AccessSettings) -> grpc.aio.Channel:
    paths = (settings.tls_cert, settings.tls_key, settings.tls_ca)
    cert, key, ca = (None if path is None else Path(path).read_bytes() for path in paths)
    return grpc.aio.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(ca, key, cert))


async def test_tasks_reach_a_plain_server_in_reverse(tmp_path: Path) -> None:
    """The server, which accepts its own user in the clear, stands in for TensorFlow's, which lets in everybody."""
    task = access(tmp_path / "ours", "tunnel")
    ours = tmp_path / "ours"
    callers = {
        "a task's": (access(ours, "worker"), CODES.OK),
        "an administrator's": (access(ours, "admin", Role.ADMIN), CODES.OK),
        "a runner's": (access(ours, "runner", Role.RUN), CODES.PERMISSION_DENIED),
        "none": (AccessSettings(tls_ca=task.tls_ca), CODES.PERMISSION_DENIED),
        "an expired one": (access(ours, "old", lasts=timedelta(minutes=-1)), CODES.UNAVAILABLE),
        "another cluster's": (replace(access(tmp_path / "theirs"), tls_ca=task.tls_ca), CODES.UNAVAILABLE),
    }
    async with (
        TaskServer({"ps": [""]}, "ps", 0, access=AccessSettings()) as server,
        tunnel(server.port, accepting(task), reverse=True) as (_, port),
    ):
        found = {}
        for name, (settings, _) in callers.items():
            async with secure(port, settings) as channel:
                found[name] = (await outcome(channel))[0]
        async with plain(port) as channel:
            in_the_clear = (await outcome(channel))[0]

    assert found == {name: code for name, (_, code) in callers.items()}
    assert in_the_clear is CODES.UNAVAILABLE


async def test_a_refusal_in_reverse_names_the_role(tmp_path: Path) -> None:
    task = access(tmp_path, "tunnel")
    mine = access(tmp_path, "runner", Role.RUN)
    async with tunnel(1, accepting(task), reverse=True) as (_, port), secure(port, mine) as channel:
        found = await outcome(channel)

    words = "tenfold tunnel: this tunnel is for certificates with the role register; this one has run"
    assert found == (CODES.PERMISSION_DENIED, words)


async def test_a_server_that_is_not_there_is_told_in_reverse(tmp_path: Path) -> None:
    task = access(tmp_path, "tunnel")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        nowhere = taken.getsockname()[1]
        mine = access(tmp_path, "worker")
        async with tunnel(nowhere, accepting(task), reverse=True) as (_, port), secure(port, mine) as channel:
            found = await outcome(channel)

    assert found == (CODES.UNAVAILABLE, f"tenfold tunnel: localhost:{nowhere} cannot be reached: connection refused")
