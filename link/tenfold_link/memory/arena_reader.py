"""The receiving end of shared memory: maps what a peer passed, and hands out read-only arrays of its blocks.

arena.py is the sending end. A block goes back to the peer when the last array over it is dropped. What a peer passes is
checked before it is mapped: a file that could shrink would end this process with a bus error.
"""

from __future__ import annotations

import fcntl
import mmap
import os
import weakref
from typing import TYPE_CHECKING

import numpy as np

from tenfold_link.memory import shared_variables
from tenfold_link.memory.arena import VARIABLE
from tenfold_link.protocol_error import ProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_link.memory.arena import Bytes


class PeerBlock:
    """One block of the peer's memory in use here. Arrays made of it keep it alive; its end sends the block back."""

    __slots__ = ("__array_interface__", "_block", "_give_back", "mapping")

    def __init__(
        self, mapping: PeerMapping, address: int, size: int, block: int, give_back: Callable[[int], None]
    ) -> None:
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": "|u1", "version": 3}
        self.mapping, self._block, self._give_back = mapping, block, give_back

    def __del__(self) -> None:
        self._give_back(self._block)


class PeerMapping:
    """A peer's memory file, mapped read-only. Takes over the descriptor."""

    __slots__ = ("__weakref__", "address", "descriptor", "memory", "size")

    def __init__(self, fd: int, size: int) -> None:
        self.descriptor = -1
        self.memory: Bytes = np.frombuffer(mmap.mmap(fd, size, mmap.MAP_SHARED, mmap.PROT_READ), np.uint8)
        self.address: int = self.memory.__array_interface__["data"][0]
        self.size = size
        self.descriptor = fd

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


#: (device, inode) → the mapping of it, so that a process with many links to a peer maps the peer's variables once.
_mappings: weakref.WeakValueDictionary[tuple[int, int], PeerMapping] = weakref.WeakValueDictionary()


def _map(fd: int, size: int | None, most: int) -> PeerMapping:
    """Maps the file, all of it without a `size`; takes over `fd`. Raises ProtocolError for one that may shrink."""
    try:
        try:
            seals = fcntl.fcntl(fd, fcntl.F_GET_SEALS)
        except OSError:
            seals = 0
        status = os.fstat(fd)
        size = status.st_size if size is None else size
        if not 0 < size <= most:
            raise ProtocolError(f"an arena of {size} bytes; {most} at most are mapped (TENFOLD_LINK_MAPPING_BYTES)")
        if not seals & fcntl.F_SEAL_SHRINK or status.st_size < size:
            raise ProtocolError("an arena that can shrink")
        key = (status.st_dev, status.st_ino)
        found = _mappings.get(key)
        if found is None or found.size != size:
            found = _mappings[key] = PeerMapping(fd, size)
            fd = -1
        return found
    except (OSError, ValueError) as error:
        raise ProtocolError(f"an arena that cannot be mapped: {error}") from error
    finally:
        if fd >= 0:
            os.close(fd)


class ArenaReader:
    """Maps the peer's arena, and its variables, and opens blocks in them."""

    def __init__(
        self,
        fd: int,
        size: int,
        give_back: Callable[[int], None],
        variables: int = -1,
        most: int = shared_variables.ANY_SIZE,
    ) -> None:
        """Takes over `fd`, and the descriptor of the peer's `variables` if it passed one; neither of more than `most`
        bytes.

        `give_back(block)` is called once a block, from any thread, also by the garbage collector. Raises ProtocolError
        for a file that could shrink while it is read.
        """
        try:
            self._arena = _map(fd, size, most)
        except BaseException:
            if variables >= 0:
                os.close(variables)
            raise
        self._variables = _map(variables, None, most) if variables >= 0 else None
        self._give_back = give_back

    def open(self, block: int, offset: int, size: int) -> Bytes:
        """Block `block` as a read-only array. Raises ProtocolError where it does not lie in the arena."""
        mapping = self._variables if block & VARIABLE else self._arena
        if mapping is None or offset + size > mapping.size:
            length = mapping.size if mapping is not None else 0
            raise ProtocolError(f"a block at {offset} of {size} bytes in an arena of {length}")
        return np.asarray(PeerBlock(mapping, mapping.address + offset, size, block, self._give_back))


def weakly(give_back: Callable[[int], None]) -> Callable[[int], None]:
    """The bound method `give_back` without its hold on its object, for ArenaReader.

    The garbage collector does not look through arrays, so a link whose user keeps what came over it would never go.
    """
    method = weakref.WeakMethod(give_back)

    def call(block: int) -> None:
        alive = method()
        if alive is not None:
            alive(block)

    return call
