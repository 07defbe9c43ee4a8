"""The gRPC server: listens, accepts within bounds, and stops in order. One loop; its connections are ConnectionSockets.

Used by the task's server in place of grpc.aio's (decision 0022), and has the methods of that which are used there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import Gate
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.places import Places, affordable
from tenfold_core.access.roles import Role
from tenfold_core.buffer_pool import BufferPool
from tenfold_core.loopback import is_loopback
from tenfold_core.memory_limits import tensor_limit
from tenfold_core.open_files import TOLD, Reserve
from tenfold_services.http2.connection_socket import ConnectionSocket

from .frame_types import Code, goaway
from .http2_settings import DEFAULT_HTTP2_SETTINGS, Http2Settings
from .listening import listening_sockets
from .message import Budget
from .open_calls import OpenCalls

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.gate import Caller
    from tenfold_core.access.tls import Certificates

    from .handler import UnaryHandler

_log = logging.getLogger(__name__)

_BACKLOG = 512
#: After an accept that failed.
_AGAIN_SECONDS = 1.0
#: Seconds for accepting in one turn of the loop.
_TURN_SECONDS = 0.004
#: How often connections are looked at, by fractions of the time that they may stall.
_LOOKS = 10
#: What a stopping server gives connections to read the end.
_LINGER_SECONDS = 0.2


class Http2Server:
    """Serves the handlers that `find(path)` gives. `start`, then `stop`, on one loop."""

    def __init__(
        self,
        find: Callable[[str], UnaryHandler | None],
        settings: Http2Settings = DEFAULT_HTTP2_SETTINGS,
        gate: Gate | None = None,
        certificates: Certificates | None = None,
    ) -> None:
        """`gate` says who may call; by default the same user of this machine alone. With `certificates` those beyond
        this machine must speak TLS, and others may."""
        self._certificates = certificates
        self._find, self._settings, self._gate = find, settings, gate or Gate("this server")
        self._sockets: list[socket.socket] = []
        self._connections: set[ConnectionSocket] = set()
        self._places: Places[ConnectionSocket] = Places(affordable(settings.connections), ConnectionSocket.close)
        self._calls: OpenCalls | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._look_timer: asyncio.TimerHandle | None = None
        #: For connections that there is no descriptor for; made with the listener.
        self._reserve: Reserve | None = None
        #: Resolved when the last connection has ended, while `stop` waits for that.
        self._ended: asyncio.Future[None] | None = None

    @property
    def connections(self) -> int:
        return len(self._connections)

    @property
    def calls(self) -> int:
        """Calls that are not over."""
        return len(self._calls.open) if self._calls is not None else 0

    @property
    def unread_bytes(self) -> int:
        """Bytes of answers that wait for their peers."""
        return self._calls.unread.bytes if self._calls is not None else 0

    async def start(self, host: str, port: int) -> int:
        """Listens at every address of `host`; the port. Raises OSError if none can be had."""
        self._loop = asyncio.get_running_loop()
        budget = Budget(self._settings.buffered_bytes or tensor_limit())
        pool = BufferPool(self._settings.keep_bytes)
        self._calls = OpenCalls(self._find, self._settings, budget, pool.allocate, self._gate)
        self._calls.recognized = self._places.recognize
        self._sockets, port = await listening_sockets(host, port)
        self._reserve = Reserve(f"gRPC's port {port}")
        for sock in self._sockets:
            self._watch(sock)
        self._look()
        return port

    async def stop(self, grace: float | None = None) -> None:
        """Accepts no connections and calls any more, gives calls `grace` seconds, and ends the rest as UNAVAILABLE.

        Returns soon after. Never raises; a second call waits for what is left.
        """
        for sock in self._sockets:
            assert self._loop is not None
            self._loop.remove_reader(sock)
            sock.close()
        self._sockets.clear()
        if self._reserve is not None:
            self._reserve.close()
        if self._look_timer is not None:
            self._look_timer.cancel()
        if self._calls is None or self._loop is None:
            return
        self._calls.strangers.close()
        for accepted in list(self._connections):
            accepted.connection.say_goodbye()
            accepted.flush()
        if grace:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._calls.drained()
        self._calls.end_all("The server is shutting down.")
        for accepted in list(self._connections):
            accepted.leave(_LINGER_SECONDS)
        if self._connections:
            self._ended = self._loop.create_future()
            await self._ended
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await self._calls.drained()

    # -- accepting ---------------------------------------------------------------------------------------------------

    def _watch(self, listening: socket.socket) -> None:
        if listening in self._sockets:
            assert self._loop is not None
            self._loop.add_reader(listening, self._accept, listening)

    def _accept(self, listening: socket.socket) -> None:
        assert self._loop is not None
        assert self._calls is not None
        turn = perf_counter()
        for _ in range(_BACKLOG):
            if not self._calls.strangers.has_some():
                # they use up theirs: who comes waits with them, ahead of what they send
                self._loop.remove_reader(listening)
                self._calls.strangers.wait(partial(self._watch, listening), first=True)
                return
            try:
                sock, address = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                assert self._reserve is not None
                sent_away = self._reserve.sent_away(listening, error, self._say_no_room)
                if sent_away:
                    continue
                if sent_away is None:
                    self._loop.remove_reader(listening)
                    self._loop.call_later(_AGAIN_SECONDS, self._watch, listening)
                return
            began = perf_counter()
            sock.setblocking(False)
            name = _name(sock.family, address)
            try:
                caller = self._calls.gate.accepted(sock)
                self._take(sock, name, caller)
                if caller.role is Role.NONE:
                    self._calls.strangers.spend(perf_counter() - began)
            except OSError:
                sock.close()  # the peer is gone already
            except errors.ResourceExhaustedError:
                # nobody can be let in without a file to ask the system with, which user it is
                with sock:
                    self._say_no_room(sock)
                assert self._reserve is not None
                self._reserve.tell()
            if perf_counter() - turn > _TURN_SECONDS:
                return  # the system tells of those who wait

    def _take(self, sock: socket.socket, name: str, caller: Caller) -> None:
        """Takes in a connection, or closes it. Raises OSError."""
        assert self._calls is not None
        assert self._loop is not None
        known, settings, there = caller.role is not Role.NONE, self._settings, self._connections
        if not known and len(there) > 64 and sum(not each.connection.greeted for each in there) >= settings.handshakes:
            audit.refusals.note(caller, "connect", "too many have begun none yet", address=name)
            sock.close()
            return
        host = unmapped(str(sock.getpeername()[0]))
        group = caller.name if is_loopback(host) else host
        why = self._places.refusal(group, known=known)
        if why is not None:
            _log.log(logging.WARNING if known else logging.DEBUG, "A connection from %s is refused: %s.", name, why)
            audit.refusals.note(caller, "connect", why, address=name)
            sock.close()
            return
        context = None if self._certificates is None else self._certificates.server_context()
        made = ConnectionSocket(sock, name, self._calls, settings, self._loop, self._end, context, caller)
        self._places.add(made, group, known=known)
        there.add(made)

    def _say_no_room(self, sock: socket.socket) -> None:
        """The end of a connection that has not begun. Who speaks TLS could not read it."""
        if self._certificates is None:
            sock.setblocking(False)
            with contextlib.suppress(OSError):
                # without SETTINGS, which would make it a connection that came about: callers would try again at once
                sock.send(goaway(0, Code.ENHANCE_YOUR_CALM, TOLD))
                sock.shutdown(socket.SHUT_WR)
                # what came and was not read would have the system drop what was said
                sock.recv(1 << 16)

    def _end(self, accepted: ConnectionSocket) -> None:
        self._places.leave(accepted)
        self._connections.discard(accepted)
        if not self._connections and self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _look(self) -> None:
        assert self._loop is not None
        seconds = self._settings.stall_seconds / _LOOKS
        for accepted in list(self._connections):
            accepted.look(seconds)
        self._look_timer = self._loop.call_later(seconds, self._look)


def _name(family: int, address: Any) -> str:
    """As gRPC writes it."""
    return f"ipv6:[{address[0]}]:{address[1]}" if family == socket.AF_INET6 else f"ipv4:{address[0]}:{address[1]}"
