"""A connection's socket: reads into the state machine, writes what it has to say, and ends it. One thread, one loop.

The socket is read and written here and not by an asyncio transport: large messages are received straight into their
memory and leave without a copy, and a small answer is written before the turn that brought its request is over.
Used by server.py; states are connection.py's, calls are calls.py's.
"""

from __future__ import annotations

import contextlib
import logging
import socket
import ssl
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, cast

from tenfold_core.access import audit
from tenfold_core.access.gate import Caller
from tenfold_core.access.peer_user import unmapped
from tenfold_core.access.roles import Role
from tenfold_core.access.tls import FIRST_BYTE, name_of, reason_of, role_of
from tenfold_core.access.tls_socket import TlsSocket
from tenfold_core.loopback import is_loopback
from tenfold_core.traffic import OTHERS

from .calls import GrpcCall
from .connection import Connection
from .frame_types import Code, ConnectionFault
from .listening import tune
from .peer_limits import Progress

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from .handler import Buffer
    from .open_calls import OpenCalls

_log = logging.getLogger(__name__)

#: Bytes read or written in one turn of the loop before others have theirs; pieces given to the kernel at a time.
_TURN_BYTES, _PIECES = 16 << 20, 64
#: Seconds that handlers may run in one turn; those of the requests behind are left to the next ones. And seconds after
#: which no more is read or written in it: small frames cost far more than their bytes.
_TURN_SECONDS, _LONGEST_TURN_SECONDS = 0.002, 0.004
#: Bytes cut into frames at a time, so that a small answer need not wait for a large one.
_PULL_BYTES = 2 << 20


class ConnectionSocket:
    """One accepted connection. `on_end(connection)` is called once, when the socket is closed."""

    def __init__(
        self,
        sock: socket.socket,
        name: str,
        calls: OpenCalls,
        on_end: Callable[[ConnectionSocket], None],
        caller: Caller,
        context: ssl.SSLContext | None = None,
    ) -> None:
        """`name` is as "ipv4:127.0.0.1:1234"; `caller` who is at the other end. With `context` the peer may speak TLS,
        and must unless it is of this machine."""
        self._sock, self.name, self._calls = sock, name, calls
        self._settings, self._loop = settings, loop = calls.settings, calls.loop
        host = unmapped(str(sock.getpeername()[0]))
        self.host = "" if is_loopback(host) else host
        self.caller = caller
        #: Nobody knows who it is; a call may show it.
        self._strange = caller.role is Role.NONE
        #: Until it is known whether the peer speaks TLS; and the TLS under way, until its handshake is over.
        self._context = context
        self._tls: TlsSocket | None = None
        self._on_end = on_end
        self.connection = Connection(partial(GrpcCall, calls, self), settings, loop.time)
        self.connection.out.unread = calls.unread
        self.connection.is_stranger(strange=self._strange)
        #: Bytes that ever came, and that ever left.
        self._received = self._sent = 0
        self._coming = Progress(settings.stall_seconds, settings.least_bytes_per_second)
        self._leaving = Progress(settings.stall_seconds, settings.least_bytes_per_second)
        #: Inside `_readable`: what is to be sent leaves at its end.
        self._corked = False
        self._turn_began = 0.0
        #: Pieces that the kernel has not taken yet; while there are some after an attempt, `_is_blocked`.
        self._sending: list[Buffer] = []
        self._is_blocked = False
        #: The socket is closed; or only its sending half is, to let the peer read the end.
        self.closed = False
        self._is_lingering = False
        #: It is to linger as soon as everything is sent.
        self._is_leaving = False
        #: Ends a handshake that takes too long; ends the connection however it stands.
        self._late: asyncio.TimerHandle | None = loop.call_later(settings.handshake_seconds, self._on_late)
        self._last: asyncio.TimerHandle | None = None
        tune(sock, settings.keepalive_seconds)
        self._fd = sock.fileno()
        loop.add_reader(self._fd, self._readable)
        if isinstance(sock, TlsSocket) and sock.waiting:
            loop.call_soon(self._readable)  # the system tells of that no more
        self.flush()

    def recognize(self) -> None:
        """A call, or a certificate, has shown who the peer is."""
        if self._strange:
            self._strange = False
            self.connection.is_stranger(strange=False)
            self._calls.recognized(self)

    def has_time(self) -> bool:
        """Whether handlers may still run in this turn."""
        return not self._corked or perf_counter() - self._turn_began < _TURN_SECONDS

    # -- reading -----------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        if not self._strange:
            self._read()
            return
        time = self._calls.strangers
        if not time.has_some():
            self._loop.remove_reader(self._fd)
            time.wait(self._again)
            return
        began = perf_counter()
        self._read()
        time.spend(perf_counter() - began)

    def _again(self) -> None:
        """A stranger's next turn."""
        if not self.closed:
            self._loop.add_reader(self._fd, self._readable)
            self._readable()

    def _read(self) -> None:
        budget = _TURN_BYTES
        self._turn_began = perf_counter()
        self._corked = True
        try:
            if self._context is not None and not self._secured():
                return
            while budget > 0 and not self.closed:
                if self._is_lingering:
                    received, space = len(self._sock.recv(_PULL_BYTES)), _PULL_BYTES
                else:
                    spaces = self.connection.spaces()
                    if len(spaces) == 1:
                        space = len(spaces[0])
                        received = self._sock.recv_into(spaces[0])
                    else:
                        space = len(spaces[0]) + len(spaces[1])
                        received = self._sock.recvmsg_into(spaces)[0]
                if not received:
                    self.close()
                    return
                OTHERS.received += received
                self._received += received
                if not self._is_lingering:
                    self.connection.received(received)
                if received < space:
                    break
                budget -= received
                if self._strange or perf_counter() - self._turn_began > _LONGEST_TURN_SECONDS:
                    # the system tells of what is left
                    budget = 0
            if budget <= 0 and isinstance(self._sock, TlsSocket):
                # what TLS has received is with it, and the system tells of it no more
                self._loop.call_soon(self._readable)
        except (BlockingIOError, InterruptedError):
            pass
        except (OSError, EOFError):
            self.close()
            return
        except Exception as error:
            self._broken(error)
        finally:
            self._corked = False
        if self._late is not None and self.connection.greeted:
            self._late.cancel()
            self._late = None
        if not self.closed:
            self.flush()

    def _secured(self) -> bool:
        """Whether the connection can be read now: TLS has its handshake, or the peer speaks in the clear and may.
        Raises OSError, EOFError and BlockingIOError."""
        if self._tls is None:
            first = self._sock.recv(1, socket.MSG_PEEK)
            if not first:
                raise EOFError
            if first[0] != FIRST_BYTE:
                self._context = None
                if not is_loopback(unmapped(self._sock.getpeername()[0])):
                    audit.refusals.note(self.caller, "connect", "no TLS", address=self.name)
                    self.connection.fail(ConnectionFault(Code.INADEQUATE_SECURITY, "no TLS, which is asked for here"))
                return True
            assert self._context is not None
            self._tls = TlsSocket(self._sock, self._context)
            self._sock = cast("socket.socket", self._tls)
        if not self._tls.greeted:
            self._tls.hear()
            try:
                if not self._tls.handshake():
                    return False
            except ssl.SSLError as error:
                why = f"no handshake of TLS: {reason_of(error)}"
                audit.refusals.note(self.caller, "connect", why, address=self.name)
                raise
        shown = self._tls.certificate
        if shown and (role := role_of(shown)) > self.caller.role:
            self.caller = Caller(role, f"certificate {name_of(shown)}")
            self.recognize()
        self._context = None
        return True

    def _broken(self, error: Exception) -> None:
        """A bug of ours, or no memory: the connection ends, the server does not."""
        if isinstance(error, MemoryError):
            _log.warning("A connection of %s ends: there is no memory for what it sends.", self.name)
        else:
            _log.error("A connection of %s ends by an error of this server.", self.name, exc_info=error)
        self.connection.fail(ConnectionFault(Code.INTERNAL_ERROR, "an error of the server"))

    # -- writing -----------------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Sends what is queued, as far as the socket takes it; at the end of the turn where one is under way."""
        if self.connection.fault is not None and not self.closed:
            # whatever the peer still sends, and whether or not it reads
            self._end_within(self._settings.linger_seconds)
        if self._corked or self._is_blocked or self.closed or self._is_lingering or self._context is not None:
            return
        out, sending, budget = self.connection.out, self._sending, _TURN_BYTES
        began = perf_counter()
        try:
            while budget > 0:
                if not sending:
                    sending = self._sending = out.pull(_PULL_BYTES)
                    if not sending:
                        break
                sent = self._sock.send(sending[0]) if len(sending) == 1 else self._sock.sendmsg(sending[:_PIECES])
                OTHERS.sent += sent
                self._sent += sent
                budget -= sent
                _drop(sending, sent)
                if perf_counter() - began > _LONGEST_TURN_SECONDS:
                    budget = 0
        except (BlockingIOError, InterruptedError):
            pass
        except OSError:
            self.close()
            return
        if sending or budget <= 0:
            # the rest of what is queued, and of what may be queued still, in another turn
            self._is_blocked = True
            self._loop.add_writer(self._fd, self._writable)
        elif self.connection.fault is not None:
            _log.info("A connection of %s ends with GOAWAY: it sent %s.", self.name, self.connection.fault.text)
            self._linger()
        elif self._is_leaving:
            self._linger()

    def _writable(self) -> None:
        self._is_blocked = False
        self._loop.remove_writer(self._fd)
        self.flush()

    # -- the end -----------------------------------------------------------------------------------------------------

    def look(self, seconds: float) -> None:
        """Called every so many seconds: ends the connection where nothing moves that should."""
        out = self.connection.out
        waits = self._coming.stalled(self.connection.half_way, self._received, seconds)
        # what only acknowledges what the peer says is no progress
        left = self._sent - out.all_control_bytes
        if self._leaving.stalled(bool(self._sending) or out.pending, left, seconds) or waits:
            settings = self._settings
            _log.warning(
                "A connection of %s ends: for %g s its peer has %s less than %g bytes a second.",
                self.name, settings.stall_seconds, "sent" if waits else "taken", settings.least_bytes_per_second,
            )  # fmt: skip
            self.close()

    def leave(self, seconds: float) -> None:
        """Ends the connection when everything is sent and the peer has read it; after `seconds` in any case."""
        if not self.closed:
            self._is_leaving = True
            self._end_within(seconds)
            self.flush()

    def _linger(self) -> None:
        """Ends the sending half only: a peer that still sends would not get to read the end otherwise. A timer ends the
        rest (`_end_within`)."""
        self._is_lingering = True
        self.connection.lost()
        try:
            self._sock.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()

    def _end_within(self, seconds: float) -> None:
        if self._last is None:
            self._last = self._loop.call_later(seconds, self.close)

    def close(self) -> None:
        """Ends the connection now; its calls are cancelled. Twice is no error."""
        if self.closed:
            return
        self.closed = True
        self._loop.remove_reader(self._fd)
        self._loop.remove_writer(self._fd)
        for timer in (self._late, self._last):
            if timer is not None:
                timer.cancel()
        self._sending = []
        with contextlib.suppress(OSError):
            self._sock.close()
        self.connection.lost()
        self._on_end(self)

    def _on_late(self) -> None:
        self._late = None
        self.connection.fail(ConnectionFault(Code.SETTINGS_TIMEOUT, "no handshake in time"))
        self.flush()


def _drop(pieces: list[Buffer], count: int) -> None:
    """Takes away the first `count` bytes."""
    done = 0
    for piece in pieces:
        if count < len(piece):
            break
        count -= len(piece)
        done += 1
    del pieces[:done]
    if count:
        pieces[0] = memoryview(pieces[0])[count:]
