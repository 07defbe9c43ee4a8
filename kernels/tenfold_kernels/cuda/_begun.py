"""Copies to the host's memory that have begun: their kernel's GPU goes on, and who wants the value waits for it.

    kernels   ── grad of layer 3 ──┬── grad of layer 2 ──┬── grad of layer 1 ──┬──
    copies                         └── layer 3 ──┐       └── layer 2 ──┐       └── layer 1 ──┐
    host                                         Send                  Send                  Send

A step puts one behind the kernel whose result goes to another task (compiler/tenfold_compiler/part/cross_memory.py),
also in a recording (_recording.py), which has a RecordedCopy in its place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np


class BegunCopy(Protocol):
    """One copy. Who drops it unread drops the values; the memory on both sides is kept until the copy is over."""

    def to_host(self) -> np.ndarray[Any, np.dtype[Any]]:
        """The elements, writable and the caller's own. Blocks until they are there. Called once."""
        ...


class RecordedCopy:
    """What a recording has for a copy: a launch begins one."""

    __slots__ = ("now",)

    #: That of the last launch.
    now: BegunCopy
