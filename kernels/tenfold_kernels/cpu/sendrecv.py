"""The edges between partitions: the executor runs them, because they wait; the rows here let them be placed."""

from __future__ import annotations

from tenfold_kernels.registry import executor_op

executor_op(
    "_Send",
    "_Recv",
    "_HostSend",
    "_HostRecv",
    "_Arg",
    "_Retval",
    device="CPU",
    why="the executor moves values between partitions, feeds and fetches itself",
)
