"""What leaves a connection: frames in their order, as far as the peer's windows let them. No I/O.

A small answer is put together into one piece and is on its way. What does not fit a window waits here, by stream, and
the streams take turns frame by frame. Large buffers are never copied: they leave as pieces between frame headers.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from . import frame_types as frames
from .frame_types import Code, ConnectionFault

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .handler import Buffer

#: Answers up to this size are joined with their headers, for one write of one piece.
_JOINED = 16 << 10
#: Settings in one frame; RFC 9113 knows six, and clients send a few that nobody knows.
_MOST_SETTINGS = 64
#: So many streams looked at cost as much as one frame.
_STREAMS_A_FRAME = 64


class PendingAnswer:
    """An answer that is not out yet: its pieces, and the trailers' block after them."""

    __slots__ = ("left", "pieces", "tail")

    def __init__(self, pieces: Sequence[Buffer], left: int, tail: bytes) -> None:
        self.pieces = deque(memoryview(piece) for piece in pieces if len(piece))
        self.left, self.tail = left, tail

    def cut(self, size: int) -> list[memoryview]:
        """The next `size` bytes, without copying."""
        out: list[memoryview] = []
        self.left -= size
        while size:
            first = self.pieces[0]
            if len(first) <= size:
                out.append(self.pieces.popleft())
                size -= len(first)
            else:
                out.append(first[:size])
                self.pieces[0] = first[size:]
                size = 0
        return out


class Unread:
    """Bytes of answers, of many connections, that their peers have not taken yet."""

    __slots__ = ("bytes",)

    def __init__(self) -> None:
        self.bytes = 0


class Http2Outbound:
    """The sending half of a connection. Windows are what the peer still takes; a stream's may be negative.

    A stream's window is kept relative to the initial one: the peer changes that for all streams with a few bytes, and
    must not have us visit each of them. Streams whose window is closed are not visited either, until it opens.
    """

    def __init__(self, ended: Callable[[int], None]) -> None:
        """`ended` is told a stream's number when the last of its answer is out."""
        self._ended = ended
        #: Of this connection: bytes of answers in `_ready`, and in `_waiting` and `_stuck`. `unread` has them too, and
        #: those of other connections.
        self._ready_bytes = self._waiting_bytes = 0
        self.unread = Unread()
        self.window = frames.DEFAULT_WINDOW
        self.initial_window = frames.DEFAULT_WINDOW
        self.frame_size = frames.DEFAULT_FRAME
        #: Frames that may leave now.
        self._ready: list[Buffer] = []
        #: Bytes of control frames in `_ready`; and of all that there ever were.
        self.control_bytes = self.all_control_bytes = 0
        #: Stream → what waits for the connection's window or its turn, in the order of turns. Disjoint from `_stuck`.
        self._waiting: dict[int, PendingAnswer] = {}
        #: Stream → what waits for the stream's own window, which is closed.
        self._stuck: dict[int, PendingAnswer] = {}
        #: Of all open streams: their windows, less the initial one. None is above `_most`.
        self._windows: dict[int, int] = {}
        self._most = 0

    @property
    def pending(self) -> bool:
        """Something has not left yet."""
        return bool(self._ready or self._waiting or self._stuck)

    @property
    def own_unread(self) -> int:
        """Bytes of answers of this connection that have not left."""
        return self._ready_bytes + self._waiting_bytes

    def control(self, frame: bytes) -> None:
        self._ready.append(frame)
        self.control_bytes += len(frame)
        self.all_control_bytes += len(frame)

    def open(self, stream: int) -> None:
        self._windows[stream] = 0

    def forget(self, stream: int) -> None:
        """The stream is over; what waits for it does not leave."""
        self._windows.pop(stream, None)
        for waiting in (self._waiting.pop(stream, None), self._stuck.pop(stream, None)):
            if waiting is not None:
                self._taken(waiting.left)

    def lost(self) -> None:
        """Nothing leaves any more: what waits does not count."""
        self.unread.bytes -= self._ready_bytes + self._waiting_bytes
        self._ready_bytes = self._waiting_bytes = 0

    def _taken(self, size: int) -> None:
        self._waiting_bytes -= size
        self.unread.bytes -= size

    def headers(self, stream: int, block: bytes) -> None:
        """Headers ahead of an answer; nothing if the stream is over."""
        if stream in self._windows:
            self._ready.append(frames.header_block(stream, block, 0, self.frame_size))

    def end(self, stream: int, block: bytes) -> None:
        """The end of a stream without a message: trailers, or headers that are all there is; nothing if it is over."""
        if stream not in self._windows:
            return
        self._ready.append(frames.header_block(stream, block, frames.END_STREAM, self.frame_size))
        self._ended(stream)

    def answer(self, stream: int, head: bytes, pieces: Sequence[Buffer], tail: bytes) -> None:
        """A whole answer: headers' block (b"" if they are out), the message, the trailers' block. Nothing if the stream
        is over."""
        if stream not in self._windows:
            return
        size = sum([len(piece) for piece in pieces])
        small = len(head) <= self.frame_size and len(tail) <= self.frame_size
        if (
            not (small and size <= self.frame_size and size <= self._window(stream) and size <= self.window)
            or self._waiting
            or self._stuck
        ):
            if head:
                self.headers(stream, head)
            self._waiting[stream] = PendingAnswer(pieces, size, tail)
            self._waiting_bytes += size
            self.unread.bytes += size
            return
        self._ready_bytes += size
        self.unread.bytes += size
        self.window -= size
        header = frames.header
        begin = header(len(head), frames.HEADERS, frames.END_HEADERS, stream) + head if head else b""
        end = header(len(tail), frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream) + tail
        if size <= _JOINED:
            self._ready.append(b"".join((begin, header(size, frames.DATA, 0, stream), *pieces, end)))
        else:
            self._ready += (begin + header(size, frames.DATA, 0, stream), *pieces, end)
        self._ended(stream)

    def _window(self, stream: int) -> int:
        return self._windows[stream] + self.initial_window

    def grow(self, stream: int, increment: int) -> bool:
        """The peer takes more: of one stream, or, for 0, of the connection. False if that is more than there can be."""
        if not stream:
            self.window += increment
            return self.window <= frames.MAX_WINDOW
        window = self._windows.get(stream)
        if window is None:
            return True
        window += increment
        self._windows[stream] = window
        self._most = max(self._most, window)
        if stream in self._stuck and window + self.initial_window > 0:
            self._waiting[stream] = self._stuck.pop(stream)
        return window + self.initial_window <= frames.MAX_WINDOW

    def obey(self, settings: list[tuple[int, int]]) -> int:
        """The peer's settings, of one frame; the work that they were, in frames. Raises ConnectionFault for values that
        there are not, and for too many."""
        if len(settings) > _MOST_SETTINGS:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, f"{len(settings)} settings in one frame")
        for name, value in settings:
            if name == frames.INITIAL_WINDOW:
                if value > frames.MAX_WINDOW:
                    raise ConnectionFault(Code.FLOW_CONTROL_ERROR, f"a window of {value}")
            elif name == frames.FRAME_SIZE:
                if not frames.DEFAULT_FRAME <= value <= frames.MAX_FRAME:
                    raise ConnectionFault(Code.PROTOCOL_ERROR, f"a frame size of {value}")
            elif name == frames.ENABLE_PUSH and value > 1:
                raise ConnectionFault(Code.PROTOCOL_ERROR, f"ENABLE_PUSH is {value}")
        # of a setting that comes several times the last value counts
        last = dict(settings)
        self.frame_size = last.get(frames.FRAME_SIZE, self.frame_size)
        window = last.get(frames.INITIAL_WINDOW, self.initial_window)
        return self._resize(window) if window != self.initial_window else 0

    def _resize(self, initial_window: int) -> int:
        """The peer changed the window that streams begin with, and with it all windows. As `obey`."""
        grows, self.initial_window = initial_window > self.initial_window, initial_window
        seen = 0
        if grows and self._most + initial_window > frames.MAX_WINDOW:
            # a stream that had so much may be over
            self._most = max(self._windows.values(), default=0)
            seen = len(self._windows)
            if self._most + initial_window > frames.MAX_WINDOW:
                raise ConnectionFault(Code.FLOW_CONTROL_ERROR, f"a window of {self._most + initial_window}")
        if grows and self._stuck:
            seen += len(self._stuck)
            self._waiting |= self._stuck
            self._stuck.clear()
        return seen // _STREAMS_A_FRAME

    def pull(self, budget: int) -> list[Buffer]:
        """Pieces that leave now, in this order: all that are ready, and of those that wait about `budget` bytes."""
        out, self._ready = self._ready, []
        self.control_bytes = 0
        self.unread.bytes -= self._ready_bytes
        self._ready_bytes = 0
        while budget > 0 and self._waiting:
            stream, waiting = next(iter(self._waiting.items()))
            size = min(waiting.left, self._window(stream), self.window, self.frame_size, budget)
            if waiting.left and size <= 0:
                if self.window <= 0:
                    break
                self._stuck[stream] = self._waiting.pop(stream)
                continue
            del self._waiting[stream]
            budget -= self._pull_one(stream, waiting, size, out)
        return out

    def _pull_one(self, stream: int, waiting: PendingAnswer, size: int, out: list[Buffer]) -> int:
        """One frame of a stream, which then is the last in the queue; how much it took."""
        if size > 0:
            self.window -= size
            self._windows[stream] -= size
            self._taken(size)
            out.append(frames.header(size, frames.DATA, 0, stream))
            out += waiting.cut(size)
        if waiting.left:
            self._waiting[stream] = waiting
            return size
        out.append(frames.header_block(stream, waiting.tail, frames.END_STREAM, self.frame_size))
        self._ended(stream)
        return size + len(waiting.tail)
