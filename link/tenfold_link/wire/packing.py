"""From a message to the pieces that a socket takes: small ones joined, large ones in the arena or left where they are.

Both ends of a link send through a Packer. What the peer would refuse is refused here first, so that an honest mistake
costs a call and not the link.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core import buffer_pool, errors
from tenfold_core.traffic import Traffic
from tenfold_core.variable_memory import LENDABLE, MemoryLease, lend
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import Arena, SharedBlock
from tenfold_link.wire.frames import MAGIC, PREFIX, ROW, SMALL
from tenfold_link.wire.spread import LEAST, SPREAD, Spread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_link.link_settings import LinkSettings
    from tenfold_link.wire.buffers import Outgoing

#: What goes to the socket, in order.
Piece: TypeAlias = "bytes | memoryview | Spread"
#: Pieces given to the kernel at a time.
PIECES = 64


class Packer:
    """`arena` is None where the link has no shared memory; `traffic` counts what is packed. Any thread."""

    def __init__(
        self,
        settings: LinkSettings,
        arena: Arena | None,
        traffic: Traffic | None = None,
        *,
        lends_variables: bool = True,
        spreads: bool = False,
    ) -> None:
        """`lends_variables`: the peer of an arena has our variables' file, too. `spreads`: large buffers go over
        further connections of the link (streams.py)."""
        self._spreads = spreads
        self._lends = lends_variables and arena is not None
        self._settings = settings
        self._traffic = traffic if traffic is not None else Traffic()
        self._arena = arena
        self._threshold = settings.shared_threshold

    def pack(
        self, kind: int, method: int = 0, call: int = 0, header: bytes = b"", buffers: Sequence[Outgoing] = ()
    ) -> list[Piece]:
        """The frame's pieces; never empty. Copies what goes by shared memory, which takes the time of the copy.

        Raises InvalidArgumentError for a buffer that cannot be sent, ResourceExhaustedError for a frame that the peer
        would refuse. Nothing was sent then.
        """
        if not buffers:
            if len(header) > self._settings.header_bytes:
                raise self._too_large("header", len(header), self._settings.header_bytes)
            self._traffic.sent += PREFIX.size + len(header)
            return [PREFIX.pack(MAGIC, kind, 0, method, len(header), 0, call) + header]
        return self._pack(kind, method, call, header, buffers)

    def stage(self, buffer: Outgoing) -> Outgoing:
        """What to send for `buffer`, which may change afterwards: a lease of it where it is a variable's value,
        else a private copy, made so that sending it costs no second one. Errors as for `pack`.
        """
        if isinstance(buffer, (SharedBlock, MemoryLease)):
            return buffer
        if type(buffer) is np.ndarray and buffer.nbytes >= LENDABLE and (lease := lend(buffer)) is not None:
            if not self._lends or buffer.nbytes < self._threshold or lease.memory.block is not None:
                return lease
            # the variable moves to shared memory at a later read or write: until then one copy there serves all links,
            # and where there is no room for it the value itself goes by the socket
            lease.memory.request_shared(shared_variables.allocate)
            copied = lease.memory.lend_copy(lease, shared_variables.allocate)
            return copied if copied is not None else lease
        data = _flat(buffer)
        if self._arena is not None and data.nbytes >= self._threshold:
            block = self._arena.copy_in(data)
            if block is not None:
                return block
        return buffer_pool.copy(data)

    def allocate(self, nbytes: int) -> SharedBlock | None:
        """A block to produce into; None where the link or its arena has none."""
        return self._arena.allocate(nbytes) if self._arena is not None else None

    def _pack(self, kind: int, method: int, call: int, header: bytes, buffers: Sequence[Outgoing]) -> list[Piece]:
        settings = self._settings
        if len(buffers) > settings.buffers_per_frame:
            raise self._too_large("number of buffers", len(buffers), settings.buffers_per_frame)
        if len(header) > settings.header_bytes:
            raise self._too_large("header", len(header), settings.header_bytes)
        head = [PREFIX.pack(MAGIC, kind, 0, method, len(header), len(buffers), call)]
        body: list[Piece] = []
        blocks: list[SharedBlock] = []
        leases: list[int] = []
        inline = shared = 0
        for buffer in buffers:
            data = self._place(buffer)
            if isinstance(data, MemoryLease):
                assert self._arena is not None
                number, offset = self._arena.lend_variable(data)
                leases.append(number)
                head.append(ROW.pack(data.nbytes, number, offset))
                shared += data.nbytes
            elif isinstance(data, SharedBlock):
                blocks.append(data)
                head.append(ROW.pack(data.nbytes, data.id, data.offset))
                shared += data.nbytes
            else:
                size = len(data)
                inline += size
                spread = self._spreads and size >= LEAST
                head.append(ROW.pack(size, SPREAD if spread else 0, 0))
                body.append(Spread(memoryview(data)) if spread else data)
        if inline > settings.frame_bytes:
            if self._arena is not None:
                self._arena.release(leases)
            raise self._too_large("size of a frame", inline, settings.frame_bytes)
        for block in blocks:
            assert self._arena is not None
            block.lend(self._arena)
        head.append(header)
        self._traffic.sent += PREFIX.size + ROW.size * len(buffers) + len(header) + inline + shared
        if inline <= SMALL:
            return [b"".join((*head, *body))]  # type: ignore[arg-type] # none of them is Spread, they are small
        return [b"".join(head), *body]

    def _place(self, buffer: Outgoing) -> bytes | memoryview | SharedBlock | MemoryLease:
        """A copy in the arena for a large buffer; a small one's bytes; else the buffer's own memory."""
        if isinstance(buffer, MemoryLease):
            if self._lends and buffer.memory.block is not None:
                return buffer
            if self._arena is None or self._lends:
                return memoryview(buffer.array())  # type: ignore[arg-type] # an array is a buffer
            buffer = buffer.array()
        if isinstance(buffer, SharedBlock):
            if self._arena is None:
                raise errors.InvalidArgumentError(None, None, "A shared block cannot go over a link without arena.")
            return buffer
        if isinstance(buffer, (np.ndarray, np.generic)):
            if buffer.nbytes <= SMALL and not buffer.dtype.hasobject:
                return buffer.tobytes()
        elif len(buffer) <= SMALL:
            return bytes(buffer)
        data = _flat(buffer)
        if self._arena is not None and data.nbytes >= self._threshold:
            block = self._arena.copy_in(data)
            if block is not None:
                return block
        return memoryview(data)  # type: ignore[arg-type] # an array is a buffer; NumPy's stubs say so from 3.12 on

    def _too_large(self, what: str, there: int, allowed: int) -> errors.OpError:
        return errors.ResourceExhaustedError(
            None, None, f"The {what} is {there}, and a link takes {allowed} at most. Send it in parts."
        )


def rest_of(piece: Piece, sent: int) -> Piece:
    """What is left of a piece when `sent` bytes of it are out."""
    return piece.after(sent) if isinstance(piece, Spread) else memoryview(piece)[sent:]


def unsent(pieces: list[Piece], sent: int) -> list[Piece]:
    """What is left of `pieces` when `sent` bytes are out."""
    for index, piece in enumerate(pieces):
        if sent < len(piece):
            return [rest_of(piece, sent), *pieces[index + 1 :]]
        sent -= len(piece)
    return []


def _flat(buffer: bytes | bytearray | memoryview | np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.uint8]]:
    """The buffer's memory as flat bytes; a copy where it is not contiguous."""
    if not isinstance(buffer, np.ndarray):
        return np.frombuffer(buffer, np.uint8)
    if buffer.dtype.hasobject:
        raise errors.InvalidArgumentError(None, None, "An array of objects cannot be sent as bytes; encode it.")
    return np.ascontiguousarray(buffer).reshape(-1).view(np.uint8)
