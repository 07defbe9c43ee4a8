"""The blocking end of a link, for clients: no thread of its own, any number of callers.

One caller at a time reads the socket, for all of them (the leader); the others wait for it (followers). A program with
one thread thus sends and receives on that thread, and a step costs no hop. dial.py opens it;
client/session/grpc_master.py is the other way to a master. What leaves is in outbound.py. Frames:
tenfold_link.wire.frames; thread model: docs/link.md.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, NoReturn

from tenfold_core import errors, telemetry
from tenfold_link.blocking.calls import PendingCall
from tenfold_link.blocking.outbound import BlockingOutbound, late
from tenfold_link.link_end import LinkEnd
from tenfold_link.spin_wait import SpinWait
from tenfold_link.wire.frames import Frame, FrameKind, pack
from tenfold_link.wire.inbound import RECEIVE_ERRORS
from tenfold_link.wire.trace_prefix import ABILITY, in_trace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Answer, Outgoing
    from tenfold_link.wire.handshake import Agreed
    from tenfold_link.wire.packing import Piece

#: The kernel ends a read after this long, so that the reader can look at its deadline and at its peer's silence.
TICK_SECONDS = 0.5
_MAIN = threading.main_thread().ident
_TIMEVAL = struct.Struct("@ll")


class BlockingLink(LinkEnd):
    """An open link to a server. Made by dial.connect. Every method may be called from any thread.

    Like a socket it must not be used on both sides of a fork.
    """

    def __init__(self, sock: socket.socket, *, peer: str, settings: LinkSettings, agreed: Agreed) -> None:
        """Takes over the connected socket, after the handshake."""
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(TICK_SECONDS))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(TICK_SECONDS))
        self._out = BlockingOutbound(sock, peer, settings, self._lost)
        super().__init__(sock, peer, settings, agreed, self._out.give_back)
        self._send, self._say_goodbye = self._out.send, self._out.say_goodbye
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        #: Guards the calls, who leads, and the end. Taken again by a finalizer that finds the link broken.
        self._lock = threading.RLock()
        #: Calls that the peer owes an answer.
        self._calls: dict[int, PendingCall] = {}
        #: Why this end closes the link, once it does.
        self._parting: errors.OpError | None = None
        #: Some caller reads the socket.
        self._led = False
        self._spin = SpinWait()
        #: When something was last heard; when the peer was asked for a sign of life, or 0.
        self._heard_at = time.monotonic()
        self._pinged_at = 0.0

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(
        self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = (), timeout: float | None = None
    ) -> Answer:
        """The peer's answer to `method`. Blocks. `buffers` stay unchanged until then.

        Raises the peer's OpError; UnavailableError naming peer and reason when the link ends; DeadlineExceededError
        after `timeout` seconds; the errors of Packer.pack. After a time-out and an interrupt the peer is told.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        call, pieces = self._begin(method, header, buffers)
        try:
            self._send(pieces, deadline)
            self._await(call, deadline)
        except BaseException:
            with self._lock:
                unanswered = self._calls.pop(call.number, None) is not None
            if unanswered:
                self._cancel(call)
            raise
        if call.error is not None:
            raise call.error
        assert call.answer is not None
        return call.answer

    def _begin(self, method: int, header: bytes, buffers: Sequence[Outgoing]) -> tuple[PendingCall, list[Piece]]:
        """A new call, and the pieces of its request. Raises the errors of Packer.pack, and UnavailableError."""
        if telemetry.tracer is not None and ABILITY in self.can:
            method, header = in_trace(method, header)
        call = PendingCall(next(self._numbers))
        pieces = self._packer.pack(FrameKind.REQUEST, method, call.number, header, buffers)
        with self._lock:
            if self.reason is not None:
                self._raise_gone()
            self._calls[call.number] = call
        return call, pieces

    def _cancel(self, call: PendingCall) -> None:
        if not self.closed:
            self._send([pack(FrameKind.CANCEL, call=call.number)], time.monotonic() + TICK_SECONDS)

    def notify(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """Tells the peer something; returns once it is sent. Raises UnavailableError when the link is closed."""
        if self.reason is not None:
            self._raise_gone()
        self._send(self._packer.pack(FrameKind.NOTIFY, method, 0, header, buffers))
        self._read_what_is_there()

    def close(self, error: errors.OpError | None = None) -> None:
        """Ends the link. Calls of other threads fail with `error`, by default CancelledError. Never blocks for long."""
        error = error or errors.CancelledError(None, None, f"The link to {self.peer} was closed here.")
        if self.reason is None:
            # The peer hangs up on the GOODBYE, and the reader may see that before this thread goes on.
            self._parting = error
            self._say_goodbye("the client closed it")
        self._end(error)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _await(self, call: PendingCall, deadline: float | None) -> None:
        """Returns once `call` is done. Reads for all callers while no other one does."""
        while True:
            with self._lock:
                if call.answer is not None or call.error is not None:
                    return
                leads = not self._led
                if leads:
                    self._led = True
                else:
                    gate = call.shut_gate()
            if leads:
                try:
                    self._spin.wait(lambda: self._poll_for(call))
                    while call.answer is None and call.error is None:
                        self._read(deadline)
                finally:
                    self._hand_over()
                return
            wait = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
            if not gate.acquire(timeout=wait):
                raise late(self.peer)

    def _poll_for(self, call: PendingCall) -> bool:
        """Deals with what has come; whether the call is done."""
        self._receive(socket.MSG_DONTWAIT)
        return call.answer is not None or call.error is not None

    def _hand_over(self) -> None:
        """The leader leaves: the first caller that waits takes its place."""
        with self._lock:
            self._led = False
            if self.reason is not None:
                # the thread that ended the link left the socket to its reader
                self._sock.close()
                self._inbound.drop()
            for call in self._calls.values():
                if call.gate is not None:
                    call.open_gate()
                    return

    def _read(self, deadline: float | None) -> None:
        """Waits for the peer, and deals with what it says. By the leader only. Raises DeadlineExceededError."""
        wait = TICK_SECONDS
        if deadline is not None:
            wait = min(wait, deadline - time.monotonic())
            if wait <= 0:
                raise late(self.peer)
        # the main thread waits where an interrupt is harmless; the others are not interrupted and save the call
        if (wait < TICK_SECONDS or threading.get_ident() == _MAIN) and not self._poll.poll(wait * 1000):
            self._check_life()
            return
        if not self._receive(0):
            self._check_life()

    def _receive(self, flags: int) -> bool:
        """Receives and deals with what came, a large buffer to its end if that comes quickly; False if nothing did."""
        inbound = self._inbound
        try:
            frames = inbound.receive(flags)
            self._heard_at = time.monotonic()
            for frame in frames:
                self._take_frame(frame)
            if inbound.streaming and self.reason is None:
                for frame in inbound.receive_pieces(TICK_SECONDS):
                    self._take_frame(frame)
                self._heard_at = time.monotonic()
        except (BlockingIOError, InterruptedError):
            return False
        except RECEIVE_ERRORS as error:
            self._receiving_failed(error)
        except KeyboardInterrupt:
            # whether something was received is unknown
            self._lost("reading from it was interrupted")
            raise
        return True

    def _take_frame(self, frame: Frame) -> None:
        kind = frame.kind
        if kind is FrameKind.REPLY or kind is FrameKind.ERROR:
            with self._lock:
                # an answer that comes after its call was given up is dropped, and its blocks go back by themselves
                call = self._calls.pop(frame.call, None)
                if call is None:
                    return
                if kind is FrameKind.REPLY:
                    call.answer = frame.header, frame.buffers
                else:
                    call.error = errors.from_code(frame.method, frame.header.decode(errors="replace"))
                if call.gate is not None:
                    call.open_gate()
        elif kind is FrameKind.REQUEST:
            message = b"A client serves no methods."
            self._send([pack(FrameKind.ERROR, errors.UNIMPLEMENTED, frame.call, message)])
        elif kind is not FrameKind.CANCEL and kind is not FrameKind.NOTIFY:
            self._take_control(frame)

    def _read_what_is_there(self) -> None:
        """For a caller that only ever sends: takes the blocks that came back. Never blocks."""
        with self._lock:
            if self._led or self.reason is not None:
                return
            self._led = True
        try:
            while self.reason is None and self._poll.poll(0):
                self._read(None)
        finally:
            self._hand_over()

    def _check_life(self) -> None:
        """Nothing came for a tick: asks a peer that is silent for long, and gives up one that does not answer."""
        now = time.monotonic()
        if self._moving.look():
            self._heard_at = now
        silent = now - max(self._heard_at, self._pinged_at)
        if silent < self._settings.ping_every_seconds:
            return
        if self._pinged_at <= self._heard_at:
            self._pinged_at = now
            self._send([pack(FrameKind.PING)], now + self._settings.ping_answer_seconds)
        elif silent >= self._settings.ping_answer_seconds:
            self._silent(now - self._heard_at)

    # -- the end -----------------------------------------------------------------------------------------------------

    def _lost(self, reason: str) -> None:
        self._end(self._ended(reason))

    def _end(self, error: errors.OpError) -> None:
        """All calls fail with `error`. The first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            error = self.reason = self._parting or error
            self.closed = True
            calls, self._calls = self._calls, {}
            for call in calls.values():
                call.error = errors.from_code(error.code, error.message)
                call.open_gate()
            led = self._led
            self._out.closed = True
        self._inbound.close()
        if self._arena is not None:
            self._arena.close()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        if not led:
            self._sock.close()
            self._inbound.drop()

    def _raise_gone(self) -> NoReturn:
        assert self.reason is not None
        # a fresh one each time: a shared exception would collect tracebacks
        raise errors.from_code(self.reason.code, self.reason.message)


def _timeval(seconds: float) -> bytes:
    return _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1_000_000))
