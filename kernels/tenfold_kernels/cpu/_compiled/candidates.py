"""Candidates of the log-uniform distribution from a stream of words, with repetition or without.

Used by random_candidates.py, which has the words made (philox.py) and makes the table of hashes, as for distinct.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _log_uniform(words_G4, limit, found_S, table_T):  # type: ignore[no-untyped-def]
    # T is a power of two, and a free slot of the table negative; T = 0: repetitions count.
    words = words_G4.reshape(words_G4.size)
    log = math.log1p(limit)
    mask = table_T.size - 1
    count = 0
    tries = 0
    while count < found_S.size:
        if 2 * tries + 1 >= words.size:
            return -1
        high = np.uint64(words[2 * tries]) & np.uint64(0xFFFFF)
        bits = (high << np.uint64(32)) | np.uint64(words[2 * tries + 1])
        tries += 1
        value = (np.int64(math.exp(np.float64(bits) / 4503599627370496.0 * log)) - 1) % limit
        is_new = True
        if table_T.size:
            slot = np.int64((np.uint64(value) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(32)) & mask
            while table_T[slot] >= 0:
                if table_T[slot] == value:
                    is_new = False
                    break
                slot = (slot + 1) & mask
            if is_new:
                table_T[slot] = value
        if is_new:
            found_S[count] = value
            count += 1
    return tries


def _log_uniform_in_python(words_G4: Array, limit: int, found_S: Array, table_T: Array) -> int:
    words = words_G4.reshape(-1).tolist()
    log, found = math.log1p(limit), dict[int, int]()
    for tries in range(len(words) // 2 + 1):
        if len(found) == found_S.size:
            found_S[:] = list(found.values())
            return tries
        if 2 * tries == len(words):
            break
        bits = (words[2 * tries] & 0xFFFFF) << 32 | words[2 * tries + 1]
        value = (int(math.exp(bits / (1 << 52) * log)) - 1) % limit
        found.setdefault(value if table_T.size else tries, value)
    return -1


def log_uniform() -> Callable[..., int]:
    """(words_G4 uint32, limit, found_S int64, table_T int64) → tries; −1 where there are not enough words."""
    return compile_loop(_log_uniform, "r2 n x1 x1", np.uint32, np.int64, result="n", stand_in=_log_uniform_in_python)
