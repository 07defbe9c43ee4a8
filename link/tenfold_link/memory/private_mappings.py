"""Large fetched values for who may write to them: shared memory mapped privately, where that spares the copy.

A variable in the commons, or a block that a peer lent, stays as it is while somebody holds it (lending.py, arena.py).
So its memory file is mapped once more, privately: pages are shared until the holder writes to one, which the kernel
copies then. A mapping that comes back unwritten is handed out again, with its pages in place; where they come back
written, values are copied for a while, because the kernel copies pages slower than we copy all. What cannot be mapped
is copied into recycled memory. Used by session/fetches.py, session/link_master.py and worker/execution.py.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from typing import Any

import numpy as np

from tenfold_core import buffer_pool
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import Loan
from tenfold_link.memory.leases import LENDABLE, Home, Lease, bottom, lend

#: Smaller values are copied: that takes less than mapping them.
MAPPED = 1 << 20
#: Values that are mapped at the same time; each takes a descriptor while it lives.
MOST = 256
#: Of a memory file, that part may be mapped; the rest is for who sends.
_PART = 4

#: Mappings of one file that are kept for the next value at the same place.
_KEPT = 4
#: Values of a file that are copied after one that its holder wrote to.
_SHY = 64

#: One for each mapping that may be made. Finalizers append, which is atomic.
_places: deque[None] = deque([None] * MOST)


class _Map:
    """A private mapping of part of a memory file; one of MOST."""

    __slots__ = ("_places", "address", "memory", "nbytes")

    def __init__(self, descriptor: int, offset: int, nbytes: int) -> None:
        """Raises OSError, ValueError and IndexError where there can be none."""
        self.memory: mmap.mmap | None = None
        # its own reference: a finalizer may run when the module is gone
        self._places = _places
        _places.pop()
        try:
            prot = mmap.PROT_READ | mmap.PROT_WRITE
            self.memory = mmap.mmap(descriptor, nbytes, mmap.MAP_PRIVATE, prot, offset=offset)
        except BaseException:
            _places.append(None)
            raise
        self.address: int = np.frombuffer(self.memory, np.uint8).__array_interface__["data"][0]
        self.nbytes = nbytes

    def __del__(self) -> None:
        if self.memory is not None:
            self._places.append(None)

    @property
    def written(self) -> bool:
        """Whether some page is no longer the file's; True where the system does not tell."""
        first, last = self.address // mmap.PAGESIZE, -(-(self.address + self.nbytes) // mmap.PAGESIZE)
        try:
            descriptor = os.open("/proc/self/pagemap", os.O_RDONLY | os.O_CLOEXEC)
            try:
                entries = np.frombuffer(os.pread(descriptor, 8 * (last - first), 8 * first), np.uint64)
            finally:
                os.close(descriptor)
        except OSError:
            return True
        # bit 63: in memory, 62: swapped, 61: a page of a file
        return len(entries) != last - first or bool(((entries >> 62 != 0) & (entries >> 61 & 1 == 0)).any())


class _File:
    """What is handed out of one memory file."""

    __slots__ = ("alive", "back", "kept", "shy")

    def __init__(self) -> None:
        #: Bytes of each mapping that somebody holds.
        self.alive: dict[int, int] = {}
        #: Mappings that came back, by offset. Appended to by finalizers.
        self.back: deque[tuple[int, _Map]] = deque()
        #: (offset, bytes) → those that can be handed out again, oldest first.
        self.kept: dict[tuple[int, int], _Map] = {}
        #: So many values are copied before one is mapped again.
        self.shy = 0

    def take(self, descriptor: int, offset: int, nbytes: int, size: int) -> _Map | None:
        """A mapping of that part of the file, which has `size` bytes; None where a copy is better."""
        while True:
            try:
                at, found = self.back.popleft()
            except IndexError:
                break
            if found.written:
                self.shy = _SHY
            elif len(self.kept) < _KEPT or self.kept.pop(next(iter(self.kept)), None) is not None:
                self.kept[at, found.nbytes] = found
        if self.shy:
            self.shy -= 1
            return None
        if sum(list(self.alive.values())) + nbytes > size // _PART:
            return None
        mapped = self.kept.pop((offset, nbytes), None)
        if mapped is None:
            try:
                mapped = _Map(descriptor, offset, nbytes)
            except (OSError, ValueError, IndexError):
                return None
        return mapped


#: A peer's mapping, or our commons → what is handed out of it. Goes with the file.
_files: weakref.WeakKeyDictionary[Any, _File] = weakref.WeakKeyDictionary()


class _Private:
    """A mapping in somebody's hands, and the hold on what lies there. Goes with the last array over it."""

    __slots__ = ("__array_interface__", "_file", "_hold", "_map", "_offset")

    def __init__(self, file: _File, offset: int, map: _Map, inset: int, nbytes: int, hold: object) -> None:
        data = map.address + inset, False
        self.__array_interface__ = {"data": data, "shape": (nbytes,), "typestr": "|u1", "version": 3}
        self._file, self._offset, self._map, self._hold = file, offset, map, hold
        file.alive[id(self)] = nbytes

    def __del__(self) -> None:
        self._file.alive.pop(id(self), None)
        self._file.back.append((self._offset, self._map))


def pinned(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """`value` as it is now and will stay, read-only and without a copy; None where only a copy can be that."""
    if value.nbytes < LENDABLE:
        return None
    if type(bottom(value)) in (Lease, Loan):
        return value
    lease = lend(value)
    if lease is None or value.dtype.hasobject:
        return None
    stays: np.ndarray[Any, Any] = lease.array().view(value.dtype).reshape(value.shape)
    return stays


def own(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`value` for somebody who may write to it, and whom no later write by others reaches."""
    if value.flags.writeable:
        return value
    if value.nbytes >= MAPPED and value.flags.c_contiguous:
        mapped = _mapped(value)
        if mapped is not None:
            return mapped
    return buffer_pool.copy(value)


def _mapped(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """The private mapping of what `value` lies in."""
    held = bottom(value)
    address = value.__array_interface__["data"][0]
    if type(held) is Home:
        held = lend(value)
    if type(held) is Lease:
        arena, block = shared_variables.get(), held.home.block
        if block is None:
            held.home.ask()
            return None
        if arena is None or not arena.holds(block):
            return None
        owner: Any = arena
    elif type(held) is Loan:
        owner = held.mapping
    else:
        return None
    file = _files.get(owner)
    if file is None:
        file = _files.setdefault(owner, _File())
    nbytes = value.nbytes
    offset = address - owner.address
    beside = offset % mmap.ALLOCATIONGRANULARITY
    taken = file.take(owner.descriptor, offset - beside, nbytes + beside, owner.size)
    if taken is None:
        return None
    private = _Private(file, offset - beside, taken, beside, nbytes, held)
    mapped: np.ndarray[Any, Any] = np.asarray(private).view(value.dtype).reshape(value.shape)
    return mapped
