"""Runs generated code in NumPy's error state for kernels: IEEE results, no warnings (tenfold_kernels.registry.quiet).

Entering `np.errstate` for each step costs as much as a small program. From NumPy 2.0 on the error state belongs to the
context, so it is entered once in contexts that are kept for this. Used by straight.py and static_executor.py.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.registry import quiet

if TYPE_CHECKING:
    from collections.abc import Callable

#: From NumPy 2.0 on the error state belongs to the context and not to the thread.
_STATE_IN_CONTEXT = np.lib.NumpyVersion(np.__version__) >= "2.0.0"
#: Contexts in which NumPy does not warn, each made for one call at a time: taken from here and put back.
_contexts: list[contextvars.Context] = []


def run_quietly(function: Callable[..., None], *arguments: Any) -> None:
    """Calls the function. Any thread, many at once. Raises what it raises."""
    if not _STATE_IN_CONTEXT:
        with quiet():
            function(*arguments)
        return
    try:
        context = _contexts.pop()
    except IndexError:
        context = contextvars.Context()
        # Never left: the context is used for nothing else.
        context.run(quiet().__enter__)
    try:
        context.run(function, *arguments)
    finally:
        _contexts.append(context)
