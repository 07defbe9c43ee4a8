"""`python -m tenfold_kernels.cpu._compiled.compile`: compiles loops into Numba's cache, for another process to load.

They come on standard input as a JSON list of [module, name, codes, element, index, result, fastmath]. In a process of
its own, at a lower priority, LLVM takes neither the interpreter's lock nor a core from the steps that go on meanwhile.
Started by loading.py; machine_code.py does the work.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from importlib import import_module

import numpy as np

from tenfold_kernels.cpu._compiled import machine_code
from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec


def main() -> None:
    """Exits with 0 once everything is compiled and on disk."""
    if hasattr(os, "nice"):
        with contextlib.suppress(OSError):
            os.nice(5)
    for module, name, codes, element, index, result, fastmath in json.load(sys.stdin):
        function = getattr(import_module(module), name)
        spec = LoopSpec(function, codes, np.dtype(element), np.dtype(index), result, frozenset(fastmath))
        machine_code.compile_spec(spec)


if __name__ == "__main__":
    main()
