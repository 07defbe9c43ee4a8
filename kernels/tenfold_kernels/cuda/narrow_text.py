"""Half and bfloat16 in the text of loops: read as float32, computed as float32, rounded to what they are.

Each op of a loop is rounded, so that one loop gives what its ops give one after the other. The functions that convert
are in _code/elementwise.py; bodies of _code/ have them by device.py.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core import dtypes

_NARROW = frozenset(np.dtype(each.as_numpy_dtype) for each in (dtypes.float16, dtypes.bfloat16))
_WIDE = np.dtype(np.float32)


def wide(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type that is computed with."""
    return _WIDE if dtype in _NARROW else dtype


def widened(text: str, dtype: np.dtype[Any]) -> str:
    """An element of the type as one of wide(dtype)."""
    return f"from_{dtype.name}({text})" if dtype in _NARROW else text


def narrowed(text: str, dtype: np.dtype[Any]) -> str:
    """A number of wide(dtype) as an element of the type."""
    return f"to_{dtype.name}({text})" if dtype in _NARROW else text


def rounded(text: str, dtype: np.dtype[Any]) -> str:
    """A number of wide(dtype) as one that the type has."""
    return widened(narrowed(text, dtype), dtype)
