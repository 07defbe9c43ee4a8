"""Where an array is in a GPU's memory, as a number: for launches, and for calls of libraries. Of _driver.py only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._arrays import DeviceArray


class PoolBuffer:
    """Some bytes of CuPy's pool."""

    __slots__ = ("memory", "nbytes", "pointer")

    def __init__(self, memory: Any, nbytes: int) -> None:
        """`memory` is CuPy's MemoryPointer, whose last reference gives it back; None for no bytes."""
        self.memory, self.nbytes = memory, nbytes
        self.pointer = int(memory.ptr) if nbytes else 0

    def alias(self) -> PoolBuffer:
        return PoolBuffer(self.memory, self.nbytes)

    def become(self, other: Any) -> None:
        self.memory, self.pointer = other.memory, other.pointer


class FedBuffer(PoolBuffer):
    """One of the blocks of _feeds.py, which goes back there."""

    __slots__ = ("_give_back",)

    def __init__(self, memory: Any, nbytes: int, give_back: Callable[[int, Any], None]) -> None:
        super().__init__(memory, nbytes)
        self._give_back = give_back

    def alias(self) -> PoolBuffer:
        raise TypeError("a block that copies are made to is no variable's")

    def __del__(self) -> None:
        self._give_back(self.nbytes, self.memory)


def pointer_of(array: DeviceArray) -> int:
    """Where the elements begin."""
    buffer = array.buffer
    assert isinstance(buffer, PoolBuffer)
    return buffer.pointer + array.offset
