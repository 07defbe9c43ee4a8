"""Memory of variables' values, and its readers: large values are lent to readers, not copied for them.

Sending or fetching a large value lends its `VariableMemory`. A writer that finds a reader moves the variable to other
memory first, so that every reader keeps one version for good. The variables (tenfold_kernels.resources.state) make the
memory, the links lend it (tenfold_link.wire.packing). Where a link has shared memory, it asks for the value to be there
(tenfold_link.memory.shared_variables), and peers on this host read it in place. Decision 0012.

    current ──lend──► current, lent ──the last reader is done──► current
                       └──write──► replaced: not written to any more, freed with its last reader
"""

from __future__ import annotations

import math
import sys
import weakref
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold_core import buffer_pool
from tenfold_core.reference_counts import ALWAYS_HELD, reference_count, reference_counts_are_exact

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Sequence

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

_EXACT = reference_counts_are_exact()
#: Smaller values have none: copying them costs less than keeping account of their readers. Nor has any value where the
#: readers cannot be counted.
LENDABLE = 128 << 10 if _EXACT else sys.maxsize


class SharedMemoryBlock(Protocol):
    """Part of a memory file that peers map. Freed when it is dropped."""

    #: The block's memory, writable, flat.
    array: Bytes
    #: Where it begins in the file.
    offset: int


class VariableMemory:
    """Memory of one value of a variable. `lock` is the variable's, held by each writer."""

    __slots__ = (
        *("__array_interface__", "__weakref__", "_allocate_shared", "_copied_once", "_copy", "_memory", "_no_room"),
        *("_of", "_token", "block", "current", "lock", "to_be_shared"),
    )

    def __init__(
        self,
        memory: Bytes,
        lock: threading.RLock,
        block: SharedMemoryBlock | None = None,
        allocate_shared: Callable[[int], SharedMemoryBlock | None] | None = None,
    ) -> None:
        """`memory` is flat, writable and used for nothing else; that of `block` if it is shared."""
        self.__array_interface__ = {**memory.__array_interface__, "strides": None}
        self._memory, self.lock, self.block = memory, lock, block
        self._allocate_shared = allocate_shared
        #: Each lease holds it, so its count of references tells the number of readers, and a reader need not say that
        #: it is done.
        self._token = _Token()
        #: It is the variable's value now. Changes under the lock, once.
        self.current = True
        #: A link would lend it if it were in shared memory: the variable moves there when it can.
        self.to_be_shared = False
        self._copied_once = False
        #: The last copy that `lend_copy` made, while some reader has it; and of a copy, the lease of what it is one of.
        self._copy: weakref.ref[VariableMemory] | None = None
        self._of: MemoryLease | None = None
        self._no_room = False

    def request_shared(self, allocate: Callable[[int], SharedMemoryBlock | None]) -> None:
        """A link had to copy the value because it is not in shared memory. The second request counts."""
        self._allocate_shared = allocate
        self.to_be_shared, self._copied_once = self._copied_once, True

    def lend_copy(self, lease: MemoryLease, allocate: Callable[[int], SharedMemoryBlock | None]) -> MemoryLease | None:
        """A lease of a copy in shared memory of what `lease` holds of this memory. All that ask while one of them has
        it get the same copy, so a value is copied once however many links send it. Takes the time of the copy.

        None where `lease` is of a part of the memory, or where no shared memory was free when it was first asked for.
        """
        if self._no_room or lease.nbytes != self._memory.nbytes:
            return None
        copy = self._copy() if self._copy is not None else None
        if copy is None:
            block = allocate(lease.nbytes)
            if block is None:
                # each request makes more room: one is enough, and it is the variable itself that will move there
                self._no_room = True
                return None
            copy = VariableMemory(block.array, self.lock, block, allocate)
            copy.array()[:] = lease.array()
            # it is of no variable: it stays as it is, and so does what it was made of while it is there
            copy.current, copy._of = False, lease
            self._copy = weakref.ref(copy)
        return _lease(copy, copy.array())

    @property
    def lent(self) -> bool:
        """Whether some reader relies on this memory to stay as it is."""
        return reference_count(self._token) > _UNLENT

    def array(self) -> Bytes:
        """The memory, flat and writable. Every array made of it keeps this object alive."""
        return np.asarray(self)

    def tensor(self, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
        """The memory as a writable tensor."""
        count = math.prod(shape) * dtype.itemsize
        return self.array()[:count].view(dtype).reshape(shape)

    def allocate_shared(self, nbytes: int) -> VariableMemory | None:
        """Shared memory for the variable's next value; None where there is none now."""
        allocate = self._allocate_shared
        block = allocate(nbytes) if allocate is not None else None
        return VariableMemory(block.array, self.lock, block, allocate) if block is not None else None


class _Token:
    __slots__ = ()


class MemoryLease:
    """A reader's hold on a variable's memory: while it or an array made of it is alive, the bytes stay as they are."""

    __slots__ = ("__array_interface__", "_token", "memory", "nbytes", "offset")

    def __init__(self, memory: VariableMemory, token: _Token, address: int, nbytes: int) -> None:
        self.memory, self._token, self.nbytes = memory, token, nbytes
        #: Where the bytes begin in the memory.
        self.offset = address - memory.__array_interface__["data"][0]
        self.__array_interface__ = {"data": (address, True), "shape": (nbytes,), "typestr": "|u1", "version": 3}

    def array(self) -> Bytes:
        """The bytes, flat and read-only."""
        return np.asarray(self)


def allocate(nbytes: int, lock: threading.RLock) -> VariableMemory:
    """Memory in this process only, with anything in it."""
    return VariableMemory(buffer_pool.allocate(nbytes), lock)


def memory_owner(value: Any) -> Any:
    """What an array's memory belongs to, if that is not an array itself: a VariableMemory, a lease, a peer's block."""
    while type(value) is np.ndarray:
        value = value.base
    return value


def lend(value: np.ndarray[Any, Any]) -> MemoryLease | None:
    """A lease of the bytes of `value`. None where they are no variable's, not contiguous, or just being written to.

    Never blocks.
    """
    memory = memory_owner(value)
    if type(memory) is MemoryLease:
        return memory if memory.nbytes == value.nbytes else _lease(memory.memory, value)
    if type(memory) is not VariableMemory or not value.flags.c_contiguous:
        return None
    if not memory.current:
        # its variable has moved on: there are no writers
        return _lease(memory, value)
    if not memory.lock.acquire(blocking=False):
        return None
    try:
        return _lease(memory, value)
    finally:
        memory.lock.release()


def _lease(memory: VariableMemory, value: np.ndarray[Any, Any]) -> MemoryLease:
    return MemoryLease(memory, memory._token, value.__array_interface__["data"][0], value.nbytes)


class _UnlentMemory:
    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token = _Token()

    def count(self) -> int:
        return reference_count(self._token)


#: How many references a token has that no lease holds; measured, because interpreters differ.
_UNLENT = _UnlentMemory().count() if _EXACT else ALWAYS_HELD
