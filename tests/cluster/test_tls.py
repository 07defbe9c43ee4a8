"""TLS at a task's port and on its links: certificates of every kind, sessions and clusters that train over it.

Everything is on loopback, where tasks speak TLS only because these tests ask for it ("always"). The sockets themselves
are tested in tests/unit/core/access.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from contextlib import AsyncExitStack
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import numpy as np
import pytest

import tenfold as tf
from support.certs import access
from tenfold.session.grpc_master import GrpcMaster
from tenfold.session.link_master import LinkMaster
from tenfold_core import errors
from tenfold_core.access.credentials import AccessSettings
from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_link.link_settings import LinkSettings
from tenfold_protos.config_pb2 import ConfigProto, RunOptions
from tenfold_services import server as server_module
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TCP = LinkSettings(mode="tcp", hello_seconds=30.0)
PATH = "/tensorflow.MasterService/CreateSession"
CODES = grpc.StatusCode


@pytest.fixture
def as_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every connection is another user's: what lets in is the certificate."""
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))


async def outcome(port: int, settings: AccessSettings | None, *, host: str = "localhost") -> grpc.StatusCode:
    """How a CreateSession ends with these certificates; in the clear without any."""
    address, metadata = f"{host}:{port}", None
    if settings is None:
        channel = grpc.aio.insecure_channel(address)
    else:
        cert, key, ca = map(_content, (settings.tls_cert, settings.tls_key, settings.tls_ca))
        channel = grpc.aio.secure_channel(address, grpc.ssl_channel_credentials(ca, key, cert))
        if settings.token is not None:
            metadata = (("authorization", f"Bearer {settings.token}"),)
    async with channel:
        try:
            await channel.unary_unary(PATH)(b"", timeout=20, metadata=metadata)
        except grpc.aio.AioRpcError as error:
            return error.code()
    return CODES.OK


def _content(path: str | None) -> bytes | None:
    return None if path is None else Path(path).read_bytes()


@pytest.mark.usefixtures("as_strangers")
async def test_which_certificates_let_in(tmp_path: Path) -> None:
    ours = access(tmp_path / "ours", token="tenfold-the-token")
    without = AccessSettings(tls_ca=ours.tls_ca)
    callers = {
        "none, in the clear": (None, CODES.UNAUTHENTICATED),
        "no certificate": (without, CODES.UNAUTHENTICATED),
        "no certificate, a wrong token": (AccessSettings("tenfold-wrong", tls_ca=ours.tls_ca), CODES.UNAUTHENTICATED),
        "no certificate, the token": (AccessSettings("tenfold-the-token", tls_ca=ours.tls_ca), CODES.OK),
        "a task's": (access(tmp_path / "ours", "worker"), CODES.OK),
        "a reader's": (access(tmp_path / "ours", "reader", Role.READ), CODES.PERMISSION_DENIED),
        "an expired one": (access(tmp_path / "ours", "old", lasts=timedelta(minutes=-1)), CODES.UNAVAILABLE),
        "another cluster's": (
            AccessSettings(**{**_paths(access(tmp_path / "theirs")), "tls_ca": ours.tls_ca}),
            CODES.UNAVAILABLE,
        ),
    }
    async with TaskServer({"ps": [""]}, "ps", 0, access=ours) as server:
        found = {name: await outcome(server.port, settings) for name, (settings, _) in callers.items()}

    assert found == {name: code for name, (_, code) in callers.items()}


def _paths(settings: AccessSettings) -> dict[str, str | None]:
    return {"tls_cert": settings.tls_cert, "tls_key": settings.tls_key}


async def test_the_same_user_may_speak_in_the_clear_on_this_machine(tmp_path: Path) -> None:
    async with TaskServer({"ps": [""]}, "ps", 0, access=access(tmp_path)) as server:
        assert await outcome(server.port, None) is CODES.OK


async def test_grpcs_own_library_serves_no_tls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", "grpcio")

    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_GRPC=grpcio does not serve TLS"):
        await TaskServer({"ps": [""]}, "ps", 0, access=access(tmp_path)).start()


@pytest.mark.thorough
async def test_garbage_in_place_of_tls_ends_that_connection_alone(tmp_path: Path) -> None:
    async with TaskServer({"ps": [""]}, "ps", 0, access=access(tmp_path)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        writer.write(b"\x16\x03\x01" + os.urandom(500))
        async with asyncio.timeout(20):
            await reader.read()
        writer.close()

        assert await outcome(server.port, None) is CODES.OK


# -- sessions and clusters -------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., dict[str, BackgroundServer]]]:
    """Starts a ps and a worker, each with a certificate of its own, and no trust in users."""
    monkeypatch.setattr(server_module, "Gate", partial(Gate, find_user=lambda *_: os.geteuid() + 1))
    started: list[BackgroundServer] = []

    def start(link: LinkSettings) -> dict[str, BackgroundServer]:
        jobs = {"ps": {0: ""}, "worker": {0: ""}}
        servers = {
            job: BackgroundServer(TaskServer(jobs, job, 0, access=access(tmp_path, job), link=link)) for job in jobs
        }
        for server in servers.values():
            server.start()
            started.append(server)
        addresses = {job: {0: f"localhost:{server.port}"} for job, server in servers.items()}
        for server in servers.values():
            server.update_cluster(addresses)
        return servers

    yield start
    for server in started:
        server.stop()


@pytest.mark.parametrize("mode", ["auto", "tcp", "off"])
def test_tasks_and_clients_work_together_over_tls(
    cluster: Callable[..., dict[str, BackgroundServer]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    servers = cluster(LinkSettings(mode=mode))
    mine = access(tmp_path, "client", Role.RUN)
    for name in ("cert", "key", "ca"):
        monkeypatch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
    monkeypatch.setenv("TENFOLD_TLS", "always")
    monkeypatch.setenv("TENFOLD_LINK", mode)
    size = 3_000_000  # 12 MB: a large buffer, in many records
    graph = tf.Graph()
    with graph.as_default():
        x = tf.placeholder(tf.float32, [size])
        with tf.device("/job:ps/task:0"):
            v = tf.get_variable("v", [size], initializer=tf.zeros_initializer())
            added = v.assign_add(x)
        with tf.device("/job:worker/task:0"):
            total, whole = tf.reduce_sum(added), added * 2.0
        init = tf.global_variables_initializer()

    with tf.Session(servers["worker"].target, graph=graph) as session:
        session.run(init)
        sums = [session.run(total, {x: np.ones(size, np.float32)}) for _ in range(5)]
        doubled = session.run(whole, {x: np.ones(size, np.float32)})

    assert sums == [size * (turn + 1) for turn in range(5)]
    np.testing.assert_array_equal(doubled, np.full(size, 12.0, np.float32))


def test_a_client_without_a_certificate_is_told_so(cluster: Callable[..., dict[str, BackgroundServer]]) -> None:
    servers = cluster(TCP)
    address = servers["ps"].target
    master = GrpcMaster(address, AccessSettings())

    with pytest.raises(errors.UnauthenticatedError, match="Set TENFOLD_TOKEN or TENFOLD_TOKEN_FILE"):
        master.create_session(tf.Graph().as_graph_def(), ConfigProto(), 20)
    master.close()


async def test_a_link_over_tcp_is_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a wire-tapper sees of a link: the feed is not in it."""
    seen: list[bytes] = []
    taps: list[asyncio.Task[None]] = []
    secret = b"nobody is to read this"
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(TaskServer({"ps": [""]}, "ps", 0, access=access(tmp_path), link=TCP))
        assert server._port is not None
        assert server._port.links is not None
        real = server._port.links._tcp_port
        tap = await asyncio.start_server(partial(_tap, real, seen, taps), "127.0.0.1", 0)
        stack.push_async_callback(tap.wait_closed)
        stack.callback(tap.close)
        server._port.links._tcp_port = tap.sockets[0].getsockname()[1]

        def run() -> Any:
            master = LinkMaster(server.target, TCP)
            try:
                graph = tf.Graph()
                with graph.as_default():
                    tf.identity(tf.placeholder(tf.string, [], name="x"), name="y")
                handle, _ = master.create_session(graph.as_graph_def(), ConfigProto(), 20)
                fed = {"x:0": np.array(secret, object)}
                values, _ = master.run_step(handle, fed, ["y:0"], [], RunOptions(), 20)
                assert master.link is not None
                return master.link.path, values[0].item()
            finally:
                master.close()

        mine = access(tmp_path, "client", Role.RUN)
        for name in ("cert", "key", "ca"):
            monkeypatch.setenv(f"TENFOLD_TLS_{name.upper()}", str(getattr(mine, f"tls_{name}")))
        monkeypatch.setenv("TENFOLD_TLS", "always")
        found = await asyncio.to_thread(run)

    await asyncio.wait(taps, timeout=20)
    assert found == ("tcp", secret)
    assert sum(map(len, seen)) > 1000
    assert secret not in b"".join(seen)


async def _tap(
    port: int,
    seen: list[bytes],
    taps: list[asyncio.Task[None]],
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
) -> None:
    """A relay to `port` that keeps what goes by; it is among `taps` while it lasts."""
    this = asyncio.current_task()
    assert this is not None
    taps.append(this)
    theirs, ours = await asyncio.open_connection("127.0.0.1", port)

    async def relay(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await source.read(1 << 16):
                seen.append(data)
                sink.write(data)
                await sink.drain()
        sink.close()
        with contextlib.suppress(ConnectionError):
            await sink.wait_closed()

    await asyncio.gather(relay(reader, ours), relay(theirs, writer))


def test_the_standard_library_agrees_on_the_version(tmp_path: Path) -> None:
    found = access(tmp_path).credentials().certificates
    assert found is not None
    assert found.server_context().minimum_version is ssl.TLSVersion.TLSv1_2
