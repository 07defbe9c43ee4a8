"""Shared memory of one direction of a link: the sender's arena, and the receiver's view of it.

An arena is one anonymous memory file (memfd), passed to the peer once, without a name and so without a trace: when the
last process that maps it is gone, so is the memory. It has its full size from the start, but takes memory only for the
part [0, warm) that was written once; a background thread warms more of it when a request did not fit, and that
request travels in the socket: no step ever pays for fresh pages, which cost ten times a copy (faults.py).

    free ──allocate──► held ──send──► lent ──RELEASE from the peer──► free
                        └──dropped unsent──► free

All methods may be called from any thread; finalizers take no lock.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import threading
import time
import weakref
from collections import deque
from itertools import count
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_link.memory import prefault
from tenfold_link.memory.extents import Extents, pages
from tenfold_link.wire.frames import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold_link.memory.leases import Lease
    from tenfold_link.wire.buffers import Incoming


Bytes: TypeAlias = "np.ndarray[Any, np.dtype[np.uint8]]"

#: The peer can neither shrink the file under our feet, nor can we under its.
_SEALS = fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL
#: A mapping costs address space only, of which there is plenty; but not without end.
_LARGEST_MAPPING = 1 << 40


#: Of a block's number: it lies in the sender's commons (commons.py), not in the link's own arena.
COMMONS = 1 << 63

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
        """From here on the peer holds the block. Raises ValueError for another link's block, or one sent before."""
        if self._arena is not arena:
            raise ValueError("A shared block is sent once, over the link that gave it.")
        self._arena = None
        arena.lent[self.id] = arena.held.pop(self.id)

    def __del__(self) -> None:
        if self._arena is not None:
            self._arena.dropped.append(self.id)


class Arena:
    """The sending end. Lives as long as its link; memory that a peer or a caller still maps outlives it."""

    def __init__(self, size: int, keep: int, name: str = "tenfold-link") -> None:
        """`size` bounds it for good; `keep` bytes stay warm when it is idle. Raises OSError where there is no memfd."""
        self.size, self._keep = pages(size), keep
        fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        try:
            os.ftruncate(fd, self.size)
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, _SEALS)
            self._map: mmap.mmap | None = mmap.mmap(fd, self.size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE)
            self._fd = _read_only(fd)
        finally:
            os.close(fd)
        #: All of it. Only [0, warm) may be touched.
        self.memory: Bytes = np.frombuffer(self._map, np.uint8)
        #: Blocks dropped unsent, to be freed at the next chance: finalizers must not wait for a lock.
        self.dropped: deque[int] = deque()
        #: Called, from the warming thread, when there is more room. For tests.
        self.on_grown: Callable[[], None] | None = None
        #: Taken again where a finalizer finds the link broken, and closes it.
        self._lock = threading.RLock()
        self._extents = Extents()
        self._numbers = count(1)
        #: Block → (offset, size): those that a caller here fills, and those that the peer has. Disjoint.
        self.held: dict[int, tuple[int, int]] = {}
        self.lent: dict[int, tuple[int, int]] = {}
        #: Variables in the commons that the peer reads, by a number that begins with COMMONS.
        self.leases: dict[int, Lease] = {}
        #: End of what was written once.
        self._warm = 0
        #: Bytes that were asked for in vain and are not warm yet.
        self._wanted = 0
        self._warming = False
        self._last_used = time.monotonic()
        self._closed = False

    @property
    def warm(self) -> int:
        """Bytes that take memory."""
        return self._warm

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
        """The file, read-only, for mapping more of it; as long as nobody has taken it."""
        return self._fd

    def copy_descriptor(self) -> int:
        """As `take_descriptor`, any number of times."""
        return os.dup(self._fd)

    def holds(self, block: SharedBlock) -> bool:
        """Whether the block is one of this arena's that nobody else took over."""
        return block._arena is self

    def lease(self, lease: Lease) -> tuple[int, int]:
        """Lends what lies in the commons to the peer, until it returns it: (number, offset) as a frame says it."""
        assert lease.home.block is not None
        number = COMMONS | next(self._numbers)
        self.leases[number] = lease
        return number, lease.home.block.offset + lease.offset

    def allocate(self, nbytes: int) -> SharedBlock | None:
        """A block of `nbytes`, or None where none is free and warm; more will be, soon, within the arena's size."""
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
                if number & COMMONS:
                    if self.leases.pop(number, None) is None:
                        raise ProtocolError(f"the release of block {number}, which was not lent")
                    continue
                extent = self.lent.pop(number, None)
                if extent is None:
                    raise ProtocolError(f"the release of block {number}, which was not lent")
                self._extents.give(*extent)

    def reserve(self, nbytes: int) -> None:
        """Warms until `nbytes` are, within the arena's size. Blocks; for a start without a slow first transfer."""
        with self._lock:
            missing = min(pages(nbytes), self.size) - self._warm
        if missing > 0:
            self._extend(missing)

    def close(self) -> None:
        """No more blocks. The memory goes when the peer and all holders of blocks have dropped it."""
        with self._lock:
            self._closed = True
            self._extents = Extents()
            self.memory, self._map = _NOTHING, None
            self.leases.clear()
        if self._fd >= 0:
            os.close(self.take_descriptor())

    # -- called by faults.py, on its thread --------------------------------------------------------------------------

    def warm_up(self) -> None:
        """Makes the room that was asked for. Takes as long as the memory takes."""
        while True:
            with self._lock:
                wanted, self._wanted = self._wanted, 0
                if not wanted or self._closed:
                    self._warming = False
                    return
            self._extend(wanted)
            if self.on_grown is not None:
                self.on_grown()

    def trim(self, now: float) -> bool:
        """Gives back what is free beyond `keep` if the arena was idle; False if there is nothing to give, ever."""
        with self._lock:
            if self._map is None:
                return False
            if now - self._last_used < prefault.IDLE_SECONDS:
                return True
            start = self._extents.cut(self._warm, self._keep)
            end, self._warm = self._warm, start
            if start < end:
                self._map.madvise(mmap.MADV_REMOVE, start, end - start)
            return self._warm > self._keep

    # -- parts -------------------------------------------------------------------------------------------------------

    def _want(self, size: int) -> None:
        if self._closed or self._warm + self._wanted + size > self.size:
            return
        self._wanted += size
        if not self._warming:
            self._warming = True
            prefault.warm_up(self)

    def _extend(self, size: int) -> None:
        """Writes to `size` fresh bytes, a piece at a time, and frees each piece."""
        while size > 0:
            with self._lock:
                memory = self.memory
                start = self._warm
                piece = min(size, prefault.PIECE, self.size - start)
                if piece <= 0 or self._closed:
                    return
                # nobody else may warm or trim this piece meanwhile
                self._warm += piece
            memory[start : start + piece : mmap.PAGESIZE] = 0
            with self._lock:
                if not self._closed:
                    self._extents.give(start, piece)
            size -= piece


class Loan:
    """One block of the peer's arena in use here. Arrays made of it keep it alive; its end sends the block back."""

    __slots__ = ("__array_interface__", "_block", "_give_back", "mapping")

    def __init__(
        self, mapping: _Mapping, address: int, size: int, block: int, give_back: Callable[[int], None]
    ) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}
        self.mapping, self._block, self._give_back = mapping, block, give_back

    def __del__(self) -> None:
        self._give_back(self._block)


class _Mapping:
    """A peer's memory file, mapped read-only. Takes over the descriptor."""

    __slots__ = ("__weakref__", "address", "descriptor", "memory", "size")

    def __init__(self, fd: int, size: int) -> None:
        self.descriptor = -1
        self.memory: Bytes = np.frombuffer(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ), np.uint8)
        self.address: int = self.memory.__array_interface__["data"][0]
        self.size = size
        self.descriptor = fd

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


#: (device, inode) → the mapping of it, so that a process with many links to a peer maps its commons once.
_mappings: weakref.WeakValueDictionary[tuple[int, int], _Mapping] = weakref.WeakValueDictionary()


def _mapping(fd: int, size: int | None) -> _Mapping:
    """Maps the file, all of it without a `size`; takes over `fd`. Raises ProtocolError for one that may shrink."""
    try:
        try:
            seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        except OSError:
            seals = 0
        status = os.fstat(fd)
        size = status.st_size if size is None else size
        if not 0 < size <= _LARGEST_MAPPING:
            raise ProtocolError(f"an arena of {size} bytes")
        if not seals & fcntl.F_SEAL_SHRINK or status.st_size < size:
            raise ProtocolError("an arena that can shrink")
        key = (status.st_dev, status.st_ino)
        found = _mappings.get(key)
        if found is None or found.size != size:
            found = _mappings[key] = _Mapping(fd, size)
            fd = -1
        return found
    except (OSError, ValueError) as error:
        raise ProtocolError(f"an arena that cannot be mapped: {error}") from error
    finally:
        if fd >= 0:
            os.close(fd)


class ArenaReader:
    """The receiving end: maps the peer's arena once and hands out read-only views of its blocks."""

    def __init__(self, fd: int, size: int, give_back: Callable[[int], None], commons: int = -1) -> None:
        """Takes over `fd`, and the descriptor of the peer's `commons` if it has one.

        `give_back(block)` is called once a block, from any thread, also by the garbage collector. Raises ProtocolError
        for a file that could be taken away under our feet.
        """
        try:
            self._arena = _mapping(fd, size)
        except BaseException:
            if commons >= 0:
                os.close(commons)
            raise
        self._commons = _mapping(commons, None) if commons >= 0 else None
        self._give_back = give_back

    def open(self, block: int, offset: int, size: int) -> Incoming:
        """Block `block` as a read-only array. Raises ProtocolError where it does not lie in the arena."""
        mapping = self._commons if block & COMMONS else self._arena
        if mapping is None or offset + size > mapping.size:
            length = mapping.size if mapping is not None else 0
            raise ProtocolError(f"a block at {offset} of {size} bytes in an arena of {length}")
        return np.asarray(Loan(mapping, mapping.address + offset, size, block, self._give_back))


def weakly(give_back: Callable[[int], None]) -> Callable[[int], None]:
    """The bound method `give_back` without its hold on its object, for ArenaReader.

    The garbage collector does not look through arrays, so a link whose user keeps what came over it would never go.
    """
    method = weakref.WeakMethod(give_back)

    def call(block: int) -> None:
        alive = method()
        if alive is not None:
            alive(block)

    return call


def _read_only(fd: int) -> int:
    """The same file for the peer, which has no business writing to it."""
    try:
        return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return os.dup(fd)
