"""What travels beside a frame's header: the buffers that callers hand over, and those that they get.

Bytes only: type and shape are the header's business. Used by both ends of a link and by their callers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import numpy as np

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
