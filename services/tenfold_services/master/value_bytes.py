"""What keeping a tensor costs. Used by master.py for answers and by partial_runs.py for feeds."""

from __future__ import annotations

from typing import Any

import numpy as np


def value_bytes(value: Any) -> int:
    """Bytes that `value`, a tensor, keeps in use, those of its strings included; 0 for what is no array."""
    if not isinstance(value, np.ndarray):
        return 0
    total = value.nbytes
    if value.dtype == object:
        total += sum(len(item) for item in value.flat if isinstance(item, bytes))
    return total
