"""Control flow on a GPU: the executor's own, whose values stay where they are, and what has no data."""

from __future__ import annotations

from tenfold_core.opdefs.runtime_ops import FLOW_OPS
from tenfold_kernels.registry import EVERYTHING, executor_op, no_kernel, shared_kernel

executor_op(*sorted(FLOW_OPS), device="GPU", why="dead tensors and frames belong to the executor")
shared_kernel("NoOp", "ControlTrigger", host=(EVERYTHING,))
no_kernel("Assert", "Print", "PrintV2", device="GPU", why="they look at their values on the host")
