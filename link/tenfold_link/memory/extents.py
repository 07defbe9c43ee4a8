"""Which parts of an arena are free: best fit, neighbours joined at once. Only offsets, no memory; no locks.

arena.py makes blocks of them. Sizes are multiples of PAGE: no two blocks share one, and what is free can go back to the
system.
"""

from __future__ import annotations

import mmap
from bisect import bisect_left, insort

PAGE = mmap.PAGESIZE


def pages(size: int) -> int:
    """`size` rounded up to whole pages, one at least."""
    return max(PAGE, -(-size // PAGE) * PAGE)


class Extents:
    """The free extents of [0, end), where `end` grows by `add` and shrinks by `cut`."""

    def __init__(self) -> None:
        #: Offset → size; no two extents touch.
        self._size: dict[int, int] = {}
        #: The end of each extent → its offset.
        self._by_end: dict[int, int] = {}
        #: (size, offset), in order: the first one that is large enough fits best, and lowest.
        self._ordered: list[tuple[int, int]] = []

    @property
    def free(self) -> int:
        return sum(self._size.values())

    def items(self) -> list[tuple[int, int]]:
        """(offset, size) of each."""
        return list(self._size.items())

    def take(self, size: int) -> int | None:
        """The offset of `size` bytes that are now taken; None where no extent is that large."""
        place = bisect_left(self._ordered, (size, 0))
        if place == len(self._ordered):
            return None
        whole, offset = self._ordered[place]
        self._remove(offset, whole)
        if whole > size:
            self._insert(offset + size, whole - size)
        return offset

    def give(self, offset: int, size: int) -> None:
        """[offset, offset + size) is free (again). The caller sees to it that it was not."""
        before = self._by_end.get(offset)
        if before is not None:
            size += self._size[before]
            self._remove(before, offset - before)
            offset = before
        after = self._size.get(offset + size)
        if after is not None:
            self._remove(offset + size, after)
            size += after
        self._insert(offset, size)

    def cut(self, end: int, keep: int) -> int:
        """Gives up what is free at the end, [x, end) with x not below `keep`; returns x, or `end` if nothing is."""
        offset = self._by_end.get(end)
        if offset is None:
            return end
        start = max(offset, keep)
        if start >= end:
            return end
        self._remove(offset, end - offset)
        if start > offset:
            self._insert(offset, start - offset)
        return start

    def _insert(self, offset: int, size: int) -> None:
        self._size[offset] = size
        self._by_end[offset + size] = offset
        insort(self._ordered, (size, offset))

    def _remove(self, offset: int, size: int) -> None:
        del self._size[offset]
        del self._by_end[offset + size]
        del self._ordered[bisect_left(self._ordered, (size, offset))]
