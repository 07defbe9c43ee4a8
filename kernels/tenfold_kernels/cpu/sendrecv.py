"""The edges between partitions: the executor runs them, because they wait; the rows here let them be placed."""

from __future__ import annotations

from tenfold_core.opdefs.runtime_ops import TRANSFER_OPS
from tenfold_kernels.registry import executor_op

executor_op(
    *sorted(TRANSFER_OPS),
    device="CPU",
    why="the executor moves values between partitions, feeds and fetches itself",
)
