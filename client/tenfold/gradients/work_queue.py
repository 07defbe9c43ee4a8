"""Gradient rows of work queues: there are none; definitions in tenfold_core/opdefs/work_queue.py."""

from __future__ import annotations

from tenfold.gradients.registry import not_differentiable

not_differentiable(
    "WorkQueueClose",
    "WorkQueueCreate",
    "WorkQueueHandleOp",
    "WorkQueueIsInitialized",
    "WorkQueuePut",
    "WorkQueueRestore",
    "WorkQueueSave",
    "WorkQueueSize",
    "WorkQueueTake",
    why="texts of a queue",
)
