"""The body of CheckNumerics' kernel."""

from __future__ import annotations

from numba import cuda


def find(n, x, found):  # type: ignore[no-untyped-def]
    # found[0]: there are infinities; found[1]: NaN. Threads that write write the same.
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        value = x[i]
        if value != value:
            found[1] = 1
        elif value - value != value - value:
            found[0] = 1
