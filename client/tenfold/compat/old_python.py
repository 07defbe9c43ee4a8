"""Names that Python had in the days of TensorFlow 1 and has no more, for programs that run unchanged.

as_tensorflow.py puts them back in processes in which `import tensorflow` gives Tenfold, and only there; old_numpy.py
does the same for NumPy.
"""

from __future__ import annotations

import collections
import collections.abc
import fractions
import inspect
import math
import time
from typing import Any

#: Module, name that went, what stands for it. `collections` had the abstract classes until Python 3.10.
_GONE: tuple[tuple[Any, str, Any], ...] = (
    *((collections, name, getattr(collections.abc, name)) for name in collections.abc.__all__),
    (fractions, "gcd", math.gcd),
    (time, "clock", time.perf_counter),
)


def restore() -> None:
    """Gives Python's modules the names that they lack. What they have stays as it is."""
    from tenfold.compat.python.tf_inspect import getargspec

    for module, name, value in (*_GONE, (inspect, "getargspec", getargspec)):
        if name not in vars(module):
            setattr(module, name, value)
