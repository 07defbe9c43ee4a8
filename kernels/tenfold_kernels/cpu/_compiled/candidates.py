"""Candidates of the log-uniform distribution, with repetition or without, and how often a class is to be expected.

All of what word2vec draws in a step, in one call: NumPy's calls for 64 candidates take longer than the sampling.
Used by random_candidates.py, which makes the table of hashes, as for distinct.py.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop, inline
from tenfold_kernels.cpu._compiled.philox import block, to_double

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: Draws without repetition that find nothing new: no sane distribution takes so many.
MOST_TRIES = 1 << 24
#: Classes whose logarithms are looked up: 2 MB.
_MOST_LOGS = 1 << 18


@inline
def _expected(value, missed_L, log, wanted, tries):  # type: ignore[no-untyped-def]
    # P(v) = log((v + 2) / (v + 1)) / log(range + 1): how often, or at least once in so many tries.
    if tries == wanted:
        return math.log((value + 2.0) / (value + 1.0)) / log * wanted
    if missed_L.size:
        return -math.expm1(tries * missed_L[value])
    return -math.expm1(tries * math.log1p(-math.log((value + 2.0) / (value + 1.0)) / log))


def _log_uniform(  # type: ignore[no-untyped-def]
    key, low, high, limit, missed_L, table_T, true_B, found_S, true_expected_B, found_expected_S
):
    # T is a power of two, and a free slot of the table negative; T = 0: repetitions count.
    for b in range(true_B.size):
        if true_B[b] < 0 or true_B[b] >= limit:
            return -1 - b
    log = math.log1p(limit)
    mask = table_T.size - 1
    wanted = found_S.size
    count = 0
    tries = 0
    first = np.uint64(0)
    second = np.uint64(0)
    while count < wanted and tries <= MOST_TRIES:
        if tries % 2 == 0:
            first, second = block(key, low, high, tries // 2)
        else:
            first = second
        tries += 1
        value = (np.int64(math.exp(to_double(first) * log)) - 1) % limit
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
    for b in range(true_B.size):
        true_expected_B[b] = _expected(true_B[b], missed_L, log, wanted, tries)
    for s in range(count):
        found_expected_S[s] = _expected(found_S[s], missed_L, log, wanted, tries)
    return tries


def _log_uniform_in_python(
    key: int,
    low: int,
    high: int,
    limit: int,
    missed_L: Array,
    table_T: Array,
    true_B: Array,
    found_S: Array,
    true_expected_B: Array,
    found_expected_S: Array,
) -> int:
    wrong = np.flatnonzero((true_B < 0) | (true_B >= limit))
    if wrong.size:
        return -1 - int(wrong[0])
    # Blocks of the stream as they are asked for, some at a time.
    from tenfold_kernels.philox import Philox

    words = Philox.of_signed(key, low, high).single()
    log, found, tries = math.log1p(limit), dict[int, int](), 0
    while len(found) < found_S.size and tries <= MOST_TRIES:
        bits = (next(words) & 0xFFFFF) << 32 | next(words)
        value = (int(math.exp(bits / (1 << 52) * log)) - 1) % limit
        found.setdefault(value if table_T.size else tries, value)
        tries += 1
    found_S[: len(found)] = list(found.values())
    for values, expected in ((true_B, true_expected_B), (found_S, found_expected_S)):
        probability = np.log((values + 2.0) / (values + 1.0)) / log
        if tries == found_S.size:
            expected[:] = probability * tries
        else:
            expected[:] = -np.expm1(tries * np.log1p(-probability))
    return tries


def log_of_misses(limit: int) -> Array:
    """log(1 − P(v)), float64 [range], for the loop to look up; empty where that would take much memory."""
    if limit > _MOST_LOGS:
        return np.empty(0, np.float64)
    v = np.arange(limit, dtype=np.float64)
    with np.errstate(divide="ignore"):  # the only class is never missed
        return np.log1p(-np.log((v + 2.0) / (v + 1.0)) / math.log1p(limit))


def log_uniform() -> Callable[..., int]:
    """(key, low, high, limit, missed_L, table_T, true_B, found_S, float64: true_expected_B, found_expected_S) → tries.

    The stream begins at counter `high`·2⁶⁴ + `low`, each number a signed int64. −1 − b where true_B[b] is no class;
    more than MOST_TRIES where the candidates were not found.
    """
    return compile_loop(
        _log_uniform, "n n n n r1 x1 i1 x1 w1 w1", np.float64, np.int64, result="n", stand_in=_log_uniform_in_python
    )
