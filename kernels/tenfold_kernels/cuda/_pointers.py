"""Where an array is in a GPU's memory, as a number: for launches, and for calls of libraries. Of _driver.py only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tenfold_kernels.cuda._arrays import DeviceArray


class PoolBuffer:
    """Some bytes of CuPy's pool."""

    __slots__ = ("memory", "nbytes", "pointer")

    def __init__(self, memory: Any, nbytes: int) -> None:
        """`memory` is CuPy's MemoryPointer, whose last reference gives it back; None for no bytes."""
        self.memory, self.nbytes = memory, nbytes
        self.pointer = int(memory.ptr) if nbytes else 0


def pointer_of(array: DeviceArray) -> int:
    """Where the elements begin."""
    buffer = array.buffer
    assert isinstance(buffer, PoolBuffer)
    return buffer.pointer + array.offset
