"""Large buffers in pieces over several TCP connections: what is sent next on which one, and where what comes belongs.

    number, index │ 1 MiB │ number, index │ 1 MiB │ …        of each connection

A connection takes the next piece of a buffer as soon as it can send more, so a slow one gets fewer; the head of a piece
says which it is. streams.py makes one socket of the connections, and says why; frames.py tells of a buffer that comes
so. What a peer says of a piece is checked before it is received.
"""

from __future__ import annotations

import contextlib
import socket
import struct

from tenfold_link.protocol_error import ProtocolError

#: Bytes of a piece, on all connections of all releases that can do this; the last one of a buffer may have fewer.
CHUNK = 1 << 20
#: Buffers from this size on are spread.
LEAST = 2 << 20
#: What the table of a frame says as the block of such a buffer.
SPREAD = 1 << 62
#: In front of each piece: which buffer of its direction, counted from 0, and which piece of it.
HEAD = struct.Struct("<QQ")
#: Bytes that one call sends or receives before others have their turn.
TURN_BYTES = 4 << 20
#: Within a piece its reader is woken for so many bytes: waking costs a switch.
WAKE_BYTES = 512 << 10


class Spread:
    """A large buffer among the pieces of a frame. Its length is what is still to be sent of it, wherever that lies."""

    __slots__ = ("memory",)

    def __init__(self, memory: memoryview) -> None:
        """`memory` is flat, of bytes, and stays unchanged until it is sent."""
        self.memory = memory

    def __len__(self) -> int:
        return len(self.memory)

    def after(self, sent: int) -> Spread:
        """The rest, once `sent` more bytes are out."""
        return Spread(self.memory[sent:])


class Leaving:
    """A buffer that is being sent."""

    __slots__ = ("_memory", "_next", "_number")

    def __init__(self, number: int, memory: memoryview) -> None:
        self._number, self._memory = number, memory
        #: The first piece that no connection has.
        self._next = 0

    @property
    def given(self) -> bool:
        """Whether each piece has its connection."""
        return self._next * CHUNK >= len(self._memory)

    def give(self, stream: Stream) -> bool:
        """Gives the connection its next piece; False where all are given."""
        if self.given:
            return False
        begin = self._next * CHUNK
        head = memoryview(HEAD.pack(self._number, self._next))
        stream.leaving = [head, self._memory[begin : begin + CHUNK]]
        self._next += 1
        return True


class Gathering:
    """A buffer that comes in."""

    __slots__ = ("_memory", "_taken", "number")

    def __init__(self, number: int, memory: memoryview) -> None:
        """`memory` is flat, of bytes: what the buffer is received into."""
        self.number, self._memory = number, memory
        #: A byte for each piece that has begun to come: none is taken twice, so that all of the memory is filled.
        self._taken = bytearray(-(-len(memory) // CHUNK))

    def piece(self, index: int) -> memoryview:
        """Where that piece belongs. Raises ProtocolError for one that there is not, or that has come."""
        if index >= len(self._taken):
            raise ProtocolError(f"piece {index} of a buffer that has {len(self._taken)}")
        if self._taken[index]:
            raise ProtocolError(f"piece {index} of a buffer twice")
        self._taken[index] = 1
        return self._memory[index * CHUNK : (index + 1) * CHUNK]


class Stream:
    """One of the connections: the piece that it sends, and the one that it receives. Its socket does not block."""

    __slots__ = ("_body", "_came", "_head", "_least", "is_ahead", "leaving", "sock")

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        #: What has not left yet: head and body, or the rest of the body alone.
        self.leaving: list[memoryview] = []
        #: The head of the next piece, and how much of it has come.
        self._head = memoryview(bytearray(HEAD.size))
        self._came = 0
        #: Whether what comes next belongs to a later buffer than the one that was received last.
        self.is_ahead = False
        #: Where the rest of this piece belongs.
        self._body: memoryview | None = None
        #: So many bytes must have come before the system tells of them.
        self._least = 1

    def send(self) -> int:
        """Bytes of the buffer that left; 0 where the connection takes no more now. Raises OSError."""
        leaving = self.leaving
        try:
            sent = self.sock.sendmsg(leaving)
        except (BlockingIOError, InterruptedError):
            return 0
        if len(leaving) == 2:
            head = leaving[0]
            if sent < len(head):
                leaving[0] = head[sent:]
                return 0
            del leaving[0]
            sent -= len(head)
        leaving[0] = leaving[0][sent:]
        if not len(leaving[0]):
            leaving.clear()
        return sent

    def receive(self, into: Gathering) -> int:
        """Bytes of that buffer that came. Raises EOFError at the end, ProtocolError for what belongs nowhere, OSError.
        """
        total = 0
        while total < TURN_BYTES:
            if self._came == HEAD.size:
                number, index = HEAD.unpack(self._head)
                if number < into.number:
                    raise ProtocolError(f"a piece of buffer {number}, which is complete")
                self.is_ahead = number > into.number
                if self.is_ahead:
                    break
                self._body, self._came = into.piece(index), 0
            # the head of the next piece comes along
            head, body = self._head[self._came :], self._body
            try:
                got = self.sock.recvmsg_into([head] if body is None else [body, head], 0, socket.MSG_DONTWAIT)[0]
            except (BlockingIOError, InterruptedError):
                break
            if not got:
                raise EOFError
            if body is not None:
                here = min(got, len(body))
                total += here
                got -= here
                self._body = body[here:] if here < len(body) else None
            self._came += got
            if self._came < HEAD.size:
                break  # that was all there is
        self._wake_after(1 if self._body is None else min(len(self._body), WAKE_BYTES))
        return total

    def _wake_after(self, least: int) -> None:
        """Has the system tell of the connection once so many bytes are there; they must be sure to come."""
        if least != self._least:
            self._least = least
            # the link may have been closed meanwhile
            with contextlib.suppress(OSError):
                self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)
