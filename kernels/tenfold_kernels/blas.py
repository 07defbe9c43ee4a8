"""The entries of NumPy's own OpenBLAS that compiled loops call without the GIL, where there are such.

NumPy's wheels carry OpenBLAS with integers of 64 bits and names of their own (scipy_cblas_sgemm64_). Any other BLAS has
no entry here, and products go to it by np.matmul only. Used by cpu/_products.py; its threads: threads.py.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

_LETTERS = {np.dtype(np.float32): "s", np.dtype(np.float64): "d"}


@functools.cache
def _library() -> ctypes.CDLL | None:
    from threadpoolctl import ThreadpoolController

    for info in ThreadpoolController().info():
        if info["internal_api"] == "openblas" and "numpy" in str(info["filepath"]):
            try:
                return ctypes.CDLL(info["filepath"])
            except OSError:
                return None
    return None


@functools.cache
def gemm(dtype: Any) -> int:
    """The address of cblas_sgemm or cblas_dgemm with integers of 64 bits; 0 where there is none."""
    library, letter = _library(), _LETTERS.get(np.dtype(dtype))
    entry = getattr(library, f"scipy_cblas_{letter}gemm64_", None) if library is not None and letter else None
    return ctypes.cast(entry, ctypes.c_void_p).value or 0 if entry is not None else 0
