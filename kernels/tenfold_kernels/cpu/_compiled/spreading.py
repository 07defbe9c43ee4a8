"""Ids of many lookups, spread over the parts of their tables. Used by cpu/embedding_exchange.py.

All arrays are the kernel's own. In tests, the stand-in is compared with the loop.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.embedding_parts import PART_BUCKETS
from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _spread(ids_M, ends_N, parts, distinct, table_T, first_M, keys_M, sizes_PN, places_M):  # type: ignore[no-untyped-def]
    # table_T, a power of two above the most ids of a lookup, holds places of ids plus 1; those of earlier lookups are
    # free slots, because all that this lookup has put there stands before the first free one.
    lookups = ends_N.size
    mask = table_T.size - 1
    begin = 0
    for n in range(lookups):
        for i in range(begin, ends_N[n]):
            value = ids_M[i]
            first_M[i] = i
            if distinct:
                slot = np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
                while table_T[slot] > begin and ids_M[table_T[slot] - 1] != value:
                    slot = (slot + 1) & mask
                if table_T[slot] > begin:
                    first_M[i] = table_T[slot] - 1
                else:
                    table_T[slot] = i + 1
            if first_M[i] == i:
                sizes_PN[value % PART_BUCKETS % parts * lookups + n] += 1
        begin = ends_N[n]
    # from here on where the next key of a part and lookup goes
    total = 0
    for k in range(sizes_PN.size):
        size = sizes_PN[k]
        sizes_PN[k] = total
        total += size
    begin = 0
    for n in range(lookups):
        for i in range(begin, ends_N[n]):
            if first_M[i] != i:
                places_M[i] = places_M[first_M[i]]
                continue
            value = ids_M[i]
            k = value % PART_BUCKETS % parts * lookups + n
            place = sizes_PN[k]
            sizes_PN[k] += 1
            keys_M[place] = value
            places_M[i] = place
        begin = ends_N[n]
    # and how many there are
    last = 0
    for k in range(sizes_PN.size):
        end = sizes_PN[k]
        sizes_PN[k] = end - last
        last = end
    return total


def _spread_in_numpy(
    ids_M: Array,
    ends_N: Array,
    parts: int,
    distinct: bool,
    table_T: Array,
    first_M: Array,
    keys_M: Array,
    sizes_PN: Array,
    places_M: Array,
) -> int:
    lookup_M = np.repeat(np.arange(ends_N.size), np.diff(ends_N, prepend=0))
    group_M = ids_M % PART_BUCKETS % parts * ends_N.size + lookup_M
    first_M[:] = np.arange(ids_M.size)
    if distinct and ids_M.size:
        order = np.lexsort((ids_M, lookup_M))
        new = np.ones(ids_M.size, np.bool_)
        new[1:] = (np.diff(ids_M[order]) != 0) | (np.diff(lookup_M[order]) != 0)
        first_M[order] = order[np.maximum.accumulate(np.where(new, np.arange(ids_M.size), 0))]
    firsts = np.flatnonzero(first_M == np.arange(ids_M.size))
    by_group = firsts[np.argsort(group_M[firsts], kind="stable")]
    keys_M[: firsts.size] = ids_M[by_group]
    places_M[by_group] = np.arange(firsts.size)
    places_M[:] = places_M[first_M]
    sizes_PN[:] = np.bincount(group_M[firsts], minlength=sizes_PN.size)
    return int(firsts.size)


def spread() -> Callable[..., int]:
    """(ids_M of lookups that end at ends_N, parts, distinct, table_T, first_M, keys_M, sizes_PN, places_M) → how many
    keys there are.

    Keys stand part by part, in each lookup by lookup, in each in the order of the ids; with `distinct` a lookup asks
    for an id once. `sizes` says how many a part and lookup have, `places` which key each id is. table_T and sizes_PN
    are zeros; T is a power of two greater than every lookup's number of ids.
    """
    return compile_loop(_spread, "x1 x1 n b x1 x1 x1 x1 x1", np.int64, result="n", stand_in=_spread_in_numpy)
