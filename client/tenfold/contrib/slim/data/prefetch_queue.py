"""`prefetch_queue`: a queue that runners fill with the values of tensors ahead of their use.

Follows TensorFlow 1.15's contrib/slim/python/slim/data/prefetch_queue.py.
"""

from __future__ import annotations

from typing import Any

from tenfold.graph.default_scopes import name_scope
from tenfold.ops.queues import FIFOQueue, PaddingFIFOQueue
from tenfold.train.batching import fraction
from tenfold.train.queue_runner import QueueRunner, add_queue_runner


def prefetch_queue(
    tensors: Any,
    capacity: int = 8,
    num_threads: int = 1,
    dynamic_pad: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """The queue of a list of tensors, or of a dictionary, whose values it gives by name."""
    names = sorted(tensors) if isinstance(tensors, dict) else None
    parts = list(tensors) if names is None else [tensors[each] for each in names]
    with name_scope(name, "prefetch_queue", parts):
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue = kind(
            capacity,
            [each.dtype for each in parts],
            [each.get_shape() for each in parts],
            names=names,
            shared_name=shared_name,
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue(tensors)] * num_threads))
        fraction(f"fraction_of_{capacity}_full", queue.size(), capacity)
        return queue
