"""Queues and their like have no kernel on a GPU: what they keep is in the host's memory, and outlives steps."""

from __future__ import annotations

from tenfold_core import opdefs
from tenfold_kernels.registry import no_kernel


def _of(*parts: str) -> list[str]:
    """The ops of this family with one of these in their names."""
    return [op for op in opdefs.names() if opdefs.family_of(op) == "data_flow" and any(part in op for part in parts)]


no_kernel(*_of("Queue", "Barrier"), device="GPU", why="a host resource: many steps and tasks wait for it")
no_kernel(*_of("Accumulator"), device="GPU", why="a host resource: it waits for gradients of many tasks")
no_kernel(
    *(op for op in _of("Stage", "Map") if op not in _of("Queue")),
    device="GPU",
    why="a host resource: what is staged is copied to the GPU when it is taken out",
)
no_kernel(*_of("Mutex", "SessionHandle", "SessionTensor", "RecordInput"), device="GPU", why="a host resource")
