"""`QueueRunners`: a `with` block in which the graph's queue runners fill their queues.

Follows TensorFlow 1.15's contrib/slim/python/slim/queues.py.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tenfold.graph import get_default_graph
from tenfold.graph.collections import GraphKeys
from tenfold.train.coordinator import Coordinator

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["NestedQueueRunnerError", "QueueRunners"]

_GRACE_SECONDS = 120
#: Held inside the block.
_running = threading.Lock()


class NestedQueueRunnerError(Exception):
    """A block of QueueRunners inside another one."""


@contextmanager
def QueueRunners(session: Any) -> Iterator[None]:
    """Starts the queue runners of the default graph in threads; stops them at the end, closing the session if stuck.

    Raises NestedQueueRunnerError inside another such block.
    """
    if not _running.acquire(blocking=False):
        raise NestedQueueRunnerError("QueueRunners cannot be nested")
    try:
        coordinator = Coordinator()
        threads: list[threading.Thread] = []
        for runner in get_default_graph().get_collection(GraphKeys.QUEUE_RUNNERS):
            threads += runner.create_threads(session, coord=coordinator, daemon=True, start=True)
        try:
            yield
        finally:
            coordinator.request_stop()
            try:
                coordinator.join(threads, stop_grace_period_secs=_GRACE_SECONDS)
            except RuntimeError:
                # A thread waits in a step: only the end of the session wakes it.
                session.close()
    finally:
        _running.release()
