"""Another user who floods a task's port, or fills its places: what it costs him, and that the owner goes on.

A real other user, who has no token. Each kind of frame has its quota while nobody knows who sends it, refused calls
too, and ends with GOAWAY; connections that do nothing make room. tests/unit has the quota and the places themselves.
"""

from __future__ import annotations

import asyncio
import socket
from contextlib import AsyncExitStack
from time import perf_counter
from typing import TYPE_CHECKING

import pytest
from grpc import aio

from support.certs import access
from support.grpc_service import OPTIONS, Service
from support.stranger import a_stranger, needs_another_user
from tenfold_core.access.gate import Gate
from tenfold_core.access.tokens import TokenSet
from tenfold_link.aio.accept_loop import StrangersTime
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.frame_types import Code
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.server import Http2Server
from tenfold_services.tunnel.relay import TunnelSettings
from tenfold_services.tunnel.tunnel import Tunnel

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from support.stranger import Stranger

GREETING = frames.PREFACE + frames.settings({})
BLOCK = encode(
    [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", b"/t/echo"),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
    ]
)
MANY = range(1, 1001, 2)


def refused_calls() -> bytes:
    return b"".join(frames.header_block(number, BLOCK, frames.END_STREAM, 1 << 14) for number in MANY)


def rapid_resets() -> bytes:
    return b"".join(
        frames.header_block(number, BLOCK, 0, 1 << 14) + frames.rst_stream(number, Code.CANCEL) for number in MANY
    )


def continuations() -> bytes:
    end = frames.END_HEADERS
    return b"".join(
        frames.header(0, frames.HEADERS, frames.END_STREAM, number)
        + frames.header(len(BLOCK), frames.CONTINUATION, end, number)
        + BLOCK
        for number in MANY
    )


FLOODS = {
    "refused calls": refused_calls(),
    "rapid resets": rapid_resets(),
    "CONTINUATION": continuations(),
    "WINDOW_UPDATE": frames.window_update(0, 1) * 500,
    "SETTINGS": frames.settings({}) * 500,
    "PING": (frames.header(8, frames.PING) + bytes(8)) * 500,
    "PRIORITY": (frames.header(5, frames.PRIORITY, 0, 1) + bytes(5)) * 500,
    "unknown frames": frames.header(0, 99) * 500,
}


@pytest.fixture
def stranger() -> Iterator[Stranger]:
    with a_stranger() as started:
        yield started


@pytest.fixture
async def server() -> AsyncIterator[Http2Server]:
    """Of a task whose token the stranger does not have."""
    service = Service()
    gate = Gate("this task", lambda: TokenSet.of_text("a-token-of-ours", "here"))
    server = Http2Server(service.find, Http2Settings(connections=16), gate)  # type: ignore[arg-type]
    server.port = await server.start("127.0.0.1", 0)  # type: ignore[attr-defined]
    yield server
    await server.stop(0)


async def owners_call(server: Http2Server) -> float:
    """How long a call of the owner over a new connection takes."""
    began = perf_counter()
    async with aio.insecure_channel(f"127.0.0.1:{server.port}", options=OPTIONS) as channel:  # type: ignore[attr-defined]
        assert await channel.unary_unary("/t/echo")(b"hello", timeout=30) == b"hello"
    return perf_counter() - began


@needs_another_user
@pytest.mark.parametrize("kind", FLOODS)
async def test_a_flood_ends_with_goaway(server: Http2Server, stranger: Stranger, kind: str) -> None:
    to = ["127.0.0.1", server.port]  # type: ignore[attr-defined]
    said = bytes.fromhex(await asyncio.to_thread(stranger.ask, "exchange", to, (GREETING + FLOODS[kind]).hex(), 5.0))

    at = said.find(Code.ENHANCE_YOUR_CALM.to_bytes(4, "big") + b"too many frames")
    assert at > 0, f"{len(said)} bytes, and no GOAWAY among them"
    assert said.count(frames.header(4, frames.RST_STREAM)[:5]) <= 200
    assert await owners_call(server) < 20


@needs_another_user
async def test_the_owner_goes_on_while_a_stranger_comes_again_and_again(
    server: Http2Server, stranger: Stranger
) -> None:
    to = ["127.0.0.1", server.port]  # type: ignore[attr-defined]
    alone = max([await owners_call(server) for _ in range(3)])
    stranger.begin("flood", to, GREETING.hex(), FLOODS["refused calls"].hex(), 4, 2.0)
    longest, until = 0.0, perf_counter() + 1.5
    while perf_counter() < until:
        longest = max(longest, await owners_call(server))
    done = await asyncio.to_thread(stranger.end)

    assert done["ended"] > 0
    assert longest < max(2.0, 20 * alone), f"{longest:.2f} s (alone: {alone:.2f} s), while {done} went"


@needs_another_user
async def test_idle_strangers_make_room(server: Http2Server, stranger: Stranger) -> None:
    to = ["127.0.0.1", server.port]  # type: ignore[attr-defined]
    await asyncio.to_thread(stranger.ask, "connect", to, GREETING.hex(), 40)

    assert await owners_call(server) < 20
    assert server._places.strangers <= 4, "a quarter is what one user has"
    async with AsyncExitStack() as stack:
        for _ in range(16):
            channel = aio.insecure_channel(
                f"127.0.0.1:{to[1]}", options=[*OPTIONS, ("grpc.use_local_subchannel_pool", 1)]
            )
            await stack.enter_async_context(channel)
            assert await channel.unary_unary("/t/echo")(b"x", timeout=30) == b"x"
        assert server._places.strangers == 0, "who is known has all of them, if need be"


@needs_another_user
async def test_strangers_do_not_fill_a_tunnel(stranger: Stranger, tmp_path: Path) -> None:
    certificates = access(tmp_path).credentials().certificates
    assert certificates is not None
    async with AsyncExitStack() as stack:
        far = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        far.setblocking(False)
        settings = TunnelSettings(connections=8)
        tunnel = Tunnel(
            "127.0.0.1:0", f"localhost:{far.getsockname()[1]}", certificates.client_context, settings=settings
        )
        port = await tunnel.start()
        stack.push_async_callback(tunnel.stop)
        await asyncio.to_thread(stranger.ask, "connect", ["127.0.0.1", port], "", 20)
        assert len(tunnel.connections) <= 8
        with socket.create_connection(("127.0.0.1", port)):
            async with asyncio.timeout(20):
                came, _ = await asyncio.get_running_loop().sock_accept(far)
            came.close()


async def test_turns_of_strangers_have_a_part_of_the_time() -> None:
    time, done = StrangersTime(0.5, 0.01), []
    assert time.has_some()
    time.spend(0.03)
    assert not time.has_some()
    over = asyncio.Event()
    began = perf_counter()
    time.wait(lambda: (done.append("second"), over.set()))
    time.wait(lambda: done.append("first"), first=True)
    async with asyncio.timeout(20):
        await over.wait()
    assert done == ["first", "second"]
    assert perf_counter() - began >= 0.02, "what was spent too much comes back at half the pace"
    time.close()
