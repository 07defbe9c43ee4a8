"""A task's port where gRPC's own library serves (TENFOLD_GRPC=grpcio): accepts connections, and carries them to it.

gRPC shows only the address of a call's peer, which may be another one's by the time that its call is worked on, so who
is at the other end is asked here, of the accepted socket. gRPC itself listens on a Unix socket in a folder that is this
user's alone, under names that aio_handlers.py looks up here. docs/decisions/0123-whose-a-connection-is.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import tempfile
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold_core.access.gate import NOBODY, Caller, Gate
from tenfold_core.access.places import Places, affordable
from tenfold_link.aio.accept_loop import AcceptLoop, StrangersTime, shown
from tenfold_services.http2.listening import listening_sockets, tune
from tenfold_services.owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from grpc import aio

    from tenfold_services.http2.http2_settings import Http2Settings

_STOP_S = 2.0


class Came(NamedTuple):
    """Who is at the other end of a connection, and from where: "ipv4:127.0.0.1:1234"."""

    caller: Caller
    address: str


class GrpcioPort:
    """`server` behind sockets of ours. `start`, then `stop`, on one loop."""

    def __init__(self, server: aio.Server, gate: Gate, settings: Http2Settings) -> None:
        """`server` has its handlers and no port yet."""
        self._server, self._gate, self._settings = server, gate, settings
        self._connections = OwnedTasks("gRPC's port")
        self._places: Places[asyncio.Task[None]] = Places(affordable(settings.connections), asyncio.Task.cancel)
        #: Name under which a connection comes to gRPC, as that writes it → who came. Gone with the connection.
        self._came: dict[str, Came] = {}
        self._folder = ""
        self._accepting: AcceptLoop[asyncio.Task[None]] | None = None

    def came(self, peer: str) -> Came:
        """Who is behind a call's peer, as gRPC names it."""
        return self._came.get(peer, Came(NOBODY, peer))

    async def start(self, host: str, port: int) -> int:
        """Listens; the port. Raises OSError where it cannot be had."""
        self._folder = tempfile.mkdtemp(prefix="tenfold-grpc-")  # this user's alone
        try:
            self._server.add_insecure_port(f"unix:{self._path}")
            await self._server.start()
            found, port = await listening_sockets(host, port)
        except BaseException as error:
            await self.stop(None)
            if isinstance(error, RuntimeError):
                raise OSError(f"gRPC cannot listen at {self._path}: {error}") from None
            raise
        strangers = StrangersTime(self._settings.strangers_share, self._settings.strangers_seconds)
        limit, where = "TENFOLD_HTTP2_CONNECTIONS", f"gRPC's port {port}"
        self._accepting = AcceptLoop(where, self._gate, self._places, self._take, limit=limit, strangers=strangers)
        self._accepting.watch(*found)
        return port

    async def stop(self, grace: float | None) -> None:
        """Accepts no more, gives calls `grace` seconds and ends the rest. Bounded."""
        if self._accepting is not None:
            self._accepting.close()
        await self._server.stop(grace)
        await self._connections.cancel_all(_STOP_S)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _path(self) -> str:
        return os.path.join(self._folder, "grpc")

    def _take(self, sock: socket.socket, address: Any, caller: Caller) -> asyncio.Task[None]:
        came = Came(caller, shown(sock, address))
        return self._connections.spawn(self._carry(sock, came), f"grpc:{came.address}")

    async def _carry(self, near: socket.socket, came: Came) -> None:
        """One connection, to its end."""
        from tenfold_services.tunnel.relay import Relay, TunnelSettings

        name = f"tenfold-{secrets.token_hex(16)}"
        peer = f"unix-abstract:{name}"
        try:
            with contextlib.suppress(OSError, TimeoutError), near, socket.socket(socket.AF_UNIX) as far:
                tune(near, self._settings.keepalive_seconds)
                far.setblocking(False)
                far.bind(f"\0{name}")
                self._came[peer] = came
                await asyncio.get_running_loop().sock_connect(far, self._path)
                await Relay(near, far, TunnelSettings()).run()
        finally:
            self._came.pop(peer, None)
