"""How exact products and convolutions of float32 are on a GPU. Read when a GPU is found: plans have it in them."""

from __future__ import annotations

import os

#: Whether float32 may be rounded to TF32, which has 10 bits behind the leading one: 1.
TF32 = "TENFOLD_TF32"


def allows_tf32() -> bool:
    """Whether this process takes less exact products of float32 for a multiple of the speed."""
    return os.environ.get(TF32) == "1"
