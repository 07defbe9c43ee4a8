"""Memory for large arrays that are handed out, used again once nobody holds them.

The first write to fresh pages costs several times the copy itself, and the allocator returns large blocks to the
system as soon as they are freed. A program that fetches the same large tensor in every step gets the same few blocks
in turn instead. Used by session/link_master.py for what it copies out of shared memory, and by the workers for what is
fetched.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Smaller arrays come from the allocator, which keeps small blocks itself.
SMALLEST = 1 << 20


class _Loan:
    """One block in use. Arrays made of it keep it alive; its end gives the block back."""

    __slots__ = ("__array_interface__", "_block", "_free")

    def __init__(self, block: Bytes, free: deque[Bytes]) -> None:
        self.__array_interface__ = {**block.__array_interface__, "strides": None}
        self._block, self._free = block, free

    def __del__(self) -> None:
        self._free.append(self._block)


class Recycler:
    """Any thread may use it. Keeps at most `keep` bytes that nobody uses, the ones given back last."""

    def __init__(self, keep: int = 128 << 20) -> None:
        self._keep = keep
        #: Given back, the newest at the end. Finalizers append, which is atomic; nothing here takes a lock.
        self._free: deque[Bytes] = deque()

    @property
    def free_bytes(self) -> int:
        """Bytes that nobody uses."""
        return sum(block.nbytes for block in list(self._free))

    def copy(self, array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """A writable copy of `array`."""
        if array.nbytes < SMALLEST or array.dtype.hasobject:
            return array.copy()
        copied: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, self.take(array.nbytes))
        copied[...] = array
        return copied

    def take(self, nbytes: int) -> Bytes:
        """Writable memory of that size, flat, with anything in it."""
        block: Bytes | None = None
        kept: list[Bytes] = []
        total = 0
        # newest first: what is looked at beyond the bound is let go
        while block is None:
            try:
                found = self._free.pop()
            except IndexError:
                break
            if found.nbytes == nbytes:
                block = found
            elif total + found.nbytes <= self._keep:
                kept.append(found)
                total += found.nbytes
        self._free.extend(reversed(kept))
        while self.free_bytes > self._keep:
            try:
                self._free.popleft()
            except IndexError:
                break
        if block is None:
            block = np.empty(nbytes, np.uint8)
        return np.asarray(_Loan(block, self._free))


#: The whole process's.
_recycler = Recycler()


def copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A writable copy of `array`, in memory that is used again once nobody holds it."""
    return _recycler.copy(array)


def take(nbytes: int) -> Bytes:
    """Writable memory with anything in it, used again once nobody holds it."""
    return _recycler.take(nbytes) if nbytes >= SMALLEST else np.empty(nbytes, np.uint8)
