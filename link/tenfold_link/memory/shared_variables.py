"""The arena for variables that peers on this host read in place: one for the process, passed to each in the handshake.

A block lives as long as the VariableMemory (tenfold_core.variable_memory) that lies in it; each link's own arena notes
what that link has lent. A peer maps this arena once, however many links it has, read-only.
"""

from __future__ import annotations

import os
import threading

from tenfold_core import memory_limits
from tenfold_link.memory.arena import Arena, SharedBlock

#: Of the machine's memory, or of the cgroup's, what one arena may be large: address space, as memory is taken when
#: variables move in.
_PART_OF_MEMORY = 2
#: Where the system does not tell how much memory there is.
ANY_SIZE = 1 << 40
#: Bytes that stay resident when variables have moved out.
KEEP = 256 << 20

_lock = threading.Lock()
_arena: Arena | None = None
#: The process that made `_arena`, or tried to.
_pid = 0


def arena() -> Arena | None:
    """This process's, made at the first call; None where the system gives none."""
    global _arena, _pid
    pid = os.getpid()
    if _pid != pid:
        with _lock:
            if _pid != pid:
                # a child of a fork shares its parent's memory, but must not give it out
                _arena = _make()
                _pid = pid
    return _arena


def allocate(nbytes: int) -> SharedBlock | None:
    """A block for a variable's value; None where none is free now."""
    found = arena()
    return found.allocate(nbytes) if found is not None else None


def half_of_machine() -> int:
    """The largest arena of variables that a process of this machine makes, whatever its cgroup."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // _PART_OF_MEMORY
    except (OSError, ValueError, AttributeError):
        return ANY_SIZE


def _make() -> Arena | None:
    size = memory_limits.memory() // _PART_OF_MEMORY
    try:
        return Arena(size, KEEP, name="tenfold-variables") if size else None
    except OSError:
        return None
