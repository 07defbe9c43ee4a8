"""The blocking end of a link, for clients: no thread of its own, any number of callers.

One caller at a time reads the socket, for all of them (the leader); the others wait for it (followers). A program with
one thread thus sends and receives on that thread, and a step costs no hop. dial.py opens it; grpc_master.py is the
other way to a master. What leaves is in outbound.py. Frames: tenfold_link.wire.frames; thread model: docs/link.md.
"""

from __future__ import annotations

import contextlib
import select
import socket
import struct
import threading
import time
from itertools import count
from typing import TYPE_CHECKING, NoReturn

from tenfold_core import errors
from tenfold_core.buffer_pool import BufferPool
from tenfold_link.blocking.outbound import BlockingOutbound, late
from tenfold_link.memory.arena_reader import weakly
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.spin_wait import STREAMED, Awake, another_look
from tenfold_link.wire.frames import Frame, FrameKind, FrameReader, pack, unpack_ids
from tenfold_link.wire.handshake import Patience
from tenfold_link.wire.packing import Packer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_link.memory.arena import Arena, SharedBlock
    from tenfold_link.memory.arena_reader import ArenaReader
    from tenfold_link.settings import LinkSettings
    from tenfold_link.wire.buffers import Answer, Incoming, Outgoing

#: The kernel ends a read after this long, so that the reader can look at its deadline and after its peer.
_TICK_SECONDS = 0.5
_MAIN = threading.main_thread().ident
_TIMEVAL = struct.Struct("@ll")


class PendingCall:
    """A call under way. `answer` or `error` is set once, under the link's lock."""

    __slots__ = ("answer", "error", "gate", "number")

    def __init__(self, number: int) -> None:
        self.number = number
        self.answer: Answer | None = None
        self.error: errors.OpError | None = None
        #: What its caller waits at while another one reads; None while it does not. Opened when the call is done, or to
        #: make its caller the reader.
        self.gate: threading.Lock | None = None


class BlockingLink:
    """An open link to a server. Made by dial.connect. Every method may be called from any thread.

    Like a socket it must not be used on both sides of a fork.
    """

    def __init__(
        self,
        sock: socket.socket,
        *,
        peer: str,
        path: str,
        settings: LinkSettings,
        arena: Arena | None,
        peer_arena: Callable[[Callable[[int], None]], ArenaReader] | None,
    ) -> None:
        """Takes over the connected socket, after the handshake."""
        #: Who is at the other end, for messages: "/job:ps/replica:0/task:0".
        self.peer = peer
        #: How it is reached: "unix+shm", "unix" or "tcp".
        self.path = path
        #: Why no call can be made any more, or None.
        self.reason: errors.OpError | None = None
        sock.settimeout(None)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _timeval(_TICK_SECONDS))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _timeval(_TICK_SECONDS))
        self._sock = sock
        self._patience = Patience(sock)
        self._poll = select.poll()
        self._poll.register(sock, select.POLLIN)
        self._settings = settings
        self._arena = arena
        self._out = BlockingOutbound(sock, peer, settings, self._lost)
        self._send = self._out.send
        reader = peer_arena(weakly(self._out.give_back)) if peer_arena is not None else None
        memory = BufferPool(settings.receive_keep_bytes)
        self._frames = FrameReader(settings, reader.open if reader is not None else _no_arena, memory.allocate)
        self._packer = Packer(settings, arena)
        self._numbers = count(1)
        #: Guards the calls, who leads, and the end. Taken again by a finalizer that finds the link broken.
        self._lock = threading.RLock()
        #: Calls that the peer owes an answer.
        self._calls: dict[int, PendingCall] = {}
        #: Why this end closes the link, once it does.
        self._parting: errors.OpError | None = None
        #: Somebody reads the socket.
        self._led = False
        self._awake = Awake()
        #: When something was last heard; when the peer was asked for a sign of life, or 0.
        self._heard_at = time.monotonic()
        self._pinged_at = 0.0

    @property
    def closed(self) -> bool:
        """No call can be made any more."""
        return self.reason is not None

    def __repr__(self) -> str:
        return f"<BlockingLink to {self.peer} by {self.path}{', closed' if self.closed else ''}>"

    # -- calls -------------------------------------------------------------------------------------------------------

    def call(
        self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = (), timeout: float | None = None
    ) -> Answer:
        """The peer's answer to `method`. Blocks. `buffers` stay unchanged until then.

        Raises the peer's OpError; UnavailableError naming peer and reason when the link ends; DeadlineExceededError
        after `timeout` seconds; the errors of Packer.pack. After a time-out and an interrupt the peer is told.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        call = PendingCall(next(self._numbers))
        pieces = self._packer.pack(FrameKind.REQUEST, method, call.number, header, buffers)
        with self._lock:
            if self.reason is not None:
                self._raise_gone()
            self._calls[call.number] = call
        try:
            self._send(pieces, deadline)
            self._await(call, deadline)
        except BaseException:
            with self._lock:
                unanswered = self._calls.pop(call.number, None) is not None
            if unanswered and self.reason is None:
                self._send([pack(FrameKind.CANCEL, call=call.number)], time.monotonic() + _TICK_SECONDS)
            raise
        if call.error is not None:
            raise call.error
        assert call.answer is not None
        return call.answer

    def notify(self, method: int, header: bytes = b"", buffers: Sequence[Outgoing] = ()) -> None:
        """Tells the peer something; returns once it is sent. Raises UnavailableError when the link is closed."""
        if self.reason is not None:
            self._raise_gone()
        self._send(self._packer.pack(FrameKind.NOTIFY, method, 0, header, buffers), None)
        self._read_what_is_there()

    def allocate(self, nbytes: int) -> SharedBlock | None:
        """Shared memory to produce a tensor in and then send without a copy; None where there is none now."""
        return self._packer.allocate(nbytes)

    def reserve(self, nbytes: int) -> None:
        """Makes `nbytes` of shared memory ready. Blocks for it; for set-up and measurements, not for steps."""
        if self._arena is not None:
            self._arena.reserve(nbytes)

    def close(self, error: errors.OpError | None = None) -> None:
        """Ends the link. Calls of other threads fail with `error`, by default CancelledError. Never blocks for long."""
        error = error or errors.CancelledError(None, None, f"The link to {self.peer} was closed here.")
        if self.reason is None:
            # The peer hangs up on the farewell, and who reads may see that before this thread goes on.
            self._parting = error
            self._out.say_goodbye("the client closed it")
        self._end(error)

    # -- reading -----------------------------------------------------------------------------------------------------

    def _await(self, call: PendingCall, deadline: float | None) -> None:
        """Returns once `call` is done. Reads for everybody while nobody else does."""
        while True:
            with self._lock:
                if call.answer is not None or call.error is not None:
                    return
                leads = not self._led
                if leads:
                    self._led = True
                else:
                    gate = call.gate = threading.Lock()
                    gate.acquire()
            if leads:
                try:
                    self._awake.wait(lambda: self._look(call))
                    while call.answer is None and call.error is None:
                        self._read(deadline)
                finally:
                    self._hand_over()
                return
            wait = -1.0 if deadline is None else max(0.0, deadline - time.monotonic())
            if not gate.acquire(timeout=wait):
                raise late(self.peer)

    def _look(self, call: PendingCall) -> bool:
        """Deals with what has come; whether the call is done."""
        self._receive(socket.MSG_DONTWAIT)
        return call.answer is not None or call.error is not None

    def _hand_over(self) -> None:
        """The leader leaves: the first one who waits takes its place."""
        with self._lock:
            self._led = False
            if self.reason is not None:
                # whoever ended the link left the socket to its reader
                self._sock.close()
            for call in self._calls.values():
                if call.gate is not None:
                    _open(call)
                    return

    def _read(self, deadline: float | None) -> None:
        """Waits for the peer, and deals with what it says. By the leader only. Raises DeadlineExceededError."""
        wait = _TICK_SECONDS
        if deadline is not None:
            wait = min(wait, deadline - time.monotonic())
            if wait <= 0:
                raise late(self.peer)
        # the main thread waits where an interrupt is harmless; the others are not interrupted and save the call
        if (wait < _TICK_SECONDS or threading.get_ident() == _MAIN) and not self._poll.poll(wait * 1000):
            self._look_for_life()
            return
        if not self._receive(0):
            self._look_for_life()

    def _receive(self, flags: int) -> bool:
        """Receives and deals with what came; False if nothing did.

        Once, but for a large buffer: its pieces come so fast that sleeping between them would take longer than they do.
        """
        if not self._receive_once(flags):
            return False
        if self._frames.awaited >= STREAMED:
            came = begin = time.perf_counter()
            while self._frames.awaited and self.reason is None and came - begin < _TICK_SECONDS:
                if self._receive_once(socket.MSG_DONTWAIT):
                    came = time.perf_counter()
                elif not another_look(came):
                    break
        return True

    def _receive_once(self, flags: int) -> bool:
        """Receives once and deals with what came; False if nothing did."""
        try:
            received = self._sock.recv_into(self._frames.buffer(), 0, flags)
            if not received:
                self._lost("the connection broke, its process ended")
                return True
            self._heard_at = time.monotonic()
            for frame in self._frames.received(received):
                self._take_frame(frame)
            self._patience.wait_for(self._frames.awaited)
        except (BlockingIOError, InterruptedError):
            return False
        except OSError as error:
            self._lost(f"the connection broke: {error.strerror or error}")
        except ProtocolError as error:
            self._out.say_goodbye(f"you sent {error}")
            self._lost(f"it broke the protocol: it sent {error}")
        except MemoryError:
            self._lost("there is no memory for what it sends")
        except KeyboardInterrupt:
            # nobody knows whether something was received
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
                    _open(call)
        elif kind is FrameKind.RELEASE:
            if self._arena is None:
                raise ProtocolError("a release without an arena")
            self._arena.release(unpack_ids(frame.header))
        elif kind is FrameKind.PING:
            self._send([pack(FrameKind.PONG)], None)
        elif kind is FrameKind.GOODBYE:
            self._lost(f"it closed the link: {frame.header[:1000].decode(errors='replace')}")
        elif kind is FrameKind.REQUEST:
            message = b"A client serves no methods."
            self._send([pack(FrameKind.ERROR, errors.UNIMPLEMENTED, frame.call, message)], None)
        elif kind is not FrameKind.PONG and kind is not FrameKind.CANCEL and kind is not FrameKind.NOTIFY:
            raise ProtocolError(f"{kind.name} after the handshake")

    def _read_what_is_there(self) -> None:
        """For who only ever sends: takes the blocks that came back. Never blocks."""
        with self._lock:
            if self._led or self.reason is not None:
                return
            self._led = True
        try:
            while self.reason is None and self._poll.poll(0):
                self._read(None)
        finally:
            self._hand_over()

    def _look_for_life(self) -> None:
        """Nothing came for a tick: asks a peer that is silent for long, and gives up one that does not answer."""
        now = time.monotonic()
        silent = now - max(self._heard_at, self._pinged_at)
        if silent < self._settings.ping_every_seconds:
            return
        if self._pinged_at <= self._heard_at:
            self._pinged_at = now
            self._send([pack(FrameKind.PING)], now + self._settings.ping_answer_seconds)
        elif silent >= self._settings.ping_answer_seconds:
            self._lost(f"it has not said anything for {now - self._heard_at:.0f} s, it hangs or its host is gone")

    # -- the end -----------------------------------------------------------------------------------------------------

    def _lost(self, reason: str) -> None:
        self._end(errors.UnavailableError(None, None, f"The link to {self.peer} ended: {reason}."))

    def _end(self, error: errors.OpError) -> None:
        """All calls fail with `error`. The first reason counts."""
        with self._lock:
            if self.reason is not None:
                return
            error = self.reason = self._parting or error
            calls, self._calls = self._calls, {}
            for call in calls.values():
                call.error = errors.from_code(error.code, error.message)
                if call.gate is not None:
                    _open(call)
            led = self._led
            self._out.closed = True
        self._frames.close()
        if self._arena is not None:
            self._arena.close()
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        if not led:
            self._sock.close()

    def _raise_gone(self) -> NoReturn:
        assert self.reason is not None
        # a fresh one each time: a shared exception would collect tracebacks
        raise errors.from_code(self.reason.code, self.reason.message)


def _open(call: PendingCall) -> None:
    """Lets the call's caller go on. Under the link's lock."""
    if call.gate is not None:
        call.gate.release()
        call.gate = None


def _no_arena(block: int, offset: int, size: int) -> Incoming:
    raise ProtocolError("a shared block without an arena")


def _timeval(seconds: float) -> bytes:
    return _TIMEVAL.pack(int(seconds), int(seconds % 1 * 1_000_000))
