"""Whether a count of references tells exactly how many hold an object, as CPython's does under its global lock.

Variables rely on it: large values are lent to readers instead of copied (variable_memory.py), and a value that has no
reader is updated where it is (tenfold_kernels.resources.state). Both compare a count with one that was measured in this
process, because interpreters differ. Where counts are not exact, nothing is lent, and a value is copied before it is
written under a reader: slower, never wrong. A build of CPython without the global lock keeps counts for each thread and
brings them together later; other interpreters may have none. Decision 0031.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

#: How many references an object has, the argument's included; a constant where the interpreter does not count them.
reference_count: Callable[[object], int] = getattr(sys, "getrefcount", lambda _: 0)
#: A baseline below every count: with it each object looks as if it were held by a reader.
ALWAYS_HELD = -1


def reference_counts_are_exact() -> bool:
    """Whether this interpreter's counts are exact at every moment, whichever threads hold references."""
    return (
        sys.implementation.name == "cpython"
        # a build without the global lock counts differently, also where the lock was switched on again at the start
        and "t" not in sys.abiflags
        and _each_reference_counts()
    )


class _Holder:
    __slots__ = ("held",)

    def __init__(self) -> None:
        self.held = object()

    def count(self) -> int:
        return reference_count(self.held)


def _each_reference_counts() -> bool:
    holder = _Holder()
    alone = holder.count()
    others = [holder.held, holder.held]
    with_others = holder.count()
    others.clear()
    return with_others == alone + 2 and holder.count() == alone
