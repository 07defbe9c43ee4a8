"""From int64 ids to numbers of rows, growing as ids come: what tables keep their values by.

The numbers are small and used again, so that values stand in arrays beside the map (growing.py). An entry costs its key
and between 6.4 and 10.7 bytes of index, which grows in pieces: index_growth.py says when, cpu/_compiled/id_index.py
how.
"""

from __future__ import annotations

import enum
import os
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from tenfold_core import errors
from tenfold_kernels.resources.growing import GrowingArray, fill_pages, give_back, small_pages
from tenfold_kernels.resources.index_growth import IndexGrowth, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]

#: The largest number of rows: an index has int32 slots.
MOST_ROWS = (1 << 31) - 2
#: Chosen once a process, so that nobody can know which ids share a slot.
_SEED = int.from_bytes(os.urandom(7), "little")
_NOTHING = np.zeros(0, np.int32)
#: Bits of a hash; and where there is no old index, all of it was moved.
_HASH_BITS, _ALL = 64, 1 << 62


class State(enum.IntEnum):
    """Numbers of a map that loops read and change."""

    #: Rows that were ever given out, and how many of them are free again.
    USED = 0
    FREE = 1
    #: Of a hash shifted to the right by so many bits there is left the place in the index, and in the old one; the keys
    #: with a place in the old one before the third number are in the new one.
    SHIFT = 2
    OLD_SHIFT = 3
    MOVED = 4


class IdLoops(NamedTuple):
    """What works on an index: the loops of cpu/_compiled/id_index.py."""

    find: Callable[..., int]
    add: Callable[..., int]
    move: Callable[..., int]
    remove: Callable[..., int]


class IdMap:
    """Not thread-safe: its owner has a lock. Arrays of keys are vectors of int64."""

    def __init__(self, loops: IdLoops, seed: int = _SEED) -> None:
        self._loops, self._seed = loops, seed
        self._growth = IndexGrowth()
        self._index: Array = np.zeros(size_of(self._growth.slots), np.int32)
        self._old = _NOTHING
        self._keys = GrowingArray(np.int64)
        self._keys.reserve(1)
        self._free = GrowingArray(np.int64)
        self._state = np.zeros(len(State), np.int64)
        self._state[State.SHIFT :] = self._shift, self._shift, _ALL
        #: Changes whenever `arrays` or `free` are other ones.
        self.version = 0

    def __len__(self) -> int:
        return self.rows - int(self._state[State.FREE])

    @property
    def rows(self) -> int:
        """All rows that were ever given out are below it."""
        return int(self._state[State.USED])

    @property
    def nbytes(self) -> int:
        """What the map takes, without its room to grow."""
        return self._growth.nbytes + 8 * (self.rows + int(self._state[State.FREE]))

    @property
    def arrays(self) -> tuple[Array, Array, Array]:
        """The index, the one before it while it is moved, and the keys by row: others after ids were added."""
        return self._index, self._old, self._keys.array

    @property
    def seed(self) -> int:
        """What the hashes of keys begin with."""
        return self._seed

    @property
    def state(self) -> Array:
        """The numbers of `State`, which adding ids changes; always the same array."""
        return self._state

    @property
    def free(self) -> Array:
        """The stack of rows that are free, with room behind it."""
        return self._free.array

    def has_room(self, more: int) -> bool:
        """Whether so many ids more need none of `arrays` to be another one."""
        return self.rows + more <= len(self._keys.array) and self._growth.has_room(len(self) + more)

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
        return self._free.array[: int(self._state[State.FREE])]

    def find(self, keys_N: Array) -> Array:
        """The row of each key, −1 where there is none."""
        return self._find(keys_N)[0]

    def _find(self, keys_N: Array) -> tuple[Array, int]:
        """The same, and how many keys there are that have none."""
        rows_N = np.empty(keys_N.size, np.int64)
        self.go_on(keys_N.size)
        arrays = self._index, self._old, self._keys.array, self._state
        return rows_N, self._loops.find(keys_N, rows_N, *arrays, self._seed)

    def find_or_add(self, keys_N: Array) -> tuple[Array, Array]:
        """The row of each key, and those of them that are new, once each, in the order of their first keys.

        Raises ResourceExhaustedError where there would be more than MOST_ROWS rows; nothing was added then.
        """
        rows_N, absent = self._find(keys_N)
        if not absent:
            return rows_N, rows_N[:0]
        if self.rows + absent > MOST_ROWS:
            raise errors.resource_exhausted(f"A table of ids has at most {MOST_ROWS} rows; {absent} more were added")
        before = self._keys.array
        self._keys.reserve(self.rows + absent)
        self._make_room(absent)
        self.version += self._keys.array is not before
        added_N = np.empty(absent, np.int64)
        arrays = self._index, self._old, self._keys.array, self._free.array, self._state
        count = self._loops.add(keys_N, rows_N, added_N, *arrays, self._seed)
        return rows_N, added_N[:count]

    def remove(self, keys_N: Array) -> Array:
        """Forgets keys; the rows of those that were there, which may be given out again."""
        self.go_on(keys_N.size)
        self.version += 1
        self._free.reserve(int(self._state[State.FREE]) + keys_N.size)
        removed_N = np.empty(keys_N.size, np.int64)
        arrays = self._index, self._old, self._keys.array, self._free.array, self._state
        return removed_N[: self._loops.remove(keys_N, removed_N, *arrays, self._seed)]

    def items(self) -> tuple[Array, Array]:
        """All keys and their rows, by rows. Without removals that is the order in which they came."""
        given_out = np.ones(self.rows, np.bool_)
        given_out[self._free.array[: int(self._state[State.FREE])]] = False
        rows = np.flatnonzero(given_out)
        return self._keys.array[rows], rows

    @property
    def _shift(self) -> int:
        return _HASH_BITS - (self._growth.slots.bit_length() - 1)

    def _make_room(self, more: int) -> None:
        growth, ids = self._growth, len(self) + more
        slots = growth.slots_for(ids)
        if slots > growth.slots:
            self.go_on(self._old.size)
            larger = small_pages(size_of(slots), np.int32)
            growth.begin(slots)
            self._index, self._old = larger, self._index
            self._state[State.OLD_SHIFT] = self._state[State.SHIFT]
            self._state[State.SHIFT], self._state[State.MOVED] = self._shift, 0
            self.version += 1
            self.go_on(more)
        if growth.is_late(ids):
            self.go_on(self._old.size)

    def go_on(self, keys: int) -> None:
        """Moves some slots of the old index, if there is one: for a call with so many keys."""
        if not self._old.size:
            return
        moved, last = self._growth.moved, self._growth.next(keys)
        fill_pages(self._index, *self._growth.filled(moved, last))
        arrays = self._index, self._old, self._keys.array, self._state
        last = self._loops.move(moved, last, *arrays, self._seed)
        if self._growth.go_on(last):
            self.version += 1
            self._old, self._state[State.MOVED] = _NOTHING, _ALL
        else:
            self._state[State.MOVED] = last
            give_back(self._old, moved, last)


def as_ids(keys: Array | Sequence[int]) -> Array:
    """A vector of int64 with the same numbers, of the caller's own: who asks cannot change it meanwhile."""
    return np.array(keys, np.int64).reshape(-1)
