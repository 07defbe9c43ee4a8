"""An index of ids: from int64 keys to numbers of rows, by open addressing. The map around it is resources/id_map.py.

A slot of the index holds a row's number plus 1, 0 where it is free, and the key stands in the row. A key's place is the
first bits of its hash; it stands there or behind, never before, and the last slot is always free. So an index of twice
the size has the keys in the same order, and an old one is moved into it from its beginning on: keys with a place before
`state[MOVED]` are in the new one, all others still in the old one, new ones as well. All arrays belong to the map,
which has a lock.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.intrinsics import fetch_ahead
from tenfold_kernels.resources.id_map import IdLoops, State

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array

# Numba reads no enum.
USED, FREE, SHIFT, OLD_SHIFT, MOVED = (int(cell) for cell in State)
#: MurmurHash3's finalizer: every bit of a key changes half of the hash's bits.
_FIRST, _SECOND, _HALF = 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53, 33

#: Slots between the one that is moved and the one of which the key is asked for: keys are anywhere in memory.
_AHEAD = 16


@inline
def hash_of(key, seed):  # type: ignore[no-untyped-def]
    h = np.uint64(key) ^ np.uint64(seed)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_FIRST)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_SECOND)
    return h ^ (h >> np.uint64(_HALF))


@inline
def place_of(h, shift):  # type: ignore[no-untyped-def]
    return np.int64(h >> np.uint64(shift))


@inline
def row_from(slot, key, index_S, keys_R):  # type: ignore[no-untyped-def]
    # `slot` is the key's place; −1 where the index does not have it
    row = np.int64(index_S[slot]) - 1
    while row >= 0 and keys_R[row] != key:
        slot += 1
        row = np.int64(index_S[slot]) - 1
    return row


@inline
def _put(slot, row, index_S):  # type: ignore[no-untyped-def]
    last = index_S.size - 1
    while slot < last and index_S[slot] != 0:
        slot += 1
    if slot < last:
        index_S[slot] = row + 1


def _find(keys_N, rows_N, index_S, old_S, keys_R, state, seed):  # type: ignore[no-untyped-def]
    # How many keys have none.
    absent = 0
    shift, old_shift, moved = state[SHIFT], state[OLD_SHIFT], state[MOVED]
    for i in range(keys_N.size):
        h = hash_of(keys_N[i], seed)
        old = place_of(h, old_shift)
        if old < moved:
            row = row_from(place_of(h, shift), keys_N[i], index_S, keys_R)
        else:
            row = row_from(old, keys_N[i], old_S, keys_R)
        rows_N[i] = row
        absent += row < 0
    return absent


def add(keys_N, rows_N, added_N, index_S, old_S, keys_R, free_F, state, seed):  # type: ignore[no-untyped-def]
    # Rows for the keys whose row is −1, which may be there more than once; how many rows are new.
    count = 0
    shift, old_shift, moved = state[SHIFT], state[OLD_SHIFT], state[MOVED]
    for i in range(keys_N.size):
        if rows_N[i] >= 0:
            continue
        key = keys_N[i]
        h = hash_of(key, seed)
        slot, is_old = place_of(h, old_shift), True
        if slot < moved:
            slot, is_old = place_of(h, shift), False
        row = row_from(slot, key, old_S, keys_R) if is_old else row_from(slot, key, index_S, keys_R)
        if row < 0:
            if state[FREE] > 0:
                state[FREE] -= 1
                row = free_F[state[FREE]]
            else:
                row = state[USED]
                state[USED] += 1
            keys_R[row] = key
            if is_old:
                _put(slot, row, old_S)
            else:
                _put(slot, row, index_S)
            added_N[count] = row
            count += 1
        rows_N[i] = row
    return count


def _move(first, last, index_S, old_S, keys_R, state, seed):  # type: ignore[no-untyped-def]
    # The slots of the old index from first to last, and on to one that is free: no key stands behind it whose place is
    # before it. Where that is.
    shift, slot = state[SHIFT], first
    for ahead in range(first, min(first + _AHEAD, old_S.size)):
        fetch_ahead(keys_R, np.int64(old_S[ahead]) - 1)
    while slot < old_S.size and (slot < last or old_S[slot - 1] != 0):
        if slot + _AHEAD < old_S.size:
            fetch_ahead(keys_R, np.int64(old_S[slot + _AHEAD]) - 1)
        row = np.int64(old_S[slot]) - 1
        if row >= 0:
            _put(place_of(hash_of(keys_R[row], seed), shift), row, index_S)
        slot += 1
    return slot


@inline
def _take(slot, key, index_S, keys_R, seed, shift):  # type: ignore[no-untyped-def]
    # The row of a key, which is not in the index any more; −1 where it was not.
    row = np.int64(index_S[slot]) - 1
    while row >= 0 and keys_R[row] != key:
        slot += 1
        row = np.int64(index_S[slot]) - 1
    if row >= 0:
        # what follows closes the gap, unless that would put it before its own place
        gap, slot = slot, slot + 1
        while index_S[slot] != 0:
            if place_of(hash_of(keys_R[index_S[slot] - 1], seed), shift) <= gap:
                index_S[gap] = index_S[slot]
                gap = slot
            slot += 1
        index_S[gap] = 0
    return row


def _remove(keys_N, removed_N, index_S, old_S, keys_R, free_F, state, seed):  # type: ignore[no-untyped-def]
    # Frees the rows of keys that are there; how many.
    count = 0
    shift, old_shift, moved = state[SHIFT], state[OLD_SHIFT], state[MOVED]
    for i in range(keys_N.size):
        h = hash_of(keys_N[i], seed)
        old = place_of(h, old_shift)
        if old < moved:
            row = _take(place_of(h, shift), keys_N[i], index_S, keys_R, seed, shift)
        else:
            row = _take(old, keys_N[i], old_S, keys_R, seed, old_shift)
        if row >= 0:
            free_F[state[FREE]] = row
            state[FREE] += 1
            removed_N[count] = row
            count += 1
    return count


def _hashes(keys_N: Array, seed: int) -> Array:
    h = keys_N.astype(np.uint64) ^ np.uint64(seed)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_FIRST)
    h = (h ^ (h >> np.uint64(_HALF))) * np.uint64(_SECOND)
    return np.asarray(h ^ (h >> np.uint64(_HALF)))


def _places(h_N: Array, shift: int) -> Array:
    return (h_N >> np.uint64(shift)).astype(np.int64)


def _rows_in(keys_N: Array, slot_N: Array, index_S: Array, keys_R: Array) -> Array:
    rows_N = np.full(keys_N.size, -1, np.int64)
    slot_N, open_N = slot_N.copy(), np.arange(keys_N.size)
    while open_N.size:
        entry = index_S[slot_N[open_N]].astype(np.int64)
        hit = (entry > 0) & (keys_R[np.maximum(entry - 1, 0)] == keys_N[open_N])
        rows_N[open_N[hit]] = entry[hit] - 1
        open_N = open_N[~hit & (entry != 0)]
        slot_N[open_N] += 1
    return rows_N


def _put_all(slot_N: Array, rows_N: Array, index_S: Array) -> None:
    slot_N, open_N = slot_N.copy(), np.arange(rows_N.size)
    while open_N.size:
        open_N = open_N[slot_N[open_N] < index_S.size - 1]
        free = open_N[index_S[slot_N[open_N]] == 0]
        # of those that want the same slot the first one has it
        put = free[np.unique(slot_N[free], return_index=True)[1]]
        index_S[slot_N[put]] = rows_N[put] + 1
        open_N = np.setdiff1d(open_N, put)
        slot_N[open_N] += 1


def _find_in_numpy(
    keys_N: Array, rows_N: Array, index_S: Array, old_S: Array, keys_R: Array, state: Array, seed: int
) -> int:
    h_N = _hashes(keys_N, seed)
    old_N = _places(h_N, state[OLD_SHIFT])
    for at, shift, slots in ((old_N < state[MOVED], state[SHIFT], index_S), (old_N >= state[MOVED], None, old_S)):
        slot = old_N[at] if shift is None else _places(h_N[at], shift)
        rows_N[at] = _rows_in(keys_N[at], slot, slots, keys_R)
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
    keys_C, rows = sorted_C[order], added_N[:count]
    keys_R[rows] = keys_C
    h_C = _hashes(keys_C, seed)
    old_C = _places(h_C, state[OLD_SHIFT])
    is_moved = old_C < state[MOVED]
    _put_all(_places(h_C[is_moved], state[SHIFT]), rows[is_moved], index_S)
    _put_all(old_C[~is_moved], rows[~is_moved], old_S)
    rows_C = np.empty(count, np.int64)
    rows_C[order] = rows
    rows_N[absent] = rows_C[place.reshape(-1)]
    return int(count)


def _move_in_numpy(first: int, last: int, index_S: Array, old_S: Array, keys_R: Array, state: Array, seed: int) -> int:
    if last < old_S.size:
        last += int(np.argmin(old_S[last - 1 :] != 0))
    rows = old_S[first:last].astype(np.int64) - 1
    rows = rows[rows >= 0]
    _put_all(_places(_hashes(keys_R[rows], seed), state[SHIFT]), rows, index_S)
    return last


def _remove_in_python(*arguments: Any) -> int:
    with np.errstate(over="ignore"):
        return int(_remove(*arguments))  # type: ignore[no-untyped-call]


def id_loops() -> IdLoops:
    """The loops of every map of ids.

    Arrays belong to the map: keys_N int64, rows_N the row of each, −1 where there is none; index_S and old_S int32, of
    which the last slot is free; keys_R the key of each row, free_F a stack of free rows, `state` as `State` says.
    `find` says how many keys have no row. `add` writes the new rows to added_N and says how many; keys without a row
    are in neither index, and there is room for them. `move` puts the slots of the old index from first to last into the
    new one, or some more, and says where it ended. `remove` writes the rows of the keys that were there to removed_N
    and says how many.
    """
    return IdLoops(
        find=compile_loop(_find, "x1 x1 w1 w1 x1 x1 n", np.int32, result="n", stand_in=_find_in_numpy),
        add=compile_loop(add, "x1 x1 x1 w1 w1 x1 x1 x1 n", np.int32, result="n", stand_in=_add_in_numpy),
        move=compile_loop(_move, "n n w1 w1 x1 x1 n", np.int32, result="n", stand_in=_move_in_numpy),
        remove=compile_loop(_remove, "x1 x1 w1 w1 x1 x1 x1 n", np.int32, result="n", stand_in=_remove_in_python),
    )
