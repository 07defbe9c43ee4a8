"""All calls of a server that are not over, and what they share: handlers by path, limits, memory. On the server's loop.

Used by server.py, which ends them, and by calls.py.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Protocol

from tenfold_core.buffer_pool import BufferPool
from tenfold_core.errors import UNAVAILABLE
from tenfold_core.memory_limits import tensor_limit
from tenfold_link.aio.accept_loop import StrangersTime

from .handler import Failure
from .message import Budget
from .outbound import Unread
from .peer_limits import CallShares

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_core.access.gate import Caller, Gate

    from .connection import Connection
    from .handler import UnaryHandler
    from .http2_settings import Http2Settings

#: Paths whose handlers are remembered.
_MOST_PATHS = 1000


class OpenCall(Protocol):
    """A call, as its server ends it."""

    def give_up(self, failure: Failure) -> None:
        """Answers with `failure` unless the call is over."""


class Wire(Protocol):
    """The connection that a call came on, and its socket (connection_socket.py)."""

    connection: Connection
    #: "ipv4:127.0.0.1:1234"
    name: str
    #: The peer's host; "" if it is this machine.
    host: str
    #: Who calls, where a call shows no token.
    caller: Caller

    def recognize(self) -> None:
        """A call has shown who the peer is, and is accepted."""

    def flush(self) -> None:
        """Has what is queued sent, at the latest at the end of the turn."""

    def has_time(self) -> bool:
        """Whether more may be run in this turn of the loop."""


class OpenCalls:
    """The calls of one server."""

    def __init__(
        self,
        find: Callable[[str], UnaryHandler | None],
        settings: Http2Settings,
        gate: Gate,
        recognized: Callable[[Any], None] = lambda wire: None,
    ) -> None:
        """`find` gives the handler of a path; `gate` says who may call; `recognized` is told of a connection once it is
        known who its peer is."""
        self._find, self.settings, self.gate, self.recognized = find, settings, gate, recognized
        self.loop = asyncio.get_running_loop()
        self.budget = Budget(settings.buffered_bytes or tensor_limit())
        self.allocate = BufferPool(settings.keep_bytes).allocate
        #: What connections may have of the loop's time that nobody knows.
        self.strangers = StrangersTime(settings.strangers_share, settings.strangers_seconds)
        #: Handlers that were found, by path; there are as many as methods.
        self._handlers: dict[bytes, tuple[UnaryHandler, str]] = {}
        #: Calls that were opened and are not over, their tasks included, and the connection of each.
        self.open: dict[OpenCall, Wire] = {}
        self._shares = CallShares(settings.calls)
        #: What peers have not read yet of answers; and the most.
        self.unread = Unread()
        self.most_unread = settings.unread_bytes or tensor_limit()
        #: Set once there are none, where somebody waits for that.
        self._idle: asyncio.Event | None = None

    def handler(self, path: bytes) -> tuple[UnaryHandler, str] | None:
        """The handler of a path, and its name."""
        known = self._handlers.get(path)
        if known is None:
            name = path.decode("ascii", "replace")
            handler = self._find(name)
            if handler is None:
                return None
            known = handler, name
            if len(self._handlers) < _MOST_PATHS:
                self._handlers[path] = known
        return known

    def begin(self, call: OpenCall, wire: Wire) -> str | None:
        """The call is open, until `over`. Why it is to be refused, if it is: there are too many, or the peer has."""
        self.open[call] = wire
        return self._shares.begin(wire, wire.host)

    def over(self, call: OpenCall) -> None:
        """Twice is no error."""
        wire = self.open.pop(call, None)
        if wire is not None:
            self._shares.end(wire, wire.host)
        if not self.open and self._idle is not None:
            self._idle.set()

    async def drained(self, seconds: float) -> None:
        """Returns once no call is open, or after so many seconds."""
        if self.open:
            self._idle = self._idle or asyncio.Event()
            self._idle.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._idle.wait()

    def end_all(self, text: str) -> None:
        """Answers every call with UNAVAILABLE and cancels its handler."""
        for call in list(self.open):
            call.give_up(Failure(UNAVAILABLE, text))
