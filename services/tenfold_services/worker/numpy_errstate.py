"""Contexts in NumPy's error state for kernels: IEEE results, no warnings (tenfold_kernels.registry.quiet).

Entering `np.errstate` for each step costs as much as a small program. From NumPy 2.0 on the error state belongs to the
context, so it is entered once in contexts that are kept for this. Used by codegen.py, which calls generated code.
"""

from __future__ import annotations

import contextvars
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels.registry import quiet

if TYPE_CHECKING:
    from collections.abc import Callable


class _ThreadsState:
    """Before NumPy 2.0 the error state belongs to the thread: it is entered for each call."""

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        with quiet():
            return function(*arguments)


Context: TypeAlias = contextvars.Context | _ThreadsState

#: Contexts that no call uses now: a call pops one, or makes one, and puts it back.
free_contexts: list[Context] = []


def new_context() -> Context:
    """A context for one call at a time."""
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        return _ThreadsState()
    context = contextvars.Context()
    # never left: the context is used for nothing else
    context.run(quiet().__enter__)
    return context
