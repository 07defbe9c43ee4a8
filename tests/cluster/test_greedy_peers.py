"""Peers that take more than their part of a task's port: each attack, and what others notice of it.

The attackers speak HTTP/2 by hand, over plain sockets on threads of their own; what others notice is how long the
server's event loop, which is the test's too, computed in a turn.
"""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import zlib
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from typing import TYPE_CHECKING

import grpc
import pytest
from grpc import aio

from support.grpc_service import OPTIONS, Running, Service
from support.moments import PATIENCE, longest_turn
from tenfold_link.wire.frames import FrameKind, pack
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.server import Http2Server

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from support.link_ends import Ends

GREETING = frames.PREFACE + frames.settings({})
HEADERS = frames.END_HEADERS


@asynccontextmanager
async def serving(settings: Http2Settings) -> AsyncIterator[Running]:
    async with AsyncExitStack() as stack:
        service = Service()
        server = Http2Server(service.find, settings)  # type: ignore[arg-type]
        port = await server.start("127.0.0.1", 0)
        stack.push_async_callback(server.stop, 0)
        channel = aio.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
        stack.push_async_callback(channel.close)
        yield Running(service, server, port, channel)


def opened(stream: int, path: bytes = b"/t/wait", *more: tuple[bytes, bytes], ends: bool = False) -> bytes:
    """The headers of a call."""
    fields = [
        (b":method", b"POST"),
        (b":scheme", b"http"),
        (b":path", path),
        (b"content-type", b"application/grpc"),
        (b"te", b"trailers"),
        *more,
    ]
    block = encode(fields)
    return frames.header(len(block), frames.HEADERS, HEADERS | (frames.END_STREAM if ends else 0), stream) + block


def message(stream: int, payload: bytes, flag: int = 0) -> bytes:
    """The whole message of a call."""
    text = bytes((flag,)) + len(payload).to_bytes(4, "big") + payload
    return frames.header(len(text), frames.DATA, frames.END_STREAM, stream) + text


def attack(port: int, data: bytes, done: bytes = b"") -> None:
    """Sends it all on one connection, reads what comes, and returns once `done` has come or the server closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as sock:
        sender = threading.Thread(target=_send, args=(sock, data), daemon=True)
        sender.start()
        seen = b""
        with suppress(OSError):
            while part := sock.recv(1 << 16):
                seen = seen[-100:] + part
                if done and done in seen:
                    break
        sender.join(PATIENCE)


def _send(sock: socket.socket, data: bytes) -> None:
    with suppress(OSError):
        sock.sendall(data)


PONG = frames.header(8, frames.PING, frames.ACK) + b"the last"


async def test_settings_that_change_a_thousand_windows_again_and_again() -> None:
    """Each frame has 5,000 settings, and each of them once changed a thousand windows: 3.8 s for 12 frames."""
    change = b"".join(frames.settings({frames.INITIAL_WINDOW: size})[9:] for size in (60_000, 65_000)) * 2500
    many = frames.header(len(change), frames.SETTINGS) + change
    streams = b"".join(opened(1 + 2 * number) for number in range(1000))
    async with serving(Http2Settings()) as running:
        data = GREETING + streams + many * 12 + frames.header(8, frames.PING) + b"the last"
        assert await longest_turn(asyncio.ensure_future(asyncio.to_thread(attack, running.port, data, PONG))) < 0.1
        assert await running.call("echo", b"others") == b"others"


async def test_settings_one_by_one_cost_what_they_are_worth() -> None:
    """The same with a frame for each change, as many as are let through."""
    change = b"".join(frames.settings({frames.INITIAL_WINDOW: size}) for size in (60_000, 65_000)) * 5000
    streams = b"".join(opened(1 + 2 * number) for number in range(1000))
    async with serving(Http2Settings()) as running:
        data = GREETING + streams + change + frames.header(8, frames.PING) + b"the last"
        began = time.thread_time()
        await asyncio.to_thread(attack, running.port, data, PONG)
        assert time.thread_time() - began < 1.0


async def test_a_connection_cannot_have_every_call() -> None:
    async with serving(Http2Settings(calls=64, streams=64)) as running:
        data = GREETING + b"".join(opened(1 + 2 * number) for number in range(64))
        with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as sock:
            sock.sendall(data + frames.header(8, frames.PING) + b"the last")
            seen = b""
            while PONG not in seen:
                seen += await asyncio.to_thread(sock.recv, 1 << 16)
            assert b"This connection has 32 of 64 calls" in seen
            assert len(running.server.calls.open) == 32
            assert await running.call("echo", b"others") == b"others"


async def test_a_bomb_is_inflated_as_far_as_the_budget_goes_and_by_others() -> None:
    """256 KiB become 256 MiB; the budget is 64 MiB, which the event loop found out late, once: 7 s for 1 GiB."""
    portion = zlib.compressobj(6, zlib.DEFLATED, 31)
    bomb = b"".join(portion.compress(bytes(1 << 24)) for _ in range(16)) + portion.flush()
    assert len(bomb) < 1 << 19
    async with serving(Http2Settings(buffered_bytes=64 << 20)) as running:
        data = GREETING + opened(1, b"/t/size", (b"grpc-encoding", b"gzip")) + message(1, bomb, 1)
        work = asyncio.ensure_future(asyncio.to_thread(attack, running.port, data, b"decompressed"))
        assert await longest_turn(work) < 0.25
        assert await running.call("size", bytes(60 << 20)) == b"%d" % (60 << 20)  # all of it was given back


async def test_a_compressed_request_of_a_client_uses_what_is_left() -> None:
    async with serving(Http2Settings(buffered_bytes=8 << 20)) as running:
        call = running.channel.unary_unary("/t/size")
        assert await call(bytes(7 << 20), timeout=60, compression=grpc.Compression.Gzip) == b"%d" % (7 << 20)
        with pytest.raises(aio.AioRpcError, match="decompressed") as caught:
            await call(bytes(9 << 20), timeout=60, compression=grpc.Compression.Gzip)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_peer_whose_connection_has_failed_cannot_keep_it() -> None:
    """It does not read, so the reason of the end cannot leave, and it goes on sending a byte now and then."""
    settings = Http2Settings(linger_seconds=0.2, stall_seconds=60)
    async with serving(settings) as running:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.connect(("127.0.0.1", running.port))
        with sock:
            window = frames.settings({frames.INITIAL_WINDOW: frames.MAX_WINDOW})
            grown = frames.window_update(0, frames.MAX_WINDOW - frames.DEFAULT_WINDOW)
            request = opened(1, b"/t/echo") + frames.header(5 + (8 << 20), frames.DATA, frames.END_STREAM, 1)
            payload = b"\0" + (8 << 20).to_bytes(4, "big") + bytes(8 << 20)
            await asyncio.to_thread(sock.sendall, frames.PREFACE + window + grown + request + payload)
            await asyncio.to_thread(sock.recv, 1)
            sock.sendall(frames.header(1, frames.PING) + b"x")  # a fault
            trickled = asyncio.ensure_future(asyncio.to_thread(_trickle, sock))
            async with asyncio.timeout(8):
                assert await trickled
        assert not running.server.connections


def _trickle(sock: socket.socket) -> bool:
    """Sends a byte now and then until the server has closed; whether it has."""
    pause = threading.Event()
    for _ in range(80):
        try:
            sock.sendall(b"x")
        except ConnectionError:
            return True
        pause.wait(0.05)
    return False


@pytest.mark.parametrize("kind", ["half a request", "an answer that is not taken"])
async def test_a_peer_that_moves_a_byte_now_and_then(kind: str) -> None:
    settings = Http2Settings(stall_seconds=0.5)
    async with serving(settings) as running:
        if kind == "half a request":
            data, byte = GREETING + opened(1) + frames.header(1 << 20, frames.DATA, 0, 1) + b"\0" + bytes(4), b"x"
        else:
            closed = frames.settings({frames.INITIAL_WINDOW: 0})
            data = frames.PREFACE + closed + opened(1, b"/t/echo") + message(1, b"never taken")
            byte = frames.header(8, frames.PING) + b"12345678"
        with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as sock:
            sock.sendall(data)
            over = asyncio.ensure_future(asyncio.to_thread(_end_while_sending, sock, byte))
            async with asyncio.timeout(8):
                assert await over
        assert await running.call("echo", b"others") == b"others"


def _end_while_sending(sock: socket.socket, piece: bytes) -> bool:
    """Reads, and sends a piece now and then, until the server has closed; whether it has."""
    sock.settimeout(0.05)
    pause = threading.Event()
    for _ in range(80):
        try:
            pause.wait(0.05)
            sock.sendall(piece)
            if not sock.recv(1 << 16):
                return True
        except TimeoutError:
            continue
        except ConnectionError:
            return True
    return False


async def test_tiny_frames_of_a_link_leave_the_loop_to_others(ends: Ends) -> None:
    """5 MiB of frames of 24 bytes. A Unix socket's buffer is small, which alone keeps turns short."""
    await ends.listen()
    peer = ends.raw()
    await asyncio.to_thread(peer.greet)
    tiny = pack(FrameKind.CANCEL, call=7) * 10_000

    def flood() -> None:
        for _ in range(20):
            peer.sock.sendall(tiny)
        peer.sock.sendall(pack(FrameKind.PING))
        while all(frame.kind is not FrameKind.PONG for frame in peer.read()):
            pass

    # what else a machine does only adds to a turn: the least of three floods is the link's own
    turns: list[float] = []
    while len(turns) < 3 and min(turns, default=1.0) >= 0.1:
        turns.append(await longest_turn(asyncio.ensure_future(asyncio.to_thread(flood))))
    assert min(turns) < 0.1, turns


async def test_tiny_frames_leave_the_loop_to_others() -> None:
    """4 MiB of DATA frames of one byte: one turn, once, and 2.8 s for 16 MiB."""
    tiny = (frames.header(1, frames.DATA, 0, 1) + b"x") * 1000
    prefix = frames.header(5, frames.DATA, 0, 1) + b"\0" + (1 << 28).to_bytes(4, "big")
    begin = GREETING + opened(1, b"/t/size") + prefix
    async with serving(Http2Settings()) as running:
        data = begin + tiny * 400 + frames.header(8, frames.PING) + b"the last"
        assert await longest_turn(asyncio.ensure_future(asyncio.to_thread(attack, running.port, data, PONG))) < 0.1


async def test_answers_that_a_peer_does_not_read_are_bounded_and_others_get_theirs() -> None:
    """Finding 5: they took as much memory as there was, 440 MiB in a few seconds."""
    size = 1 << 18
    async with serving(Http2Settings(unread_bytes=1 << 20)) as running:
        calls = b"".join(
            opened(1 + 2 * number, b"/t/echo") + message(1 + 2 * number, bytes(size)) for number in range(64)
        )
        with socket.create_connection(("127.0.0.1", running.port), timeout=PATIENCE) as sock:
            await asyncio.to_thread(sock.sendall, GREETING + calls + frames.header(8, frames.PING) + b"the last")
            seen = b""
            while PONG not in seen:
                seen += await asyncio.to_thread(sock.recv, 1 << 16)
            assert b"TENFOLD_HTTP2_UNREAD_BYTES" in seen
            assert size < running.server.calls.unread.bytes <= 1 << 20
            assert await running.call("echo", bytes(1 << 20)) == bytes(1 << 20)
        assert len(seen) < 1 << 20
