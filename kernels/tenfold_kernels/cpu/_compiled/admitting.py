"""Which ids of a lookup have weights: those that were asked for often enough. Used by resources/embedding_tables.py.

Frequencies are counted in the order of the keys: an id that is there twice may be admitted in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array


def _admit(rows_N, counts_N, freqs_R, least, record, admitted_N):  # type: ignore[no-untyped-def]
    # Counts ids that have no weights yet, and with `record` all of them; how many more have weights than before.
    more = np.int64(0)
    for i in range(rows_N.size):
        row = rows_N[i]
        has_weights = freqs_R[row] >= least
        if record or not has_weights:
            freqs_R[row] += counts_N[i]
            more += np.int64(freqs_R[row] >= least) - np.int64(has_weights)
        admitted_N[i] = has_weights
    return more


def _admit_in_numpy(rows_N: Array, counts_N: Array, freqs_R: Array, least: int, record: int, admitted_N: Array) -> int:
    order = np.argsort(rows_N, kind="stable")
    rows, counts = rows_N[order], counts_N[order]
    before = np.cumsum(counts) - counts
    first = np.flatnonzero(np.diff(rows, prepend=-1))
    before -= np.repeat(before[first], np.diff(first, append=rows.size))
    has_weights = freqs_R[rows] + before >= least
    admitted_N[order] = has_weights
    had = np.count_nonzero(freqs_R[rows[first]] >= least)
    np.add.at(freqs_R, rows, counts if record else np.where(has_weights, 0, counts))
    return int(np.count_nonzero(freqs_R[rows[first]] >= least) - had)


def admit() -> Callable[..., int]:
    """(rows_N, counts_N, freqs_R, least, record, admitted_N): counts N lookups of rows in their frequencies and says
    which found weights: those whose row had at least `least` by then. How many rows more have that now."""
    return compile_loop(_admit, "x1 x1 x1 n n x1", np.int64, result="n", stand_in=_admit_in_numpy)
