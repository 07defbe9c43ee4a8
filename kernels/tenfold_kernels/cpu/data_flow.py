"""Queues, accumulators, stacks, tensor arrays, tables, datasets: none is written yet; the look-up error says so."""

from __future__ import annotations

from tenfold.framework import opdefs
from tenfold_kernels.registry import no_kernel

no_kernel(
    *(op for op in opdefs.names() if opdefs.family_of(op) == "data_flow"),
    device="CPU",
    why="queues, accumulators, stacks, tensor arrays, tables and datasets are not written yet",
)
