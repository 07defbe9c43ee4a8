"""The buffers that shuffled elements are drawn out of: elements one by one, or rows of arrays for whole blocks of them.

Places in a buffer form a ring, which shuffle.py numbers. Rows are moved by numbers: a compiled loop draws for a whole
block, and then the arrays are copied together. Used by shuffle.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.philox import Philox
from tenfold_kernels.resources.datasets.sources import row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from tenfold_kernels.resources.datasets.core import Array, Element

_MASK64 = (1 << 64) - 1
#: Blocks of four numbers that are made at a time: few at first, since many a buffer is small.
_LEAST, _MOST = 16, 1024


class Numbers:
    """uint32 after uint32 of the generator with these seeds, of which so many were given already."""

    def __init__(self, seeds: tuple[int, int], drawn: int = 0) -> None:
        self.seeds, self.drawn = seeds, drawn
        self._philox = Philox(seeds[0] & _MASK64, (seeds[1] & _MASK64) << 64)
        self._made: list[int] = []
        #: The number of the first one that is made.
        self._first = 0
        self._blocks = _LEAST

    def one(self) -> int:
        at = self.drawn - self._first
        if not 0 <= at < len(self._made):
            self._first = self.drawn // 4 * 4
            self._made = self._words(self._blocks).tolist()
            self._blocks = min(2 * self._blocks, _MOST)
            at = self.drawn - self._first
        self.drawn += 1
        return self._made[at]

    def some(self, count: int) -> Array:
        """The next `count` numbers."""
        at = self.drawn - self._first
        if not 0 <= at <= len(self._made) - count:
            self._first = self.drawn // 4 * 4
            at = self.drawn - self._first
            self._made = self._words(max(self._blocks, (at + count + 3) // 4)).tolist()
            self._blocks = min(2 * self._blocks, _MOST)
        self.drawn += count
        return np.array(self._made[at : at + count], np.uint32)

    def _words(self, blocks: int) -> Array:
        first = self._first // 4
        return self._philox.blocks(np.arange(first, first + blocks, dtype=np.uint64)).reshape(-1)


class Elements:
    """Elements by their places."""

    def __init__(self, items: Iterable[tuple[int, Element]] = ()) -> None:
        self._at = dict(items)

    def __len__(self) -> int:
        return len(self._at)

    def items(self) -> list[tuple[int, Element]]:
        return list(self._at.items())

    def put(self, place: int, element: Element) -> None:
        self._at[place] = element

    def take(self, place: int, head: int) -> Element:
        """What is there; the element at `head` moves there."""
        element = self._at.pop(place)
        if place != head:
            self._at[place] = self._at.pop(head)
        return element


class Uneven(Exception):
    """An element has other shapes than those before it."""


class Rows:
    """Elements of the same shapes: each has a row in arrays that stay, and places know the rows."""

    def __init__(self, ring: int, exchange: Callable[..., None]) -> None:
        """`exchange` is the loop of cpu/_compiled/drawing.py."""
        self._ring, self._exchange = ring, exchange
        self._columns: list[Array] = []
        #: The row of each place. Only those of places that are taken mean anything.
        self._row_at = np.empty(0, np.int64)
        #: Rows without an element, and how many rows there are.
        self._free: list[int] = []
        self._count = 0

    def __len__(self) -> int:
        return self._count - len(self._free)

    def items_at(self, places: Iterable[int]) -> list[tuple[int, Element]]:
        return [(place, self._element(int(self._row_at[place]))) for place in places]

    def _element(self, number: int) -> Element:
        return tuple(row(column, number) for column in self._columns)

    def put(self, place: int, element: Element) -> None:
        """Raises Uneven, having changed nothing."""
        self.put_rows(place, tuple(array[np.newaxis] for array in element))

    def put_rows(self, end: int, part: Element) -> None:
        """Elements on top of each other, at this place and the next ones. Raises Uneven, having changed nothing."""
        self.check(part)
        count = len(part[0])
        if not self._columns:
            self._columns = [np.empty((0, *array.shape[1:]), array.dtype) for array in part]
        reused = min(count, len(self._free))
        rows = np.arange(self._count - reused, self._count - reused + count)
        if reused:
            rows[:reused] = self._free[-reused:]
            del self._free[-reused:]
        self._count += count - reused
        self._make_room()
        places = (end + np.arange(count)) % self._ring
        needed = int(places.max()) + 1
        if needed > self._row_at.size:
            self._row_at = _larger(self._row_at, needed)
        self._row_at[places] = rows
        for column, array in zip(self._columns, part, strict=True):
            column[rows] = array

    def check(self, part: Element) -> None:
        for column, array in zip(self._columns, part, strict=False):
            if array.shape[1:] != column.shape[1:] or array.dtype != column.dtype:
                raise Uneven

    def _make_room(self) -> None:
        for number, column in enumerate(self._columns):
            if len(column) < self._count:
                self._columns[number] = _larger(column, self._count)

    def take(self, place: int, head: int) -> Element:
        number = int(self._row_at[place])
        self._row_at[place] = self._row_at[head]
        element = self._element(number)
        self._give_back(np.array([number]))
        return element

    def _give_back(self, rows: Array) -> None:
        self._free.extend(rows.tolist())
        for column in self._columns:
            if column.dtype.hasobject:
                column[rows] = None  # what is not here any more is not kept alive

    def draw(self, words: Array, start: int, end: int, part: Element | None, grows: bool) -> Element:
        """An element for each word, drawn from the places `start` to `end`, the first of which moves to its place.

        As long as there are some in `part`, one of them is put where that was, behind the last one; with `grows` it
        may be drawn next. The buffer is full where a part is given.
        """
        count, fresh = len(words), 0 if part is None else len(part[0])
        rows, sources = np.empty(count, np.int64), np.empty(count, np.int64)
        new_at = np.full(self._count, -1, np.int64)
        self._exchange(words, self._row_at, new_at, rows, sources, start, end, self._ring, fresh, grows)
        is_new = sources >= self._count
        out = []
        for number, column in enumerate(self._columns):
            if not is_new.any():
                out.append(column[sources])
                continue
            assert part is not None
            array = np.empty((count, *column.shape[1:]), column.dtype)
            array[~is_new] = column[sources[~is_new]]
            array[is_new] = part[number][sources[is_new] - self._count]
            out.append(array)
        if part is not None:
            put = rows[:fresh]
            put = put[new_at[put] >= 0]
            for column, array in zip(self._columns, part, strict=True):
                column[put] = array[new_at[put]]
        self._give_back(rows[fresh:])
        return tuple(out)


def _larger(array: Array, least: int) -> Array:
    """The array with room for at least so many rows."""
    out = np.empty((max(least, 2 * len(array)), *array.shape[1:]), array.dtype)
    out[: len(array)] = array
    return out
