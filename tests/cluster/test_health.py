"""A task's health as gRPC's own tools ask for it: grpc.health.v1, served by either transport."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import grpc
import pytest
from click.testing import CliRunner

from tenfold.cli.main import cli
from tenfold_protos.health_pb2 import HealthCheckRequest, HealthCheckResponse
from tenfold_services.server import TaskServer

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

CHECK, WATCH = "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"
SERVING, NOT_SERVING = HealthCheckResponse.SERVING, HealthCheckResponse.NOT_SERVING


@pytest.fixture(params=["http2", "grpcio"])
async def server(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[TaskServer]:
    monkeypatch.setenv("TENFOLD_GRPC", request.param)
    async with TaskServer({"ps": [""]}, "ps", 0) as started:
        yield started


async def check(server: TaskServer, service: str) -> int:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        call = channel.unary_unary(
            CHECK,
            request_serializer=HealthCheckRequest.SerializeToString,
            response_deserializer=HealthCheckResponse.FromString,
        )
        return (await call(HealthCheckRequest(service=service), timeout=30)).status


@pytest.mark.parametrize("service", ["", "tenfold.ready", "tenfold.live", "tensorflow.WorkerService"])
async def test_a_task_that_serves(server: TaskServer, service: str) -> None:
    assert await check(server, service) == SERVING


async def test_one_that_takes_no_new_work_is_alive_but_not_ready(
    server: TaskServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "_stopping", True)
    try:
        assert [await check(server, service) for service in ("", "tenfold.live")] == [NOT_SERVING, SERVING]
        ping = [f"127.0.0.1:{server.port}"]
        told = await asyncio.to_thread(CliRunner().invoke, cli, ["ping", *ping])
        alive = await asyncio.to_thread(CliRunner().invoke, cli, ["ping", "--live", *ping])
    finally:
        monkeypatch.undo()

    assert (told.exit_code, alive.exit_code) == (1, 0)
    assert f"is alive, but takes no new work: {server.task} is shutting down." in told.output


async def test_an_unknown_service_is_named_with_those_that_there_are(server: TaskServer) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await check(server, "tensorflow.Nothing")

    assert caught.value.code() is grpc.StatusCode.NOT_FOUND
    assert "no service 'tensorflow.Nothing' to check; it knows ''" in (caught.value.details() or "")


async def test_watching_is_told_to_ask_again(server: TaskServer) -> None:
    async with grpc.aio.insecure_channel(f"127.0.0.1:{server.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in channel.unary_stream(WATCH)(b"", timeout=30):
                pass

    assert caught.value.code() is grpc.StatusCode.UNIMPLEMENTED
    assert "ask that again" in (caught.value.details() or "")
