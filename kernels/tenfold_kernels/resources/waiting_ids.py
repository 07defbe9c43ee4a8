"""Ids of an embedding variable that were not asked for often enough yet: a frequency and a version each, no weights.

Most ids of a click log come once or twice, so most of a table with a filter waits. Such an id has a row of numbers
here, in a map of its own, 36 bytes at most; when it is admitted it gets a row of weights and leaves this one to others.
Used by embedding_rows.py, under the table's lock; decision 0201.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_core.checkpoint.table_rows import NEVER
from tenfold_kernels.resources.growing import GrowingArray
from tenfold_kernels.resources.id_map import IdMap
from tenfold_kernels.resources.kept_rows import Keepers

if TYPE_CHECKING:
    from tenfold_kernels.resources.id_map import IdLoops

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Of a frequency or a version.
_NUMBER_BYTES = 8


class WaitingIds:
    """Not thread-safe: its table has a lock."""

    def __init__(self, loops: IdLoops, keeps_versions: bool) -> None:
        self.ids = IdMap(loops)
        self.freqs = GrowingArray(np.int64)
        self.versions = GrowingArray(np.int64) if keeps_versions else None
        #: Of exports under way.
        self.kept = Keepers()

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def nbytes(self) -> int:
        return self.ids.nbytes + self.ids.rows * _NUMBER_BYTES * (1 + (self.versions is not None))

    def has_all(self, keys: Array) -> bool:
        """Whether all keys are there."""
        return bool(self.ids.find(keys).min(initial=0) >= 0)

    def rows_of(self, keys: Array) -> tuple[Array, Array]:
        """The row of each key, and those of them that are new; they were never asked for or updated."""
        rows, added = self.ids.find_or_add(keys)
        if added.size:
            self.freqs.reserve(self.ids.rows)
            self.freqs.array[added] = 0
            if self.versions is not None:
                self.versions.reserve(self.ids.rows)
                self.versions.array[added] = NEVER
        return rows, added

    def remove(self, keys: Array) -> tuple[Array, Array]:
        """Those of the keys that were there, and their rows, which others may get."""
        rows = self.ids.find(keys)
        known = keys[rows >= 0]
        if self.kept and known.size:
            self.kept.keep(rows[rows >= 0])
            self.kept.keep_free()
        rows = self.ids.remove(known)
        if self.versions is not None:
            self.versions.array[rows] = NEVER
        return known, rows
