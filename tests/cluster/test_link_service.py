"""OpenLink over gRPC, against a real task server and against one that is not Tenfold's."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import grpc
import pytest
from grpc import aio

from tenfold.session.open_link import asker as client_asker
from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_link.aio.dial import LinkDialer
from tenfold_link.blocking.dial import open_link
from tenfold_link.link_settings import DEFAULT_LINK_SETTINGS, LinkSettings
from tenfold_link.wire import handshake
from tenfold_services.rpc.channels import open_channel
from tenfold_services.rpc.own_services import asker
from tenfold_services.server import TaskServer

CLIENT = "/job:worker/replica:0/task:1"
#: No service has methods from here on.
NOBODYS = 0xFFFF_0000

Start: TypeAlias = Callable[..., Awaitable[TaskServer]]


@pytest.fixture
async def start() -> AsyncIterator[Start]:
    """`await start(settings)` starts a task that opens links as they say."""
    async with AsyncExitStack() as stack:

        async def one(settings: LinkSettings = DEFAULT_LINK_SETTINGS) -> TaskServer:
            return await stack.enter_async_context(TaskServer(None, "ps", 0, link=settings))

        yield one


@pytest.fixture
async def stranger() -> AsyncIterator[str]:
    """The address of a gRPC server without LinkService, as TensorFlow's is."""
    server = aio.server()
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield f"127.0.0.1:{port}"
    await server.stop(0)


def blocking(address: str, settings: LinkSettings = DEFAULT_LINK_SETTINGS) -> str:
    """Opens a link as a client does, calls over it, closes it; how it went."""
    with grpc.insecure_channel(address) as channel:  # type: ignore[no-untyped-call]
        link = open_link(client_asker(channel, address), address, settings=settings)
        try:
            with pytest.raises(errors.UnimplementedError, match="serves no method"):
                link.call(NOBODYS)
            return f"{link.path} to {link.peer}"
        finally:
            link.close()


@pytest.mark.parametrize(
    ("settings", "path"),
    [
        (DEFAULT_LINK_SETTINGS, "unix+shm"),
        (LinkSettings(shared_memory=False), "unix"),
        (LinkSettings(mode="tcp"), "tcp"),
    ],
)
async def test_a_client_opens_a_link(start: Start, settings: LinkSettings, path: str) -> None:
    server = await start()

    assert await asyncio.to_thread(blocking, f"localhost:{server.port}", settings) == f"{path} to {server.task}"


async def test_a_task_opens_a_link_and_finds_the_new_server_after_a_restart(start: Start) -> None:
    server = await start()
    address = f"localhost:{server.port}"
    channel = open_channel(address, NO_CREDENTIALS)
    dialer = LinkDialer(asker(channel, server.task, address, 10.0), address, task=CLIENT)

    link = await dialer.get()
    assert link is not None
    with pytest.raises(errors.UnimplementedError):
        await link.call(NOBODYS)
    ended = asyncio.Event()
    link.on_close(lambda reason: ended.set())
    await server.stop()
    await asyncio.wait_for(ended.wait(), 30)

    assert dialer.link is None
    assert "shutting down" in dialer.why_not
    async with TaskServer(None, "ps", 0, bind=f"127.0.0.1:{server.port}", link=LinkSettings()):
        again = await dialer.get()
        assert again is not None
        await dialer.close()
    await channel.close()


async def test_a_server_that_is_not_tenfolds(stranger: str) -> None:
    channel = open_channel(stranger, NO_CREDENTIALS)
    ask = asker(channel, "/job:ps/replica:0/task:0", stranger, 10.0)

    with pytest.raises(errors.UnimplementedError, match="OpenLink"):
        await ask(handshake.ask(DEFAULT_LINK_SETTINGS))
    assert await LinkDialer(ask, stranger, task=CLIENT).get() is None
    with pytest.raises(errors.UnimplementedError, match="OpenLink"):
        await asyncio.to_thread(blocking, stranger)

    await channel.close()


@pytest.mark.parametrize("off_at", ["server", "client"])
async def test_links_that_are_switched_off(start: Start, off_at: str) -> None:
    off = dataclasses.replace(DEFAULT_LINK_SETTINGS, mode="off")
    server = await start(off if off_at == "server" else DEFAULT_LINK_SETTINGS)
    settings = off if off_at == "client" else DEFAULT_LINK_SETTINGS

    with pytest.raises(errors.FailedPreconditionError, match="TENFOLD_LINK=off"):
        await asyncio.to_thread(blocking, f"localhost:{server.port}", settings)


async def test_nobody_there(start: Start) -> None:
    server = await start()
    address = f"localhost:{server.port}"
    await server.stop()

    with pytest.raises((errors.UnavailableError, errors.DeadlineExceededError), match="OpenLink"):
        await asyncio.to_thread(blocking, address)


async def test_a_wrong_environment_is_told_when_the_server_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_LINK", "yes")
    arguments: dict[str, Any] = {"bind": None}

    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_LINK is 'yes'; it may be auto, tcp or off"):
        TaskServer(None, "ps", 0, **arguments)
