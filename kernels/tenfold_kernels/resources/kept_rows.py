"""Rows of a table as they are at one moment, read while others change it: what is to change is copied first.

Reading begins with a mark that costs nothing: how many rows there are, and which of them are free. Then all arrays of
the table are copied in pieces, between which updates go on. Before an update writes to rows that were not read yet, it
has them kept, one behind the other: to keep them at their places would be a page of memory for each. Used by
embedding_rows.py and embedding_saves.py; decision 0197.
"""

from __future__ import annotations

import time
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Bytes of a piece, which the processor's cache holds, and free rows that are looked at at a time.
_PIECE, _FREE_ROWS = 256 << 10, 1 << 15
_PAGE = 4096
#: Seconds between two pieces, in which who waits for the lock gets it: one that is taken again at once is never
#: another's. Evictions pause as long.
PAUSE = 2e-4


def none_kept(count: int) -> Array:
    """Marks of so many rows, none of which is kept. The memory is there: else the first update would wait for it, at a
    page fault for each 4 KB."""
    marks = np.zeros(count, np.bool_)
    marks[::_PAGE] = False
    return marks


class KeptRows:
    """`keep` and `keep_free` are called under the table's lock; the reading methods take it, by one thread."""

    def __init__(self, rows: int, free: Array, read: Callable[[], Sequence[Array]], marks: Array | None = None) -> None:
        """The moment is now. `rows`: all are below it; `free` has those that are nobody's, and stays as it is until
        `keep_free`. `read` gives the table's arrays as they are when it is called, always in the same order. `marks` is
        of `none_kept`, made beforehand."""
        self._rows, self._free, self._read = rows, free, read
        #: Rows below it were read.
        self._done = 0
        self._kept = np.zeros(rows, np.bool_) if marks is None or marks.size < rows else marks[:rows]
        #: Rows that were kept, with their values in each array.
        self._log: list[tuple[Array, list[Array]]] = []

    def keep(self, rows: Array) -> None:
        """These rows are about to change, or to be free."""
        rows = rows[(rows < self._rows) & (rows >= self._done)]
        rows = rows[~self._kept[rows]]
        if rows.size:
            self._kept[rows] = True
            self._log.append((rows, [array.take(rows, axis=0) for array in self._read()]))

    def keep_free(self) -> None:
        """Other rows are about to be free."""
        self._free = self._free.copy()

    def column(self, lock: threading.RLock, number: int) -> Array:
        """One of the arrays, whole: [rows, …]. Others may be read later."""
        array = self._read()[number]
        found = np.empty((self._rows, *array.shape[1:]), array.dtype)
        for begin, end in _pieces([found]):
            found[begin:end] = array[begin:end]
            with lock:
                array = self._read()[number]
                found[begin:end] = array[begin:end]
        for rows, values in [*self._log]:
            found[rows] = values[number]
        return found

    def whole(self, lock: threading.RLock) -> tuple[Array, list[Array]]:
        """Which rows are somebody's, and all arrays: [rows, …]. It is the last reading."""
        found = [np.empty((self._rows, *array.shape[1:]), array.dtype) for array in self._read()]
        for begin, end in _pieces(found):
            # at first without the lock: then the memory is there, and in the cache
            self._copy(slice(begin, end), slice(begin, end), found)
            with lock:
                self._copy(slice(begin, end), slice(begin, end), found)
                self._done = end
        for rows, values in self._taken():
            for each, kept in zip(found, values, strict=True):
                each[rows] = kept
        given_out = np.ones(self._rows, np.bool_)
        for begin in range(0, self._free.size, _FREE_ROWS):
            with lock:
                given_out[self._free[begin : begin + _FREE_ROWS]] = False
        return given_out, found

    def chosen(self, lock: threading.RLock, rows: Array) -> list[Array]:
        """All arrays of these rows, which are ascending and somebody's. It is the last reading."""
        found = [np.empty((rows.size, *array.shape[1:]), array.dtype) for array in self._read()]
        for begin, end in _pieces(found):
            self._copy(slice(begin, end), rows[begin:end], found)
            with lock:
                self._copy(slice(begin, end), rows[begin:end], found)
                self._done = int(rows[end - 1]) + 1
        for kept_rows, values in self._taken():
            at = np.searchsorted(rows, kept_rows)
            hit = np.flatnonzero(rows[np.minimum(at, rows.size - 1)] == kept_rows) if rows.size else at[:0]
            for each, kept in zip(found, values, strict=True):
                each[at[hit]] = kept[hit]
        return found

    def _taken(self) -> Iterator[tuple[Array, list[Array]]]:
        """Rows that were kept, out of the log: giving all memory back at once would stop other threads."""
        while self._log:
            yield self._log.pop()

    def _copy(self, to: slice, rows: slice | Array, found: Sequence[Array]) -> None:
        for each, array in zip(found, self._read(), strict=True):
            each[to] = array[rows]


class Keepers:
    """Of exports under way, what keeps rows; nothing is kept for one that nobody finishes any more."""

    def __init__(self) -> None:
        self._refs: list[weakref.ref[KeptRows]] = []

    def __bool__(self) -> bool:
        return bool(self._refs)

    def begin(self, kept: KeptRows) -> KeptRows:
        self._refs.append(weakref.ref(kept, self._refs.remove))
        return kept

    def end(self, kept: KeptRows) -> None:
        self._refs[:] = [each for each in self._refs if each() is not kept]

    def keep(self, rows: Array) -> None:
        """Something of these rows is about to change."""
        for each in [*self._refs]:
            if (kept := each()) is not None:
                kept.keep(rows)

    def keep_free(self) -> None:
        """Other rows are about to be free."""
        for each in [*self._refs]:
            if (kept := each()) is not None:
                kept.keep_free()


def _pieces(arrays: Sequence[Array]) -> Iterator[tuple[int, int]]:
    """Where each piece of arrays of one length begins and ends; there is time for others between two."""
    count, row = len(arrays[0]), sum(array[:1].nbytes for array in arrays)
    size = max(1, _PIECE // max(1, row))
    for begin in range(0, count, size):
        if begin:
            time.sleep(PAUSE)
        yield begin, min(begin + size, count)
