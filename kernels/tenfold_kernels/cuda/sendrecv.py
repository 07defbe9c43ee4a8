"""The edges between partitions: the executor runs them, with values in the host's memory."""

from __future__ import annotations

from tenfold_core.opdefs.runtime_ops import BUNDLE_OPS, TRANSFER_OPS
from tenfold_kernels.registry import executor_op, no_kernel

executor_op(
    *sorted(TRANSFER_OPS),
    device="GPU",
    why="the executor moves values between partitions, feeds and fetches itself",
)
no_kernel(*sorted(BUNDLE_OPS), device="GPU", why="only tensors in the host's memory cross together")
