"""A task's port where gRPC's own library serves (TENFOLD_GRPC=grpcio): accepts connections, and carries them to it.

gRPC does not show its connections, only the address of a call's peer, and a connection may be over, and its address
another one's, when its call is worked on. So who is at the other end is asked here, of the accepted socket. gRPC itself
listens on a Unix socket in a folder that is this user's alone; each connection comes to it under a name that is known
here. Used by aio_handlers.py, which looks the names up. docs/decisions/0123-whose-a-connection-is.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import secrets
import shutil
import socket
import tempfile
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY, Caller, Gate
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.places import Places, affordable
from tenfold_core.access.roles import Role
from tenfold_core.loopback import is_loopback
from tenfold_core.open_files import Reserve
from tenfold_services.http2.listening import listening_sockets, tune
from tenfold_services.owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from grpc import aio

    from tenfold_services.http2.http2_settings import Http2Settings

_log = logging.getLogger(__name__)

_BACKLOG = 512
#: After an accept that failed.
_AGAIN_S, _STOP_S = 1.0, 2.0


class Came(NamedTuple):
    """Who is at the other end of a connection, and from where: "ipv4:127.0.0.1:1234"."""

    caller: Caller
    address: str


class GrpcioPort:
    """`server` behind sockets of ours. `start`, then `stop`, on one loop."""

    def __init__(self, server: aio.Server, gate: Gate, settings: Http2Settings) -> None:
        """`server` has its handlers and no port yet."""
        self._server, self._gate, self._settings = server, gate, settings
        self._sockets: list[socket.socket] = []
        self._connections = OwnedTasks("gRPC's port")
        self._places: Places[asyncio.Task[None]] = Places(affordable(settings.connections), asyncio.Task.cancel)
        #: Name under which a connection comes to gRPC, as that writes it → who came. Gone with the connection.
        self._came: dict[str, Came] = {}
        self._folder = ""
        self._reserve: Reserve | None = None

    def came(self, peer: str) -> Came:
        """Who is behind a call's peer, as gRPC names it."""
        return self._came.get(peer, Came(NOBODY, peer))

    async def start(self, host: str, port: int) -> int:
        """Listens; the port. Raises OSError where it cannot be had."""
        self._sockets, port = await listening_sockets(host, port)
        self._folder = tempfile.mkdtemp(prefix="tenfold-grpc-")  # this user's alone
        try:
            self._server.add_insecure_port(f"unix:{self._path}")
            await self._server.start()
        except BaseException as error:
            await self.stop(None)
            if isinstance(error, RuntimeError):
                raise OSError(f"gRPC cannot listen at {self._path}: {error}") from None
            raise
        self._reserve = Reserve(f"gRPC's port {port}")
        for sock in self._sockets:
            self._watch(sock)
        return port

    async def stop(self, grace: float | None) -> None:
        """Accepts no more, gives calls `grace` seconds and ends the rest. Bounded."""
        loop = asyncio.get_running_loop()
        for sock in self._sockets:
            loop.remove_reader(sock)
            sock.close()
        self._sockets.clear()
        if self._reserve is not None:
            self._reserve.close()
        await self._server.stop(grace)
        await self._connections.cancel_all(_STOP_S)
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def _path(self) -> str:
        return os.path.join(self._folder, "grpc")

    def _watch(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            asyncio.get_running_loop().add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(_BACKLOG):
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                assert self._reserve is not None
                sent_away = self._reserve.sent_away(listening, error, lambda _: None)
                if sent_away:
                    continue
                if sent_away is None:
                    loop = asyncio.get_running_loop()
                    loop.remove_reader(listening)
                    loop.call_later(_AGAIN_S, self._watch, listening)
                return
            sock.setblocking(False)
            host = f"ipv6:[{address[0]}]" if sock.family == socket.AF_INET6 else f"ipv4:{address[0]}"
            try:
                came = Came(self._gate.accepted(sock), f"{host}:{address[1]}")
            except errors.ResourceExhaustedError as error:
                _log.warning("A connection from %s is refused: %s", address[0], error.message)
                sock.close()
                continue
            known = came.caller.role is not Role.NONE
            group = came.caller.name if is_loopback(unmapped(address[0])) else address[0]
            why = self._places.refusal(group, known=known)
            if why is not None:
                audit.refusals.note(came.caller, "connect", why, address=came.address)
                sock.close()
                continue
            task = self._connections.spawn(self._carry(sock, came), f"grpc:{came.address}")
            self._places.add(task, group, known=known)
            task.add_done_callback(partial(self._ended, sock))

    def _ended(self, sock: socket.socket, task: asyncio.Task[None]) -> None:
        self._places.leave(task)
        sock.close()  # it may not have begun

    async def _carry(self, near: socket.socket, came: Came) -> None:
        """One connection, to its end."""
        from tenfold_services.tunnel.relay import Relay
        from tenfold_services.tunnel.tunnel_settings import TunnelSettings

        name = f"tenfold-{secrets.token_hex(16)}"
        peer = f"unix-abstract:{name}"
        far = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with near, far, contextlib.suppress(OSError, TimeoutError):
                tune(near, self._settings.keepalive_seconds)
                far.setblocking(False)
                far.bind(f"\0{name}")
                self._came[peer] = came
                await asyncio.get_running_loop().sock_connect(far, self._path)
                await Relay(near, far, TunnelSettings()).run()
        finally:
            self._came.pop(peer, None)
