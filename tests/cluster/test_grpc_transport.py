"""gRPC's own clients on our HTTP/2 server: what a service sees, what a client sees, and how calls and servers end."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from contextlib import AsyncExitStack, suppress
from typing import TYPE_CHECKING, Any

import grpc
import pytest
from grpc import aio

from support.grpc_service import OPTIONS, Running, Service
from tenfold_core import errors
from tenfold_core.access.gate import Gate
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.hpack import encode
from tenfold_services.http2.http2_settings import DEFAULT_HTTP2_SETTINGS, Http2Settings, transport_from_environment
from tenfold_services.http2.server import Http2Server
from tenfold_services.rpc.aio_handlers import serve
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


@pytest.fixture
async def start() -> AsyncIterator[Any]:
    """`await start(settings)` starts a server and a channel to it."""
    async with AsyncExitStack() as stack:

        async def one(settings: Http2Settings | None = None) -> Running:
            service = Service()
            server = Http2Server(service.find, settings or Http2Settings())  # type: ignore[arg-type]
            port = await server.start("127.0.0.1", 0)
            stack.push_async_callback(server.stop, 0)
            channel = aio.insecure_channel(f"127.0.0.1:{port}", options=OPTIONS)
            stack.push_async_callback(channel.close)
            return Running(service, server, port, channel)

        yield one


async def failure(call: Any) -> Any:
    with pytest.raises(aio.AioRpcError) as caught:
        await call
    return caught.value


async def test_calls_of_both_kinds_of_clients(start: Any) -> None:
    running = await start()
    assert await running.call("echo", b"hello") == b"hello"
    assert await running.call("echo") == b""

    def blocking() -> bytes:
        with grpc.insecure_channel(f"127.0.0.1:{running.port}", options=OPTIONS) as channel:  # type: ignore[no-untyped-call]
            return channel.unary_unary("/t/echo")(b"hello", timeout=60)  # type: ignore[no-any-return]

    assert await asyncio.to_thread(blocking) == b"hello"


@pytest.mark.parametrize("compression", [grpc.Compression.Gzip, grpc.Compression.Deflate])
async def test_compressed_requests(start: Any, compression: Any) -> None:
    running = await start()
    assert await running.call("echo", b"hello" * 1000, compression=compression) == b"hello" * 1000


async def test_a_hundred_megabytes_both_ways(start: Any) -> None:
    running = await start()
    message = os.urandom(1 << 20) * 100
    assert await running.call("pieces", message) == message
    assert await running.call("echo", b"small") == b"small"


async def test_an_answer_that_takes_many_turns(start: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    # each turn ends with nothing in hand and more in the queue, and the peer says nothing that would begin another one
    monkeypatch.setattr("tenfold_services.http2.connection_socket._TURN_BYTES", 1 << 12)
    monkeypatch.setattr("tenfold_services.http2.connection_socket._PULL_BYTES", 1 << 12)
    running = await start()
    message = b"\0" + (1 << 20).to_bytes(4, "big") + bytes(1 << 20)
    path = [(b":method", b"POST"), (b":scheme", b"http"), (b":path", b"/t/echo")]
    path.append((b"content-type", b"application/grpc"))
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(frames.PREFACE + frames.settings({frames.INITIAL_WINDOW: 1 << 30}))
    writer.write(frames.header(4, frames.WINDOW_UPDATE, 0, 0) + (1 << 29).to_bytes(4, "big"))
    writer.write(frames.header_block(1, encode(path), 0, frames.DEFAULT_FRAME))
    for begin in range(0, len(message), frames.DEFAULT_FRAME):
        part = message[begin : begin + frames.DEFAULT_FRAME]
        last = begin + len(part) == len(message)
        writer.write(frames.header(len(part), frames.DATA, frames.END_STREAM if last else 0, 1) + part)
    received = 0
    async with asyncio.timeout(20):
        while received < len(message):
            head = await reader.readexactly(frames.HEADER_BYTES)
            length = int.from_bytes(head[:3], "big")
            await reader.readexactly(length)
            received += length if head[3] == frames.DATA else 0
    writer.close()
    await writer.wait_closed()


async def test_many_calls_at_once_of_all_sizes(start: Any) -> None:
    running = await start()
    messages = [bytes([index % 251]) * (index * index) for index in range(300)]
    answers = await asyncio.gather(*(running.call("echo", message) for message in messages))
    assert answers == messages


async def test_metadata_both_ways(start: Any) -> None:
    running = await start()
    call = running.call("metadata", metadata=(("key", "value"), ("k-bin", b"\0\1\2")))
    peer = (await call).decode()
    assert peer.startswith("ipv4:127.0.0.1:")
    assert ("key", "value") in running.service.seen
    assert ("k-bin", b"\0\1\2") in running.service.seen
    assert ("first", "1") in list(await call.initial_metadata())
    assert ("last-bin", b"\0") in list(await call.trailing_metadata())


async def test_failures_with_their_text_and_details(start: Any) -> None:
    running = await start()
    error = await failure(running.call("fail"))
    assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert error.details() == "naïve: 100 %\n" + "x" * 5000
    assert {("said", "1"), ("grpc-status-details-bin", b"\0\xff")} <= set(error.trailing_metadata())


async def test_what_is_not_served(start: Any) -> None:
    running = await start(Http2Settings(message_bytes=100))
    unknown = await failure(running.call("nothing"))
    assert (unknown.code(), unknown.details()) == (grpc.StatusCode.UNIMPLEMENTED, "Method not found!")
    large = await failure(running.call("echo", bytes(1 << 20)))
    assert large.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert large.details() == "Received message larger than max (1048576 vs. 100)."
    huge = await failure(running.call("echo", metadata=(("key", "v" * 20_000),)))
    assert huge.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert await running.call("echo", b"after all that") == b"after all that"


async def test_a_handler_that_breaks_its_contract(start: Any, caplog: pytest.LogCaptureFixture) -> None:
    running = await start()
    error = await failure(running.call("broken"))
    assert (error.code(), error.details()) == (grpc.StatusCode.INTERNAL, "/t/broken: ValueError")
    assert "unexpected exception" in caplog.text


async def test_deadlines(start: Any) -> None:
    running = await start()
    assert await running.call("remaining", timeout=None) == b"None"
    assert 50 < float(await running.call("remaining", timeout=60)) <= 61  # gRPC rounds up
    error = await failure(running.call("wait", timeout=0.05))
    assert error.code() is grpc.StatusCode.DEADLINE_EXCEEDED
    await running.service.left.wait()
    assert running.service.cancelled == 1


async def test_a_cancelled_call(start: Any) -> None:
    running = await start()
    call = running.call("wait")
    waiting = asyncio.ensure_future(_outcome(call))
    await running.service.entered.wait()
    call.cancel()
    await running.service.left.wait()
    await waiting
    assert running.service.cancelled == 1


async def _outcome(call: Any) -> None:
    with suppress(aio.AioRpcError, asyncio.CancelledError):
        await call


async def test_more_calls_than_are_served_at_once(start: Any) -> None:
    running = await start(Http2Settings(calls=1))
    first = asyncio.ensure_future(_value(running.call("wait", b"1")))
    await running.service.entered.wait()
    error = await failure(running.call("echo"))
    assert error.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    running.service.gate.set()
    assert await first == b"1"
    assert await running.call("echo", b"2") == b"2"


async def _value(call: Any) -> bytes:
    return await call  # type: ignore[no-any-return]


# -- how it ends -------------------------------------------------------------------------------------------------------


async def test_calls_get_their_grace(start: Any) -> None:
    running = await start()
    call = asyncio.ensure_future(_value(running.call("wait", b"in time")))
    await running.service.entered.wait()
    stopping = asyncio.ensure_future(running.server.stop(60))
    asyncio.get_running_loop().call_soon(running.service.gate.set)
    assert await call == b"in time"
    await stopping
    assert not running.server.connections


async def test_calls_that_outlast_the_grace(start: Any) -> None:
    running = await start()
    call = asyncio.ensure_future(failure(running.call("wait")))
    await running.service.entered.wait()
    await running.server.stop(0)
    error = await call
    assert (error.code(), error.details()) == (grpc.StatusCode.UNAVAILABLE, "The server is shutting down.")
    assert running.service.cancelled == 1
    assert (running.server.connections, running.server.calls.open) == (set(), {})


async def test_a_client_that_is_killed(start: Any) -> None:
    running = await start()
    program = (
        "import grpc, sys\n"
        "with grpc.insecure_channel(sys.argv[1]) as channel:\n"
        "    channel.unary_unary('/t/wait')(b'')\n"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", program, f"127.0.0.1:{running.port}")
    try:
        await running.service.entered.wait()
    finally:
        child.send_signal(signal.SIGKILL)
        await child.wait()
    await running.service.left.wait()
    assert running.service.cancelled == 1


async def test_a_peer_that_speaks_something_else(start: Any) -> None:
    running = await start()
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = await reader.read()
    assert b"no HTTP/2 preface" in answer
    writer.close()
    await writer.wait_closed()


async def test_a_peer_that_says_nothing(start: Any) -> None:
    running = await start(Http2Settings(handshake_seconds=0.05, linger_seconds=0.05))
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    answer = await reader.read()
    assert b"no handshake in time" in answer
    writer.close()
    await writer.wait_closed()


async def test_half_a_request_that_stalls(start: Any) -> None:
    running = await start(Http2Settings(stall_seconds=0.2))
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    writer.write(frames.PREFACE + frames.settings({}) + frames.header(100, frames.HEADERS, 4, 1))
    await reader.read()  # until the server closes
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()
    assert await running.call("echo", b"others go on") == b"others go on"


async def test_more_connections_than_are_taken(start: Any) -> None:
    running = await start(Http2Settings(connections=1))
    assert await running.call("echo") == b""
    reader, writer = await asyncio.open_connection("127.0.0.1", running.port)
    assert await reader.read() == b""
    writer.close()
    await writer.wait_closed()


async def test_a_port_that_is_taken() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await Http2Server(lambda path: None).start("127.0.0.1", taken.getsockname()[1])


# -- the other transport -----------------------------------------------------------------------------------------------


def test_the_transport_of_the_environment() -> None:
    assert transport_from_environment({}) == "http2"
    assert transport_from_environment({"TENFOLD_GRPC": "grpcio"}) == "grpcio"
    with pytest.raises(errors.InvalidArgumentError, match="TENFOLD_GRPC is 'h2'; it may be http2 or grpcio"):
        transport_from_environment({"TENFOLD_GRPC": "h2"})


@pytest.mark.parametrize("transport", ["http2", "grpcio"])
async def test_a_task_answers_alike_over_both(transport: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENFOLD_GRPC", transport)
    async with (
        TaskServer(None, "ps", 0) as server,
        aio.insecure_channel(f"127.0.0.1:{server.port}", options=OPTIONS) as channel,
    ):
        worker = "/tensorflow.WorkerService/"
        call = channel.unary_unary(worker + "GetStatus")(b"", timeout=60)
        assert b"/job:ps/replica:0/task:0/device:CPU:0" in await call
        assert ("tenfold-task", server.task) in list(await call.trailing_metadata())
        refused = await failure(channel.unary_unary(worker + "Tracing")(b"", timeout=60))
        assert refused.code() is grpc.StatusCode.UNIMPLEMENTED
        assert "tracing is not implemented" in refused.details()
        garbled = await failure(channel.unary_unary(worker + "RunGraph")(b"\xff", timeout=60))
        assert garbled.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert ("tenfold-said", "1") in list(garbled.trailing_metadata())


async def test_grpcio_says_why_a_port_cannot_be_had() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(OSError, match="in use"):
        await serve((), "127.0.0.1", taken.getsockname()[1], 16, DEFAULT_HTTP2_SETTINGS, Gate("the test"))
