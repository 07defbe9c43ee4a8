"""A tunnel for TensorFlow's clients and servers, which speak in the clear and can show nothing, to another host.

Outwards it listens on loopback, for connections of the same user alone, and goes on over TLS to a Tenfold task, which
it shows a certificate or, request by request, a token (authorization.py). In reverse it listens with TLS, for who shows
a certificate of a task, and goes on in the clear to a TensorFlow server on loopback. relay.py carries the bytes.
`tenfold tunnel` is its command; docs/decisions/0077-a-tunnel-for-tensorflow.md.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import ssl
import threading
from typing import TYPE_CHECKING, Any, cast

from tenfold_core import errors
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY, Caller, Gate
from tenfold_core.access.places import Places, affordable
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import name_of, reason_of, role_of
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_core.address import split_address
from tenfold_link.aio.accept_loop import AcceptLoop
from tenfold_link.aio.dial import connected
from tenfold_link.aio.listener import secured
from tenfold_services.http2 import frame_types as frames
from tenfold_services.http2.handler import Failure
from tenfold_services.http2.listening import listening_sockets, tune
from tenfold_services.http2.message import Refused
from tenfold_services.owned_tasks import OwnedTasks

from .authorization import AuthorizedRequests
from .refusals import refuse
from .relay import Relay, TunnelSettings

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

#: Seconds that connections get when the tunnel ends.
_STOP_S = 2.0
#: The bounds of a tunnel on a thread of its own: seconds to open a port, and to end.
_THREAD_START_S, _THREAD_STOP_S = 60.0, 10.0


class Tunnel:
    """Listens at `listen` and carries each connection to `to`, both "host:port". `start`, then `stop`, on one loop."""

    def __init__(
        self,
        listen: str,
        to: str,
        context: Callable[[], ssl.SSLContext],
        *,
        reverse: bool = False,
        token: Callable[[], str | None] | None = None,
        settings: TunnelSettings | None = None,
        gate: Gate | None = None,
    ) -> None:
        """`context()` is asked for each connection: for connecting, or for accepting where it is a tunnel in `reverse`.
        `token()` is what is shown with each request. Raises ValueError for a malformed address."""
        self._listen, self._to = split_address(listen, least_port=0), split_address(to)
        self._there = f"{self._to[0]}:{self._to[1]}"
        self._context, self._reverse = context, reverse
        self._token = None if reverse else token
        self._settings = settings or TunnelSettings()
        self._gate = gate or Gate("this tunnel")
        self._accepting: AcceptLoop[asyncio.Task[Any]] | None = None
        self.connections = OwnedTasks("tunnel")
        #: Those who were accepted are known; others are on their way out, or make their handshake.
        self._places: Places[asyncio.Task[Any]] = Places(affordable(self._settings.connections), asyncio.Task.cancel)

    async def start(self) -> int:
        """Listens; the port. Raises OSError where that cannot be had."""
        found, port = await listening_sockets(*self._listen)
        # in reverse a certificate will show who it is
        gate = None if self._reverse else self._gate
        limit, where = "TENFOLD_TUNNEL_CONNECTIONS", f"the tunnel's port {port}"
        self._accepting = AcceptLoop(where, gate, self._places, self._take, limit=limit)
        self._accepting.watch(*found)
        return port

    async def stop(self) -> None:
        """Accepts no more, and ends every connection. Bounded."""
        if self._accepting is not None:
            self._accepting.close()
        await self.connections.cancel_all(_STOP_S)

    def _take(self, sock: socket.socket, address: Any, caller: Caller) -> asyncio.Task[None]:
        peer = f"{address[0]}:{address[1]}"
        return self.connections.spawn(self._carry(sock, peer, caller), f"tunnel:{peer}")

    async def _carry(self, accepted: socket.socket, peer: str, caller: Caller) -> None:
        """One connection, to its end."""
        tune(accepted, self._settings.keepalive_seconds)
        near, far = accepted, None
        try:
            if self._reverse:
                near = await self._greeted(accepted, None, "there is no handshake of TLS")
            self._let_in(near, peer, caller)
            if (task := asyncio.current_task()) is not None:
                self._places.recognize(task)
            far = await self._connected()
            if not self._reverse:
                await self._first_words(far, near)
            change = None if self._token is None else AuthorizedRequests(self._token).take
            await Relay(near, far, self._settings, change).run()
        except Refused as refused:
            _log.warning("a connection from %s is refused: %s", peer, refused)
            # without a handshake a peer that speaks TLS would take the answer for garbage
            if isinstance(near, TlsSocket) or not self._reverse:
                with contextlib.suppress(OSError):  # it is gone, or does not read
                    await refuse(near, peer, Failure(refused.failure.code, f"tenfold tunnel: {refused}"))
        except frames.ConnectionFault as fault:
            _log.warning("a connection from %s ends: %s", peer, fault.text)
        except (OSError, TimeoutError) as error:
            _log.info("a connection from %s to %s ends: %s", peer, self._there, _why(error))
        finally:
            near.close()
            if far is not None:
                far.close()

    def _let_in(self, sock: socket.socket, peer: str, caller: Caller) -> None:
        """Raises Refused for a connection that is not the same user's; in reverse, without a task's certificate."""
        needed = Role.REGISTER if self._reverse else Role.RUN
        if not self._reverse:
            why = f"this tunnel is for the user who runs it, on this machine; this is {caller.name}"
        else:
            shown = cast("TlsSocket", sock).certificate
            caller = Caller(role_of(shown), f"certificate {name_of(shown)}") if shown else NOBODY
            has = f"this one has {caller.role.word}" if shown else "none is shown"
            why = f"this tunnel is for certificates with the role register; {has}"
        if caller.role < needed:
            audit.refusals.note(caller, "tunnel", why, address=peer, to=self._there)
            raise Refused(errors.PERMISSION_DENIED, why)
        audit.done(caller, "tunnel", "opened", address=peer, to=self._there)

    # -- the other end -----------------------------------------------------------------------------------------------

    async def _connected(self) -> socket.socket:
        """A connection to where the tunnel leads. Raises Refused saying why there is none."""
        host, port = self._to
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                sock = await connected(socket.AF_INET, (host.strip("[]"), port))
        except OSError as error:  # among them the time-out
            raise Refused(errors.UNAVAILABLE, f"{self._there} cannot be reached: {_why(error)}") from None
        tune(sock, self._settings.keepalive_seconds)
        if self._reverse:
            return sock
        try:
            return await self._greeted(sock, host.strip("[]"), f"{self._there} came to no handshake of TLS")
        except BaseException:
            sock.close()
            raise

    async def _greeted(self, sock: socket.socket, server: str | None, what: str) -> socket.socket:
        """TLS over `sock` (listener.secured). Raises Refused: `what` failed, and why."""
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                return await secured(sock, self._context(), server)
        except (OSError, EOFError, TimeoutError, errors.OpError) as error:
            raise Refused(errors.UNAVAILABLE, f"{what}: {_why(error)}") from None

    async def _first_words(self, far: socket.socket, near: socket.socket) -> None:
        """Passes on what the task says first, as HTTP/2 has it. Raises Refused where it hangs up instead: with TLS 1.3
        it does so only now if it does not like what was shown."""
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(self._settings.connect_seconds):
                said = await loop.sock_recv(far, self._settings.buffer_bytes)
        except ssl.SSLError as error:
            raise Refused(errors.UNAVAILABLE, f"{self._there} ended TLS: {_why(error)}") from None
        except (OSError, TimeoutError) as error:
            raise Refused(
                errors.UNAVAILABLE, f"{self._there} says nothing, which no server of gRPC does: {_why(error)}"
            ) from None
        if not said:
            raise Refused(errors.UNAVAILABLE, f"{self._there} hung up")
        async with asyncio.timeout(self._settings.stall_seconds):
            await loop.sock_sendall(near, said)


class BackgroundTunnel:
    """A tunnel on an event loop and a thread of its own, a daemon, between `start` and `stop`: for the `tenfold tunnel`
    command, which blocks."""

    def __init__(self, tunnel: Tunnel) -> None:
        self._tunnel = tunnel
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="tunnel", daemon=True)

    def start(self) -> int:
        """Listens; the port. Raises OSError where that cannot be had."""
        self._thread.start()
        return asyncio.run_coroutine_threadsafe(self._tunnel.start(), self._loop).result(_THREAD_START_S)

    def stop(self) -> None:
        """Ends every connection, and the thread. Bounded."""
        if not self._thread.is_alive():
            return
        asyncio.run_coroutine_threadsafe(self._tunnel.stop(), self._loop).result(_THREAD_STOP_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_THREAD_STOP_S)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


def _why(error: BaseException) -> str:
    """An error in words that name what to mend."""
    if isinstance(error, errors.OpError):
        return error.message
    if isinstance(error, ssl.SSLError):
        return reason_of(error)
    if isinstance(error, TimeoutError) and not str(error):
        return "no answer in time"
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
