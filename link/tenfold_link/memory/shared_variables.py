"""The process's arena for variables that peers on this host read in place: one for all links, passed in the handshake.

A block lives as long as the home (lending.py) that lies in it; what a link has lent of it is noted in that link's own
arena. A peer maps the commons once, however many links it has, read-only.
"""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_link.memory.arena import Arena

#: Address space; memory is taken as variables move in, at most this part of what the machine has.
LARGEST = 64 << 30
_PART_OF_MEMORY = 2
#: Stays warm when variables have moved out.
KEEP = 256 << 20

_lock = threading.Lock()
_arena: Arena | None = None
_tried_by = 0


def get() -> Arena | None:
    """This process's commons, made when it is first asked for; None where the system gives none."""
    global _arena, _tried_by
    pid = os.getpid()
    if _tried_by != pid:
        with _lock:
            if _tried_by != pid:
                # a child of a fork shares its parent's memory, but must not give it out
                _arena = _make()
                _tried_by = pid
    return _arena


def _make() -> Arena | None:
    try:
        from tenfold_link.memory.arena import Arena

        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        return Arena(min(LARGEST, memory // _PART_OF_MEMORY), KEEP, name="tenfold-variables")
    except (ImportError, OSError, ValueError, AttributeError):
        return None
