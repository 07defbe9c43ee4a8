"""Which rows of a table have changed since which save of it: what an increment of a checkpoint has.

Each row has a mark, the number of the period in which it last changed; a save ends a period. A save that fails changes
nothing: the next one begins where the last good one ended. Ids that were removed are kept by period. Used by
embedding_rows.py, under the table's lock; a table of which no increments are asked for has none of this.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_kernels.resources.growing import GrowingArray

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: Saves that are remembered. An increment follows the newest one that succeeded.
_KEPT = 64


class ChangedRows:
    """Not thread-safe: its table has a lock."""

    def __init__(self, rows: int, waiting: int = 0) -> None:
        #: Of each row; of free ones 0.
        self.marks = GrowingArray(np.int32)
        self.marks.reserve(max(1, rows))
        #: Of each id that waits for admission (waiting_ids.py).
        self.waiting_marks = GrowingArray(np.int32)
        self.waiting_marks.reserve(max(1, waiting))
        #: The present one; rows that never changed are marked 0.
        self._period = 1
        #: The period that each save ended, oldest first, by its prefix.
        self._ended: dict[str, int] = {}
        #: The period after which an increment begins that names no save.
        self._start = 0
        self._removed: list[tuple[int, Array]] = []

    def mark(self, rows: Array, most: int) -> None:
        """These rows change now. All rows are below `most`."""
        self.marks.reserve(most)
        self.marks.array[rows] = self._period

    def mark_waiting(self, rows: Array, most: int) -> None:
        """As `mark`, of ids that wait."""
        self.waiting_marks.reserve(most)
        self.waiting_marks.array[rows] = self._period

    def remove(self, keys: Array, rows: Array) -> None:
        """These keys have gone, and these were their rows."""
        if keys.size:
            self.marks.array[rows] = 0
            self._removed.append((self._period, keys))

    def remove_waiting(self, keys: Array) -> None:
        """These keys have gone, which waited."""
        if keys.size:
            self._removed.append((self._period, keys))

    def end_period(self, prefix: str) -> None:
        """A save of that name has all that changed until now."""
        self._ended.pop(prefix, None)
        self._ended[prefix] = self._period
        self.turn()
        while len(self._ended) > _KEPT:
            del self._ended[next(iter(self._ended))]
        first = min(self._start, *self._ended.values())
        self._removed = [each for each in self._removed if each[0] > first]

    def begin(self, prefix: str) -> None:
        """The table is what the checkpoint `prefix` has; what was saved before is of another history."""
        self._ended.clear()
        self._removed.clear()
        self._start = self._period
        self.end_period(prefix)

    def start(self) -> None:
        """Increments that name no save begin here."""
        self._start = self.turn()

    def turn(self) -> int:
        """The period that ends now: what changes from now on has another mark."""
        self._period += 1
        return self._period - 1

    def after(self, prefix: str | None, table: str) -> int:
        """The period that the save of that name ended. Raises FailedPreconditionError for a save that is not known."""
        if prefix is None:
            return self._start
        found = self._ended.get(prefix)
        if found is None:
            known = ", ".join(list(self._ended)[-3:]) or "none"
            raise errors.failed_precondition(
                f"The embedding variable {table} cannot say what has changed since {prefix}: of the last {_KEPT} saves "
                f"and restores of it there was none of that name (known: {known}). Save a whole checkpoint first"
            )
        return found

    def removed_after(self, period: int) -> list[Array]:
        """Keys that have gone after that period, of which some may be there again."""
        return [keys for at, keys in self._removed if at > period]
