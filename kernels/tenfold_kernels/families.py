"""Which modules hold the kernels of a family of ops: cpu/<family>.py and cpu/<family>_*.py, found by their names.

A family is a stem of tenfold_core/opdefs. registry.py imports a family's modules when it is first asked for one of its
ops; to list them imports none. A test compares the family of every op with the module of its kernels.
"""

from __future__ import annotations

import functools
import pkgutil
from pathlib import Path

from tenfold_core import opdefs

#: Device type → the folder of this package that holds its kernels; the best device first.
FOLDERS = {"CPU": "cpu", "GPU": "cuda"}


@functools.cache
def modules_of(device_type: str) -> dict[str, tuple[str, ...]]:
    """Op family → full names of the modules that hold its kernels, in alphabetical order. Reads a folder, once."""
    folder = FOLDERS[device_type]
    found: dict[str, list[str]] = {}
    for module in pkgutil.iter_modules([str(Path(__file__).parent / folder)]):
        family = opdefs.family_of_module(module.name)
        if family is not None:
            found.setdefault(family, []).append(f"{__package__}.{folder}.{module.name}")
    return {family: tuple(sorted(names)) for family, names in found.items()}
