"""The body of CheckNumerics' kernel."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from numba import cuda

from tenfold_kernels.cuda._code.device import number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np


def find(dtype: np.dtype[Any]) -> Callable[..., None]:
    """(n, x, found): found[0] says that there are infinities, found[1] NaN. Threads that write write the same."""
    number = number_of(dtype)

    def run(n, x, found):  # type: ignore[no-untyped-def]
        for i in range(cuda.grid(1), n, cuda.gridsize(1)):
            value = number(x[i])
            if value != value:
                found[1] = 1
            elif value - value != value - value:
                found[0] = 1

    return run
