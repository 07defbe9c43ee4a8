"""One HTTP/2 connection, the server's end, as a state machine: bytes in, requests opened, pieces out. No I/O.

connection_socket.py reads into `spaces`, says how much came, and writes what `out.pull` gives. calls.py makes a
Receiver of each request. Reading is reader.py's, sending outbound.py's; here are the states. Source: RFC 9113, and
http2_settings.py for the limits that it leaves open.

A stream is open from its HEADERS until our END_STREAM is queued for sending, or either side resets it. When we are done
first, the peer may go on for a while: such streams are remembered in `_left`, and what comes for them is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import frame_types as frames
from .frame_types import Code, ConnectionFault, StreamFault
from .hpack import Decoder, HpackError
from .outbound import Http2Outbound
from .peer_limits import FrameQuota
from .reader import AT_ONCE, FEW, Http2FrameReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from .hpack import Field, FieldRun
    from .http2_settings import Http2Settings
    from .reader import Receiver

    #: Opens a request: stream, the leading run of its fields, the others (None: too many). May raise StreamFault.
    OpenRequest: TypeAlias = Callable[[int, FieldRun, list[Field] | None], Receiver]


class Stream:
    """An open stream."""

    __slots__ = ("closed_by_peer", "number", "receiver", "window")

    def __init__(self, number: int, window: int) -> None:
        self.number = number
        #: What the peer may still send.
        self.window = window
        #: END_STREAM has come.
        self.closed_by_peer = False
        #: None only while the request is being opened.
        self.receiver: Receiver | None = None


class Connection:
    """`fault` is set once the connection is to end; GOAWAY is queued then, and nothing that comes counts."""

    def __init__(self, open_request: OpenRequest, settings: Http2Settings, clock: Callable[[], float]) -> None:
        self._open_request, self._settings = open_request, settings
        self.fault: ConnectionFault | None = None
        #: The peer's first SETTINGS have come.
        self.greeted = False
        self.streams: dict[int, Stream] = {}
        #: The highest stream that the peer has opened; those above are idle.
        self._last = 0
        #: Streams that we are done with while the peer may take them for open, oldest first. As many as may be open:
        #: those before are forgotten, and their frames are errors.
        self._left: dict[int, None] = {}
        #: Streams above are refused: we have said goodbye.
        self._last_served = frames.STREAM_MASK
        self._decoder = Decoder(list_size=settings.header_list_bytes)
        self._reader = Http2FrameReader(self, settings.frame_bytes, settings.header_block_bytes)
        self.spaces = self._reader.spaces
        self.out = Http2Outbound(self._answered)
        #: What the peer may still send on all streams.
        self._window = settings.connection_window
        #: The DATA frame under way: its stream's number, the stream unless that is over, and END_STREAM.
        self._data: tuple[int, Stream | None, bool] = (0, None, False)
        #: HEADERS that go on in CONTINUATION: stream, END_STREAM, the parts.
        self._continued: tuple[int, bool, list[bytes]] | None = None
        self._spend = FrameQuota(settings.control_burst, settings.control_per_second, clock).spend
        #: Counts all frames of a peer that nobody knows yet; None of one that is known.
        self._strange: FrameQuota | None = None
        self._clock = clock
        own = {
            frames.MAX_STREAMS: settings.streams,
            frames.INITIAL_WINDOW: settings.stream_window,
            frames.FRAME_SIZE: settings.frame_bytes,
            frames.LIST_SIZE: settings.header_list_bytes,
        }
        self.out.control(frames.settings(own))
        if settings.connection_window > frames.DEFAULT_WINDOW:
            self.out.control(frames.window_update(0, settings.connection_window - frames.DEFAULT_WINDOW))

    def is_stranger(self, *, strange: bool) -> None:
        """Whether nobody knows the peer yet, as it is with the peer's first call that shows who it is no more."""
        settings, self._strange = self._settings, None
        if strange:
            text = "of one who has not shown who it is"
            burst, rate = settings.strangers_burst, settings.strangers_per_second
            self._strange = FrameQuota(burst, rate, self._clock, text)
        self._reader.at_once = FEW if strange else AT_ONCE

    # -- what the socket and the calls do ----------------------------------------------------------------------------

    @property
    def half_way(self) -> bool:
        """The peer owes us the rest of a request or of a frame."""
        return self._reader.inside_frame or any(not stream.closed_by_peer for stream in self.streams.values())

    def received(self, count: int) -> None:
        """`count` bytes were put into `spaces`. Raises nothing for what a peer may send; sets `fault`."""
        if self.fault is not None:
            return
        try:
            self._reader.received(count)
            if self.out.control_bytes > self._settings.control_bytes:
                raise ConnectionFault(Code.ENHANCE_YOUR_CALM, "too much to say to a peer that does not read")
        except ConnectionFault as fault:
            self.fail(fault)

    def fail(self, fault: ConnectionFault) -> None:
        """Ends the connection: GOAWAY, and every request is cancelled."""
        if self.fault is None:
            self.fault = fault
            self.out.control(frames.goaway(self._last, fault.code, fault.text))
            self.lost()

    def lost(self) -> None:
        """The peer is gone: every request is cancelled."""
        self._reader.drop()
        for number in list(self.streams):
            self._cancel(number)
        self.out.lost()

    def say_goodbye(self) -> None:
        """Lets the peer open no more streams; those that are open go on."""
        self._last_served = self._last
        self.out.control(frames.goaway(self._last, Code.NO_ERROR, "the server is shutting down"))

    # -- what the reader tells ---------------------------------------------------------------------------------------

    def frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        if self._strange is not None:
            self._strange.spend()
        if not self.greeted and (kind != frames.SETTINGS or flags & frames.ACK):
            raise ConnectionFault(Code.PROTOCOL_ERROR, "the first frame is not SETTINGS")
        if self._continued is not None and kind != frames.CONTINUATION:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a frame between HEADERS and CONTINUATION")
        size = _SIZES.get(kind)
        if size is not None and len(payload) != size:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, f"a frame of type {kind} with {len(payload)} bytes")
        if (number == 0) != (kind in _OF_CONNECTION) and kind != frames.WINDOW_UPDATE:
            raise ConnectionFault(Code.PROTOCOL_ERROR, f"a frame of type {kind} on stream {number}")
        try:
            _DEAL[kind](self, flags, number, payload)
        except StreamFault as fault:
            self._reset(number, fault.code)
        except HpackError as error:
            raise ConnectionFault(Code.COMPRESSION_ERROR, str(error)) from None

    def meaningless(self, kind: int) -> None:
        self._begins()
        self._spend(1)

    def data_begins(self, flags: int, number: int, length: int) -> Receiver | None:
        self._begins()
        if length > self._window:
            raise ConnectionFault(Code.FLOW_CONTROL_ERROR, "more than the connection's window")
        self._window -= length
        stream = self.streams.get(number)
        ends = bool(flags & frames.END_STREAM)
        if stream is None:
            self._check_left(number, "DATA")
        elif stream.closed_by_peer:
            self._reset(number, Code.STREAM_CLOSED)
            stream = None
        elif length > stream.window:
            self._reset(number, Code.FLOW_CONTROL_ERROR)
            stream = None
        else:
            stream.window -= length
        if not length and not ends:
            self._spend(1)
        self._data = (number, stream, ends)
        return None if stream is None else stream.receiver

    def data_ended(self) -> None:
        number, stream, ends = self._data
        settings = self._settings
        if self._window < settings.connection_window >> 1:
            self.out.control(frames.window_update(0, settings.connection_window - self._window))
            self._window = settings.connection_window
        if stream is None or number not in self.streams:
            if ends:
                self._left.pop(number, None)
            return
        if ends:
            self._end_of_request(stream)
        elif stream.window < settings.stream_window >> 1:
            self.out.control(frames.window_update(number, settings.stream_window - stream.window))
            stream.window = settings.stream_window

    # -- frames ------------------------------------------------------------------------------------------------------

    def _headers(self, flags: int, number: int, payload: bytes) -> None:
        begin, end = 0, len(payload)
        if flags & frames.PADDED:
            begin, end = 1, end - (payload[0] if payload else 0)
        if flags & frames.WITH_PRIORITY:
            begin += 5
        if begin > end:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "HEADERS with more padding than there are bytes")
        block = payload[begin:end] if begin else payload
        ends = bool(flags & frames.END_STREAM)
        if flags & frames.END_HEADERS:
            self._block(number, ends, block)
        else:
            self._continued = number, ends, [block]

    def _continuation(self, flags: int, number: int, payload: bytes) -> None:
        if self._continued is None or self._continued[0] != number:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "CONTINUATION of nothing")
        self._spend(1)
        _, ends, parts = self._continued
        parts.append(payload)
        size = sum(map(len, parts))
        if len(parts) > self._settings.continuations + 1 or size > self._settings.header_block_bytes:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, f"headers of {size} bytes in {len(parts)} frames")
        if flags & frames.END_HEADERS:
            self._continued = None
            self._block(number, ends, b"".join(parts))

    def _block(self, number: int, ends: bool, block: bytes) -> None:
        """Complete headers: a request, or its trailers."""
        run, fields = self._decoder.decode(block)
        stream = self.streams.get(number)
        if stream is not None:
            if stream.closed_by_peer:
                raise StreamFault(Code.STREAM_CLOSED, "headers after the end of the stream")
            if not ends:
                raise StreamFault(Code.PROTOCOL_ERROR, "trailers that do not end the stream")
            self._end_of_request(stream)
            return
        if number <= self._last:
            self._check_left(number, "HEADERS")
            if ends:
                self._left.pop(number, None)
            return
        if not number & 1:
            raise ConnectionFault(Code.PROTOCOL_ERROR, f"stream {number} opened by a client")
        self._last = number
        if number > self._last_served:
            return
        if len(self.streams) >= self._settings.streams:
            raise StreamFault(Code.REFUSED_STREAM, "too many streams")
        stream = Stream(number, self._settings.stream_window)
        stream.closed_by_peer = ends
        self.streams[number] = stream
        self.out.open(number)
        stream.receiver = self._open_request(number, run, fields)
        if ends and number in self.streams:
            self._end_of_request(stream)

    def _end_of_request(self, stream: Stream) -> None:
        stream.closed_by_peer = True
        assert stream.receiver is not None
        stream.receiver.ended()

    def _priority(self, flags: int, number: int, payload: bytes) -> None:
        self._spend(1)

    def _rst_stream(self, flags: int, number: int, payload: bytes) -> None:
        self._spend(1)
        if number > self._last:
            raise ConnectionFault(Code.PROTOCOL_ERROR, f"RST_STREAM of stream {number}, which was not opened")
        self._left.pop(number, None)
        self._cancel(number)

    def _settings_frame(self, flags: int, number: int, payload: bytes) -> None:
        if flags & frames.ACK:
            if payload:
                raise ConnectionFault(Code.FRAME_SIZE_ERROR, "SETTINGS that acknowledge and say something")
            self._spend(1)
            return
        if len(payload) % 6:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, f"SETTINGS of {len(payload)} bytes")
        self._spend(1 + len(payload) // 60)
        self.greeted = True
        self._spend(self.out.obey(frames.parse_settings(payload)))
        self.out.control(frames.header(0, frames.SETTINGS, frames.ACK))

    def _push_promise(self, flags: int, number: int, payload: bytes) -> None:
        raise ConnectionFault(Code.PROTOCOL_ERROR, "PUSH_PROMISE of a client")

    def _ping(self, flags: int, number: int, payload: bytes) -> None:
        self._spend(1)
        if not flags & frames.ACK:
            self.out.control(frames.header(8, frames.PING, frames.ACK) + payload)

    def _window_update(self, flags: int, number: int, payload: bytes) -> None:
        increment = int.from_bytes(payload, "big") & frames.MAX_WINDOW
        if number > self._last:
            raise ConnectionFault(Code.PROTOCOL_ERROR, f"WINDOW_UPDATE of stream {number}, which was not opened")
        if not increment or not self.out.grow(number, increment):
            code = Code.FLOW_CONTROL_ERROR if increment else Code.PROTOCOL_ERROR
            if number:
                raise StreamFault(code, f"a window that grows by {increment}")
            raise ConnectionFault(code, f"a window that grows by {increment}")

    # -- parts -------------------------------------------------------------------------------------------------------

    def _answered(self, number: int) -> None:
        """Our END_STREAM is queued."""
        self.out.forget(number)
        stream = self.streams.pop(number, None)
        if stream is not None and not stream.closed_by_peer:
            # an answer before the request was complete: the peer need not go on
            self._leave(number, Code.NO_ERROR)

    def _reset(self, number: int, code: Code) -> None:
        """Ends a stream with RST_STREAM."""
        self._spend(1)
        self._leave(number, code)
        self._cancel(number)

    def _cancel(self, number: int) -> None:
        """The stream is over, if it is open, and so is its request."""
        self.out.forget(number)
        stream = self.streams.pop(number, None)
        if stream is not None and stream.receiver is not None:
            stream.receiver.cancelled()

    def _leave(self, number: int, code: Code) -> None:
        self.out.control(frames.rst_stream(number, code))
        self._left[number] = None
        if len(self._left) > self._settings.streams:
            del self._left[next(iter(self._left))]

    def _check_left(self, number: int, what: str) -> None:
        """Raises ConnectionFault for a frame of a stream that the peer cannot take for open."""
        if not number or number > self._last:
            raise ConnectionFault(Code.PROTOCOL_ERROR, f"{what} of stream {number}, which is idle")
        if number not in self._left and number <= self._last_served:
            raise ConnectionFault(Code.STREAM_CLOSED, f"{what} of stream {number}, which is closed")

    def _begins(self) -> None:
        """DATA, or a frame that means nothing. Raises ConnectionFault where no such frame may be."""
        if self._strange is not None:
            self._strange.spend()
        if not self.greeted or self._continued is not None:
            raise ConnectionFault(Code.PROTOCOL_ERROR, "a frame before SETTINGS, or between HEADERS and CONTINUATION")


#: The length of frames that have one.
_SIZES = {frames.PRIORITY: 5, frames.RST_STREAM: 4, frames.PING: 8, frames.WINDOW_UPDATE: 4}
_OF_CONNECTION = frozenset({frames.SETTINGS, frames.PING})
_DEAL: dict[int, Callable[[Connection, int, int, bytes], None]] = {
    frames.HEADERS: Connection._headers,
    frames.PRIORITY: Connection._priority,
    frames.RST_STREAM: Connection._rst_stream,
    frames.SETTINGS: Connection._settings_frame,
    frames.PUSH_PROMISE: Connection._push_promise,
    frames.PING: Connection._ping,
    frames.WINDOW_UPDATE: Connection._window_update,
    frames.CONTINUATION: Connection._continuation,
}
