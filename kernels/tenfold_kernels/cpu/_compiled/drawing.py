"""Drawing from a shuffle's buffer for many elements at once: which row is drawn, and where new ones go.

Used by resources/datasets/shuffle_buffer.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._compiled.compiling import compile_loop

if TYPE_CHECKING:
    from collections.abc import Callable


def _exchange(  # type: ignore[no-untyped-def]
    words_N, row_at_P, new_at_R, rows_N, sources_N, start, end, ring, fresh, grows
):
    # P places, R rows, of which `new_at` says which new element is in them, -1 for none. A source is a row, or R and
    # the number of a new element.
    for i in range(words_N.size):
        place = (start + np.int64(words_N[i]) % (end - start)) % ring
        head = start % ring
        row = row_at_P[place]
        rows_N[i] = row
        sources_N[i] = row
        if new_at_R[row] >= 0:
            sources_N[i] = new_at_R.size + new_at_R[row]
        row_at_P[place] = row_at_P[head]
        start += 1
        new_at_R[row] = -1
        if i < fresh:
            # the buffer was full: the place behind the last one is the one that has become free
            row_at_P[head] = row
            new_at_R[row] = i
            if grows:
                end += 1


def _exchange_in_python(*arguments: Any) -> None:
    _exchange(*arguments)  # type: ignore[no-untyped-call]


def exchange() -> Callable[..., None]:
    """(words_N, row_at_P, new_at_R, rows_N, sources_N, start, end, ring, fresh, grows): shuffle_buffer.Rows.draw."""
    return compile_loop(_exchange, "r1 x1 x1 x1 x1 n n n n b", np.uint32, stand_in=_exchange_in_python, heavy=True)
