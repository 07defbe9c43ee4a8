"""A small gRPC service on our HTTP/2 server, and a channel to it; for tests of that server."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from tenfold_core.access.roles import Role
from tenfold_services.http2.handler import Failure

if TYPE_CHECKING:
    from grpc import aio

    from tenfold_services.http2.server import Http2Server

OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.enable_http_proxy", 0)]


class Service:
    """Handlers by path; `/t/gate` waits for `gate`, and `entered`, `left` say how far it came."""

    def __init__(self) -> None:
        self.gate, self.entered, self.left = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.seen: list[Any] = []
        #: Calls of gate that were cancelled.
        self.cancelled = 0

    def find(self, path: str) -> Handler | None:
        name = path.removeprefix("/t/")
        return Handler(self, name) if hasattr(self, name) else None

    def echo(self, request: bytes, context: Any) -> Any:
        return bytes(request)

    def pieces(self, request: bytes, context: Any) -> Any:
        half = len(request) // 2
        return [memoryview(request)[:half], memoryview(request)[half:]]

    def size(self, request: bytes, context: Any) -> Any:
        return b"%d" % len(request)

    def fail(self, request: bytes, context: Any) -> Any:
        return Failure(9, "naïve: 100 %\n" + "x" * 5000, (("said", "1"), ("grpc-status-details-bin", b"\0\xff")))

    def broken(self, request: bytes, context: Any) -> Any:
        raise ValueError("not for the client")

    async def metadata(self, request: bytes, context: Any) -> Any:
        self.seen = [*context.invocation_metadata()]
        await context.send_initial_metadata((("first", "1"),))
        context.set_trailing_metadata((("last-bin", b"\0"),))
        return context.peer().encode()

    async def remaining(self, request: bytes, context: Any) -> Any:
        return b"%r" % context.time_remaining()

    async def wait(self, request: bytes, context: Any) -> Any:
        self.entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.cancelled += 1
            raise
        finally:
            self.left.set()
        return bytes(request)


class Handler:
    """A handler of a method of Service, which waits if that is a coroutine."""

    aligned = None
    needs = Role.RUN
    action = "call"

    def __init__(self, service: Service, name: str) -> None:
        self._call = getattr(service, name)

    def begin(self, request: Any, context: Any) -> Any:
        return self._call(request, context)


class Running:
    def __init__(self, service: Service, server: Http2Server, port: int, channel: aio.Channel) -> None:
        self.service, self.server, self.port, self.channel = service, server, port, channel

    def call(self, name: str, request: bytes = b"", **more: Any) -> Any:
        return self.channel.unary_unary(f"/t/{name}")(request, **{"timeout": 60, **more})
