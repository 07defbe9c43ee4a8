"""Shared memory of one direction of a link, the sending end: blocks that are filled here and read by the peer.

An arena is one anonymous memory file (memfd), passed to the peer once, without a name and so without a trace: when the
last process that maps it is gone, so is the memory. It has its full size from the start, but takes memory only for the
part [0, resident) that was written once. A request that does not fit travels in the socket, and a background thread
makes more of the arena resident (prefault.py): no step pays for fresh pages, which cost ten times a copy. The receiving
end is arena_reader.py.

    free ──allocate──► held ──send──► lent ──RELEASE from the peer──► free
                        └──dropped unsent──► free

All methods may be called from any thread; finalizers take no lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
import threading
import time
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_link.memory import prefault
from tenfold_link.memory.charges import CHARGES, Charges
from tenfold_link.memory.extents import Extents, pages
from tenfold_link.memory.remains import REMAINS
from tenfold_link.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold_core.variable_memory import MemoryLease

Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

#: Neither end can shrink the file while the other reads it.
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL

#: The bit of a block's number that says: it lies with the sender's variables (shared_variables.py), not in the link's
#: own arena.
VARIABLE = 1 << 63

_NOTHING: Bytes = np.empty(0, np.uint8)


class SharedBlock:
    """Part of an arena that its holder fills and sends, once. Free again if it is dropped unsent."""

    __slots__ = ("_arena", "array", "id", "nbytes", "offset")

    def __init__(self, arena: Arena, number: int, array: Bytes, offset: int) -> None:
        self._arena: Arena | None = arena
        self.id, self.offset, self.nbytes = number, offset, array.nbytes
        #: The block's memory, writable, flat uint8. Must not be written to once it was sent.
        self.array = array

    def lend(self, arena: Arena) -> None:
        """The peer holds the block from now on. Raises ValueError for another link's block, or one sent before."""
        if self._arena is not arena:
            raise ValueError("A shared block is sent once, over the link that gave it.")
        self._arena = None
        arena.lent[self.id] = arena.held.pop(self.id)

    def __del__(self) -> None:
        if self._arena is not None:
            self._arena.dropped.append(self.id)


class Arena:
    """The sending end. Lives as long as its link; memory that a peer or a caller still maps outlives it."""

    def __init__(self, size: int, keep: int, name: str = "tenfold-link", charges: Charges = CHARGES) -> None:
        """`size` is its bound; `keep` bytes stay resident when it is idle. Raises OSError where there is no memfd."""
        self._charges = charges
        self.size, self._keep = pages(size), keep
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, self.size)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
            self._map: mmap.mmap | None = mmap.mmap(fd, self.size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            #: The file opened anew, to see at the end whether the peer still has it (remains.py).
            self._file = os.open(f"/proc/self/fd/{fd}", os.O_RDWR | os.O_CLOEXEC)
            self._fd = _read_only(fd)
        finally:
            os.close(fd)
        #: All of it. Only [0, resident) may be touched.
        self.memory: Bytes = np.frombuffer(self._map, np.uint8)
        #: Blocks dropped unsent, to be freed at the next chance: finalizers must not wait for a lock.
        self.dropped: deque[int] = deque()
        #: Called, from the prefault thread, when there is more room. For tests.
        self.on_grown: Callable[[], None] | None = None
        #: Taken again where a finalizer finds the link broken, and closes it.
        self._lock = threading.RLock()
        self._extents = Extents()
        self._numbers = count(1)
        #: Block → (offset, size): those that a caller here fills, and those that the peer has. Disjoint.
        self.held: dict[int, tuple[int, int]] = {}
        self.lent: dict[int, tuple[int, int]] = {}
        #: Variables that the peer reads, by a number with the bit VARIABLE.
        self.leases: dict[int, MemoryLease] = {}
        #: End of what was written once.
        self._resident = 0
        #: Bytes of requests that did not fit, until they are resident.
        self._wanted = 0
        self._prefaulting = False
        self._last_used = time.monotonic()
        self._closed = False

    @property
    def resident(self) -> int:
        """Bytes that take memory."""
        return self._resident

    @property
    def taken(self) -> int:
        """Blocks held or lent."""
        return len(self.held) + len(self.lent) - len(self.dropped)

    def take_descriptor(self) -> int:
        """The file for the peer, read-only; the caller closes it. Once."""
        fd, self._fd = self._fd, -1
        return fd

    @property
    def address(self) -> int:
        """Where the memory begins, while it is open."""
        address: int = self.memory.__array_interface__["data"][0]
        return address

    @property
    def descriptor(self) -> int:
        """The file, read-only, for mapping parts of it again, until `take_descriptor`."""
        return self._fd

    def copy_descriptor(self) -> int:
        """As `take_descriptor`, any number of times."""
        return os.dup(self._fd)

    def holds(self, block: object) -> bool:
        """Whether the block is this arena's, and was not sent."""
        return isinstance(block, SharedBlock) and block._arena is self

    def lend_variable(self, lease: MemoryLease) -> tuple[int, int]:
        """Lends a variable in shared memory to the peer, until its RELEASE: (number, offset) as a frame says it."""
        assert lease.memory.block is not None
        number = VARIABLE | next(self._numbers)
        self.leases[number] = lease
        return number, lease.memory.block.offset + lease.offset

    def allocate(self, nbytes: int) -> SharedBlock | None:
        """A block of `nbytes`, or None where none is free and resident; soon there will be, within the arena's size."""
        size = pages(nbytes)
        with self._lock:
            while self.dropped:
                self._extents.give(*self.held.pop(self.dropped.popleft()))
            offset = self._extents.take(size)
            self._last_used = time.monotonic()
            if offset is None:
                self._want(size)
                return None
            number = next(self._numbers)
            self.held[number] = (offset, size)
            return SharedBlock(self, number, self.memory[offset : offset + nbytes], offset)

    def copy_in(self, data: Bytes) -> SharedBlock | None:
        """A block that holds a copy of `data`, or None as for `allocate`."""
        block = self.allocate(data.nbytes)
        if block is not None:
            block.array[:] = data
        return block

    def release(self, blocks: Iterable[int]) -> None:
        """The peer returned them. Raises ProtocolError for a block that it does not hold."""
        with self._lock:
            for number in blocks:
                if number & VARIABLE:
                    if self.leases.pop(number, None) is None:
                        raise ProtocolError(f"the release of block {number}, which was not lent")
                    continue
                extent = self.lent.pop(number, None)
                if extent is None:
                    raise ProtocolError(f"the release of block {number}, which was not lent")
                self._extents.give(*extent)

    def reserve(self, nbytes: int) -> None:
        """Makes `nbytes` resident, within the arena's size. Blocks; for a start without a slow first transfer."""
        with self._lock:
            missing = min(pages(nbytes), self.size) - self._resident
        if missing > 0:
            self._extend(missing)

    def close(self) -> None:
        """No more blocks. The memory goes when the peer and all holders of blocks have dropped it."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            held = sum(size for _, size in (*self.held.values(), *self.lent.values()))
            if held and self._map is not None:
                for offset, size in self._extents.items():
                    self._map.madvise(mmap.MADV_REMOVE, offset, size)
            self._extents = Extents()
            self.memory, self._map = _NOTHING, None
            self.leases.clear()
            self._charges.give(self._resident - held)
            self._resident = 0
        if self._fd >= 0:
            os.close(self.take_descriptor())
        # what the peer holds, or a caller, is taken until it is dropped
        file, self._file = self._file, -1
        REMAINS.leave(file, held, self._charges.give)
        if REMAINS:
            with contextlib.suppress(RuntimeError):  # at the end of the process no thread starts
                prefault.request(self)

    def __del__(self) -> None:
        # of an arena that came to no link
        for fd in (getattr(self, "_fd", -1), getattr(self, "_file", -1)):
            if fd >= 0:
                os.close(fd)

    # -- called by prefault.py, on its thread ------------------------------------------------------------------------

    def prefault(self) -> None:
        """Makes resident what requests did not find. Takes as long as the system takes for the pages."""
        while True:
            with self._lock:
                wanted, self._wanted = self._wanted, 0
                if not wanted or self._closed:
                    self._prefaulting = False
                    return
            self._extend(wanted)
            if self.on_grown is not None:
                self.on_grown()

    def trim(self, now: float) -> bool:
        """Gives back what is free beyond `keep` if the arena was idle; False once there is nothing to give."""
        with self._lock:
            if self._map is None:
                return False
            if now - self._last_used < prefault.IDLE_SECONDS:
                return True
            start = self._extents.cut(self._resident, self._keep)
            end, self._resident = self._resident, start
            if start < end:
                self._charges.give(end - start)
                self._map.madvise(mmap.MADV_REMOVE, start, end - start)
            return self._resident > self._keep

    # -- parts -------------------------------------------------------------------------------------------------------

    def _want(self, size: int) -> None:
        if self._closed or self._resident + self._wanted + size > self.size:
            return
        self._wanted += size
        if not self._prefaulting:
            self._prefaulting = True
            prefault.request(self)

    def _extend(self, size: int) -> None:
        """Writes to `size` fresh bytes, a piece at a time, and frees each piece."""
        while size > 0:
            with self._lock:
                memory = self.memory
                start = self._resident
                piece = min(size, prefault.PIECE, self.size - start)
                if piece <= 0 or self._closed or not self._charges.take(piece):
                    return
                # no other thread may prefault or trim this piece meanwhile
                self._resident += piece
            memory[start : start + piece : mmap.PAGESIZE] = 0
            with self._lock:
                if not self._closed:
                    self._extents.give(start, piece)
            size -= piece


def _read_only(fd: int) -> int:
    """The same file for the peer, which may not write to it, nor open it anew to do so: only its owner may change the
    mode. Raises OSError where the system cannot open it like that; the link goes on without shared memory.
    """
    read_only = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fchmod(fd, 0o400)
    except BaseException:
        os.close(read_only)
        raise
    return read_only
