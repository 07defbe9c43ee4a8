"""Memory for large buffers that come in a socket: used again when the last array over it is dropped.

Fresh memory costs a page fault for each 4 KB, several times the copy; a step that receives the same tensors again and
again gets them into the same memory. Sizes repeat in training, so memory is kept by exact size. One pool a link.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Below this the allocator itself keeps memory at hand.
POOLED = 1 << 20


class _Lease:
    """One piece of memory in use. Arrays made of it keep it alive; its end gives the memory to the pool."""

    __slots__ = ("__array_interface__", "_memory", "_returned")

    def __init__(self, memory: Bytes, returned: deque[Bytes]) -> None:
        self.__array_interface__ = memory.__array_interface__
        self._memory, self._returned = memory, returned

    def __del__(self) -> None:
        # also called from within the garbage collector: no lock, no accounting
        self._returned.append(self._memory)


class ReceivePool:
    """Keeps up to `keep` bytes that nobody uses. `allocate` by one thread at a time; arrays are dropped by any."""

    def __init__(self, keep: int) -> None:
        self._keep = keep
        #: What arrays gave back and was not sorted yet.
        self._returned: deque[Bytes] = deque()
        #: Size → memory of that size. The size that was used last is the last one.
        self._free: dict[int, list[Bytes]] = {}
        self._free_bytes = 0

    @property
    def free_bytes(self) -> int:
        """Bytes that are kept for later."""
        self._sort()
        return self._free_bytes

    def allocate(self, size: int) -> Bytes:
        """Writable memory of `size` bytes with anything in it. Raises MemoryError."""
        if size < POOLED:
            return np.empty(size, np.uint8)
        self._sort()
        free = self._free.pop(size, None)
        if free:
            memory = free.pop()
            self._free_bytes -= size
            if free:
                self._free[size] = free
        else:
            memory = np.empty(size, np.uint8)
        return np.asarray(_Lease(memory, self._returned))

    def clear(self) -> None:
        """Gives up what nobody uses. By the thread that allocates."""
        self._returned.clear()
        self._free.clear()
        self._free_bytes = 0

    def _sort(self) -> None:
        while self._returned:
            memory = self._returned.popleft()
            if memory.nbytes > self._keep:
                continue
            self._free.setdefault(memory.nbytes, []).append(memory)
            self._free_bytes += memory.nbytes
        while self._free_bytes > self._keep:
            size, free = next(iter(self._free.items()))
            free.pop()
            self._free_bytes -= size
            if not free:
                del self._free[size]
