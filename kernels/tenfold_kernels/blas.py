"""The entries of NumPy's own OpenBLAS that compiled loops call without the GIL, where there are such.

NumPy's wheels carry OpenBLAS with integers of 64 bits and names of their own (scipy_cblas_sgemm64_). Any other BLAS has
no entry here: products go to it by np.matmul only, and its threads are threadpoolctl's matter. Used by cpu/_products.py
and threads.py.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


@functools.cache
def _library() -> ctypes.CDLL | None:
    """NumPy's own, among the files that this process has mapped: threadpoolctl would take 25 ms of a first step."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
            path = next((line.split(maxsplit=5)[5].rstrip("\n") for line in maps if "libscipy_openblas64_" in line), "")
        library = ctypes.CDLL(path) if "numpy" in path else None
    except OSError:
        return None
    return library if hasattr(library, "scipy_openblas_set_num_threads64_") else None


@functools.cache
def gemm(dtype: Any) -> int:
    """The address of cblas_sgemm or cblas_dgemm with integers of 64 bits; 0 where there is none."""
    library, letter = _library(), _LETTERS.get(np.dtype(dtype))
    entry = getattr(library, f"scipy_cblas_{letter}gemm64_", None) if library is not None and letter else None
    return ctypes.cast(entry, ctypes.c_void_p).value or 0 if entry is not None else 0


def threads() -> int:
    """How many threads NumPy's own OpenBLAS uses; 0 where there is none."""
    library = _library()
    return int(library.scipy_openblas_get_num_threads64_()) if library is not None else 0


def set_threads(count: int) -> bool:
    """Gives it another number; False where there is none. Milliseconds if it must start threads."""
    library = _library()
    if library is not None:
        library.scipy_openblas_set_num_threads64_(count)
    return library is not None
