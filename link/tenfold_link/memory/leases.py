"""Variables that peers read where they are: the memory of a value, and who reads it.

A large value of a variable has a `Home`. Sending it means to lend the home: no byte is copied, and whoever wants to
write while a reader is left moves the variable to another home first, so that every reader has one version for good.
Homes in the process's commons (commons.py) are read by peers on this host through shared memory; those in private
memory by the socket. tenfold_kernels.resources.state makes homes, packing.py lends them. Decision 0012.

    live ──lend──► live, lent ──the last reader is done──► live
                    └──write──► left: nobody writes to it any more, gone with its last reader
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import buffer_pool
from tenfold_link.memory import shared_variables

if TYPE_CHECKING:
    import threading
    from collections.abc import Sequence

    from tenfold_link.memory.arena import SharedBlock

    Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: Smaller values have no home: copying them costs less than keeping account of who reads them.
LENDABLE = 128 << 10


class Home:
    """Memory of one value. `lock` is that of the variable, whose writers hold it."""

    __slots__ = ("__array_interface__", "_asked", "_memory", "_token", "block", "live", "lock", "wanted")

    def __init__(self, memory: Bytes, lock: threading.RLock, block: SharedBlock | None) -> None:
        """`memory` is flat, writable and nobody else's; that of `block` if there is one."""
        self.__array_interface__ = {**memory.__array_interface__, "strides": None}
        self._memory, self.lock, self.block = memory, lock, block
        #: Each reader holds it, so that its count of references is the number of readers and no reader needs to say
        #: that it is done.
        self._token = _Token()
        #: It is the variable's value now. Changes under the lock, once.
        self.live = True
        #: It would be read in place if it lay in the commons: the variable moves there when it can.
        self.wanted = False
        self._asked = False

    def ask(self) -> None:
        """Somebody had to copy it for want of a block. Once is no reason to move; twice is."""
        self.wanted, self._asked = self._asked, True

    @property
    def lent(self) -> bool:
        """Whether some reader counts on this memory to stay as it is."""
        return sys.getrefcount(self._token) > _UNLENT

    def array(self) -> Bytes:
        """The memory, flat and writable. Every array made of it keeps the home alive."""
        return np.asarray(self)


class _Token:
    __slots__ = ()


class Lease:
    """A reader's hold on a home: while it, or an array made of it, is alive, the bytes stay as they are."""

    __slots__ = ("__array_interface__", "_token", "home", "nbytes", "offset")

    def __init__(self, home: Home, token: _Token, address: int, nbytes: int) -> None:
        self.home, self._token, self.nbytes = home, token, nbytes
        #: Where the bytes begin in the home.
        self.offset = address - home.__array_interface__["data"][0]
        self.__array_interface__ = {"data": (address, True), "shape": (nbytes,), "typestr": "|u1", "version": 3}

    def array(self) -> Bytes:
        """The bytes, flat and read-only."""
        return np.asarray(self)


def private(nbytes: int, lock: threading.RLock) -> Home:
    """A home in this process's own memory, with anything in it."""
    return Home(buffer_pool.take(nbytes), lock, None)


def shared(nbytes: int, lock: threading.RLock) -> Home | None:
    """A home in the commons; None where there is no warm room now."""
    arena = shared_variables.get()
    block = arena.allocate(nbytes) if arena is not None else None
    return Home(block.array, lock, block) if block is not None else None


def bottom(value: Any) -> Any:
    """What an array's memory belongs to, if that is not an array itself: a home, a lease, a loan."""
    while type(value) is np.ndarray:
        value = value.base
    return value


def lend(value: np.ndarray[Any, Any]) -> Lease | None:
    """A lease of the bytes of `value`, contiguous; None where they have no home or are written to at this moment.

    Never blocks.
    """
    home = bottom(value)
    if type(home) is Lease:
        return home if home.nbytes == value.nbytes else _lease(home.home, value)
    if type(home) is not Home or not value.flags.c_contiguous:
        return None
    if not home.live:
        # its variable has moved on, nobody writes here
        return _lease(home, value)
    if not home.lock.acquire(blocking=False):
        return None
    try:
        return _lease(home, value)
    finally:
        home.lock.release()


def _lease(home: Home, value: np.ndarray[Any, Any]) -> Lease:
    return Lease(home, home._token, value.__array_interface__["data"][0], value.nbytes)


def typed(home: Home, dtype: np.dtype[Any], shape: Sequence[int]) -> np.ndarray[Any, Any]:
    """The home as a writable tensor."""
    count = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return home.array()[:count].view(dtype).reshape(shape)


class _Probe:
    __slots__ = ("_token",)

    def __init__(self) -> None:
        self._token = _Token()

    def count(self) -> int:
        return sys.getrefcount(self._token)


#: What getrefcount says of a token that only its home holds; measured, because interpreters differ.
_UNLENT = _Probe().count()
