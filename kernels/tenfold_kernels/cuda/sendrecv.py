"""The edges between partitions: the executor runs them, with values in the host's memory."""

from __future__ import annotations

from tenfold_core.opdefs.runtime_ops import TRANSFER_OPS
from tenfold_kernels.registry import executor_op

executor_op(
    *sorted(TRANSFER_OPS),
    device="GPU",
    why="the executor moves values between partitions, feeds and fetches itself",
)
