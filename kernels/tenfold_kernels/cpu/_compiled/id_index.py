"""An index of ids: from int64 keys to numbers of rows, by open addressing. The map around it is resources/id_map.py.

A slot of the index holds a row's number plus 1, 0 where it is free, and the key stands in the row. While the index
grows there is an old one beside it, of which some slots are moved in each call: what is not in the new one is looked
for in the old one, where GONE stands for a key that was removed. All arrays belong to the map, which has a lock.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.resources.id_map import IdLoops

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array

#: In a slot of the old index.
GONE = -1
#: In `state`: rows that were ever used, and how many of them are free again.
USED, FREE = 0, 1
#: MurmurHash3's finalizer: every bit of a key changes half of the hash's bits.
_FIRST, _SECOND, _HALF = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 33


@inline
def slot_of(key, seed, mask):  # type: ignore[no-untyped-def]
    h = np.uint64(key) ^ np.uint64(seed)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_FIRST)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_SECOND)
    return np.int64((h ^ (h >> np.uint64(_HALF))) & np.uint64(mask))


@inline
def row_from(slot, key, index_S, keys_R):  # type: ignore[no-untyped-def]
    # `slot` is the key's own
    mask = index_S.size - 1
    while index_S[slot] != 0:
        row = index_S[slot] - 1
        if row >= 0 and keys_R[row] == key:
            return row
        slot = (slot + 1) & mask
    return np.int64(-1)


@inline
def row_of(key, seed, index_S, keys_R):  # type: ignore[no-untyped-def]
    # −1 where the index does not have it
    return row_from(slot_of(key, seed, index_S.size - 1), key, index_S, keys_R)


@inline
def _put(key, row, seed, index_S):  # type: ignore[no-untyped-def]
    mask = index_S.size - 1
    slot = slot_of(key, seed, mask)
    while index_S[slot] != 0:
        slot = (slot + 1) & mask
    index_S[slot] = row + 1


def _find(keys_N, rows_N, index_S, old_S, keys_R, seed):  # type: ignore[no-untyped-def]
    # How many keys have none.
    absent = 0
    for i in range(keys_N.size):
        row = row_of(keys_N[i], seed, index_S, keys_R)
        if row < 0 and old_S.size:
            row = row_of(keys_N[i], seed, old_S, keys_R)
        rows_N[i] = row
        absent += row < 0
    return absent


def add(keys_N, rows_N, added_N, index_S, old_S, keys_R, free_F, state, seed):  # type: ignore[no-untyped-def]
    # Rows for the keys whose row is −1, which may be there more than once; how many rows are new.
    count = 0
    for i in range(keys_N.size):
        if rows_N[i] >= 0:
            continue
        key = keys_N[i]
        row = row_of(key, seed, index_S, keys_R)
        if row < 0:
            if state[FREE] > 0:
                state[FREE] -= 1
                row = free_F[state[FREE]]
            else:
                row = state[USED]
                state[USED] += 1
            keys_R[row] = key
            _put(key, row, seed, index_S)
            added_N[count] = row
            count += 1
        rows_N[i] = row
    return count


def _move(first, last, index_S, old_S, keys_R, seed):  # type: ignore[no-untyped-def]
    # The slots of the old index from first to last.
    for slot in range(first, last):
        row = old_S[slot] - 1
        if row >= 0:
            _put(keys_R[row], row, seed, index_S)


def _remove(keys_N, removed_N, index_S, old_S, keys_R, free_F, state, seed):  # type: ignore[no-untyped-def]
    # Frees the rows of keys that are there; how many.
    count = 0
    for i in range(keys_N.size):
        key = keys_N[i]
        row = np.int64(-1)
        mask = old_S.size - 1
        if old_S.size:
            slot = slot_of(key, seed, mask)
            while old_S[slot] != 0:
                at = old_S[slot] - 1
                if at >= 0 and keys_R[at] == key:
                    old_S[slot] = GONE
                    row = at
                    break
                slot = (slot + 1) & mask
        mask = index_S.size - 1
        slot = slot_of(key, seed, mask)
        while index_S[slot] != 0 and keys_R[index_S[slot] - 1] != key:
            slot = (slot + 1) & mask
        if index_S[slot] != 0:
            row = np.int64(index_S[slot] - 1)
            # what follows closes the gap, unless that would put it before its own place
            gap, slot = slot, (slot + 1) & mask
            while index_S[slot] != 0:
                home = slot_of(keys_R[index_S[slot] - 1], seed, mask)
                if ((slot - home) & mask) >= ((slot - gap) & mask):
                    index_S[gap] = index_S[slot]
                    gap = slot
                slot = (slot + 1) & mask
            index_S[gap] = 0
        if row >= 0:
            free_F[state[FREE]] = row
            state[FREE] += 1
            removed_N[count] = row
            count += 1
    return count


def _slots(keys_N: Array, seed: int, mask: int) -> Array:
    h = keys_N.astype(np.uint64) ^ np.uint64(seed)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_FIRST)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_SECOND)
    return ((h ^ (h >> np.uint64(_HALF))) & np.uint64(mask)).astype(np.int64)


def _rows_in(keys_N: Array, index_S: Array, keys_R: Array, seed: int) -> Array:
    rows_N = np.full(keys_N.size, -1, np.int64)
    mask = index_S.size - 1
    slot_N, open_N = _slots(keys_N, seed, mask), np.arange(keys_N.size)
    while open_N.size:
        entry = index_S[slot_N[open_N]].astype(np.int64)
        hit = (entry > 0) & (keys_R[np.maximum(entry - 1, 0)] == keys_N[open_N])
        rows_N[open_N[hit]] = entry[hit] - 1
        open_N = open_N[~hit & (entry != 0)]
        slot_N[open_N] = (slot_N[open_N] + 1) & mask
    return rows_N


def _put_all(keys_N: Array, rows_N: Array, index_S: Array, seed: int) -> None:
    mask = index_S.size - 1
    slot_N, open_N = _slots(keys_N, seed, mask), np.arange(keys_N.size)
    while open_N.size:
        free = open_N[index_S[slot_N[open_N]] == 0]
        # of those that want the same slot the first one has it
        put = free[np.unique(slot_N[free], return_index=True)[1]]
        index_S[slot_N[put]] = rows_N[put] + 1
        open_N = np.setdiff1d(open_N, put)
        slot_N[open_N] = (slot_N[open_N] + 1) & mask


def _find_in_numpy(keys_N: Array, rows_N: Array, index_S: Array, old_S: Array, keys_R: Array, seed: int) -> int:
    rows_N[:] = _rows_in(keys_N, index_S, keys_R, seed)
    if old_S.size:
        absent = rows_N < 0
        rows_N[absent] = _rows_in(keys_N[absent], old_S, keys_R, seed)
    return int(np.count_nonzero(rows_N < 0))


def _add_in_numpy(
    keys_N: Array,
    rows_N: Array,
    added_N: Array,
    index_S: Array,
    old_S: Array,
    keys_R: Array,
    free_F: Array,
    state: Array,
    seed: int,
) -> int:
    absent = np.flatnonzero(rows_N < 0)
    sorted_C, first_C, place = np.unique(keys_N[absent], return_index=True, return_inverse=True)
    order = np.argsort(first_C)
    count, free = order.size, int(state[FREE])
    taken = min(count, free)
    again = free_F[free - taken : free][::-1]
    added_N[:count] = [*again, *range(int(state[USED]), int(state[USED]) + count - taken)]
    state[FREE] -= taken
    state[USED] += count - taken
    keys_R[added_N[:count]] = sorted_C[order]
    _put_all(sorted_C[order], added_N[:count], index_S, seed)
    rows_C = np.empty(count, np.int64)
    rows_C[order] = added_N[:count]
    rows_N[absent] = rows_C[place.reshape(-1)]
    return int(count)


def _move_in_numpy(first: int, last: int, index_S: Array, old_S: Array, keys_R: Array, seed: int) -> None:
    rows = old_S[first:last].astype(np.int64) - 1
    rows = rows[rows >= 0]
    _put_all(keys_R[rows], rows, index_S, seed)


def _remove_in_python(*arguments: Any) -> int:
    with np.errstate(over="ignore"):
        return int(_remove(*arguments))  # type: ignore[no-untyped-call]


@functools.cache
def id_loops() -> IdLoops:
    """The loops of every map of ids.

    Arrays belong to the map: keys_N int64, rows_N the row of each, −1 where there is none; index_S and old_S int32, a
    power of two of slots or none at all, one of them free; keys_R the key of each row, free_F a stack of free rows,
    `state` how many of both. `find` says how many keys have no row. `add` writes the new rows to added_N and says how
    many; keys without a row are in neither index, and there is room for them. `move` puts the slots of the old index
    from first to last into the new one. `remove` writes the rows of the keys that were there to removed_N and says how
    many.
    """
    return IdLoops(
        find=compile_loop(_find, "x1 x1 w1 w1 x1 n", np.int32, result="n", stand_in=_find_in_numpy),
        add=compile_loop(add, "x1 x1 x1 w1 w1 x1 x1 x1 n", np.int32, result="n", stand_in=_add_in_numpy),
        move=compile_loop(_move, "n n w1 w1 x1 n", np.int32, stand_in=_move_in_numpy),
        remove=compile_loop(_remove, "x1 x1 w1 w1 x1 x1 x1 n", np.int32, result="n", stand_in=_remove_in_python),
    )
