"""A proxy between the callers of a task's gRPC port and the task, which loses, repeats and holds back single calls.

    caller ── HTTP/2 ──► CallProxy ── HTTP/2 ──► task

Each connection of a caller has one of its own to the task, and ends with it. A call's request is received whole, then
meets its fate (fates.py), and its answer is passed on as it came: headers, message, trailers. Speaks HTTP/2 by the h2
package, which shares nothing with the server that is tried. Runs on a thread of its own; calls are unary, as all of
Tenfold's and TensorFlow's are.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

from h2 import events
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.exceptions import ProtocolError

from support.faults.fates import Fate, Script
from support.moments import PATIENCE

if TYPE_CHECKING:
    from enum import Enum
    from types import TracebackType

#: Changes the message of an answer of a method: `rewrite(body)`.
Rewrite = Callable[[bytes], bytes]
Headers = list[tuple[bytes, bytes]]


class ResetError(Exception):
    """The peer has reset the stream, with this code."""

    def __init__(self, code: int) -> None:
        super().__init__(f"reset with {code}")
        self.code = code


@dataclass
class Message:
    """A request or an answer, as far as it has come."""

    headers: Headers
    body: bytearray = field(default_factory=bytearray)
    trailers: Headers | None = None


class _End:
    """One end of a connection: reads until it ends, and sends whole messages."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, client_side: bool) -> None:
        self._reader, self._writer = reader, writer
        self.h2 = H2Connection(
            H2Configuration(
                client_side=client_side,
                header_encoding=False,
                validate_inbound_headers=False,
                validate_outbound_headers=False,
                normalize_outbound_headers=False,
            )
        )
        self._coming: dict[int, Message] = {}
        #: Set when the peer may take more.
        self._room = asyncio.Event()
        self.on_message: Callable[[int, Message], None] = lambda stream, message: None
        self.on_reset: Callable[[int, int], None] = lambda stream, code: None

    async def run(self) -> None:
        """Reads until the connection ends."""
        self.h2.initiate_connection()
        self.h2.increment_flow_control_window(1 << 30)
        self.flush()
        while data := await self._reader.read(1 << 16):
            for event in self.h2.receive_data(data):
                self._take(event)
            self.flush()

    def _take(self, event: events.Event) -> None:
        match event:
            case events.RequestReceived() | events.ResponseReceived():
                self._coming[event.stream_id] = Message(list(event.headers))
            case events.TrailersReceived():
                self._coming[event.stream_id].trailers = list(event.headers)
            case events.DataReceived():
                self._coming[event.stream_id].body += event.data
                self.h2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            case events.StreamEnded():
                self.on_message(event.stream_id, self._coming.pop(event.stream_id))
            case events.StreamReset():
                self._coming.pop(event.stream_id, None)
                self.on_reset(event.stream_id, int(event.error_code))
        self._room.set()

    def begin(self, stream: int, message: Message) -> Coroutine[Any, Any, None]:
        """Sends the headers; await what this returns for the rest, sent as fast as the peer takes it.

        Either raises ProtocolError for a stream that is over.
        """
        self.h2.send_headers(stream, message.headers, end_stream=not message.body and message.trailers is None)
        return self._rest(stream, message)

    async def _rest(self, stream: int, message: Message) -> None:
        body, trailers = memoryview(bytes(message.body)), message.trailers
        while body:
            room = min(self.h2.local_flow_control_window(stream), self.h2.max_outbound_frame_size)
            if not room:
                self.flush()
                self._room.clear()
                await self._room.wait()
                continue
            piece, body = body[:room], body[room:]
            self.h2.send_data(stream, piece.tobytes(), end_stream=not body and trailers is None)
        if trailers is not None:
            self.h2.send_headers(stream, trailers, end_stream=True)
        self.flush()

    def reset(self, stream: int, code: ErrorCodes) -> None:
        with contextlib.suppress(ProtocolError):
            self.h2.reset_stream(stream, code)
            self.flush()

    def flush(self) -> None:
        if not self._writer.is_closing():
            self._writer.write(self.h2.data_to_send())

    def cut(self) -> None:
        """Ends the connection at once, without a word."""
        self._writer.transport.abort()


class _Upstream(_End):
    """The proxy's end towards the task."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        super().__init__(reader, writer, client_side=True)
        self._calls: dict[int, asyncio.Future[Message]] = {}
        self._pings: list[asyncio.Future[None]] = []
        self.on_message = lambda stream, message: self._settle(stream, message, None)
        self.on_reset = lambda stream, code: self._settle(stream, None, ResetError(code))

    def _settle(self, stream: int, message: Message | None, error: Exception | None) -> None:
        call = self._calls.pop(stream, None)
        if call is not None and not call.done():
            if message is not None:
                call.set_result(message)
            elif error is not None:
                call.set_exception(error)

    def _take(self, event: events.Event) -> None:
        super()._take(event)
        if isinstance(event, events.PingAckReceived):
            self._pings.pop(0).set_result(None)

    async def arrived(self) -> None:
        """Returns once the task has taken all that was sent: it answers a ping in its turn."""
        self._pings.append(asyncio.get_running_loop().create_future())
        ping = self._pings[-1]
        self.h2.ping(b"arrived?")
        self.flush()
        await ping

    def start(self, request: Message) -> Coroutine[Any, Any, Message]:
        """Sends the request now; await what this returns for the answer. Cancelling that resets the stream."""
        stream = self.h2.get_next_available_stream_id()
        answer = self._calls[stream] = asyncio.get_running_loop().create_future()
        sending = asyncio.ensure_future(self.begin(stream, request))
        return self._answer(stream, sending, answer)

    async def _answer(self, stream: int, sending: asyncio.Future[None], answer: asyncio.Future[Message]) -> Message:
        try:
            await sending
            return await answer
        except asyncio.CancelledError:
            sending.cancel()
            self.reset(stream, ErrorCodes.CANCEL)
            raise


class _Relay:
    """A caller's connection, and the one to the task that it has for itself."""

    def __init__(self, caller: _End, task: _Upstream, script: Script, rewrites: dict[str, Rewrite]) -> None:
        self._caller, self._task, self._script, self._rewrites = caller, task, script, rewrites
        self._answering: dict[int, asyncio.Task[None]] = {}
        caller.on_message, caller.on_reset = self._request, self._given_up

    def _request(self, stream: int, request: Message) -> None:
        work = asyncio.ensure_future(self._answer(stream, request))
        self._answering[stream] = work
        work.add_done_callback(lambda _: self._answering.pop(stream, None))

    def _given_up(self, stream: int, code: int) -> None:
        if stream in self._answering:
            self._answering[stream].cancel()

    async def _answer(self, stream: int, request: Message) -> None:
        path = dict(request.headers)[b":path"].decode()
        name = path.rpartition("/")[2]
        fate = self._script.fate_of(name)
        try:
            answer = await self._meet(fate, stream, request)
        except ResetError as reset:
            self._caller.reset(stream, ErrorCodes(reset.code))
            return
        except ProtocolError:
            self._caller.cut()  # the task has closed its connection
            return
        if answer is not None:
            if name in self._rewrites and answer.body:
                answer.body = bytearray(_framed(self._rewrites[name](bytes(answer.body[5:]))))
            with contextlib.suppress(ProtocolError):
                await self._caller.begin(stream, answer)

    async def _meet(self, fate: Enum | None, stream: int, request: Message) -> Message | None:
        """The answer that the caller gets; None where it gets none."""
        happened = self._script.happened
        if fate is None:
            return await self._task.start(request)
        if fate in (Fate.REPEATED, Fate.SENT_AGAIN):
            both = [asyncio.ensure_future(self._task.start(request)) for _ in range(2)]
            await self._task.arrived()
            happened.set()
            await asyncio.wait(both)
            return both[fate is Fate.SENT_AGAIN].result()
        if fate in (Fate.REPLY_LOST, Fate.REPLY_RESET, Fate.REPLY_LATE):
            await self._task.start(request)
        happened.set()
        match fate:
            case Fate.REQUEST_LOST | Fate.REPLY_LOST:
                self._caller.cut()
            case Fate.REQUEST_RESET:
                self._caller.reset(stream, ErrorCodes.INTERNAL_ERROR)
            case Fate.REPLY_RESET:
                self._caller.reset(stream, ErrorCodes.CANCEL)
            case _:
                await asyncio.get_running_loop().create_future()  # until the caller gives up
        return None

    async def run(self) -> None:
        """Until either end's connection ends; then the other one's does."""
        both = {asyncio.ensure_future(end.run()) for end in (self._caller, self._task)}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for work in (*both, *self._answering.values()):
                work.cancel()
            self._caller.cut()
            self._task.cut()
            await asyncio.gather(*both, return_exceptions=True)


def _framed(message: bytes) -> bytes:
    """As gRPC sends a message that is not compressed."""
    return b"\0" + len(message).to_bytes(4, "big") + message


class CallProxy:
    """A proxy to the task at `port` of loopback; `with`. Callers reach it at `address`; `script` says what it does.

    `rewrites` change the answers of methods, by name.
    """

    def __init__(self, port: int, rewrites: dict[str, Rewrite] | None = None) -> None:
        self._task_port, self._rewrites = port, rewrites or {}
        self.script = Script()
        self.port = 0
        self._relays: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="call proxy", daemon=True)

    @property
    def address(self) -> str:
        """ "localhost:PORT" """
        return f"localhost:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._listen())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self._close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(PATIENCE)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(PATIENCE)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accepted, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _accepted(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        relay = asyncio.current_task()
        assert relay is not None
        self._relays.add(relay)
        try:
            upstream = await asyncio.open_connection("127.0.0.1", self._task_port)
            caller = _End(reader, writer, client_side=False)
            await _Relay(caller, _Upstream(*upstream), self.script, self._rewrites).run()
        except (OSError, asyncio.CancelledError):
            writer.transport.abort()
        finally:
            self._relays.discard(relay)

    async def _close(self) -> None:
        self._server.close()
        for relay in list(self._relays):
            relay.cancel()
        await asyncio.gather(*self._relays, return_exceptions=True)
