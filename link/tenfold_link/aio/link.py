"""The asyncio end of a link: many calls in flight in both directions over one connection.

Everything happens on the loop's thread. The socket is read and written by this class itself, not by an asyncio
transport: large buffers are received straight into their memory and sent without a copy, and a small call is written
before `call_nowait` returns. A handler is called inside the read callback; if it returns its reply at once, no task is
made. What leaves is in outbound.py, what the peer asks for in serving.py, the types of handlers in methods.py;
listener.py accepts links, dial.py opens them; tenfold_link.blocking.link is the other kind of end.
Frames: tenfold_link.wire.frames; thread model and shared memory: docs/link.md.
"""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tenfold_core import errors, telemetry
from tenfold_core.access.gate import EVERYBODY
from tenfold_core.access.roles import Role
from tenfold_link.aio.methods import Deferred, PeerLink
from tenfold_link.aio.outbound import AioOutbound
from tenfold_link.aio.serving import Serving
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.frames import Frame, FrameKind, pack
from tenfold_link.wire.inbound import RECEIVE_ERRORS
from tenfold_link.wire.trace_prefix import ABILITY, in_trace

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Sequence

    from tenfold_link.aio.methods import Methods
    from tenfold_link.aio.outbound import PeerShare
    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Answer, Outgoing
    from tenfold_link.wire.handshake import Agreed
    from tenfold_link.wire.inflow import Inflow

_log = logging.getLogger(__name__)

#: Reads in one callback before others have their turn; and seconds for a large buffer, or for many small frames.
_TURN_READS = 256
_TURN_SECONDS = 0.005


class CallFuture(Deferred):
    """A call under way. Cancelling it tells the peer."""

    link: Link
    number: int

    def cancel(self, msg: Any | None = None) -> bool:
        """As Future.cancel."""
        if not super().cancel(msg):
            return False
        self.link._cancelled(self.number)
        return True


class Link(PeerLink):
    """An open link. Made by LinkListener and by dial.connect, on the running loop."""

    def __init__(
        self,
        sock: socket.socket,
        *,
        peer: str,
        settings: LinkSettings,
        agreed: Agreed,
        peer_always_reads: bool,
        share: PeerShare | None = None,
    ) -> None:
        """Takes over the connected, non-blocking `sock`, after the handshake. Reads once `serve` was called. `share` is
        what the peer has of this task, if it opened the link."""
        self._out = AioOutbound(sock, settings, self.abort, share)
        super().__init__(sock, peer, settings, agreed, self._out.give_back)
        self._send, self._say_goodbye = self._out.send, self._out.say_goodbye
        self._loop = asyncio.get_running_loop()
        self._fd = sock.fileno()
        self._serving = Serving(peer, settings, self._packer, self._out)
        self._peer_always_reads = peer_always_reads
        #: What the peer may do here, as gRPC let it in; of a link that was opened from here, everything.
        self.peer_role = Role.ADMIN
        #: Who it is there.
        self.peer_caller = EVERYBODY
        #: Calls that the peer owes us an answer.
        self._calls: dict[int, CallFuture] = {}
        #: Something was heard from the peer since the timer looked last.
        self._heard = False
        #: When the peer was asked for a sign of life, or None.
        self._pinged_at: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._on_close: list[Callable[[errors.OpError], None]] = []

    def limit(self, inflow: Inflow) -> None:
        """Has what comes in counted by `inflow`: before `serve`."""
        self._serving.inflow = inflow
        self._inbound.limit(inflow)

    def serve(self, methods: Methods) -> None:
        """Starts reading, and serves `methods` to the peer. Once."""
        self._serving.methods = methods
        self._loop.add_reader(self._fd, self._readable)
        self._timer = self._loop.call_later(self._settings.ping_every_seconds, self._check_life)

    # -- calls -------------------------------------------------------------------------------------------------------

    async def call(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> Answer:
        """The peer's answer to `method`. Waits while too much waits for the socket. Cancelling tells the peer.

        `buffers` stay unchanged until then. Raises the peer's OpError, UnavailableError naming peer and reason when the
        link ends, and the errors of Packer.pack.
        """
        if self._out.queued_bytes > self._settings.outbound_high_water:
            await self._out.room()
        answer: Answer = await self.call_nowait(method, header, buffers)
        return answer

    def call_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> Deferred:
        """As `call`, without waiting for room: the request is written, or queued, when this returns. Never blocks."""
        self._check_open()
        if telemetry.tracer is not None and ABILITY in self.can:
            method, header = in_trace(method, header)
        number = next(self._numbers)
        pieces = self._packer.pack(FrameKind.REQUEST, method, number, header, buffers)
        call = CallFuture(loop=self._loop)
        call.link, call.number = self, number
        self._calls[number] = call
        self._send(pieces)
        return call

    async def notify(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """Tells the peer something; returns when it is written or queued, not when it was heard.

        `buffers` stay unchanged for good (`stage` copies those that others write to). Raises UnavailableError when the
        link is closed; if it ends later, the notification is lost without an error.
        """
        if self._out.queued_bytes > self._settings.outbound_high_water:
            await self._out.room()
        self.notify_nowait(method, header, buffers)

    def notify_nowait(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """As `notify`, without waiting for room."""
        self._check_open()
        self._send(self._packer.pack(FrameKind.NOTIFY, method, 0, header, buffers))

    # -- the end -----------------------------------------------------------------------------------------------------

    def on_close(self, callback: Callable[[errors.OpError], None]) -> None:
        """Has `callback(reason)` called on the loop when the link ends; at once if it has."""
        if self.reason is not None:
            callback(self.reason)
        else:
            self._on_close.append(callback)

    def abort(self, reason: str) -> None:
        """Ends the link now. Calls in both directions end: ours with UnavailableError(peer, reason)."""
        if self.closed:
            return
        self.closed = True
        self.reason = self._ended(reason)
        self._loop.remove_reader(self._fd)
        self._out.close()
        self._sock.close()
        if self._timer is not None:
            self._timer.cancel()
        self._inbound.close()
        self._inbound.drop()
        if self._arena is not None:
            self._arena.close()
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.done():
                call.set_exception(self._ended(reason))
        self._serving.end()
        callbacks, self._on_close = self._on_close, []
        for callback in callbacks:
            callback(self.reason)

    async def close(self, reason: str = "it is no longer needed", seconds: float = 1.0) -> None:
        """Says goodbye, gives what is queued up to `seconds` to leave, and ends the link. Never raises."""
        if self.closed:
            return
        self._send(self._packer.pack(FrameKind.GOODBYE, header=reason.encode()))
        await self._out.drain(seconds)
        self.abort(f"it was closed here: {reason}")

    # -- reading -----------------------------------------------------------------------------------------------------

    def _readable(self) -> None:
        inbound, reads = self._inbound, _TURN_READS
        began = perf_counter()
        while reads and not self.closed:
            reads -= 1
            streaming = inbound.streaming
            try:
                frames = inbound.receive_pieces(_TURN_SECONDS) if streaming else inbound.receive()
            except (BlockingIOError, InterruptedError):
                return
            except RECEIVE_ERRORS as error:
                self._receiving_failed(error)
                return
            self._heard = True
            if frames:
                try:
                    if len(frames) == 1:
                        self._take(frames)
                    else:
                        self._take_all(frames)
                except (ProtocolError, MemoryError) as error:
                    self._receiving_failed(error)
                    return
            elif streaming:
                return
            if inbound.exhausted and not inbound.streaming:
                return
            if perf_counter() - began > _TURN_SECONDS:
                # others have their turn; the system tells of what is left
                return

    def _receiving_failed(self, error: Exception) -> None:
        if isinstance(error, ProtocolError):
            _log.warning("The link to %s is closed: it sent %s.", self.peer, error)
        super()._receiving_failed(error)

    def _silent(self, seconds: float) -> None:
        _log.warning("The link to %s is closed: it has not said anything for %.0f s.", self.peer, seconds)
        super()._silent(seconds)

    def _lost(self, reason: str) -> None:
        self.abort(reason)

    def _take_all(self, frames: list[Frame]) -> None:
        """Deals with the frames of one read; what there is to answer leaves in one write."""
        out = self._out
        corked, out.corked = out.corked, True
        frames.reverse()
        try:
            while frames and not self.closed:
                self._take(frames)
        finally:
            out.corked = corked
            if out.queue and not self.closed and not corked:
                out.flush()

    def _take(self, frames: list[Frame]) -> None:
        """Takes the last of `frames` out, and deals with it.

        Only its handler holds its buffers then: they go back to the peer with the reply, ahead of its next call.
        """
        kind = frames[-1].kind
        if kind is FrameKind.REQUEST:
            self._serving.request(self, frames)
            return
        frame = frames.pop()
        if frame.cost and self._serving.inflow is not None:
            assert isinstance(frame.cost, int)
            self._serving.inflow.give(frame.cost)
        if kind is FrameKind.REPLY or kind is FrameKind.ERROR:
            # an answer that comes after its call was cancelled is dropped, and its blocks go back by themselves
            call = self._calls.pop(frame.call, None)
            if call is None or call.done():
                return
            if kind is FrameKind.REPLY:
                call.set_result((frame.header, frame.buffers))
            else:
                call.set_exception(errors.from_code(frame.method, frame.header.decode(errors="replace")))
        elif kind is FrameKind.NOTIFY:
            self._serving.notice(self, frame)
        elif kind is FrameKind.CANCEL:
            self._serving.cancel(frame.call)
        else:
            self._take_control(frame)

    def _check_life(self) -> None:
        """Runs every few seconds: a peer that owes us something and says nothing is asked, and then given up."""
        now = self._loop.time()
        self._timer = self._loop.call_later(self._settings.ping_every_seconds, self._check_life)
        moved = self._moving.look(self._out.taken_bytes)
        heard, self._heard = self._heard or moved, False
        if not heard:
            self._inbound.pool.clear()
        if heard or not (self._calls or self._out.queue) or not self._peer_always_reads:
            self._pinged_at = None
        elif self._pinged_at is None:
            self._pinged_at = now
            self._send([pack(FrameKind.PING)])
        elif now - self._pinged_at >= self._settings.ping_answer_seconds:
            self._silent(now - self._pinged_at)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self.reason is not None:
            # a fresh one each time: a shared exception would collect tracebacks
            raise errors.UnavailableError(None, None, self.reason.message)

    def _cancelled(self, number: int) -> None:
        if self._calls.pop(number, None) is not None and not self.closed:
            self._send([pack(FrameKind.CANCEL, call=number)])
