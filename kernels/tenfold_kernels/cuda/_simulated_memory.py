"""Memory of a simulated GPU: bytes of the host, behind a DeviceArray as a GPU's are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._arrays import DeviceArray


class _Memory:
    """So many bytes; `give_back(nbytes)` is called when nobody has them any more."""

    __slots__ = ("data", "give_back")

    def __init__(self, give_back: Callable[[int], None], nbytes: int) -> None:
        self.data = np.empty(nbytes, np.uint8)
        # what nobody has written must not look like zeros
        self.data.fill(0xA5)
        self.give_back = give_back

    def __del__(self) -> None:
        self.give_back(self.data.nbytes)


class SimulatedBuffer:
    """Bytes, which others may have too."""

    __slots__ = ("memory",)

    def __init__(self, memory: _Memory) -> None:
        self.memory = memory

    @classmethod
    def of(cls, give_back: Callable[[int], None], nbytes: int) -> SimulatedBuffer:
        """New bytes; `give_back(nbytes)` is called when nobody has them any more."""
        return cls(_Memory(give_back, nbytes))

    @property
    def nbytes(self) -> int:
        return self.memory.data.nbytes

    @property
    def data(self) -> np.ndarray[Any, np.dtype[np.uint8]]:
        return self.memory.data

    def alias(self) -> SimulatedBuffer:
        return SimulatedBuffer(self.memory)

    def become(self, other: Any) -> None:
        self.memory = other.memory


def host_view(array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
    """The array's elements where they are: of a simulated GPU only."""
    buffer = array.buffer
    assert isinstance(buffer, SimulatedBuffer)
    data = buffer.data[array.offset : array.offset + array.nbytes]
    return data.view(array.dtype).reshape(array.shape)
