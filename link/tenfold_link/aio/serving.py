"""What a link does for its peer: calls and notifications, their handlers, and what becomes of them.

The serving half of link.py, which hands over each frame. On the loop's thread; nothing here waits. What handlers may
return: methods.py.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from tenfold_core import errors, telemetry
from tenfold_core.env_settings import limit_reached
from tenfold_link.aio.methods import Deferred
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import FrameKind
from tenfold_link.wire.trace_prefix import TRACED, without_trace

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from tenfold_link.aio.methods import Methods, PeerLink, Reply
    from tenfold_link.aio.outbound import AioOutbound
    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Incoming
    from tenfold_link.wire.frames import Frame
    from tenfold_link.wire.inflow import Inflow
    from tenfold_link.wire.packing import Packer

_log = logging.getLogger(__name__)

#: Numbers that were left out and may still come: threads that send at once overtake each other.
_LEFT_OUT = 1024


class Serving:
    """The peer's calls that are under way. Handlers get the link, which is handed in: nothing here holds it."""

    def __init__(self, peer: str, settings: LinkSettings, packer: Packer, out: AioOutbound) -> None:
        self._loop = asyncio.get_running_loop()
        self._peer, self._settings, self._packer = peer, settings, packer
        self._send = out.send
        self.methods: Methods = {}
        #: Calls of the peer that are worked on.
        self._serving: dict[int, asyncio.Future[Any]] = {}
        #: The largest number of a call so far, and those below it that no call had, smallest first, bounded.
        self._newest = 0
        self._left_out: dict[int, None] = {}
        #: Notifications of the peer that are worked on.
        self._notices: set[asyncio.Future[Any]] = set()
        #: What counts the peer's frames, if anything does; and what it counts of each call that is worked on.
        self.inflow: Inflow | None = None
        self._costs: dict[int, int] = {}

    def request(self, link: PeerLink, frames: list[Frame]) -> None:
        """Takes a call out of `frames`, the last one, and answers it, now or later. Raises ProtocolError."""
        _, method, number, header, buffers, cost = frames.pop()
        if number == self._newest + 1:
            self._newest = number
        else:
            self._note_number(number)
        if cost:
            if isinstance(cost, errors.OpError):
                self._fail(number, cost)
                return
            self._costs[number] = cost
        if len(self._serving) >= self._settings.calls_in_flight:
            self._fail(
                number,
                limit_reached(
                    f"{len(self._serving)} calls of this link are under way",
                    self._settings.calls_in_flight,
                    "TENFOLD_LINK_CALLS_IN_FLIGHT",
                ),
            )
            return
        try:
            result = self._run_handler(link, method, header, buffers)
        except Exception as error:
            self._fail(number, self._as_op_error(error, method))
            return
        del buffers
        if result is None or type(result) is tuple:
            self._reply(number, method, result)
            return
        work = self._as_future(result, method)
        self._serving[number] = work
        if isinstance(work, Deferred) and not work.done():
            work.then = lambda done: self._served(number, method, done)
        else:
            work.add_done_callback(lambda done: self._served(number, method, done))

    def _note_number(self, number: int) -> None:
        """A call that is not the next one. Raises ProtocolError for a number that came before: a call runs once."""
        if number > self._newest:
            left_out = range(max(self._newest + 1, number - _LEFT_OUT), number)
            self._left_out.update(dict.fromkeys(left_out))
            while len(self._left_out) > _LEFT_OUT:
                del self._left_out[next(iter(self._left_out))]
            self._newest = number
        elif number in self._left_out:
            del self._left_out[number]
        else:
            raise ProtocolError(f"a second call of number {number}")

    def cancel(self, number: int) -> None:
        """The peer no longer wants the answer of this call."""
        work = self._serving.get(number)
        if work is not None:
            work.cancel()

    def end(self) -> None:
        """The link has ended: cancels what is under way."""
        serving, self._serving = self._serving, {}
        for work in (*serving.values(), *self._notices):
            work.cancel()
        self._costs.clear()
        if self.inflow is not None:
            self.inflow.give(self.inflow.taken)

    def _served(self, number: int, method: int, work: asyncio.Future[Any]) -> None:
        if self._serving.pop(number, None) is None:
            # the link ended meanwhile: the outcome goes nowhere, but asyncio reports an error that is never retrieved
            if not work.cancelled():
                work.exception()
            return
        if work.cancelled():
            self._fail(number, errors.CancelledError(None, None, f"{self._name(method)} was cancelled."))
            return
        error = work.exception()
        if error is not None:
            self._fail(number, self._as_op_error(error, method))
        else:
            self._reply(number, method, work.result())

    def notice(self, link: PeerLink, frame: Frame) -> None:
        """What the peer wants no answer to. Raises ProtocolError."""
        if len(self._notices) >= self._settings.calls_in_flight:
            raise ProtocolError(f"more than {len(self._notices)} notifications that are still worked on")
        try:
            result = self._run_handler(link, frame.method, frame.header, frame.buffers)
        except Exception as error:
            self._log_notice(error, frame.method)
            return
        if result is None or type(result) is tuple:
            return
        work = self._as_future(result, frame.method)
        self._notices.add(work)

        def done(work: asyncio.Future[Any]) -> None:
            self._notices.discard(work)
            error = None if work.cancelled() else work.exception()
            if error is not None:
                self._log_notice(error, frame.method)

        work.add_done_callback(done)

    def _run_handler(
        self, link: PeerLink, number: int, header: bytes, buffers: list[Incoming]
    ) -> Reply | Awaitable[Reply]:
        method = self.methods.get(number)
        if method is not None:
            return method.handle(link, header, buffers)
        method = self.methods.get(number & ~TRACED)
        if method is None:
            raise errors.UnimplementedError(None, None, f"This end of the link serves no method {number & ~TRACED}.")
        parent, header = without_trace(header)
        if telemetry.tracer is None:
            return method.handle(link, header, buffers)
        return telemetry.run_below({telemetry.TRACEPARENT: parent}, method.handle, link, header, buffers)

    def _as_future(self, result: Any, method: int) -> asyncio.Future[Any]:
        if asyncio.isfuture(result):
            return result
        return self._loop.create_task(result, name=f"link:{self._peer};{self._name(method)}")

    def _reply(self, number: int, method: int, reply: Reply) -> None:
        header, buffers = reply if reply is not None else (b"", ())
        try:
            pieces = self._packer.pack(FrameKind.REPLY, 0, number, header, buffers)
        except Exception as error:
            self._fail(number, self._as_op_error(error, method))
            return
        self._done(number)
        self._send(pieces)

    def _done(self, number: int) -> None:
        """What the call brought is no longer needed."""
        if self._costs and (cost := self._costs.pop(number, 0)) and self.inflow is not None:
            self.inflow.give(cost)

    def _fail(self, number: int, error: errors.OpError) -> None:
        self._done(number)
        self._send(self._packer.pack(FrameKind.ERROR, error.code, number, error.message.encode()[: 1 << 20]))

    def _as_op_error(self, error: BaseException, method: int) -> errors.OpError:
        if isinstance(error, errors.OpError):
            return error
        if isinstance(error, MemoryError):
            _log.warning("%s for %s: there is no memory for it", self._name(method), self._peer)
            text = f"{self._name(method)}: there is no memory for it{f': {error}' if str(error) else '.'}"
            return errors.ResourceExhaustedError(None, None, text)
        _log.error("%s for %s failed", self._name(method), self._peer, exc_info=error)
        return errors.InternalError(None, None, f"{self._name(method)}: {type(error).__name__}: {error}")

    def _log_notice(self, error: BaseException, method: int) -> None:
        _log.warning("%s from %s came to nothing: %s", self._name(method), self._peer, str(error))

    def _name(self, method: int) -> str:
        known = self.methods.get(method & ~TRACED)
        return known.name if known is not None else f"method {method}"
