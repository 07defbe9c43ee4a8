"""All calls of a server that are not over, and what they share: handlers by path, limits, memory. On the server's loop.

Used by server.py, which ends them, and by calls.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from tenfold_core.memory_limits import tensor_limit

from .handler import UNAVAILABLE, Failure
from .outbound import Unread
from .shares import CallShares
from .strangers import StrangersTime

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np

    from tenfold_core.access.gate import Gate

    from .handler import UnaryHandler
    from .http2_settings import Http2Settings
    from .message import Budget

#: Paths whose handlers are remembered.
_MOST_PATHS = 1000


class OpenCall(Protocol):
    """A call, as its server ends it."""

    def give_up(self, failure: Failure) -> None:
        """Answers with `failure` unless the call is over."""
        ...


class PeerConnection(Protocol):
    """The connection that a call came on."""

    #: The peer's host; "" if it is this machine.
    host: str


class OpenCalls:
    """The calls of one server."""

    def __init__(
        self,
        find: Callable[[str], UnaryHandler | None],
        settings: Http2Settings,
        budget: Budget,
        allocate: Callable[[int], np.ndarray[Any, Any]],
        gate: Gate,
    ) -> None:
        """`find` gives the handler of a path; `allocate` memory for large messages; `gate` says who may call."""
        self._find, self.settings, self.budget, self.allocate, self.gate = find, settings, budget, allocate, gate
        self.loop = asyncio.get_running_loop()
        #: What connections may have of the loop's time that nobody knows; and who is told once one is known.
        self.strangers = StrangersTime(self.loop, settings.strangers_share, settings.strangers_seconds)
        self.recognized: Callable[[Any], None] = lambda wire: None
        #: Handlers that were found, by path; there are as many as methods.
        self._handlers: dict[bytes, tuple[UnaryHandler, str]] = {}
        #: Calls that were opened and are not over, their tasks included, and the connection of each.
        self.open: dict[OpenCall, PeerConnection] = {}
        self._shares = CallShares(settings.calls)
        #: What peers have not read yet of answers; and the most.
        self.unread = Unread()
        self.most_unread = settings.unread_bytes or tensor_limit()
        #: Resolved once there are none.
        self._idle: asyncio.Future[None] | None = None

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

    def begin(self, call: OpenCall, wire: PeerConnection) -> str | None:
        """The call is open, until `over`. Why it is to be refused, if it is: there are too many, or the peer has."""
        self.open[call] = wire
        return self._shares.begin(wire, wire.host)

    def over(self, call: OpenCall) -> None:
        """Twice is no error."""
        wire = self.open.pop(call, None)
        if wire is not None:
            self._shares.end(wire, wire.host)
        if not self.open and self._idle is not None and not self._idle.done():
            self._idle.set_result(None)

    async def drained(self) -> None:
        """Returns once no call is open."""
        if self.open:
            self._idle = self.loop.create_future()
            await self._idle

    def end_all(self, text: str) -> None:
        """Answers every call with UNAVAILABLE and cancels its handler."""
        for call in list(self.open):
            call.give_up(Failure(UNAVAILABLE, text))
