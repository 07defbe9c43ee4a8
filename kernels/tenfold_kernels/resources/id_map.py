"""From int64 ids to numbers of rows, growing as ids come: what tables keep their values by.

The numbers are small and used again, so that values stand in arrays beside the map (growing.py). An entry costs its key
and between 6 and 12 bytes of index. The index grows in pieces: it is at most two thirds full, and when it is, one of
twice the size begins, into which every call moves some slots of the old one (cpu/_compiled/id_index.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_kernels.resources.growing import GrowingArray, small_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

_FEWEST_SLOTS = 16
#: The largest number of rows: an index has int32 slots.
MOST_ROWS = (1 << 31) - 2
#: Slots that a call moves: so many for each of its keys, and so many besides. With two or more for each new key the old
#: index is empty before the new one is full.
_MOVED_PER_KEY, _MOVED = 4, 256
#: Slots of a page of memory; of the next index one is made ready for so many new keys, which is a little too early.
_PAGE, _ADDED_PER_PAGE = 1024, 16
#: Chosen once a process, so that nobody can know which ids share a slot.
_SEED = int.from_bytes(os.urandom(7), "little")
_NOTHING = np.zeros(0, np.int32)


class IdLoops(NamedTuple):
    """What works on an index: the loops of cpu/_compiled/id_index.py."""

    find: Callable[..., int]
    add: Callable[..., int]
    move: Callable[..., None]
    remove: Callable[..., int]


class IdMap:
    """Not thread-safe: its owner has a lock. Arrays of keys are vectors of int64."""

    def __init__(self, loops: IdLoops, seed: int = _SEED) -> None:
        self._loops, self._seed = loops, seed
        self._index: Array = np.zeros(_FEWEST_SLOTS, np.int32)
        self._old, self._moved = _NOTHING, 0
        #: What the index is to be next, and how much of it has memory.
        self._next, self._ready = _NOTHING, 0
        self._keys = GrowingArray(np.int64)
        self._keys.reserve(1)
        self._free = GrowingArray(np.int64)
        self._state = np.zeros(2, np.int64)
        #: Changes whenever `arrays` or `counters` are other ones.
        self.version = 0

    def __len__(self) -> int:
        return self.rows - int(self._state[1])

    @property
    def rows(self) -> int:
        """All rows that were ever given out are below it."""
        return int(self._state[0])

    @property
    def nbytes(self) -> int:
        """What the map takes, without its room to grow."""
        slots = self._index.size + self._old.size + min(self._ready, self._next.size)
        return 4 * slots + 8 * (self.rows + int(self._state[1]))

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """The index, the one before it while it is moved, and the keys by row: others after ids were added."""
        return self._index, self._old, self._keys.array

    @property
    def seed(self) -> int:
        """What the hashes of keys begin with."""
        return self._seed

    @property
    def counters(self) -> tuple[Array, Array]:
        """How many rows there are and how many of them are free, and the free ones: what adding ids changes."""
        return self._state, self._free.array

    def has_room(self, more: int) -> bool:
        """Whether so many ids more need none of `arrays` to be another one."""
        return self.rows + more <= len(self._keys.array) and 3 * (len(self) + more) <= 2 * self._index.size

    def keys(self, rows_N: Array) -> Array:
        """The keys of rows that are given out."""
        return np.asarray(self._keys.array[rows_N])

    @property
    def row_keys(self) -> Array:
        """The key of each row; of rows that are free, any."""
        return self._keys.array

    @property
    def free_rows(self) -> Array:
        """Rows below `rows` that are free. It stays as it is until `remove`."""
        return self._free.array[: int(self._state[1])]

    def find(self, keys_N: Array) -> Array:
        """The row of each key, −1 where there is none."""
        return self._find(keys_N)[0]

    def _find(self, keys_N: Array) -> tuple[Array, int]:
        """The same, and how many keys there are that have none."""
        rows_N = np.empty(keys_N.size, np.int64)
        self.go_on(keys_N.size)
        return rows_N, self._loops.find(keys_N, rows_N, self._index, self._old, self._keys.array, self._seed)

    def find_or_add(self, keys_N: Array) -> tuple[Array, Array]:
        """The row of each key, and those of them that are new, once each, in the order of their first keys.

        Raises ResourceExhaustedError where there would be more than MOST_ROWS rows; nothing was added then.
        """
        rows_N, absent = self._find(keys_N)
        if not absent:
            return rows_N, rows_N[:0]
        if self.rows + absent > MOST_ROWS:
            raise errors.resource_exhausted(f"A table of ids has at most {MOST_ROWS} rows; {absent} more were added")
        self.version += 1
        self._keys.reserve(self.rows + absent)
        self._make_room(absent)
        added_N = np.empty(absent, np.int64)
        arrays = self._index, self._old, self._keys.array, self._free.array, self._state
        count = self._loops.add(keys_N, rows_N, added_N, *arrays, self._seed)
        self.prepare(count)
        return rows_N, added_N[:count]

    def remove(self, keys_N: Array) -> Array:
        """Forgets keys; the rows of those that were there, which may be given out again."""
        self.go_on(keys_N.size)
        self.version += 1
        self._free.reserve(int(self._state[1]) + keys_N.size)
        removed_N = np.empty(keys_N.size, np.int64)
        arrays = self._index, self._old, self._keys.array, self._free.array, self._state
        return removed_N[: self._loops.remove(keys_N, removed_N, *arrays, self._seed)]

    def items(self) -> tuple[Array, Array]:
        """All keys and their rows, by rows. Without removals that is the order in which they came."""
        given_out = np.ones(self.rows, np.bool_)
        given_out[self._free.array[: int(self._state[1])]] = False
        rows = np.flatnonzero(given_out)
        return self._keys.array[rows], rows

    def _make_room(self, more: int) -> None:
        slots = self._index.size
        if 3 * (len(self) + more) <= 2 * slots:
            return
        self.go_on(self._old.size)
        while 3 * (len(self) + more) > 2 * slots:
            slots *= 2
        self._old, self._moved = self._index, 0
        self._index = self._next if self._next.size == slots else small_pages(slots, np.int32)
        self._next, self._ready = _NOTHING, 0
        self.go_on(more)

    def prepare(self, added: int) -> None:
        """Has memory given to some of the next index from the time on when this one is five eighths full: keys are
        spread over all of it from the first moment, and each of its pages would be waited for then."""
        slots = self._index.size
        if 8 * len(self) < 5 * slots:
            return
        if not self._next.size:
            self._next = small_pages(2 * slots, np.int32)
        last = self._ready + _PAGE * (added // _ADDED_PER_PAGE + 1)
        self._next[self._ready : last : _PAGE] = 0
        self._ready = last

    def go_on(self, keys: int) -> None:
        """Moves some slots of the old index, if there is one: for a call with so many keys."""
        slots = self._old.size
        if not slots:
            return
        last = min(self._moved + _MOVED_PER_KEY * keys + _MOVED, slots)
        self._loops.move(self._moved, last, self._index, self._old, self._keys.array, self._seed)
        self._moved = last
        if last == slots:
            self.version += 1
            self._old, self._moved = _NOTHING, 0


def as_ids(keys: Array | Sequence[int]) -> Array:
    """A vector of int64 with the same numbers, of the caller's own: who asks cannot change it meanwhile."""
    return np.array(keys, np.int64).reshape(-1)
