"""What travels beside a frame's header: the buffers that callers hand over, and those that they get.

Bytes only: type and shape are the header's business. Used by both ends of a link and by their callers.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.variable_memory import MemoryLease
    from tenfold_link.memory.arena import SharedBlock

#: What a caller hands over. Arrays and memoryviews must be C-contiguous and of plain (not object) type. It stays
#: unchanged until a call is answered; what a notification or a reply carries stays unchanged for good.
Outgoing: TypeAlias = "bytes | bytearray | memoryview | np.ndarray[Any, Any] | SharedBlock | MemoryLease"

#: What a caller gets: a bytearray or a flat uint8 array. What came in the socket is writable and belongs to the
#: receiver alone; what came by shared memory is a *read-only* array over the sender's memory, and goes back to the
#: sender when the last array over it is dropped, however long that takes.
Incoming: TypeAlias = "bytearray | np.ndarray[Any, Any]"

#: A call's answer: its header and its buffers.
Answer: TypeAlias = "tuple[bytes, list[Incoming]]"


def as_array(buffer: Incoming, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """`buffer` as a tensor, without a copy; writable if the buffer is. Keeps a shared block from going back.

    Raises ValueError where the sizes differ.
    """
    if dtype.hasobject or prod(shape) * dtype.itemsize != len(buffer):
        raise ValueError(f"A buffer of {len(buffer)} bytes is no {dtype.name} tensor of shape {tuple(shape)}.")
    return np.ndarray(shape, dtype, buffer)


def owned(buffer: Incoming, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """`buffer` as a writable tensor of the caller's own: copied only where it came by shared memory."""
    array = as_array(buffer, dtype, shape)
    return array if array.flags.writeable else array.copy()
