"""A gRPC connection that goes no further: each of its calls is answered with the reason, which a client then shows.

One that is only closed, or ended by GOAWAY, is opened again and again by gRPC, and its caller learns no more than that
there is none. Used by tunnel.py.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_core.access.gate import Gate
from tenfold_core.access.roles import Role
from tenfold_services.http2.connection_socket import ConnectionSocket
from tenfold_services.http2.http2_settings import Http2Settings
from tenfold_services.http2.open_calls import OpenCalls

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from tenfold_services.http2.handler import Buffer, CallContext, Failure

#: What such a connection may take: a request is read before it is answered.
_SETTINGS = Http2Settings(buffered_bytes=64 << 20, keep_bytes=0, handshake_seconds=5.0, calls=1_024, streams=512)
#: Seconds until the peer has to connect again, and so until what was wrong is tried anew; and to read the last answers.
ANSWER_S, _LINGER_S = 5.0, 1.0


@dataclass
class _Refusal:
    """A handler.UnaryHandler of every method."""

    failure: Failure
    aligned: Callable[[memoryview], int] | None = None
    needs: Role = Role.NONE
    action: str = "tunnel"

    def begin(self, request: Buffer, context: CallContext) -> Failure:
        return self.failure


async def refuse(sock: socket.socket, peer: str, failure: Failure, seconds: float = ANSWER_S) -> None:
    """Answers every call over `sock`, connected to `peer`, with `failure`, for so many seconds; then closes it."""
    ended = asyncio.get_running_loop().create_future()
    handler, gate = _Refusal(failure), Gate("this tunnel")
    calls = OpenCalls(lambda path: handler, _SETTINGS, gate)
    connection = ConnectionSocket(sock, peer, calls, ended.set_result, gate.accepted(sock))
    try:
        async with asyncio.timeout(seconds):
            await asyncio.shield(ended)
    except TimeoutError:
        connection.leave(_LINGER_S)
        async with asyncio.timeout(2 * _LINGER_S):
            await ended
    finally:
        connection.close()
