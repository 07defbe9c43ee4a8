"""What generated runs call. Imports Numba: only generated modules and cache.py lead here.

`add_any_order` is an addition that LLVM may reorder, so that a sum is vectorised; everything else in a generated run
keeps its order.
"""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic


@intrinsic
def add_any_order(typing_context: Any, x: Any, y: Any) -> Any:  # type: ignore[no-untyped-def, unused-ignore]
    """x + y of one floating type, marked as reassociable."""
    if x != y or not isinstance(x, types.Float):
        return None

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.fadd(arguments[0], arguments[1], flags=("reassoc",))

    return x(x, y), generate
