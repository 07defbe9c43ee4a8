"""Connections to other tasks: gRPC's options, and one call over them."""

from __future__ import annotations

from typing import Any

import grpc
import pytest
from grpc import aio

from tenfold_core import errors
from tenfold_core.access.credentials import NO_CREDENTIALS
from tenfold_protos.worker_pb2 import GetStatusRequest, GetStatusResponse
from tenfold_services.rpc import channels
from tenfold_services.rpc.channels import ask, open_channel


class FakeChannel:
    def __init__(self, outcome: Any) -> None:
        self._outcome = outcome
        self.asked: list[Any] = []

    def unary_unary(self, path: str, request_serializer: Any, response_deserializer: Any) -> Any:
        async def call(request: Any, timeout: float) -> Any:  # noqa: ASYNC109 - as grpc.aio has it
            self.asked.append((path, request_serializer(request), timeout))
            if isinstance(self._outcome, Exception):
                raise self._outcome
            return response_deserializer(self._outcome)

        return call


async def test_one_call_is_asked_and_answered() -> None:
    channel = FakeChannel(GetStatusResponse().SerializeToString())
    answer = await ask(channel, "/service/Method", GetStatusRequest(), GetStatusResponse, "task", "host:1", 2.5)
    assert answer == GetStatusResponse()
    assert channel.asked == [("/service/Method", b"", 2.5)]


async def test_a_call_that_fails_names_task_address_and_method() -> None:
    failed = aio.AioRpcError(grpc.StatusCode.UNAVAILABLE, aio.Metadata(), aio.Metadata(), "odd")
    with pytest.raises(errors.UnavailableError, match=r"^task at host:1 cannot be reached: odd \(Method\)\.$"):
        await ask(FakeChannel(failed), "/service/Method", GetStatusRequest(), GetStatusResponse, "task", "host:1", 1)


def test_a_channel_has_our_options(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    monkeypatch.setattr(channels.channel, "open_channel", lambda *given: made.append(given))
    open_channel("host:1", NO_CREDENTIALS)
    [(library, address, options, credentials)] = made
    assert (library, address, credentials) == (aio, "host:1", NO_CREDENTIALS)
    assert dict(options) == {
        "grpc.max_receive_message_length": -1,
        "grpc.max_send_message_length": -1,
        "grpc.enable_http_proxy": 0,
        "grpc.enable_retries": 0,
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.min_reconnect_backoff_ms": 4000,
        "grpc.max_reconnect_backoff_ms": 1000,
        "grpc.use_local_subchannel_pool": 1,
    }
