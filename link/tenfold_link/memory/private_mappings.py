"""Large fetched values that their receiver may write to: shared memory mapped privately, where that spares a copy.

A variable in shared memory, or a block that a peer lent, stays as it is while a reader holds it
(core/variable_memory.py, arena.py). So its memory file is mapped once more, privately: pages are shared until the
receiver writes to one, which the kernel copies then. A mapping that comes back unwritten is handed out again, with its
pages in place. Where mappings come back written, the next values are copied, because the kernel copies single pages
slower than one copy of all. What cannot be mapped is copied into pooled memory. Used by session/fetches.py,
session/link_master.py and worker/execution.py.
"""

from __future__ import annotations

import mmap
import os
import weakref
from collections import deque
from typing import Any

import numpy as np

from tenfold_core import buffer_pool
from tenfold_core.variable_memory import LENDABLE, MemoryLease, VariableMemory, lend, memory_owner
from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena_reader import PeerBlock

#: Smaller values are copied: that takes less than mapping them.
MAPPED = 1 << 20
#: Mappings at the same time; each takes a descriptor while it lives.
MOST = 256
#: The part of a memory file that may be mapped; the rest is left to the file's owner.
_PART = 4

#: Mappings of one file that are kept for the next value at the same place.
_KEPT = 4
#: Values of a file that are copied after one mapping of it was written to.
_COPIES_AFTER_WRITE = 64

#: One item for each mapping that may still be made. Finalizers append, which is atomic.
_permits: deque[None] = deque([None] * MOST)


class _Mapping:
    """A private mapping of part of a memory file; one of MOST."""

    __slots__ = ("_permits", "address", "memory", "nbytes")

    def __init__(self, descriptor: int, offset: int, nbytes: int) -> None:
        """Raises OSError, ValueError and IndexError where there can be none."""
        self.memory: mmap.mmap | None = None
        # its own reference: a finalizer may run when the module is gone
        self._permits = _permits
        _permits.pop()
        try:
            prot = mmap.PROT_READ | mmap.PROT_WRITE
            self.memory = mmap.mmap(descriptor, nbytes, mmap.MAP_PRIVATE, prot, offset=offset)
        except BaseException:
            _permits.append(None)
            raise
        self.address: int = np.frombuffer(self.memory, np.uint8).__array_interface__["data"][0]
        self.nbytes = nbytes

    def __del__(self) -> None:
        if self.memory is not None:
            self._permits.append(None)

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


class _FileMappings:
    """The private mappings of one memory file."""

    __slots__ = ("copies_left", "in_use", "kept", "returned")

    def __init__(self) -> None:
        #: Bytes of each mapping that is in use.
        self.in_use: dict[int, int] = {}
        #: Mappings that came back, with their offset. Appended to by finalizers.
        self.returned: deque[tuple[int, _Mapping]] = deque()
        #: (offset, bytes) → those that can be handed out again, oldest first.
        self.kept: dict[tuple[int, int], _Mapping] = {}
        #: So many values are copied before one is mapped again.
        self.copies_left = 0

    def take(self, descriptor: int, offset: int, nbytes: int, size: int) -> _Mapping | None:
        """A mapping of that part of the file, which has `size` bytes; None where a copy is better."""
        while True:
            try:
                at, found = self.returned.popleft()
            except IndexError:
                break
            if found.written:
                self.copies_left = _COPIES_AFTER_WRITE
            elif len(self.kept) < _KEPT or self.kept.pop(next(iter(self.kept)), None) is not None:
                self.kept[at, found.nbytes] = found
        if self.copies_left:
            self.copies_left -= 1
            return None
        if sum(list(self.in_use.values())) + nbytes > size // _PART:
            return None
        mapping = self.kept.pop((offset, nbytes), None)
        if mapping is None:
            try:
                mapping = _Mapping(descriptor, offset, nbytes)
            except (OSError, ValueError, IndexError):
                return None
        return mapping


#: A peer's mapping, or our arena of variables → the private mappings of its file. Goes with the file.
_files: weakref.WeakKeyDictionary[Any, _FileMappings] = weakref.WeakKeyDictionary()


class MappedValue:
    """A mapping in use, and the hold on what lies there. Goes with the last array over it."""

    __slots__ = ("__array_interface__", "_file", "_held", "_mapping", "_offset")

    def __init__(
        self, file: _FileMappings, offset: int, mapping: _Mapping, inset: int, nbytes: int, held: object
    ) -> None:
        data = mapping.address + inset, False
        self.__array_interface__ = {"data": data, "shape": (nbytes,), "typestr": "|u1", "version": 3}
        self._file, self._offset, self._mapping, self._held = file, offset, mapping, held
        file.in_use[id(self)] = nbytes

    def __del__(self) -> None:
        self._file.in_use.pop(id(self), None)
        self._file.returned.append((self._offset, self._mapping))


def snapshot(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """`value` as it is now and will stay, read-only and without a copy; None where only a copy can be that."""
    if value.nbytes < LENDABLE:
        return None
    if type(memory_owner(value)) in (MemoryLease, PeerBlock):
        return value
    lease = lend(value)
    if lease is None or value.dtype.hasobject:
        return None
    stays: np.ndarray[Any, Any] = lease.array().view(value.dtype).reshape(value.shape)
    return stays


def writable(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """`value` for a receiver that may write to it, and that no later write of others reaches."""
    if value.flags.writeable:
        return value
    if value.nbytes >= MAPPED and value.flags.c_contiguous:
        mapped = _mapped(value)
        if mapped is not None:
            return mapped
    return buffer_pool.copy(value)


def _mapped(value: np.ndarray[Any, Any]) -> np.ndarray[Any, Any] | None:
    """A private mapping of the memory of `value`; None where there can be none, or a copy is better."""
    held = memory_owner(value)
    address = value.__array_interface__["data"][0]
    if type(held) is VariableMemory:
        held = lend(value)
    if type(held) is MemoryLease:
        arena, block = shared_variables.arena(), held.memory.block
        if block is None:
            held.memory.request_shared(shared_variables.allocate)
            return None
        if arena is None or not arena.holds(block):
            return None
        owner: Any = arena
    elif type(held) is PeerBlock:
        owner = held.mapping
    else:
        return None
    file = _files.get(owner)
    if file is None:
        file = _files.setdefault(owner, _FileMappings())
    nbytes = value.nbytes
    offset = address - owner.address
    inset = offset % mmap.ALLOCATIONGRANULARITY
    mapping = file.take(owner.descriptor, offset - inset, nbytes + inset, owner.size)
    if mapping is None:
        return None
    in_use = MappedValue(file, offset - inset, mapping, inset, nbytes, held)
    mapped: np.ndarray[Any, Any] = np.asarray(in_use).view(value.dtype).reshape(value.shape)
    return mapped
