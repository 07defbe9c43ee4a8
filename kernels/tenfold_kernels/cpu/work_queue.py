"""Work queues: names of parts of an input, which workers take one at a time until all are taken.

A queue of texts (resources/queues.py) that is filled once and closed. A take waits while nothing is there and the queue
is open; when all are taken it ends with OutOfRangeError. Follows DeepRec's kernels/work_queue_ops.cc.
"""

from __future__ import annotations

import contextlib

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, text_attr
from tenfold_kernels.cpu._variables import handle_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.queue_stores import FifoStore
from tenfold_kernels.resources.queues import UNBOUNDED, Queue
from tenfold_kernels.resources.state import ResourceHandle

#: What handles of work queues say that they are.
WORK_QUEUE = "WorkQueue"


class WorkQueue(Queue):
    """One queue of works."""

    def __init__(self, name: str, node: KernelNode) -> None:
        account = node.resources.quota.queue_account(name)
        super().__init__("WorkQueue", name, [dtypes.string], [TensorShape([])], UNBOUNDED, FifoStore(), account)

    def works(self) -> Array:
        """Those that nobody has taken yet, in their order, read-only."""
        with self._lock:
            # nobody is told that they are gone for a moment
            taken = [self.store.take() for _ in range(len(self.store))]
            self.store.put_back(taken)
        found = np.empty(len(taken), object)
        found[:] = [work[()] for (work,) in taken]
        return found


def queue_of(node: KernelNode, handle: Array) -> WorkQueue:
    """Raises FailedPreconditionError for a queue that was not created."""
    found = handle_of(node, handle)
    try:
        return node.resources.lookup(found.container, found.name, WorkQueue)
    except errors.NotFoundError:
        raise errors.failed_precondition(f"The work queue {found.name} was not created") from None


@kernel("WorkQueueHandleOp")
def build_handle(node: KernelNode) -> Compute:
    """The same handle in every step; the queue comes with its creation."""
    container = text_attr(node, "container") or node.resources.default_container
    name = text_attr(node, "shared_name") or node.name
    handle = ResourceHandle(node.device, container, name, type_name=WORK_QUEUE).as_array()
    return lambda: handle


@kernel("WorkQueueCreate")
def build_create(node: KernelNode) -> Compute:
    """Makes the queue; one that is there stays as it is."""

    def compute(handle: Array) -> None:
        found = handle_of(node, handle)
        node.resources.lookup_or_create(found.container, found.name, WorkQueue, lambda: WorkQueue(found.name, node))

    return compute


@kernel("WorkQueueIsInitialized")
def build_is_initialized(node: KernelNode) -> Compute:
    def compute(handle: Array) -> Array:
        found = handle_of(node, handle)
        try:
            node.resources.lookup(found.container, found.name, WorkQueue)
        except errors.NotFoundError:
            return np.array(False)
        return np.array(True)

    return compute


@kernel("WorkQueuePut")
def build_put(node: KernelNode) -> Compute:
    return lambda handle, works: queue_of(node, handle).enqueue_many((works.reshape(-1),))


@kernel("WorkQueueTake", blocking=True)
def build_take(node: KernelNode) -> Compute:
    return lambda handle: queue_of(node, handle).dequeue()


@kernel("WorkQueueClose")
def build_close(node: KernelNode) -> Compute:
    """Again is no error."""

    def compute(handle: Array) -> None:
        queue = queue_of(node, handle)
        if not queue.is_closed:
            queue.close()

    return compute


@kernel("WorkQueueSize")
def build_size(node: KernelNode) -> Compute:
    return lambda handle: np.array(queue_of(node, handle).size(), np.int64)


@kernel("WorkQueueSave")
def build_save(node: KernelNode) -> Compute:
    return lambda handle: queue_of(node, handle).works()


@kernel("WorkQueueRestore")
def build_restore(node: KernelNode) -> Compute:
    """A queue of these works and no others, closed."""

    def compute(handle: Array, works: Array) -> None:
        found = handle_of(node, handle)
        queue = WorkQueue(found.name, node)
        queue.enqueue_many((works.reshape(-1),))
        queue.close()
        with contextlib.suppress(errors.NotFoundError):
            node.resources.delete(found.container, found.name, WorkQueue)
        node.resources.lookup_or_create(found.container, found.name, WorkQueue, lambda: queue)

    return compute
