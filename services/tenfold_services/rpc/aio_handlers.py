"""Services over grpc.aio, the transport of TENFOLD_GRPC=grpcio: the handlers of a TableService ask the gate, then call.

Used by task_port.py; who is at the other end of a connection is known to grpcio_port.py. Our own server does the same
in http2/calls.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import grpc
from grpc import aio

from tenfold_core.access import audit
from tenfold_core.access.channel import AS_ROLE, AUTHORIZATION
from tenfold_core.errors import OpError
from tenfold_core.traffic import OTHERS

from ..http2.handler import Failure
from .channels import SIZES
from .grpcio_port import GrpcioPort
from .status import STATUS_BY_NUMBER

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from tenfold_core.access.gate import Caller, Gate

    from ..http2.handler import UnaryHandler
    from ..http2.http2_settings import Http2Settings
    from .grpcio_port import Came
    from .service import TableService


async def serve(
    services: Sequence[TableService], host: str, port: int, concurrent: int, http2: Http2Settings, gate: Gate
) -> tuple[GrpcioPort, int]:
    """A server of `services` at `host`, and its port, for those whom `gate` accepts; works on as many calls at once as
    `concurrent` says. Raises OSError where the port cannot be had."""
    options = (
        *SIZES,
        # clients of other makers may ping as often as they like
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
    )
    server = aio.server(options=options, maximum_concurrent_rpcs=concurrent)
    behind = GrpcioPort(server, gate, http2)
    server.add_generic_rpc_handlers(tuple(AioService(service, gate, behind.came) for service in services))
    return behind, await behind.start(host, port)


class AioService(grpc.GenericRpcHandler):
    """`table` as grpc.aio takes services; `came(peer)` says who is behind a call's peer."""

    def __init__(self, table: TableService, gate: Gate, came: Callable[[str], Came]) -> None:
        self._table, self._gate, self._came = table, gate, came

    def service(self, handler_call_details: Any) -> Any | None:
        """The handler of a call; None for one of another service."""
        path = str(handler_call_details.method)
        handler = self._table.find(path)
        if handler is None:
            return None
        return grpc.unary_unary_rpc_method_handler(self._handle(handler, path.strip("/")))

    def _handle(self, handler: UnaryHandler, name: str) -> Callable[[bytes, Any], Awaitable[bytes]]:
        async def handle(data: bytes, context: Any) -> bytes:
            came = self._came(unquote(context.peer()))
            caller = came.caller
            try:
                told = dict(context.invocation_metadata() or ())
                caller = self._gate.called(told.get(AUTHORIZATION), told.get(AS_ROLE), caller)
                error = self._gate.refusal(caller.role, handler.needs, name)
            except OpError as refused:
                error = refused
            if error is not None:
                audit.refusals.note(caller, handler.action, error.message, address=came.address)
                await context.abort(STATUS_BY_NUMBER[error.code], error.message)
            OTHERS.received += len(data)
            outcome = handler.begin(data, _Context(context, caller, came.address))
            if not isinstance(outcome, (bytes, list, Failure)):
                outcome = await outcome
            if isinstance(outcome, Failure):
                await context.abort(STATUS_BY_NUMBER[outcome.code], outcome.text, outcome.metadata)
            answer: bytes = b"".join(outcome) if isinstance(outcome, list) else outcome  # type: ignore[assignment]
            OTHERS.sent += len(answer)
            return answer

        return handle


class _Context:
    """The context of grpc.aio, and the caller."""

    def __init__(self, context: Any, caller: Caller, address: str) -> None:
        self._context, self._caller, self._address = context, caller, address

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)

    def peer(self) -> str:
        return self._address

    def caller(self) -> Caller:
        return self._caller
