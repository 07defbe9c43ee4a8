"""`python -m tenfold_kernels.cpu._compiled.compile`: compiles loops into Numba's cache, for another process to load.

A loop comes on standard input as [module, name, codes, element, index, result, fastmath]. Started by loading.py;
machine_code.py does the work, and leaves what objects.py loads.
"""

from __future__ import annotations

from importlib import import_module

import numpy as np

from tenfold_kernels.compile_process import do_given_work
from tenfold_kernels.cpu._compiled import objects
from tenfold_kernels.cpu._compiled.loop_spec import LoopSpec


def compile_described(
    module: str, name: str, codes: str, element: str, index: str, result: str, fastmath: list[str]
) -> None:
    """Leaves the machine code of one loop on disk."""
    function = getattr(import_module(module), name)
    objects.compile_spec(
        LoopSpec(function, codes, np.dtype(element), np.dtype(index), result, frozenset(fastmath))
    )


if __name__ == "__main__":
    do_given_work(compile_described)
