"""Contexts that kernels run in: NumPy's error state (no warnings), memory kept from step to step, denormals flushed.

Entering `np.errstate` for each step costs as much as a small program. From NumPy 2.0 on the error state belongs to the
context, as the handler of arrays' memory does, so both are entered once in contexts that are kept for this. The handler
(memory.py) takes tens of milliseconds and megabytes to load, so the first calls after a program was compiled are
watched, and it is loaded beside the steps once they have shown page faults. Calls that take long are watched for good:
the C library may keep their memory for a hundred steps and no longer. Used by compiler/write/codegen.py, which calls
generated code.
"""

from __future__ import annotations

import contextvars
import sys
import time
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels import denormals, memory
from tenfold_kernels.registry import quiet

if TYPE_CHECKING:
    from collections.abc import Callable

#: Calls that are watched after a program was compiled. The first ones find fresh memory, whatever they do.
_WATCHED, _FIRST = 32, 3
#: Page faults in the others that call for the handler.
_MANY_FAULTS = 512
#: Seconds that a call takes on average for which being watched, a microsecond, is nothing.
_LONG = 1e-3


class _ThreadsState:
    """Before NumPy 2.0 the error state belongs to the thread: it is entered for each call."""

    def __init__(self, context: contextvars.Context) -> None:
        self._context = context

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return self._context.run(_quietly, function, *arguments)


def _quietly(function: Callable[..., Any], *arguments: Any) -> Any:
    with quiet():
        return function(*arguments)


class _Watched:
    """Counts the page faults of its calls."""

    def __init__(self, watch: _Watch, context: Context) -> None:
        self._watch, self._context = watch, context

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        import resource

        before, began = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt, time.perf_counter()
        try:
            return self._context.run(function, *arguments)
        finally:
            faults = resource.getrusage(resource.RUSAGE_THREAD).ru_minflt - before
            self._watch.note(faults, time.perf_counter() - began)


Context: TypeAlias = contextvars.Context | _ThreadsState | _Watched


class _Watch:
    """The last calls since a program was compiled. Any thread; a count that two threads make at once may be lost."""

    def __init__(self) -> None:
        self._calls = self._faults = 0
        self._seconds = 0.0

    def note(self, faults: int, seconds: float) -> None:
        """A call had so many page faults and took so long."""
        if watch is not self:
            return
        self._calls += 1
        if self._calls > _FIRST:
            self._faults += faults
            self._seconds += seconds
        if self._faults > _MANY_FAULTS:
            memory.load_beside(_renew)
            _stop_watching()
        elif self._calls >= _WATCHED:
            if self._seconds < _LONG * (_WATCHED - _FIRST):
                _stop_watching()
            self._calls, self._faults, self._seconds = _FIRST, 0, 0.0


#: None once there is nothing to watch for.
watch: _Watch | None = None
#: Contexts that no call uses now: a call pops one, or makes one, and puts it back into the same list. Another list
#: takes its place when new contexts are to be others.
free_contexts: list[Context] = []


def new_context() -> Context:
    """A context for one call at a time."""
    inner = contextvars.Context()
    kept = memory.kept_memory()
    if kept is not None:
        # neither is ever left: the context is used for nothing else
        inner.run(kept.enter)
    context: Context = inner
    if np.lib.NumpyVersion(np.__version__) < "2.0.0":
        context = _ThreadsState(inner)
    else:
        inner.run(quiet().__enter__)
    return context if watch is None else _Watched(watch, context)


def run(function: Callable[..., Any], *arguments: Any) -> Any:
    """`function(*arguments)` in such a context. codegen.py does the same itself and spares a call."""
    free = free_contexts
    try:
        context = free.pop()
    except IndexError:
        context = new_context()
    flush, restore = denormals.mode
    before = flush()
    try:
        return context.run(function, *arguments)
    finally:
        if before:
            restore(before)
        free.append(context)


def watch_next_calls() -> None:
    """A program was compiled, or compiled anew: its first calls are watched. Does nothing once the memory is kept."""
    global watch
    if memory.kept_memory() is None and sys.platform == "linux":
        watch = _Watch()
        _renew()


def _stop_watching() -> None:
    global watch
    watch = None
    _renew()


def _renew() -> None:
    global free_contexts
    free_contexts = []
