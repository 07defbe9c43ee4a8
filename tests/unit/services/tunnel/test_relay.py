"""Bytes between two connected pairs: both ways, halves that close, ends that stop moving, and what is said of them."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import pytest

from tenfold_services.tunnel import relay as relay_module
from tenfold_services.tunnel.relay import Relay, TunnelSettings

if TYPE_CHECKING:
    from collections.abc import Iterator

SETTINGS = TunnelSettings(buffer_bytes=8)


class Ends:
    """The client and the server at the two ends of a relay."""

    def __init__(self) -> None:
        (self.client, self.near), (self.far, self.server) = socket.socketpair(), socket.socketpair()
        self.all = (self.client, self.near, self.far, self.server)
        for sock in self.all:
            sock.setblocking(False)

    def relay(self, settings: TunnelSettings = SETTINGS, change: Any = None) -> Relay:
        return Relay(self.near, self.far, settings, change)


@pytest.fixture
def ends() -> Iterator[Ends]:
    made = Ends()
    yield made
    for sock in made.all:
        sock.close()


async def said(sock: socket.socket) -> bytes:
    """All that comes until the half is closed."""
    loop, text = asyncio.get_running_loop(), b""
    async with asyncio.timeout(20):
        while part := await loop.sock_recv(sock, 100):
            text += part
    return text


async def test_both_ways_until_both_have_ended(ends: Ends) -> None:
    loop, relay = asyncio.get_running_loop(), ends.relay()
    running = asyncio.create_task(relay.run())
    await loop.sock_sendall(ends.client, b"a question of the client")
    ends.client.shutdown(socket.SHUT_WR)
    assert await said(ends.server) == b"a question of the client"
    assert not running.done(), "the other half goes on"
    await loop.sock_sendall(ends.server, b"an answer")
    ends.server.shutdown(socket.SHUT_WR)
    assert await said(ends.client) == b"an answer"
    async with asyncio.timeout(20):
        await running
    assert (relay.sent, relay.received) == (24, 9)


@pytest.mark.parametrize("text", [b"", b"x", b"xy"])
async def test_however_little_came_before_one_end_finished_the_other_has_its_time(ends: Ends, text: bytes) -> None:
    loop = asyncio.get_running_loop()
    running = asyncio.create_task(ends.relay().run())
    await loop.sock_sendall(ends.client, text)
    ends.client.shutdown(socket.SHUT_WR)
    assert await said(ends.server) == text
    await loop.sock_sendall(ends.server, b"answer")
    ends.server.shutdown(socket.SHUT_WR)
    assert await said(ends.client) == b"answer"
    await running


async def test_what_goes_out_may_be_changed_and_what_comes_in_is_not(ends: Ends) -> None:
    loop, parts = asyncio.get_running_loop(), []

    def change(data: memoryview) -> bytes:
        parts.append(bytes(data))
        return bytes(data).upper() + b"!"

    relay = ends.relay(change=change)
    running = asyncio.create_task(relay.run())
    await loop.sock_sendall(ends.client, b"outwards more")
    await loop.sock_sendall(ends.server, b"inwards")
    ends.client.shutdown(socket.SHUT_WR)
    ends.server.shutdown(socket.SHUT_WR)
    assert await said(ends.server) == b"OUTWARDS! MORE!"
    assert await said(ends.client) == b"inwards"
    await running
    assert parts == [b"outwards", b" more"], "a buffer at a time"
    assert (relay.sent, relay.received) == (13, 7), "what came, not what was made of it"


async def test_what_the_change_raises_ends_both_ways(ends: Ends) -> None:
    class OddError(Exception):
        pass

    def change(data: memoryview) -> bytes:
        raise OddError

    running = asyncio.create_task(ends.relay(change=change).run())
    await asyncio.get_running_loop().sock_sendall(ends.client, b"x")
    with pytest.raises(OddError):
        await running
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("tunnel:")]


async def test_an_end_that_fails(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    receive = loop.sock_recv_into

    async def fails(sock: socket.socket, space: Any) -> int:
        if sock is ends.far:
            raise ConnectionResetError("gone")
        return await receive(sock, space)

    monkeypatch.setattr(loop, "sock_recv_into", fails, raising=False)
    async with asyncio.timeout(20):
        with pytest.raises(ConnectionResetError, match="gone"):
            await ends.relay().run()


@pytest.mark.parametrize("outwards", [True, False])
async def test_an_end_that_takes_nothing(ends: Ends, monkeypatch: pytest.MonkeyPatch, outwards: bool) -> None:
    loop = asyncio.get_running_loop()

    async def never(sock: socket.socket, data: Any) -> None:
        await asyncio.Event().wait()

    monkeypatch.setattr(loop, "sock_sendall", never, raising=False)
    (ends.client if outwards else ends.server).send(b"12345")
    async with asyncio.timeout(20):
        with pytest.raises(TimeoutError, match=r"^an end took less than 5 bytes in 0\.001 s$"):
            await ends.relay(replace(SETTINGS, stall_seconds=0.001)).run()


async def test_an_end_that_is_silent_after_the_other_has_finished(ends: Ends) -> None:
    ends.client.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(20):
        with pytest.raises(TimeoutError, match=r"^one end has finished, and the other was silent for 0\.001 s$"):
            await ends.relay(replace(SETTINGS, stall_seconds=0.001)).run()


@pytest.mark.parametrize("outwards", [True, False])
async def test_one_that_still_says_something_goes_on(
    ends: Ends, monkeypatch: pytest.MonkeyPatch, outwards: bool
) -> None:
    """As long as bytes move between two looks, however often it is looked."""
    loop, relay, looks = asyncio.get_running_loop(), ends.relay(replace(SETTINGS, stall_seconds=7.0)), 0
    wait = asyncio.wait
    silent, talks, hears = (
        (ends.server, ends.client, ends.server) if outwards else (ends.client, ends.server, ends.client)
    )

    async def looked(tasks: Any, **more: Any) -> Any:
        nonlocal looks
        if more.get("timeout") is None:
            return await wait(tasks, **more)
        assert more["timeout"] == 7.0
        looks += 1
        if looks < 4:
            await loop.sock_sendall(talks, b"x")
            assert await loop.sock_recv(hears, 1) == b"x"
            return set(), tasks
        talks.shutdown(socket.SHUT_WR)
        return await wait(tasks)

    monkeypatch.setattr(relay_module.asyncio, "wait", looked)
    silent.shutdown(socket.SHUT_WR)
    async with asyncio.timeout(20):
        await relay.run()
    assert looks == 4
    assert (relay.sent, relay.received) == ((3, 0) if outwards else (0, 3))


async def test_cancelling_ends_both_ways(ends: Ends) -> None:
    running = asyncio.create_task(ends.relay().run())
    await asyncio.sleep(0)
    names = {task.get_name() for task in asyncio.all_tasks()}
    assert {"tunnel:out", "tunnel:in"} <= names
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not [task for task in asyncio.all_tasks() if task.get_name().startswith("tunnel:")]


async def test_a_half_that_cannot_be_closed_is_closed_already(ends: Ends) -> None:
    ends.client.shutdown(socket.SHUT_WR)
    ends.server.close()
    async with asyncio.timeout(20):
        await ends.relay().run()


def test_the_bounds_as_docs_cli_has_them() -> None:
    assert asdict(TunnelSettings()) == {
        "connections": 64,
        "buffer_bytes": 262_144,
        "connect_seconds": 10.0,
        "stall_seconds": 300.0,
        "keepalive_seconds": 60,
    }
