"""What stands for a value that is fed: it may be placed on a GPU, and a step that needs it unfed fails as on a CPU."""

from __future__ import annotations

from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, shared_kernel

shared_kernel("Placeholder", "PlaceholderV2", host=(EVERYTHING,))
shared_kernel("PlaceholderWithDefault", host=(), dtype=MOVED)
shared_kernel("PlaceholderWithDefault", host=(EVERYTHING,), dtype=ON_HOST)
