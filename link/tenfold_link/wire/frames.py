"""The frames of a link, without any I/O: packing, and a reader that says where the next bytes belong.

    prefix, 24 bytes      table, 24 bytes a buffer        header        the inline buffers, one after another
    ┌────────────────┬──────────────────────────────┬───────────────┬──────────────────────────────────────────┐
    │ magic kind …   │ size, block, offset │ …      │ protobuf      │ raw bytes │ raw bytes │ …                │
    └────────────────┴──────────────────────────────┴───────────────┴──────────────────────────────────────────┘

Small frames are read together into a scratch area and cut up; a large buffer is received straight into its own memory.
A buffer's block 1 << 62 says that it comes over further connections (spread.py).
All numbers are little-endian. Everything that a peer says is checked before anything is allocated for it: what does not
fit raises ProtocolError, and the link ends. docs/link.md has the whole picture.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from tenfold_core import errors
from tenfold_core.traffic import Traffic
from tenfold_link.protocol_error import ProtocolError
from tenfold_link.wire.spread import LEAST, SPREAD

if TYPE_CHECKING:
    from collections import deque
    from collections.abc import Callable, Sequence

    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Incoming
    from tenfold_link.wire.inflow import Inflow
    from tenfold_link.wire.spread import Gathering

#: "TL": where it is missing, the two ends no longer agree where a frame starts.
MAGIC = 0x4C54
#: magic, kind, a zero, method or status code, bytes of header, buffers, call.
PREFIX = struct.Struct("<HBBIIIQ")
#: One buffer: bytes, block (0: inline), offset in the sender's arena.
ROW = struct.Struct("<QQQ")
_IDS = struct.Struct("<Q")

#: Frames up to this size are joined before they are sent, and buffers up to this size are cut out of the scratch area.
SMALL = 16 << 10
_SCRATCH = 64 << 10
#: A frame says at most this much before its token was accepted.
HELLO_BYTES = 4096


class FrameKind(IntEnum):
    """What a frame says, as a sentence."""

    HELLO = 1  # "Here is my token and my arena."
    WELCOME = 2  # "You are accepted; here is my arena."
    REQUEST = 3  # "Do this, and answer under this call number."
    NOTIFY = 4  # "Take note of this; no answer."
    REPLY = 5  # "The call's answer."
    ERROR = 6  # "The call failed with this code and this text."
    CANCEL = 7  # "I no longer want the answer of this call."
    PING = 8  # "Are you there?"
    PONG = 9  # "I am."
    RELEASE = 10  # "I no longer use these blocks of your arena."
    GOODBYE = 11  # "I am closing, for this reason."
    STREAMS = 12  # "So many further connections have joined this one; the link begins."


_KINDS = {int(kind): kind for kind in FrameKind}


class Frame(NamedTuple):
    """One frame. `method` is the status code in an ERROR."""

    kind: FrameKind
    method: int
    call: int
    header: bytes
    buffers: list[Incoming]
    #: Bytes of it that the reader's `inflow` counts until they are given back; or why there was no room for its
    #: buffers, which have been dropped.
    cost: int | errors.OpError = 0


def pack(kind: int, method: int = 0, call: int = 0, header: bytes = b"", rows: Sequence[bytes] = ()) -> bytes:
    """A frame up to its inline buffers. `rows` are packed by ROW."""
    return b"".join((PREFIX.pack(MAGIC, kind, 0, method, len(header), len(rows), call), *rows, header))


def pack_ids(ids: Sequence[int]) -> bytes:
    """The header of a RELEASE."""
    return struct.pack(f"<{len(ids)}Q", *ids)


def pack_release(returned: deque[int]) -> bytes:
    """A RELEASE of all blocks in `returned`, which is empty then. Finalizers may append to it meanwhile."""
    blocks = []
    while returned:
        blocks.append(returned.popleft())
    return pack(FrameKind.RELEASE, header=pack_ids(blocks))


def unpack_ids(header: bytes) -> tuple[int, ...]:
    """Raises ProtocolError for a header that is not a list of block numbers."""
    if len(header) % _IDS.size:
        raise ProtocolError(f"a list of blocks of {len(header)} bytes")
    return struct.unpack(f"<{len(header) // _IDS.size}Q", header)


class FrameReader:
    """Turns a stream into frames: receive into `buffer()`, then tell `received` how many bytes came.

    `open_block(block, offset, size)` gives a buffer in the peer's arena, or raises ProtocolError. `allocate(size)`
    gives writable memory of that size for a large inline buffer, `gather(memory)` what takes one that comes over
    further connections, where there are such. `traffic` counts what came. One thread at a time.
    """

    def __init__(
        self,
        settings: LinkSettings,
        open_block: Callable[[int, int, int], Incoming],
        allocate: Callable[[int], np.ndarray] | None = None,
        traffic: Traffic | None = None,
        gather: Callable[[memoryview], Gathering] | None = None,
    ) -> None:
        self._settings, self._gather = settings, gather
        self._traffic = traffic if traffic is not None else Traffic()
        self._open_block = open_block
        self._allocate = allocate if allocate is not None else _fresh
        self._scratch = memoryview(bytearray(_SCRATCH))
        #: What was received and not yet used is scratch[start:end].
        self._start = self._end = 0
        #: The part of a large buffer that is still to come. While there is one, the scratch area is empty.
        self._direct: memoryview | None = None
        #: A buffer that comes over further connections, while there is one: `buffer()` is not used then.
        self.spread: Gathering | None = None
        #: What is to come of either.
        self.awaited = 0
        #: The frame under way: its prefix and header were read, and `_missing` of its buffers are not filled yet.
        self._frame: Frame | None = None
        #: (index in the frame, size, whether it is spread) of inline buffers still to fill, last first.
        self._missing: list[tuple[int, int, bool]] = []
        #: Of a frame that there is no room for: bytes still to come, which are dropped.
        self._unwanted = 0
        #: What counts frames against limits, if anything does; set by the link's owner.
        self.inflow: Inflow | None = None
        #: What it counts of frames that are not complete.
        self._counted = 0

    def close(self) -> None:
        """Lets go of the peer's arena. Nothing that comes after this is a frame."""
        self._open_block = _closed
        self._allocate = _fresh

    def drop(self) -> None:
        """Lets go of the frame under way. Only once nothing is received any more."""
        self._frame, self._direct, self.spread, self.awaited = None, None, None, 0
        self._missing.clear()

    def buffer(self) -> memoryview:
        """Where the next bytes belong. Never empty."""
        if self._direct is not None:
            return self._direct
        return self._scratch[self._end :]

    def received(self, count: int) -> list[Frame]:
        """The frames that are complete now. Raises ProtocolError; the reader is of no use after that."""
        self._traffic.received += count
        if self.spread is not None:
            self.awaited -= count
            if self.awaited:
                return []
            self.spread = None
        elif self._direct is None:
            self._end += count
        else:
            self.awaited -= count
            self._direct = self._direct[count:] if self.awaited else None
            if self.awaited:
                return []
        frames: list[Frame] = []
        while self._frame is not None or (self._start < self._end and self._begin()):
            if not self._fill():
                break
            assert self._frame is not None
            frames.append(self._frame)
            self._frame = None
            self._counted = 0
        if self._start == self._end:
            self._start = self._end = 0
            if len(self._scratch) > _SCRATCH and self._frame is None:
                self._scratch = memoryview(bytearray(_SCRATCH))
        elif self._end == len(self._scratch):
            self._make_room(0)
        return frames

    def _begin(self) -> bool:
        """Reads prefix, table and header from the scratch area; False while they are not all there."""
        available = self._end - self._start
        if available < PREFIX.size:
            return False
        magic, number, zero, method, header_size, rows, call = PREFIX.unpack_from(self._scratch, self._start)
        if magic != MAGIC or zero:
            raise ProtocolError("a frame does not start where it should")
        kind = _KINDS.get(number)
        if kind is None:
            raise ProtocolError(f"a frame of unknown kind {number}")
        if header_size > self._settings.header_bytes:
            raise ProtocolError(f"a header of {header_size} bytes; {self._settings.header_bytes} are allowed")
        if rows > self._settings.buffers_per_frame:
            raise ProtocolError(f"a frame of {rows} buffers; {self._settings.buffers_per_frame} are allowed")
        size = PREFIX.size + rows * ROW.size + header_size
        if available < size:
            if self.inflow is not None and size > _SCRATCH and not self._counted:
                self._count(size)
            self._make_room(size)
            return False
        at = self._start + PREFIX.size
        table = at + rows * ROW.size
        self._start += size
        header = bytes(self._scratch[table : table + header_size])
        self._frame = Frame(kind, method, call, header, self._open(self._scratch[at:table]) if rows else [])
        if self.inflow is not None:
            self._look_for_room()
        return True

    def _look_for_room(self) -> None:
        """Has the frame that has just begun counted. Raises ProtocolError for one without room that cannot be
        refused."""
        assert self._frame is not None
        assert self.inflow is not None
        frame, inline = self._frame, sum(size for _, size, _ in self._missing)
        if inline and (refusal := self.inflow.take(inline)) is not None:
            if frame.kind is not FrameKind.REQUEST:
                raise ProtocolError(f"what there is no room for: {refusal.message}")
            self._refuse(refusal)
            return
        self._counted += inline
        self._frame = frame._replace(cost=self._counted)

    def _refuse(self, why: errors.OpError) -> None:
        """The frame under way is dropped as it comes, and what it was refused for goes on in its place."""
        assert self._frame is not None
        self._unwanted = sum(size for _, size, _ in self._missing)
        self._missing.clear()
        if self.inflow is not None:
            self.inflow.give(self._counted)
        self._counted = 0
        self._frame = self._frame._replace(buffers=[], header=b"", cost=why)

    def _count(self, size: int) -> None:
        """Raises ProtocolError."""
        assert self.inflow is not None
        if (refusal := self.inflow.take(size)) is not None:
            raise ProtocolError(f"what there is no room for: {refusal.message}")
        self._counted += size

    def _open(self, table: memoryview) -> list[Incoming]:
        """The frame's buffers: those in the arena as they are, the others still empty and noted as missing."""
        buffers: list[Incoming] = []
        inline = 0
        for size, block, offset in ROW.iter_unpack(table):
            spread = block == SPREAD
            if spread and (self._gather is None or offset or size < LEAST):
                raise ProtocolError(f"a buffer of {size} bytes over further connections")
            if block and not spread:
                buffers.append(self._open_block(block, offset, size))
                self._traffic.received += size
                continue
            inline += size
            if inline > self._settings.frame_bytes:
                raise ProtocolError(f"a frame of {inline} bytes or more; {self._settings.frame_bytes} are allowed")
            self._missing.append((len(buffers), size, spread))
            buffers.append(_EMPTY)
        self._missing.reverse()
        return buffers

    def _fill(self) -> bool:
        """Gives the frame's inline buffers what is there; False while some is not."""
        missing = self._missing
        if self._unwanted:
            dropped = min(self._unwanted, self._end - self._start)
            self._start += dropped
            self._unwanted -= dropped
            if not self._unwanted:
                return True
            self._start = self._end = 0
            return False
        while missing:
            index, size, spread = missing[-1]
            available = self._end - self._start
            if size <= available and size <= SMALL:
                chunk: Incoming = bytearray(self._scratch[self._start : self._start + size])
                self._start += size
            elif size <= SMALL:
                self._make_room(size)
                return False
            else:
                try:
                    chunk = self._allocate(size)
                except MemoryError:
                    assert self._frame is not None
                    # what comes over further connections cannot be dropped
                    if self._frame.kind is not FrameKind.REQUEST or any(each[2] for each in missing):
                        raise
                    text = f"there is no memory for a buffer of {size} bytes"
                    self._refuse(errors.ResourceExhaustedError(None, None, text))
                    return self._fill()
                whole = memoryview(chunk)  # type: ignore[arg-type] # an array is a buffer
                there = 0 if spread else min(size, available)
                whole[:there] = self._scratch[self._start : self._start + there]
                self._start += there
                if there < size:
                    self.awaited = size - there
                    if spread:
                        assert self._gather is not None
                        self.spread = self._gather(whole)
                    else:
                        self._direct = whole[there:]
            assert self._frame is not None
            self._frame.buffers[index] = chunk
            missing.pop()
            if self.awaited:
                return False
        return True

    def _make_room(self, size: int) -> None:
        """Moves what is left in the scratch area to its front, and makes it hold `size` bytes at least."""
        left = self._end - self._start
        scratch = self._scratch
        if size > len(scratch):
            # zeroed memory is not touched until bytes arrive, so a lie about the size costs little
            scratch = memoryview(bytearray(size))
        elif self._start == 0 or self._start + size <= len(scratch) > self._end:
            return
        scratch[:left] = bytes(self._scratch[self._start : self._end])
        self._scratch, self._start, self._end = scratch, 0, left


#: Stands for a buffer that is still to be filled.
_EMPTY = bytearray()


def _closed(block: int, offset: int, size: int) -> Incoming:
    raise ProtocolError("a block after the end")


def _fresh(size: int) -> np.ndarray:
    return np.empty(size, np.uint8)
