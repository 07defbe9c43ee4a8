"""Gradient rows of the ops that move tensors between tasks; definitions in tenfold_core/opdefs/sendrecv.py.

They appear in partitions only, after differentiation.
"""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable(
    "_Arg",
    "_Bundle",
    "_HostRecv",
    "_HostSend",
    "_Recv",
    "_Retval",
    "_Send",
    "_Unbundle",
    why="made by the runtime, after differentiation",
)
