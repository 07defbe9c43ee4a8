"""Compiles one loop for one element type, with an explicit signature, so that no call ever compiles.

Used by the other modules here, from kernel builders, that is while a partition is registered. Results are cached on
disk beside the sources (or in NUMBA_CACHE_DIR); cache_lock.py keeps processes out of each other's way there. Release
of the GIL, and IEEE division (error_model="numpy"), are settings of every loop. Numba's cache knows a loop by its name
and notices when the loop's own file has changed; a loop that inlines functions gets a name with their hash in it, so
that an edit of those is noticed too.
"""

from __future__ import annotations

import functools
import hashlib
import threading
from pathlib import Path
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, cast

import numba
import numpy as np
from numba import types
from numba.core.dispatcher import Dispatcher

from .cache_lock import cache_lock

if TYPE_CHECKING:
    from collections.abc import Callable

_OPTIONS: dict[str, Any] = {"nogil": True, "cache": True, "error_model": "numpy"}

#: One compilation at a time: two builders of one loop must not compile it twice.
_lock = threading.Lock()

#: What scalar bodies are compiled with; LLVM inlines them into every loop that calls them.
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


def _inlined(function: Callable[..., Any], found: list[Callable[..., Any]]) -> list[Callable[..., Any]]:
    """The functions that `function` calls and LLVM inlines, and those that these call; some call themselves."""
    for name in function.__code__.co_names:
        called = function.__globals__.get(name)
        if isinstance(called, Dispatcher) and called.py_func not in found:
            found.append(called.py_func)
            _inlined(called.py_func, found)
    return found


def _bytecode(code: CodeType) -> tuple[Any, ...]:
    """What `code` does, without its file and lines."""
    constants = (_bytecode(value) if isinstance(value, CodeType) else repr(value) for value in code.co_consts)
    return code.co_code, code.co_names, code.co_varnames, tuple(constants)


def _named_by_what_it_inlines(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, its name followed by a hash of the functions that it inlines; itself if it inlines none."""
    inlined = [_bytecode(called.__code__) for called in _inlined(function, [])]
    if not inlined:
        return function
    named = FunctionType(function.__code__, function.__globals__, function.__name__, function.__defaults__)
    named.__qualname__ = f"{function.__qualname__}_{hashlib.sha256(repr(inlined).encode()).hexdigest()[:16]}"
    return named


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
        compiled = numba.njit(**options)(_named_by_what_it_inlines(function))
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        # Neither the sources' folder nor the user's cache folder can be written to: compile in every process.
        uncached: Callable[..., Any] = numba.njit(signature, **{**options, "cache": False})(function)
        return uncached
    if isinstance(compiled, Dispatcher):  # not so with NUMBA_DISABLE_JIT
        with cache_lock(Path(str(compiled.stats.cache_path)) / f"{function.__module__}.{function.__qualname__}.lock"):
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
