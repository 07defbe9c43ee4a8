"""Memory of a GPU that is none: bytes of the host, behind a DeviceArray as a GPU's are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.cuda._arrays import DeviceArray


class SimulatedBuffer:
    """So many bytes; `give_back(nbytes)` is called when nobody has them any more."""

    def __init__(self, give_back: Callable[[int], None], nbytes: int) -> None:
        self.nbytes = nbytes
        self.data = np.empty(nbytes, np.uint8)
        # what nobody has written must not look like zeros
        self.data.fill(0xA5)
        self._give_back = give_back

    def __del__(self) -> None:
        self._give_back(self.nbytes)


def host_view(array: DeviceArray) -> np.ndarray[Any, np.dtype[Any]]:
    """The array's elements where they are: of a simulated GPU only."""
    buffer = array.buffer
    assert isinstance(buffer, SimulatedBuffer)
    data = buffer.data[array.offset : array.offset + array.nbytes]
    return data.view(array.dtype).reshape(array.shape)
