"""The gRPC server: listens, accepts within bounds, and stops in order. One loop; its connections are ConnectionSockets.

Used by the task's server in place of grpc.aio's (decision 0022), and has the methods of that which are used there.
"""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING, Any

from tenfold_core.access.gate import Gate
from tenfold_core.access.places import Places, affordable
from tenfold_core.open_files import TOLD
from tenfold_link.aio.accept_loop import AcceptLoop, shown

from .connection_socket import ConnectionSocket
from .frame_types import Code, goaway
from .http2_settings import DEFAULT_HTTP2_SETTINGS, Http2Settings
from .listening import listening_sockets
from .open_calls import OpenCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.gate import Caller
    from tenfold_core.access.tls import Certificates

    from .handler import UnaryHandler

#: How often connections are looked at, by fractions of the time that they may stall.
_LOOKS = 10
#: What a stopping server gives connections to read the end.
_LINGER_SECONDS = 0.2
#: So many connections may always be without the peer's first SETTINGS.
_FEW = 64


class Http2Server:
    """Serves the handlers that `find(path)` gives. Made, started with `start` and ended with `stop` on one loop."""

    def __init__(
        self,
        find: Callable[[str], UnaryHandler | None],
        settings: Http2Settings = DEFAULT_HTTP2_SETTINGS,
        gate: Gate | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        """`gate` says who may call; by default the same user of this machine alone. With `certificates` those beyond
        this machine must speak TLS, and others may."""
        self._settings, self._certificates, self._loop = settings, certificates, asyncio.get_running_loop()
        self.connections: set[ConnectionSocket] = set()
        self._places: Places[ConnectionSocket] = Places(affordable(settings.connections), ConnectionSocket.close)
        self.calls = OpenCalls(find, settings, gate or Gate("this server"), self._places.recognize)
        self._accepting: AcceptLoop[ConnectionSocket] | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        #: Set when the last connection has ended.
        self._ended = asyncio.Event()

    async def start(self, host: str, port: int) -> int:
        """Listens at every address of `host`; the port. Raises OSError if none can be had."""
        found, port = await listening_sockets(host, port)
        self._accepting = AcceptLoop(
            f"gRPC's port {port}", self.calls.gate, self._places, self._take,
            limit="TENFOLD_HTTP2_CONNECTIONS", strangers=self.calls.strangers,
            full=self._full, say_no_room=self._say_no_room,
        )  # fmt: skip
        self._accepting.watch(*found)
        self._look()
        return port

    async def stop(self, grace: float | None = None) -> None:
        """Accepts no connections and calls any more, gives calls `grace` seconds, and ends the rest as UNAVAILABLE.

        Returns soon after. Never raises; a second call waits for what is left.
        """
        if self._accepting is None:
            return
        assert self._look_timer is not None
        self._accepting.close()
        self._look_timer.cancel()
        for accepted in list(self.connections):
            accepted.connection.say_goodbye()
            accepted.flush()
        if grace:
            await self.calls.drained(grace)
        self.calls.end_all("The server is shutting down.")
        for accepted in list(self.connections):
            accepted.leave(_LINGER_SECONDS)
        while self.connections:
            self._ended.clear()
            await self._ended.wait()
        await self.calls.drained(_LINGER_SECONDS)

    def _full(self) -> str | None:
        begun = self.connections
        if len(begun) > _FEW and sum(not each.connection.greeted for each in begun) >= self._settings.handshakes:
            return "too many have begun none yet"
        return None

    def _take(self, sock: socket.socket, address: Any, caller: Caller) -> ConnectionSocket | None:
        context = None if self._certificates is None else self._certificates.server_context()
        made = ConnectionSocket(sock, shown(sock, address), self.calls, self._end, caller, context)
        if made.closed:
            return None
        self.connections.add(made)
        return made

    def _say_no_room(self, sock: socket.socket) -> None:
        """The end of a connection that has not begun. Who speaks TLS could not read it."""
        if self._certificates is None:
            # without SETTINGS, which would make it a connection that came about: callers would try again at once
            sock.send(goaway(0, Code.ENHANCE_YOUR_CALM, TOLD))
            sock.shutdown(socket.SHUT_WR)
            # what came and was not read would have the system drop what was said
            sock.recv(1 << 16)

    def _end(self, accepted: ConnectionSocket) -> None:
        self._places.leave(accepted)
        self.connections.discard(accepted)
        if not self.connections:
            self._ended.set()

    def _look(self) -> None:
        seconds = self._settings.stall_seconds / _LOOKS
        for accepted in list(self.connections):
            accepted.look(seconds)
        self._look_timer = self._loop.call_later(seconds, self._look)
