"""The floor of a step: the time of its products and convolutions alone, at the best rate of this machine, and of the
bytes that must move. No step of any runtime takes less; a row says which share of it is reached.

Measured by torch, in the process of its side. Used by programs.py.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

#: Sizes of the square products whose best rate counts, and bytes of the copy.
_SIZES, _COPIED = (512, 1024, 2048), 64 << 20
#: Tries of each.
_TRIES = 7


def floor_s(torch: Any, step: Callable[[], object], moved: int) -> float:
    """Seconds. `step` is run once, to count what it multiplies; `moved` are the bytes that it reads and writes."""
    return _operations(torch, step) / _best_rate(torch) + moved / _bandwidth(torch)


def _operations(torch: Any, step: Callable[[], object]) -> int:
    """Floating-point operations of products and convolutions, forwards and back."""
    from torch.utils.flop_counter import FlopCounterMode  # type: ignore[import-not-found, unused-ignore]

    # torch's own count takes the gradient of a depthwise kernel for that of a full one
    own = {torch.ops.aten.convolution_backward: _backward_operations}
    # oneDNN's recurrent layers are one op, which is not counted; without it they are products
    with torch.backends.mkldnn.flags(enabled=False), FlopCounterMode(display=False, custom_mapping=own) as counter:
        step()
    return int(counter.get_total_flops())


def _backward_operations(gradient: Any, x: Any, weight: Any, *more: Any, **_: object) -> int:
    """Of both gradients of a convolution: each takes what the convolution takes. The arguments are shapes."""
    *_, transposed, _, _, wanted = more
    batch, _, *places = x if transposed else gradient
    return 2 * int(math.prod((batch, *places, *weight))) * sum(wanted[:2])


def _best_rate(torch: Any) -> float:
    """Operations a second of float32 products, by all cores."""
    rates = []
    for size in _SIZES:
        a, b = torch.ones(size, size), torch.ones(size, size)
        rates.append(2 * size**3 / _best_s(lambda a=a, b=b: a @ b))
    return max(rates)


def _bandwidth(torch: Any) -> float:
    """Bytes read and written a second, by a copy."""
    source = torch.ones(_COPIED // 4)
    target = torch.empty_like(source)
    return 2 * _COPIED / _best_s(lambda: target.copy_(source))


def _best_s(call: Callable[[], object]) -> float:
    taken = []
    for _ in range(_TRIES):
        before = time.perf_counter()
        call()
        taken.append(time.perf_counter() - before)
    return min(taken)
