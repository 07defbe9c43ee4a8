"""The edges between partitions: the executor runs them, with values in the host's memory."""

from __future__ import annotations

from tenfold_kernels.registry import executor_op

executor_op(
    "_Send",
    "_Recv",
    "_HostSend",
    "_HostRecv",
    "_Arg",
    "_Retval",
    device="GPU",
    why="the executor moves values between partitions, feeds and fetches itself",
)
