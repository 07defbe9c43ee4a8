"""Memory that kernels have freed and will take again: the large arrays of a step lie where those of the last step lay.

The C library gives large blocks back to the system at once, and the next step's arrays are made page by page anew: a
page fault for each 4 KB, half of the time of some networks. NumPy takes a handler for its arrays' memory (NEP 49), for
a context and not for the process: contexts.py sets ours where kernels compute, and nowhere else. An array
keeps the handler that made it, so it may be freed anywhere. memory_code.py has the functions that NumPy calls; here are
the decisions: how much is kept, and for how long. Decision 0036.
"""

from __future__ import annotations

import contextvars
import ctypes
import importlib
import logging
import os
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import memory_limits
from tenfold_kernels import memory_code as code

if TYPE_CHECKING:
    from collections.abc import Callable

_log = logging.getLogger(__name__)

#: Seconds. A block that was not needed for so long goes back to the system. Longer than most steps.
PERIOD = 2.0
#: The part of the machine's memory that may be kept: one in so many.
_PART = 4

#: Places in NumPy's table of C functions, the same since 1.22.
_SET_HANDLER, _GET_HANDLER = 304, 305
_HANDLER_NAME = b"mem_handler"


_get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)
_new_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(
    ("PyCapsule_New", ctypes.pythonapi)
)

#: PyDataMemAllocator, in its order, which is that of the table's first words, too.
_FIELDS = ("context", "malloc", "calloc", "realloc", "free")


class _Allocator(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in _FIELDS]


class _Handler(ctypes.Structure):
    """PyDataMem_Handler."""

    _fields_ = [("name", ctypes.c_char * 127), ("version", ctypes.c_uint8), ("allocator", _Allocator)]


class KeptMemory:
    """The free blocks of one handler, and the handler. Lives as long as the process: arrays may outlive all else."""

    def __init__(self, keep: int) -> None:
        """Keeps up to `keep` bytes. Blocks for some 50 ms. Raises what is not foreseen where there can be none."""
        functions, engine = code.compile_functions()
        numpy_functions = _numpy_functions()
        set_handler = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(numpy_functions[_SET_HANDLER])
        default = contextvars.Context().run(ctypes.PYFUNCTYPE(ctypes.py_object)(numpy_functions[_GET_HANDLER]))
        theirs = _Handler.from_address(_get_pointer(default, _HANDLER_NAME)).allocator
        self._table = (ctypes.c_int64 * code.TABLE_WORDS)()
        self._table[: code.KEEP + 1] = [*(getattr(theirs, name) or 0 for name in _FIELDS), keep]
        table = ctypes.addressof(self._table)
        self._handler = _Handler(b"tenfold", 1, _Allocator(table, *(functions[name] for name in _FIELDS[1:])))
        capsule = _new_capsule(ctypes.addressof(self._handler), _HANDLER_NAME, None)
        # without the GIL released: nobody is in the lists while these are
        self._take = ctypes.PYFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(functions["take"])
        self._release = ctypes.PYFUNCTYPE(None, ctypes.c_int64)(functions["release"])
        # with the GIL released: giving megabytes back takes the system a while
        self._free = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)(theirs.free)
        for lasting in (self, engine, default, capsule):
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(lasting))
        self._set: Callable[[], object] = partial(set_handler, capsule)

    def enter(self) -> None:
        """From now on arrays that are made in this context have their memory from here."""
        self._set()

    @property
    def kept(self) -> int:
        """Bytes of free blocks."""
        return self._table[code.KEPT]

    @property
    def in_use(self) -> int:
        """Bytes of blocks under arrays."""
        return self._table[code.IN_USE]

    @property
    def taken(self) -> tuple[int, int]:
        """Blocks given out so far: those that were there, and new ones."""
        return self._table[code.HITS], self._table[code.MISSES]

    def sweep(self) -> None:
        """Ends a period: gives back what was free all through it."""
        table = self._table
        for number in range(code.CLASS_COUNT):
            at = code.CLASSES + number * code.CLASS_WORDS
            if not table[at + code.COUNT]:
                continue
            for _ in range(table[at + code.FEWEST]):
                base = self._take(ctypes.addressof(table), ctypes.addressof(table) + 8 * at)
                if base:
                    self._free(table[code.CONTEXT], base, table[at + code.BYTES])
            table[at + code.FEWEST] = table[at + code.COUNT]

    def release(self) -> None:
        """Gives all free blocks back to the system."""
        self._release(ctypes.addressof(self._table))


def _numpy_functions() -> Any:
    """NumPy's table of C functions, as addresses."""
    package = "numpy.core" if np.lib.NumpyVersion(np.__version__) < "2.0.0" else "numpy._core"
    umath = importlib.import_module(f"{package}._multiarray_umath")
    return (ctypes.c_void_p * (_GET_HANDLER + 1)).from_address(_get_pointer(umath._ARRAY_API, None))


_lock = threading.Lock()
_started = False
_kept_memory: KeptMemory | None = None


def kept_memory() -> KeptMemory | None:
    """That of this process; None before it is loaded, and where it cannot be."""
    return _kept_memory


def load_beside(loaded: Callable[[], None]) -> None:
    """Has `kept_memory` loaded by a thread, which calls `loaded` then and gives back what is not needed from then on.

    Never blocks. Once in a process: every further call does nothing.
    """
    global _started
    with _lock:
        if _started:
            return
        _started = True
    threading.Thread(target=_load_and_sweep, args=(loaded,), name="tenfold-memory", daemon=True).start()


def _load_and_sweep(loaded: Callable[[], None]) -> None:
    global _kept_memory
    try:
        memory = _kept_memory = KeptMemory(memory_limits.memory() // _PART)
    except Exception as error:
        # a machine that runs no code of ours, or a NumPy with another table: as before, with page faults
        _log.info("Freed memory is not kept for later steps: %s: %s", type(error).__name__, error)
        return
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=partial(_sweep_beside, memory))
    loaded()
    _sweep(memory)


def _sweep_beside(memory: KeptMemory) -> None:
    threading.Thread(target=_sweep, args=(memory,), name="tenfold-memory", daemon=True).start()


def _sweep(memory: KeptMemory) -> None:
    while True:
        time.sleep(PERIOD)
        memory.sweep()
