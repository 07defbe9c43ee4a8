"""Links over TCP at a port that was chosen: they come in there, also over TLS, and a port that is taken is named."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

import pytest

import tenfold as tf
from support.certs import access
from support.links import ADDRESS, ECHO, SERVER, Service
from support.moments import PATIENCE
from support.ports import free_port
from tenfold_core import errors
from tenfold_link.aio.dial import connect, way
from tenfold_link.aio.listener import LinkListener
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_services.background import BackgroundServer
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TCP = LinkSettings(mode="tcp", hello_seconds=PATIENCE)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


async def test_links_come_in_there_and_again_after_a_restart() -> None:
    settings = LinkSettings(mode="tcp", port=free_port())
    for _ in range(2):
        async with LinkListener(SERVER, Service().methods, settings) as listener:
            answer = listener.open_link(handshake.ask(settings))
            link = await connect(answer, ADDRESS, settings=settings)

            assert answer.tcp_port == listener.tcp_port == settings.port
            assert await link.call(ECHO, b"there") == (b"there", [])
            # the end that closes first keeps its port in TIME_WAIT: here the listener's
            await listener.stop()


async def test_a_port_that_is_taken_is_refused_with_nothing_left_open(taken: int) -> None:
    listener = LinkListener(SERVER, Service().methods, LinkSettings(port=taken))

    with pytest.raises(OSError, match="in use"):
        await listener.start()

    with pytest.raises(errors.FailedPreconditionError, match="opens no links"):
        listener.open_link(handshake.ask(TCP))


async def test_a_task_names_the_port_that_is_taken_and_gives_its_own_back(taken: int) -> None:
    port = free_port()

    with pytest.raises(errors.UnknownError) as refused:
        await TaskServer({"ps": [""]}, "ps", 0, bind=f"127.0.0.1:{port}", link_port=taken).start()

    assert f"cannot listen for links on 127.0.0.1:{taken}: address already in use by process" in refused.value.message
    assert "--link-port" in refused.value.message
    async with TaskServer({"ps": [""]}, "ps", 0, bind=f"127.0.0.1:{port}") as server:
        assert server.port == port


async def test_the_port_of_grpc_is_none_for_links() -> None:
    port = free_port()

    with pytest.raises(errors.UnknownError, match=f"for links on 127.0.0.1:{port}: it serves gRPC there itself"):
        await TaskServer({"ps": [""]}, "ps", 0, bind=f"127.0.0.1:{port}", link_port=port).start()


def test_a_task_has_it_from_its_environment_or_its_program(monkeypatch: pytest.MonkeyPatch, taken: int) -> None:
    port = free_port()
    monkeypatch.setenv("TENFOLD_LINK_PORT", str(taken))

    with pytest.raises(tf.errors.UnknownError, match=f"for links on 127.0.0.1:{taken}"):
        tf.train.Server({"ps": ["127.0.0.1:0"]})
    with tf.train.Server({"ps": ["127.0.0.1:0"]}, link_port=port), socket.create_connection(("127.0.0.1", port), 30):
        pass
    with tf.train.Server.create_local_server():  # it is not the task that the variable is for
        pass


@pytest.mark.parametrize("port", ["65536", "-1", "many"])
def test_what_is_no_port(port: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=f"TENFOLD_LINK_PORT is '{port}'; it may be"):
        LinkSettings.from_environment({"TENFOLD_LINK_PORT": port})
    if port != "many":
        with pytest.raises(errors.InvalidArgumentError, match=f"link_port is {port}; it may be 1 to 65535"):
            TaskServer({"ps": [""]}, "ps", 0, link_port=int(port))


def test_tasks_reach_it_over_tls(tmp_path: Path) -> None:
    port = free_port()
    options = {"access": access(tmp_path), "link": TCP}
    server = BackgroundServer(TaskServer({"ps": {0: ""}}, "ps", 0, link_port=port, **options))  # type: ignore[arg-type]
    server.start()
    try:
        addresses = {"ps": {0: f"localhost:{server.port}"}, "worker": {0: ""}}
        worker = BackgroundServer(TaskServer(addresses, "worker", 0, **options))  # type: ignore[arg-type]
        worker.start()
        try:
            graph = tf.Graph()
            with graph.as_default():
                with tf.device("/job:ps/task:0"):
                    there = tf.constant(20.0) + tf.random_uniform([])
                with tf.device("/job:worker/task:0"):
                    here = tf.floor(there)
            with tf.Session(worker.target, graph=graph) as session:
                assert session.run(here) == 20.0
            assert server.server._port is not None
            assert server.server._port.links is not None
            links = server.server._port.links
            assert links.tcp_port == port
            assert any(link.path == "tcp" for link in links.links)
        finally:
            worker.stop()
    finally:
        server.stop()


async def test_which_way_a_link_would_go_and_why_none() -> None:
    async with LinkListener(SERVER, Service().methods) as listener:
        answer = listener.open_link(handshake.ask(LinkSettings()))
        over_tcp = listener.open_link(handshake.ask(TCP))

        assert await way(answer, ADDRESS, LinkSettings()) == "unix"
        assert await way(over_tcp, ADDRESS, TCP) == f"tcp:{listener.tcp_port}"
    async with asyncio.timeout(PATIENCE):
        with pytest.raises(errors.UnavailableError, match=f"TCP 127.0.0.1:{over_tcp.tcp_port}: .*Connect call failed"):
            await way(over_tcp, ADDRESS, TCP)
