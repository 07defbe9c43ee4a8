"""The value of a large variable as it is at one moment, copied in pieces while rows of it are updated.

An update that knows its rows has them kept before it writes to them, as in tables (kept_rows.py). Any other moves the
variable to other memory, and what was here stays as it is. Made by `Variable.begin_reading` (state.py) for saves
(cpu/_cuts.py); decision 0202.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels.resources.kept_rows import KeptRows, none_kept

if TYPE_CHECKING:
    import threading

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Bytes of a value that takes long to copy, and of a row at most: pieces are made of rows.
_LARGE, _WIDEST = 1 << 20, 1 << 18


def is_readable(value: Array) -> bool:
    """Whether a value is worth it."""
    return value.ndim > 0 and value.nbytes >= _LARGE and value[:1].nbytes <= _WIDEST


def prepared(value: Array) -> Array:
    """What `ReadInPieces` of a value is given that takes time to make; without the lock."""
    return none_kept(len(value) if is_readable(value) else 0)


class ReadInPieces:
    """`keep` is called under the variable's lock."""

    def __init__(self, value: Array, lock: threading.RLock, marks: Array | None = None) -> None:
        """The moment is now, at which the caller has the lock. `marks` is of `prepared`."""
        self._shape, self._lock = value.shape, lock
        #: All is copied: nothing need be kept any more.
        self.is_done = False
        rows = value.reshape(len(value), -1)
        self._rows = KeptRows(len(rows), np.zeros(0, np.int64), lambda: [rows], marks)

    def keep(self, rows: Array) -> None:
        """These rows, or what others there may be, are about to change."""
        self._rows.keep(rows.reshape(-1))

    def copy(self) -> Array:
        """The value of that moment. Called once, without the lock, which it takes for each piece."""
        try:
            found: Array = self._rows.whole(self._lock)[1][0]
        finally:
            self.is_done = True
        return found.reshape(self._shape)
