"""`python -m tenfold_kernels.cpu._compiled.compile`: compiles loops into Numba's cache, for another process to load.

They come on standard input as a JSON list of [module, name, codes, element, index, result, fastmath]. Started by
loading.py; machine_code.py does the work.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from tenfold_kernels.compile_process import given_work
from tenfold_kernels.cpu._compiled import machine_code
from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec


def main() -> None:
    """Exits with 0 once everything is compiled and on disk."""
    for module, name, codes, element, index, result, fastmath in given_work():
        function = getattr(import_module(module), name)
        spec = LoopSpec(function, codes, np.dtype(element), np.dtype(index), result, frozenset(fastmath))
        machine_code.compile_spec(spec)


if __name__ == "__main__":
    main()
