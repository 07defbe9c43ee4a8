"""Compiles one loop for one element type, with an explicit signature, so that no call ever compiles.

Used by the other modules here, from kernel builders, that is while a partition is registered. Results are cached on
disk beside the sources (or in NUMBA_CACHE_DIR); cache_lock.py keeps processes out of each other's way there. Release
of the GIL, and IEEE division (error_model="numpy"), are settings of every loop.
"""

from __future__ import annotations

import functools
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np
from numba import types

from .cache_lock import cache_lock

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}

#: One compilation at a time: two builders of one loop must not compile it twice.
_lock = threading.Lock()

#: What scalar bodies are compiled with; LLVM inlines them into every loop that calls them. The disk cache of a loop
#: watches the loop's own file: after an edit of scalar.py alone, touch the modules here.
inline = numba.njit(nogil=True, error_model="numpy")


def _argument(code: str, element: Any, index: Any) -> Any:
    """r2 read-only array of rank 2, w1 writable vector, i1 read-only index vector, x1 writable index vector, s element,
    n int64, b bool.
    """
    kind, rank = code[0], int(code[1:] or 0)
    match kind:
        case "r":
            return types.Array(element, rank, "C", readonly=True)
        case "w":
            return types.Array(element, rank, "C")
        case "i":
            return types.Array(index, rank, "C", readonly=True)
        case "x":
            return types.Array(index, rank, "C")
        case "s":
            return element
        case "n":
            return types.int64
        case "b":
            return types.boolean
    raise ValueError(f"no argument code {code!r}")


@functools.cache
def _compiled(
    function: Callable[..., Any], codes: str, element: Any, index: Any, result: str, fastmath: frozenset[str]
) -> Callable[..., Any]:
    element_type = numba.from_dtype(np.dtype(element))
    index_type = numba.from_dtype(np.dtype(index))
    arguments = tuple(_argument(code, element_type, index_type) for code in codes.split())
    returned = types.int64 if result == "n" else types.void
    options = {**_OPTIONS, "fastmath": set(fastmath)} if fastmath else _OPTIONS
    signature = returned(*arguments)
    try:
        compiled = numba.njit(**options)(function)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        # Neither the sources' folder nor the user's cache folder can be written to: compile in every process.
        uncached: Callable[..., Any] = numba.njit(signature, **{**options, "cache": False})(function)
        return uncached
    if compiled is not function:  # as it is with NUMBA_DISABLE_JIT
        with cache_lock(Path(compiled.stats.cache_path) / f"{function.__module__}.{function.__qualname__}.lock"):
            compiled.compile(signature)
        compiled.disable_compile()
    return cast("Callable[..., Any]", compiled)


def compile_loop(
    function: Callable[..., Any],
    codes: str,
    element: Any,
    index: Any = np.int64,
    *,
    result: str = "",
    fastmath: frozenset[str] = frozenset(),
) -> Callable[..., Any]:
    """`function` compiled for arguments described by `codes` (see `_argument`); blocks while it compiles, once a type.

    Calls take C-contiguous arrays only; a writable array is accepted where a read-only one is declared.
    """
    with _lock:
        return _compiled(function, codes, element, index, result, fastmath)
