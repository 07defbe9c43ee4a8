"""What serves gRPC on a task's port: our HTTP/2 server, or gRPC's own library where TENFOLD_GRPC=grpcio asks for it.

Used by task_port.py. Why there are two: docs/decisions/0022-http2-without-grpc-core.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tenfold_core import errors
from tenfold_core.access.gate import Gate

from .service import finder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.access.tls import Certificates
    from tenfold_services.http2.http2_settings import Http2Settings, Transport

    from ..limits import Limits
    from .service import TableService


class Listener(Protocol):
    """A gRPC server that has been started."""

    async def stop(self, grace: float | None) -> None:
        """Ends it; calls get `grace` seconds."""


async def listen(
    services: Sequence[TableService],
    transport: Transport,
    limits: Limits,
    host: str,
    port: int,
    http2: Http2Settings | None = None,
    gate: Gate | None = None,
    certificates: Certificates | None = None,
) -> tuple[Listener, int]:
    """A listener that serves `services` at `host`, and its port, to those whom `gate` lets in; by default to the same
    user of this machine alone. With `certificates` those beyond this machine speak TLS. Raises OSError where that
    cannot be had, InvalidArgumentError where a transport cannot do it."""
    from tenfold_services.http2.http2_settings import DEFAULT_HTTP2_SETTINGS

    gate, http2 = gate or Gate("this server"), http2 or DEFAULT_HTTP2_SETTINGS
    if transport == "grpcio":
        if certificates is not None:
            raise errors.invalid_argument("TENFOLD_GRPC=grpcio does not serve TLS; leave TENFOLD_TLS_CERT or it out.")
        return await _listen_with_grpcio(services, limits, host, port, http2, gate)
    from ..http2.server import Http2Server

    server = Http2Server(finder(services), http2, gate, certificates)
    return server, await server.start(host, port)


async def _listen_with_grpcio(
    services: Sequence[TableService], limits: Limits, host: str, port: int, http2: Http2Settings, gate: Gate
) -> tuple[Listener, int]:
    from grpc import aio

    from .aio_handlers import AioService
    from .channels import SIZES
    from .grpcio_port import GrpcioPort

    options = (
        *SIZES,
        # clients of other makers may ping as often as they like
        ("grpc.http2.min_ping_interval_without_data_ms", 1000),
        ("grpc.http2.max_ping_strikes", 0),
    )
    server = aio.server(options=options, maximum_concurrent_rpcs=limits.concurrent_rpcs)
    behind = GrpcioPort(server, gate, http2)
    handlers: Any = tuple(AioService(service, gate, behind.came) for service in services)
    server.add_generic_rpc_handlers(handlers)
    return behind, await behind.start(host, port)
