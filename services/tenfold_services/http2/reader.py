"""Cuts what a peer sends into frames. No I/O; what frames mean is connection.py's, which is told of them one by one.

Frames are looked at in one buffer, whole. DATA is passed on as it comes: where a large message is under way, `spaces`
gives the socket the message's own memory, with some of the buffer behind it for the frame that follows.
"""

from __future__ import annotations

from typing import Protocol

from . import frame_types as frames
from .frame_types import Code, ConnectionFault

#: What can be read ahead of the next frame while payload goes to its place.
_AHEAD = 4 << 10
#: Read at once where it may be many small frames: each costs far more than its bytes, and they are dealt with together;
#: and so few that it takes no longer than others can wait.
AT_ONCE, FEW = 16 << 10, 1 << 10
#: From so many missing bytes on, payload goes straight to its place.
_DIRECT = 8 << 10


class Receiver(Protocol):
    """Takes one request. Called while bytes are dealt with; must not block."""

    def take(self, data: memoryview) -> None:
        """Payload, good during the call only."""

    def space(self) -> memoryview | None:
        """Where more payload may be put; None: through `take`."""

    def filled(self, count: int) -> None:
        """So much was put there."""

    def ended(self) -> None:
        """The request is complete."""

    def cancelled(self) -> None:
        """The peer does not want the answer any more, or is gone. The last call."""


class Frames(Protocol):
    """What the reader calls. All may raise ConnectionFault."""

    def frame(self, kind: int, flags: int, number: int, payload: bytes) -> None:
        """A whole frame that is not DATA, of a known type."""

    def data_begins(self, flags: int, number: int, length: int) -> Receiver | None:
        """A DATA frame of `length` bytes, padding included; what takes its payload, None where it is skipped."""

    def data_ended(self) -> None:
        """The last DATA frame is complete."""

    def meaningless(self, kind: int) -> None:
        """A frame whose payload is skipped."""


class Http2FrameReader:
    """Raises ConnectionFault, after which it is of no more use."""

    def __init__(self, tell: Frames, frame_bytes: int, block_bytes: int) -> None:
        """`frame_bytes` bounds DATA frames, `block_bytes` the others."""
        self._tell, self._frame_bytes, self._block_bytes = tell, frame_bytes, block_bytes
        self._buffer = bytearray(block_bytes + (32 << 10))
        self._view = memoryview(self._buffer)
        #: What is received at once where it may be many frames.
        self.at_once = AT_ONCE
        #: What was received and not looked at yet; equal when there is nothing.
        self._start = self._end = 0
        self._begun = False
        #: The DATA frame under way: its missing payload and padding; None for no frame.
        self._missing: int | None = None
        self._padding = 0
        self._receiver: Receiver | None = None
        #: Bytes of a frame without meaning, or of padding, that are still to come.
        self._skip = 0
        #: Where payload goes, while `spaces` has given it out.
        self._direct: memoryview | None = None

    @property
    def inside_frame(self) -> bool:
        """More bytes are due."""
        return self._start != self._end or self._missing is not None or bool(self._skip) or not self._begun

    def spaces(self) -> list[memoryview]:
        """Where to put what is received next, in this order."""
        self._direct = None
        if self._start == self._end:
            self._start = self._end = 0
            if self._missing is not None and self._missing >= _DIRECT and self._receiver is not None:
                space = self._receiver.space()
                if space:
                    self._direct = space[: self._missing]
                    return [self._direct, self._view[:_AHEAD]]
        elif self._start:
            rest = self._buffer[self._start : self._end]
            self._view[: len(rest)] = rest
            self._start, self._end = 0, len(rest)
        return [self._view[self._end : self._end + self.at_once]]

    def received(self, count: int) -> None:
        """`count` bytes were put into `spaces`."""
        if self._direct is not None:
            assert self._missing is not None
            direct = min(count, len(self._direct))
            self._direct = None
            self._missing -= direct
            count -= direct
            if self._receiver is not None:
                self._receiver.filled(direct)
        self._end += count
        if not self._begun:
            size = min(self._end, len(frames.PREFACE))
            if self._buffer[:size] != frames.PREFACE[:size]:
                raise ConnectionFault(Code.PROTOCOL_ERROR, "no HTTP/2 preface")
            if size < len(frames.PREFACE):
                return
            self._begun, self._start = True, size
        while self._data() if self._missing is not None else self._next():
            pass

    def drop(self) -> None:
        """The rest of the frame's payload is skipped."""
        self._receiver = None

    def _next(self) -> bool:
        """Deals with one frame; False if more has to come first."""
        available = self._end - self._start
        if self._skip:
            gone = min(self._skip, available)
            self._skip -= gone
            self._start += gone
            available -= gone
        if available < frames.HEADER_BYTES:
            return False
        upper, lower, kind, flags, number = frames.HEADER.unpack_from(self._buffer, self._start)
        length, number = upper << 8 | lower, number & frames.STREAM_MASK
        if length > self._frame_bytes:
            raise ConnectionFault(Code.FRAME_SIZE_ERROR, f"a frame of {length} bytes")
        begin = self._start + frames.HEADER_BYTES
        if kind == frames.DATA:
            padded = flags & frames.PADDED
            if padded:
                if available == frames.HEADER_BYTES and length:
                    return False
                if not length or self._buffer[begin] >= length:
                    raise ConnectionFault(Code.PROTOCOL_ERROR, "more padding than there are bytes in the frame")
            self._receiver = self._tell.data_begins(flags, number, length)
            self._padding = self._buffer[begin] if padded else 0
            self._start = begin + 1 if padded else begin
            self._missing = length - self._padding - (1 if padded else 0)
            return True
        if kind == frames.GOAWAY or kind > frames.CONTINUATION:
            # what a peer says when it leaves, and extensions
            self._tell.meaningless(kind)
            self._start, self._skip = begin, length
            return True
        if length > self._block_bytes:
            raise ConnectionFault(Code.ENHANCE_YOUR_CALM, f"a frame of type {kind} with {length} bytes")
        if available < frames.HEADER_BYTES + length:
            return False
        self._start = begin + length
        self._tell.frame(kind, flags, number, bytes(self._view[begin : begin + length]))
        return True

    def _data(self) -> bool:
        """Passes on payload of the DATA frame under way; False if more has to come first."""
        assert self._missing is not None
        count = min(self._missing, self._end - self._start)
        if count:
            begin = self._start
            self._start += count
            self._missing -= count
            if self._receiver is not None:
                self._receiver.take(self._view[begin : begin + count])
        if self._missing:
            return False
        self._missing, self._skip = None, self._padding
        self._tell.data_ended()
        return True
