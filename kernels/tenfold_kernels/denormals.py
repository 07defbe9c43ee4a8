"""Denormal numbers count as zero where kernels compute, as they do on TensorFlow's threads.

They are those below 1.2e-38 (float32) and 2.2e-308 (float64). Many processors take a hundred times as long for them,
and training makes them: Adam's moments of a weight whose gradient has become zero decay into them after 830 steps, and
a step of a small net then took three times as long (decision 0050). As operands and as results of arithmetic they are
zero; what is only moved keeps its bits. Follows TensorFlow's platform/denormal.cc and threadpool.cc.

The mode belongs to a thread. The C library sets it, so there is nothing to compile: glibc and musl on x86-64 and
AArch64. That takes 0.7 µs a call; on x86-64 a process that makes many gets machine code for it (denormal_code.py),
0.1 µs. On other systems kernels compute with denormals: slower, and as exact as NumPy.

    flush, restore = denormals.mode   # once for each call: both of one kind
    before = flush()
    try: ...
    finally:
        if before: restore(before)
"""

from __future__ import annotations

import atexit
import ctypes
import logging
import platform
import sys
import threading
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from tenfold_kernels import denormal_code

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

#: (has this thread flush denormals: what `restore` takes, or something false where it did so before; gives this thread
#: the mode that it had).
Mode: TypeAlias = "tuple[Callable[[], Any], Callable[[Any], Any]]"

#: Calls after which machine code is worth its 0.1 s, and seconds that the process's end waits for it.
_MANY, _LOAD_SECONDS = 2000, 10.0
#: The C library's fenv_t has at most so many words of 32 bits.
_Words = ctypes.c_uint32 * 16
#: Machine → the word of fenv_t that has the mode, and its bits: for results and for operands, on AArch64 one for both.
_MODES = {"x86_64": (7, denormal_code.FLUSHES), "aarch64": (0, 1 << 24)}


class _CLibrary:
    """The mode by the C library. `flush` counts its calls, and has machine code loaded after many."""

    def __init__(self) -> None:
        # with the GIL: to let it go takes longer than the call. Without argtypes, which take longer than the call, too.
        library = ctypes.PyDLL(None)
        self._get, self._set = library.fegetenv, library.fesetenv
        self._word, self._bits = _MODES[platform.machine()]
        #: A thread's mode at its start, with denormals flushed.
        self._flushed = _Words()
        self._get(self._flushed)
        self._flushed[self._word] |= self._bits
        self._calls = 0

    @property
    def works(self) -> bool:
        """Whether the library does as it is told."""
        before = self.flush()
        if before is None:
            return True
        again = self.flush()
        self.restore(before)
        return again is None

    def flush(self) -> Any:
        before = _Words()
        self._get(before)
        if before[self._word] & self._bits == self._bits:
            return None
        self._set(self._flushed)
        # its own count: another thread may raise the shared one past the mark before it is compared
        calls = self._calls = self._calls + 1
        if calls == _MANY:
            _load_beside()
        return before

    def restore(self, before: Any) -> None:
        self._set(before)


def _nothing() -> None:
    return None


def _first_mode() -> Mode:
    if sys.platform == "linux" and platform.machine() in _MODES:
        try:
            library = _CLibrary()
        except (AttributeError, OSError):  # a C library without them
            return _nothing, _no_need
        if library.works:
            return library.flush, library.restore
    return _nothing, _no_need


def _no_need(_: Any) -> None:
    raise AssertionError("nothing was flushed")


mode: Mode = _first_mode()
for _kind in (np.float16, np.float32, np.float64):
    np.finfo(_kind)  # it remembers them; before NumPy 2.4 it warns if the first look finds no denormals


def flush_on_this_thread() -> None:
    """For a thread that runs nothing but kernels, at its start. Native threads that it starts do the same."""
    flush, _ = mode
    flush()


def _load_beside() -> None:
    if platform.machine() == "x86_64":
        thread = threading.Thread(target=_load, name="tenfold-denormals", daemon=True)
        # a process that ends inside LLVM crashes
        atexit.register(thread.join, _LOAD_SECONDS)
        thread.start()


def _load() -> None:
    global mode
    try:
        mode = denormal_code.flush_and_restore()
    except Exception as error:  # a machine that runs no code of ours: the C library goes on
        _log.info("Denormals are flushed by the C library: %s: %s", type(error).__name__, error)
