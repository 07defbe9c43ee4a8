"""Numba's cache on disk, without its preparations to compile where there is nothing to compile.

Imports Numba. Used by cpu/_compiled/machine_code.py and fusion/cache.py.
"""

from __future__ import annotations

from typing import Any

from numba.core.caching import FunctionCache
from numba.core.dispatcher import Dispatcher
from numba.core.runtime import rtsys  # type: ignore[attr-defined]


class CodeOnDisk(FunctionCache):
    """Before it looks on disk, Numba imports all that it can compile: 0.3 s of processor time, which holds up the steps
    beside it. Code that was compiled needs only the runtime's own functions.
    """

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """What Numba makes of the file for this signature, or None."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)  # type: ignore[no-untyped-call]


def compile_once(dispatcher: Any, signature: Any) -> None:
    """Gives the dispatcher, made with `cache=True`, machine code for this signature and for no other: from the disk,
    else compiled and left there. With NUMBA_DISABLE_JIT there is no dispatcher, and nothing to do. Blocks. Raises
    OSError or RuntimeError where the disk does."""
    if not isinstance(dispatcher, Dispatcher):
        return
    dispatcher._cache = CodeOnDisk(dispatcher.py_func)  # type: ignore[attr-defined, no-untyped-call]
    dispatcher.compile(signature)
    dispatcher.disable_compile()
