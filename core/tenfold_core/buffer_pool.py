"""Memory for large arrays, used again once the last array over it is dropped.

The first write to a fresh page costs a page fault for each 4 KB, several times the copy itself, and the allocator
returns large blocks to the system as soon as they are freed. Sizes repeat in training, so memory is kept by exact size.
Each link and the HTTP/2 server have a pool for what comes in the socket; the process has one for copies of fetched
values and for variables.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Smaller arrays come from the allocator, which keeps small blocks itself.
SMALLEST = 1 << 20


class _Returned(deque["Bytes"]):
    """Blocks that finalizers gave back."""

    #: Their pool has ended: what comes back from now on is freed.
    closed = False


class _BlockInUse:
    """One block in use. Arrays made of it keep it alive; its end gives the block back."""

    __slots__ = ("__array_interface__", "_block", "_returned")

    def __init__(self, block: Bytes, returned: _Returned) -> None:
        self.__array_interface__ = block.__array_interface__
        self._block, self._returned = block, returned

    def __del__(self) -> None:
        # also called from within the garbage collector: no lock, no accounting
        if not self._returned.closed:
            self._returned.append(self._block)


class BufferPool:
    """Keeps up to `keep` unused bytes. Any thread may use it; nothing here waits."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        #: Blocks that finalizers gave back and that are not in `_free` yet.
        self._returned = _Returned()
        #: Held by the thread that works on the fields below. Only tried, never waited for: the garbage collector may
        #: run a finalizer that comes back here.
        self._lock = threading.Lock()
        #: Size → unused blocks of that size. The size that was allocated last is the last one.
        self._free: dict[int, list[Bytes]] = {}
        self._free_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Unused bytes."""
        with self._lock:
            self._collect()
            return self._free_bytes

    def allocate(self, nbytes: int) -> Bytes:
        """Writable memory of that size, flat, with anything in it. Raises MemoryError.

        A thread that meets another one here gets fresh memory.
        """
        if nbytes < SMALLEST:
            return np.empty(nbytes, np.uint8)
        block: Bytes | None = None
        if self._lock.acquire(blocking=False):
            try:
                if self._returned:
                    self._collect()
                blocks = self._free.pop(nbytes, None)
                if blocks:
                    block = blocks.pop()
                    self._free_bytes -= nbytes
                    if blocks:
                        self._free[nbytes] = blocks
            finally:
                self._lock.release()
        if block is None:
            block = np.empty(nbytes, np.uint8)
        return np.asarray(_BlockInUse(block, self._returned))

    def copy(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A writable copy of `array`."""
        if array.nbytes < SMALLEST or array.dtype.hasobject:
            return array.copy()
        copied: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, self.allocate(array.nbytes))
        copied[...] = array
        return copied

    def clear(self) -> None:
        """Frees the unused blocks."""
        if self._lock.acquire(blocking=False):
            try:
                self._returned.clear()
                self._free.clear()
                self._free_bytes = 0
            finally:
                self._lock.release()

    def close(self) -> None:
        """Keeps nothing from now on, neither what is unused nor what comes back later."""
        self._returned.closed = True
        self._keep = 0
        self.clear()

    def _collect(self) -> None:
        """Sorts in what came back, and frees what is beyond the bound: the sizes first that were allocated longest ago.

        Under the lock.
        """
        while self._returned:
            block = self._returned.popleft()
            if block.nbytes <= self._keep:
                self._free.setdefault(block.nbytes, []).append(block)
                self._free_bytes += block.nbytes
        while self._free_bytes > self._keep:
            size, blocks = next(iter(self._free.items()))
            blocks.pop()
            self._free_bytes -= size
            if not blocks:
                del self._free[size]


#: The process's pool.
_pool = BufferPool(128 << 20)
#: A writable copy of an array, in memory of the process's pool.
copy = _pool.copy
#: Writable memory of the process's pool, with anything in it.
allocate = _pool.allocate
