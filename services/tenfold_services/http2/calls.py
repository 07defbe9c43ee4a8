"""A gRPC call over a connection: from the request's headers to its handler, from the outcome to the answer.

A handler that needs no waiting is called where its request has just been read, and its answer leaves with that turn of
the loop: no task, no timer. One that waits becomes a task, which the caller's cancellation and deadline end.
connection_socket.py has the connections, open_calls.py all calls, handler.py what handlers look like. Source: gRPC's
PROTOCOL-HTTP2.md.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from tenfold_core.access import audit
from tenfold_core.errors import (
    CANCELLED,
    DEADLINE_EXCEEDED,
    INTERNAL,
    INVALID_ARGUMENT,
    RESOURCE_EXHAUSTED,
    UNIMPLEMENTED,
    OpError,
)

from . import metadata
from .handler import Failure
from .message import ACCEPTED, ENCODINGS, Inflation, MessageReader, Refused

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from tenfold_core.access.gate import Caller

    from .handler import Buffer, Metadata, Outcome
    from .hpack import Field, FieldRun
    from .open_calls import OpenCalls, Wire

_log = logging.getLogger(__name__)

#: A message's length is four bytes.
_MOST = (1 << 32) - 1
#: About, of a call that is refused because its peer does not read: too many of them end the connection.
_REFUSAL_BYTES = 256
#: No timer runs longer.
_LONGEST = 1e8


class GrpcCall:
    """One call: takes the request (reader.Receiver), and is its handler's context (handler.CallContext)."""

    __slots__ = (
        "_caller", "_calls", "_deadline", "_handler", "_has_sent_headers", "_head", "_name", "_number", "_over",
        "_reader", "_started", "_task", "_timer", "_trailing", "_wire",
    )  # fmt: skip

    def __init__(self, calls: OpenCalls, wire: Wire, number: int, run: FieldRun, fields: list[Field] | None) -> None:
        """Raises StreamFault for headers that are not a request's."""
        self._calls, self._wire, self._number = calls, wire, number
        #: Answered, or cancelled: nothing that comes counts any more.
        self._over = False
        self._task: asyncio.Task[None] | None = None
        #: The task has come to run; before, it cannot be cancelled, and looks at `_over` itself.
        self._started = False
        self._timer: asyncio.TimerHandle | None = None
        self._deadline: float | None = None
        self._has_sent_headers = False
        self._trailing: Metadata = ()
        self._caller = wire.caller
        self._reader = MessageReader(calls.settings.message_bytes, calls.budget, calls.allocate)
        if fields is None:
            calls.begin(self, wire)
            self._answer(Failure(RESOURCE_EXHAUSTED, "The call's metadata is too large."))
            return
        head = self._head = metadata.head_of(run, fields)
        refused = calls.begin(self, wire)
        if head.status != 200:
            self._end(metadata.http_status(head.status))
            return
        if head.timeout is not None:
            self._deadline = calls.loop.time() + min(head.timeout, _LONGEST)
        found = calls.handler(head.path)
        if found is None:
            self._answer(Failure(UNIMPLEMENTED, "Method not found!"))
            return
        #: What serves the call, and its path; there while no failure was answered at once.
        self._handler, self._name = found
        try:
            if head.authorization is not None or head.as_role is not None:
                self._caller = calls.gate.called(head.authorization, head.as_role, self._caller)
            if self._caller.role < self._handler.needs:
                error = calls.gate.refusal(self._caller.role, self._handler.needs, self._name.strip("/"))
                assert error is not None
                raise error
        except OpError as error:
            if error.code != INVALID_ARGUMENT:  # a word that is no role is no refusal
                audit.refusals.note(self._caller, self._handler.action, error.message, address=wire.name)
            self._answer(Failure(error.code, error.message))
        else:
            if head.encoding != b"identity" and head.encoding not in ENCODINGS:
                encoding = head.encoding.decode("latin-1")
                self._answer(Failure(UNIMPLEMENTED, f"Messages in the encoding {encoding!r} are not read here."))
            elif refused is not None:
                self._answer(Failure(RESOURCE_EXHAUSTED, refused))
            else:
                if self._caller.role > wire.caller.role:
                    wire.recognize()
                self._reader.aligned = self._handler.aligned

    # -- the request -------------------------------------------------------------------------------------------------

    def take(self, data: memoryview) -> None:
        if not self._over:
            try:
                self._reader.take(data)
            except Refused as refused:
                self._answer(refused.failure)

    def space(self) -> memoryview | None:
        return None if self._over else self._reader.space()

    def filled(self, count: int) -> None:
        if not self._over:
            try:
                self._reader.filled(count)
            except Refused as refused:
                self._answer(refused.failure)

    def ended(self) -> None:
        if self._over:
            return
        try:
            request = self._reader.finish(self._head.encoding)
        except Refused as refused:
            self._answer(refused.failure)
            return
        if self._deadline is not None and self._head.timeout == 0:
            self._answer(Failure(DEADLINE_EXCEEDED, "Deadline Exceeded"))
        elif isinstance(request, Inflation):
            self._start(self._inflated(request))
        elif self._wire.has_time():
            outcome = self._begin(request)
            if isinstance(outcome, (bytes, list, Failure)):
                self._answer(outcome)
            else:
                self._start(outcome)
        else:
            self._start(self._later(request))

    def cancelled(self) -> None:
        self._stop()

    # -- the handler -------------------------------------------------------------------------------------------------

    def _begin(self, request: Buffer) -> Outcome | Coroutine[Any, Any, Outcome]:
        try:
            return self._handler.begin(request, self)
        except Exception as error:
            return self._unexpected(error)

    async def _later(self, request: Buffer) -> Outcome:
        """A call that had to leave the turn it came in to others."""
        outcome = self._begin(request)
        return outcome if isinstance(outcome, (bytes, list, Failure)) else await outcome

    async def _inflated(self, inflation: Inflation) -> Outcome:
        """A call whose request is compressed: it is inflated in another thread, portion by portion."""
        try:
            while (text := inflation.text) is None:
                inflation.reserve()
                inflation.settle(await self._calls.loop.run_in_executor(None, inflation.inflate))
        except Refused as refused:
            return refused.failure
        return await self._later(text)

    def _start(self, work: Coroutine[Any, Any, Outcome]) -> None:
        loop = self._calls.loop
        self._task = loop.create_task(self._run(work), name=self._name)
        if self._deadline is not None:
            self._timer = loop.call_at(self._deadline, self.give_up, Failure(DEADLINE_EXCEEDED, "Deadline Exceeded"))

    async def _run(self, work: Coroutine[Any, Any, Outcome]) -> None:
        self._started = True
        try:
            if self._over:
                return
            outcome: Outcome = await work
        except asyncio.CancelledError:
            # by what gave up the call, and said so; or from within the handler
            outcome = Failure(CANCELLED, "The call was cancelled.")
        except Exception as error:
            outcome = self._unexpected(error)
        finally:
            work.close()
            self._task = None
            if self._over:
                self._calls.over(self)
        if not self._over:
            self._answer(outcome)
            self._wire.flush()

    def _unexpected(self, error: Exception) -> Failure:
        """A handler broke its contract of raising nothing."""
        if isinstance(error, MemoryError):
            _log.warning("%s: there is no memory for it", self._name)
            return Failure(RESOURCE_EXHAUSTED, f"{self._name}: there is no memory for it.")
        _log.error("%s failed with an unexpected exception", self._name, exc_info=error)
        return Failure(INTERNAL, f"{self._name}: {type(error).__name__}")

    # -- the answer --------------------------------------------------------------------------------------------------

    def give_up(self, failure: Failure) -> None:
        """Answers with `failure` unless the call is over, and cancels the handler."""
        self._answer(failure)
        self._wire.flush()

    def _answer(self, outcome: Outcome) -> None:
        if self._over:
            return
        if isinstance(outcome, Failure):
            accepted = ACCEPTED if outcome.code == UNIMPLEMENTED else b""
            block = metadata.failure(outcome, accepted)
            self._end(block if self._has_sent_headers else metadata.HEADERS + block)
            return
        pieces: list[Buffer]
        if isinstance(outcome, list):
            size, pieces = sum([len(piece) for piece in outcome]), outcome
        else:
            size, pieces = len(outcome), [outcome]
        if size > _MOST:
            self._answer(Failure(RESOURCE_EXHAUSTED, f"The answer takes {size} bytes; a message takes {_MOST}."))
            return
        unread, own = self._calls.unread.bytes, self._wire.connection.out.own_unread
        if own and unread + size > self._calls.most_unread:
            self._wire.connection.out.control_bytes += _REFUSAL_BYTES
            self._answer(
                Failure(
                    RESOURCE_EXHAUSTED,
                    f"The answer of {size} bytes is not sent: {own} bytes of answers wait for this peer to read "
                    f"them, {unread} for all, and {self._calls.most_unread} may (TENFOLD_HTTP2_UNREAD_BYTES).",
                )
            )
            return
        self._wire.connection.out.answer(
            self._number,
            b"" if self._has_sent_headers else metadata.HEADERS,
            [b"\0" + size.to_bytes(4, "big"), *pieces],
            metadata.TRAILERS + metadata.encoded(self._trailing) if self._trailing else metadata.TRAILERS,
        )
        self._stop()

    def _end(self, block: bytes) -> None:
        self._wire.connection.out.end(self._number, block)
        self._stop()

    def _stop(self) -> None:
        """The call is over, but for the end of its task. Twice is no error."""
        self._over = True
        self._reader.close()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._task is None:
            self._calls.over(self)
        elif self._started:
            self._task.cancel()

    # -- the context -------------------------------------------------------------------------------------------------

    async def send_initial_metadata(self, initial_metadata: Metadata) -> None:
        if not self._over and not self._has_sent_headers:
            self._has_sent_headers = True
            self._wire.connection.out.headers(self._number, metadata.HEADERS + metadata.encoded(initial_metadata))
            self._wire.flush()

    def set_trailing_metadata(self, trailing_metadata: Metadata) -> None:
        self._trailing = trailing_metadata

    def invocation_metadata(self) -> tuple[tuple[str, str | bytes], ...]:
        return metadata.readable(self._head.metadata)

    def time_remaining(self) -> float | None:
        return None if self._deadline is None else max(0.0, self._deadline - self._calls.loop.time())

    def peer(self) -> str:
        return self._wire.name

    def caller(self) -> Caller:
        return self._caller
