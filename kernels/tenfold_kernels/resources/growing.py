"""An array that grows without being copied: rows of one shape and type, of which new ones are zeros.

A small one doubles. From `_SMALL` bytes on its memory is a range of addresses far larger than it, which the system
fills with pages as they are first written to: growing is then no work at all. Where there is no such range, as under
`ulimit -v`, it goes on doubling. The range may be a map of a file: the system keeps in memory what is used and there is
room for. Used by id_map.py and by what keeps a value for each id.
"""

from __future__ import annotations

import contextlib
import math
import mmap
import os
import sys
import weakref
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import BinaryIO

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Bytes from which on a range is asked for, and how many times as large it is as what is needed then.
_SMALL, _TIMES = 4 << 20, 1 << 14
#: Not all Pythons name it: no memory or swap is set aside for the range.
_NORESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)
_FEWEST = 16
#: Linux's MADV_POPULATE_WRITE, which Python does not name.
_POPULATE_WRITE = 23 if sys.platform == "linux" else None


class GrowingArray:
    """Rows of `shape`; `array` has at least as many as were asked for. Not thread-safe.

    `make_file` gives an empty file without a name that rows from `_SMALL` bytes on are in."""

    def __init__(self, dtype: Any, shape: Sequence[int] = (), make_file: Callable[[], BinaryIO] | None = None) -> None:
        self._dtype, self._shape, self._make_file = np.dtype(dtype), tuple(shape), make_file
        self._row_bytes = max(1, math.prod(self._shape)) * self._dtype.itemsize
        self.array: Array = np.zeros((0, *self._shape), self._dtype)
        #: Descriptor of the file that `array` is in.
        self._file: int | None = None
        #: Rows that have room on the disk: writing to others would end the process where it is full.
        self._on_disk = 0

    @property
    def room(self) -> int:
        """How many rows may be written to."""
        return len(self.array) if self._file is None else self._on_disk

    def reserve(self, rows: int) -> None:
        """From now on there are at least so many rows. Raises MemoryError where there is no room for them, OSError
        where their file cannot be made."""
        if rows <= len(self.array):
            if self._file is not None and rows > self._on_disk:
                ahead = min(self._on_disk + max(1, _SMALL // self._row_bytes), len(self.array))
                self._on_disk = self._take_room(self._file, self._on_disk, max(rows, ahead))
            return
        wanted = max(rows, 2 * len(self.array), _FEWEST)
        larger, file = None, None
        if wanted * self._row_bytes >= _SMALL:
            larger, file = self._range(wanted * _TIMES)
        if larger is None:
            larger = np.zeros((wanted, *self._shape), self._dtype)
        if file is not None:
            self._on_disk = self._take_room(file, 0, wanted)
        larger[: len(self.array)] = self.array
        self.array, self._file = larger, file

    def _take_room(self, file: int, first: int, last: int) -> int:
        os.posix_fallocate(file, first * self._row_bytes, (last - first) * self._row_bytes)
        return last

    def _range(self, rows: int) -> tuple[Array | None, int | None]:
        nbytes = rows * self._row_bytes
        file = None
        if self._make_file is None:
            memory = _addresses(nbytes)
        else:
            with self._make_file() as made:
                made.truncate(nbytes)
                memory = mmap.mmap(made.fileno(), nbytes)
                file = os.dup(made.fileno())
            weakref.finalize(self, os.close, file)
        array = None if memory is None else np.frombuffer(memory, self._dtype).reshape(rows, *self._shape)
        return array, file


def small_pages(count: int, dtype: Any) -> Array:
    """A vector of zeros whose memory comes in small pages: one that is filled bit by bit would wait for large ones,
    milliseconds for each. Raises MemoryError where there is none."""
    nbytes = count * np.dtype(dtype).itemsize
    memory = _addresses(nbytes) if nbytes >= _SMALL else None
    if memory is None:
        return np.zeros(count, dtype)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype)


def fill_pages(vector: Array, first: int, last: int) -> None:
    """Between these elements of a vector of `small_pages` there is memory now, which costs less than page by page."""
    with contextlib.suppress(OSError):  # before Linux 5.14
        _advise(vector, first, last, _POPULATE_WRITE)


def give_back(vector: Array, first: int, last: int) -> None:
    """What is between these elements of a vector of `small_pages`, from its beginning on, is not needed any more, and
    zeros from now on, as far as it fills pages."""
    _advise(vector, first, last, getattr(mmap, "MADV_DONTNEED", None))


def _advise(vector: Array, first: int, last: int, advice: int | None) -> None:
    begin, end = (at * vector.itemsize // mmap.PAGESIZE * mmap.PAGESIZE for at in (first, last))
    memory = getattr(vector.base, "obj", None)
    if isinstance(memory, mmap.mmap) and begin < end and advice is not None:
        memory.madvise(advice, begin, end - begin)


def _addresses(nbytes: int) -> mmap.mmap | None:
    """A range of zeros to which the system gives memory as it is written to; None where it gives none."""
    try:
        return mmap.mmap(-1, nbytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    except (OSError, ValueError, OverflowError):
        return None
