"""This release with the one before it, on links and in calls over gRPC: what that one said is replayed from
tests/recorded, to a task and as a task. And with releases that do not exist yet."""

from __future__ import annotations

import asyncio
import base64
import dataclasses
import json
import secrets
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import pytest

from support.links import ADDRESS, ECHO, SERVER, Service
from support.moments import PATIENCE
from tenfold_core import errors, protocol
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_link.aio.dial import LinkDialer, connect
from tenfold_link.aio.listener import LinkListener
from tenfold_link.blocking.dial import connect as connect_blocking
from tenfold_link.link_settings import LinkSettings
from tenfold_link.wire import handshake
from tenfold_link.wire.frames import MAGIC, PREFIX, FrameKind
from tenfold_protos import examine_pb2, link_pb2, peers_pb2
from tenfold_services.rpc.channels import ask, open_channel
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

RECORDED = Path(__file__).parents[1] / "recorded"
RELEASES = sorted(folder.name for folder in RECORDED.iterdir() if (folder / "link.json").exists())
TCP = LinkSettings(mode="tcp", hello_seconds=PATIENCE)


def recorded(release: str, name: str) -> Any:
    return json.loads((RECORDED / release / f"{name}.json").read_text())


def data(text: str) -> bytes:
    return base64.b64decode(text)


def frames(stream: bytes) -> list[tuple[FrameKind, bytes]]:
    """Kind and all bytes of each frame without buffers beside it, and of the last one whatever follows."""
    found = []
    while stream:
        magic, kind, _, _, size, rows, _ = PREFIX.unpack_from(stream)
        assert magic == MAGIC
        end = len(stream) if rows else PREFIX.size + size
        found.append((FrameKind(kind), stream[:end]))
        stream = stream[end:]
    return found


def test_there_is_an_older_release_to_be_tried() -> None:
    assert RELEASES


@pytest.mark.parametrize("release", RELEASES)
async def test_it_opens_a_link_to_this_one(release: str, monkeypatch: pytest.MonkeyPatch) -> None:
    told = recorded(release, "link")
    request = link_pb2.OpenLinkRequest.FromString(data(told["request"]))
    offered = link_pb2.OpenLinkResponse.FromString(data(told["response"]))
    monkeypatch.setattr(secrets, "token_bytes", lambda _: offered.token)
    service = Service()
    async with LinkListener(SERVER, service.methods, TCP) as listener:
        answer = listener.open_link(request)
        reader, writer = await asyncio.open_connection("127.0.0.1", answer.tcp_port)
        heard = []
        async with asyncio.timeout(PATIENCE):
            for who, text, _ in told["turns"]:
                if who == "caller":
                    writer.write(data(text))
                    await writer.drain()
                else:
                    heard.append((frames(data(text)), frames(await reader.read(1 << 16))))
        writer.close()

    assert answer.version == offered.version == 1
    (welcome_then, welcome_now), (reply_then, reply_now) = heard[:2]
    assert welcome_now[0][0] is welcome_then[0][0] is FrameKind.WELCOME
    assert handshake.parse_welcome(welcome_now[0][1][PREFIX.size :]).version == 1
    # the call's answer, byte for byte
    assert reply_now[0] == reply_then[0]


@asynccontextmanager
async def an_older_listener(told: Any) -> AsyncIterator[tuple[link_pb2.OpenLinkResponse, list[bytes]]]:
    """Says what the listener of that release said; its offer, and what it hears."""
    heard: list[bytes] = []

    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            for who, text, _ in told["turns"]:
                if who == "listener":
                    writer.write(data(text))
                    await writer.drain()
                else:
                    heard.append(await reader.read(1 << 16))
        except ConnectionError:
            pass  # the link was closed before all was said
        finally:
            writer.close()
            over.set()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        offer = link_pb2.OpenLinkResponse.FromString(data(told["response"]))
        offer.tcp_port = server.sockets[0].getsockname()[1]
        yield offer, heard
        await over.wait()


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("blocking", [False, True])
async def test_this_one_opens_a_link_to_it(release: str, blocking: bool) -> None:
    told = recorded(release, "link")
    async with an_older_listener(told) as (offer, heard), asyncio.timeout(PATIENCE):
        if blocking:

            def talk() -> tuple[str, bytes]:
                link = connect_blocking(offer, ADDRESS, settings=TCP)
                try:
                    return link.peer, bytes(link.call(ECHO, b"header", [b"a buffer"])[0])
                finally:
                    link.close()

            peer, answer = await asyncio.to_thread(talk)
        else:
            opened = await connect(offer, ADDRESS, settings=TCP)
            assert (opened.version, opened.can) == (1, frozenset())
            peer, answer = opened.peer, bytes((await opened.call(ECHO, b"header", [b"a buffer"]))[0])
            await opened.close()

    then = handshake.parse_hello(frames(data(told["turns"][0][1]))[0][1][PREFIX.size :])
    now = handshake.parse_hello(frames(heard[0])[0][1][PREFIX.size :])
    assert (peer, answer) == (offer.task, b"header")
    assert (now.version, now.token, now.arena_bytes) == (then.version, then.token, then.arena_bytes)


@pytest.mark.parametrize("release", RELEASES)
async def test_its_calls_over_grpc_are_answered(release: str) -> None:
    kinds = {
        "OpenLink": link_pb2.OpenLinkResponse,
        "ExchangeFinished": peers_pb2.ExchangeFinishedResponse,
        "Examine": examine_pb2.ExamineResponse,
    }
    async with (
        TaskServer({"ps": [""]}, "ps", 0, link=TCP) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        for method, told in recorded(release, "calls").items():
            kind: Any = kinds[method.rpartition("/")[2]]
            then = kind.FromString(data(told["response"]))
            now = kind.FromString(await channel.unary_unary(method)(data(told["request"]), timeout=PATIENCE))

            missing = {field.name for field, _ in then.ListFields()} - {field.name for field, _ in now.ListFields()}
            assert not missing, method


# -- releases to come ------------------------------------------------------------------------------------------------


def speaking(monkeypatch: pytest.MonkeyPatch, oldest: int, newest: int, *can: str) -> None:
    """From now on this process speaks these versions of everything."""
    there = protocol.Speaks(oldest, newest, frozenset(can))
    monkeypatch.setattr(protocol, "_MINE", dict.fromkeys(protocol._MINE, there))


async def test_a_newer_one_that_still_speaks_our_version(monkeypatch: pytest.MonkeyPatch) -> None:
    async with LinkListener(SERVER, Service().methods, TCP) as listener:
        request = handshake.ask(TCP)
        request.version, request.release = 3, "0.9.0"
        request.can.append("fly")
        link = await connect(listener.open_link(request), ADDRESS, settings=TCP)

        assert (link.version, link.can) == (1, protocol.links().can)
        assert await link.call(ECHO, b"well") == (b"well", [])
        await link.close()


async def test_a_newer_one_that_does_not_is_told_both_versions(caplog: pytest.LogCaptureFixture) -> None:
    async with LinkListener(SERVER, Service().methods, TCP) as listener:
        request = handshake.ask(TCP, "/job:worker/task:1")
        request.version, request.oldest_version, request.release = 3, 2, "0.9.0"

        with pytest.raises(errors.FailedPreconditionError) as refused:
            listener.open_link(request)

    assert refused.value.message == (
        "/job:worker/task:1 (Tenfold 0.9.0) speaks versions 2 to 3 of links, and this process "
        f"(Tenfold {protocol.release()}) version 1: bring this process up to date (pip install tenfold==0.9.0)."
    )
    assert "opens no link: /job:worker/task:1 (Tenfold 0.9.0)" in caplog.text


async def test_an_offer_of_a_version_that_is_not_spoken_here(caplog: pytest.LogCaptureFixture) -> None:
    offer = link_pb2.OpenLinkResponse(version=7, task=SERVER, tcp_port=1, token=b"x", release="0.9.0")

    async def answer(_: Any) -> link_pb2.OpenLinkResponse:
        return offer

    dialer = LinkDialer(answer, ADDRESS, task="", settings=TCP)

    assert await dialer.get() is None
    assert "speaks version 7 of links, and this process" in dialer.why_not
    assert [record.levelname for record in caplog.records if "version 7" in record.message] == ["WARNING"]
    with pytest.raises(errors.FailedPreconditionError, match="speaks version 7 of links"):
        connect_blocking(offer, ADDRESS, settings=TCP)
    await dialer.close()


async def test_a_hello_of_another_version_than_was_agreed_on() -> None:
    async with LinkListener(SERVER, Service().methods, TCP) as listener:
        answer = listener.open_link(handshake.ask(TCP))
        reader, writer = await asyncio.open_connection("127.0.0.1", answer.tcp_port)
        answer.version = 2
        writer.write(handshake.hello(answer, None, always_reads=True))
        async with asyncio.timeout(PATIENCE):
            said = await reader.read()
        writer.close()

    assert b"a first frame of version 2, where version 1 was agreed on" in said


async def test_calls_of_a_version_that_is_not_spoken_here(monkeypatch: pytest.MonkeyPatch) -> None:
    path, request = "/tenfold.ExamineService/Examine", examine_pb2.ExamineRequest(seconds=1.0)
    async with TaskServer({"ps": [""]}, "ps", 0) as server:
        address = f"localhost:{server.port}"
        async with open_channel(address, NO_CREDENTIALS) as channel:
            await ask(channel, path, request, examine_pb2.ExamineResponse, SERVER, address, PATIENCE)
        async with grpc.aio.insecure_channel(address) as channel:
            call = channel.unary_unary(path)(
                request.SerializeToString(), metadata=((protocol.HEADER, "2-3; release=0.9.0"),), timeout=PATIENCE
            )
            with pytest.raises(grpc.aio.AioRpcError) as refused:
                await call
            odd = channel.unary_unary(path)(b"", metadata=((protocol.HEADER, "newest"),), timeout=PATIENCE)
            with pytest.raises(grpc.aio.AioRpcError) as malformed:
                await odd
            plain = channel.unary_unary("/tensorflow.WorkerService/GetStatus")
            await plain(b"", metadata=((protocol.HEADER, "2-3"),), timeout=PATIENCE)  # TensorFlow's is left alone

    assert refused.value.code() is grpc.StatusCode.FAILED_PRECONDITION
    assert "(Tenfold 0.9.0) speaks versions 2 to 3 of calls between Tenfold's tasks" in str(refused.value.details())
    assert malformed.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_an_answer_says_what_the_task_speaks() -> None:
    async with (
        TaskServer({"ps": [""]}, "ps", 0) as server,
        grpc.aio.insecure_channel(f"localhost:{server.port}") as channel,
    ):
        call = channel.unary_unary("/tenfold.ExamineService/Examine")(
            examine_pb2.ExamineRequest(seconds=1.0).SerializeToString(), timeout=PATIENCE
        )
        await call

        assert dict(list(await call.trailing_metadata()))[protocol.HEADER] == protocol.calls().text()


async def test_abilities_are_those_that_both_have(monkeypatch: pytest.MonkeyPatch) -> None:
    service = Service()
    async with LinkListener(SERVER, service.methods, dataclasses.replace(TCP)) as listener:
        speaking(monkeypatch, 1, 2, "swim", "fly")
        answer = listener.open_link(handshake.ask(TCP))
        speaking(monkeypatch, 1, 2, "fly", "dig")
        link = await connect(answer, ADDRESS, settings=TCP)

        assert link.version == 2
        assert "swim" not in link.can
        await link.close()
