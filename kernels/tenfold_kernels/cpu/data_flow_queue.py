"""The ops of queues, both families of handles. The queue itself is queues.py; here inputs are checked and handed over.

Follows queue_op.cc, fifo_queue_op.cc, padding_fifo_queue_op.cc, random_shuffle_queue_op.cc, priority_queue_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.chief_generation import AT_ONCE
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.handles import kept, resource_of, shared_resource, signature_error, signature_text
from tenfold_kernels.resources.queue_stores import FifoStore, PriorityStore, ShuffleStore
from tenfold_kernels.resources.queues import UNBOUNDED, Queue, shapes_text, types_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.resources.queue_stores import Store


def _shapes(node: KernelNode) -> tuple[TensorShape, ...] | None:
    shapes = tuple(TensorShape(shape) for shape in node.attrs.get("shapes", ()))
    return shapes or None


def _queue_op(
    node: KernelNode,
    kind: str,
    types: Sequence[DType],
    shapes: tuple[TensorShape, ...] | None,
    store: Callable[[], Store],
    check: Callable[[Queue], None] = lambda queue: None,
) -> Compute:
    """The compute of an op that makes a queue; a queue of that name must have been made alike."""
    capacity = int(node.attrs.get("capacity", -1))
    if shapes is not None and len(shapes) != len(types):
        text = f"Different number of component types. Types: {types_text(types)}, Shapes: {shapes_text(shapes)}"
        raise invalid(text)
    wanted = UNBOUNDED if capacity < 0 else capacity

    def alike(queue: Queue) -> None:
        shared = f"Shared queue '{queue.name}' has"
        if queue.kind != kind:
            raise invalid(f"Expected {queue.kind}, found {node.op}")
        if queue.capacity != wanted:
            raise invalid(f"{shared} capacity {queue.capacity} but requested capacity was {wanted}")
        check(queue)
        if queue.types != tuple(types):
            text = f"component types {types_text(queue.types)} but requested component types were"
            raise invalid(f"{shared} {text} {types_text(types)}")
        if shapes_text(queue.shapes) != shapes_text(shapes):
            text = f"component shapes {shapes_text(queue.shapes)} but requested component shapes were"
            raise invalid(f"{shared} {text} {shapes_text(shapes)}")

    def make(name: str) -> Queue:
        return Queue(kind, name, types, shapes, capacity, store(), node.resources.quota.queue_account(name))

    return shared_resource(node, Queue, make, alike)


@kernel("FIFOQueue", "FIFOQueueV2")
def build_fifo_queue(node: KernelNode) -> Compute:
    return _queue_op(node, "FIFOQueue", node.attrs["component_types"], _shapes(node), FifoStore)


@kernel("PaddingFIFOQueue", "PaddingFIFOQueueV2")
def build_padding_fifo_queue(node: KernelNode) -> Compute:
    """Every component has a shape of known rank; its unknown dimensions are padded in a batch."""
    types, shapes = node.attrs["component_types"], _shapes(node)
    if len(shapes or ()) != len(types):
        text = f"Shapes must be provided for all components, but received {len(types)} dtypes and"
        raise invalid(f"{text} {len(shapes or ())} shapes.")
    if any(shape.ndims is None for shape in shapes or ()):
        raise invalid("PaddingFIFOQueue components must have a known rank.")
    return _queue_op(node, "PaddingFIFOQueue", types, shapes, FifoStore)


@kernel("RandomShuffleQueue", "RandomShuffleQueueV2")
def build_random_shuffle_queue(node: KernelNode) -> Compute:
    """The order depends on seed and seed2 as TensorFlow's does."""
    minimum = int(node.attrs.get("min_after_dequeue", 0))
    seeds = int(node.attrs.get("seed", 0)), int(node.attrs.get("seed2", 0))
    capacity = int(node.attrs.get("capacity", -1))
    capacity = UNBOUNDED if capacity < 0 else capacity
    if minimum < 0:
        raise invalid(f"min_after_dequeue {minimum} must be >= 0")
    if minimum >= capacity:
        raise invalid(f"min_after_dequeue {minimum} must be < capacity {capacity}")

    def store() -> Store:
        return ShuffleStore(minimum, *seeds)

    def check(queue: Queue) -> None:
        other = queue.store
        assert isinstance(other, ShuffleStore)
        if other.min_after_dequeue != minimum:
            raise invalid(
                f"Shared queue '{queue.name}' has min_after_dequeue {other.min_after_dequeue} but requested "
                f"min_after_dequeue was {minimum}."
            )
        if seeds != (0, 0) and other.seeds != seeds:
            raise invalid(
                f"Shared queue '{queue.name}' has random seeds ({other.seeds[0]}, {other.seeds[1]}) but requested "
                f"seeds are ({seeds[0]}, {seeds[1]})."
            )

    return _queue_op(node, "RandomShuffleQueue", node.attrs["component_types"], _shapes(node), store, check)


@kernel("PriorityQueue", "PriorityQueueV2")
def build_priority_queue(node: KernelNode) -> Compute:
    """The priority, an int64 scalar, is the first component of every element."""
    types = (dtypes.int64, *node.attrs.get("component_types", ()))
    shapes = (TensorShape([]), *(_shapes(node) or ()))
    return _queue_op(node, "PriorityQueue", types, shapes, PriorityStore)


def _no_timeout(node: KernelNode) -> None:
    if int(node.attrs.get("timeout_ms", -1)) != -1:
        raise invalid("Timeout not supported yet.")


@kernel("QueueEnqueue", "QueueEnqueueV2", blocking=True)
def build_enqueue(node: KernelNode) -> Compute:
    """Waits while the queue is full."""
    return _enqueue(node, Queue.enqueue)


@kernel("QueueEnqueueMany", "QueueEnqueueManyV2", blocking=True)
def build_enqueue_many(node: KernelNode) -> Compute:
    """Waits until the last element found its place."""
    return _enqueue(node, Queue.enqueue_many)


def _enqueue(node: KernelNode, put: Callable[[Queue, tuple[Array, ...]], Any]) -> Compute:
    _no_timeout(node)
    types = tuple(dtype.base_dtype for dtype in node.input_types[1:])

    def compute(handle: Any, *components: Array) -> Any:
        queue = resource_of(node, handle, Queue)
        if types != queue.types:
            raise signature_error(node, signature_text(node, queue.types, ()))
        return put(queue, tuple(map(kept, components)))

    return compute


def _check_outputs(node: KernelNode, queue: Queue) -> None:
    if node.output_types != queue.types:
        raise signature_error(node, signature_text(node, node.input_types[1:], queue.types))


@kernel("QueueDequeue", "QueueDequeueV2", blocking=True)
def build_dequeue(node: KernelNode) -> Compute:
    """Waits for an element."""
    _no_timeout(node)

    def compute(handle: Any) -> Any:
        queue = resource_of(node, handle, Queue)
        _check_outputs(node, queue)
        return queue.dequeue()

    return compute


@kernel("QueueDequeueMany", "QueueDequeueManyV2", "QueueDequeueUpTo", "QueueDequeueUpToV2", blocking=True)
def build_dequeue_many(node: KernelNode) -> Compute:
    """Waits for so many elements; UpTo takes fewer once the queue is closed, or where the node must not wait."""
    _no_timeout(node)
    up_to = node.op.startswith("QueueDequeueUpTo")
    at_once = up_to and node.attrs.get(AT_ONCE) is True

    def compute(handle: Any, n: Array) -> Any:
        queue = resource_of(node, handle, Queue)
        if n.size != 1:
            raise invalid(f"{node.op} needs one number of elements, got shape {list(n.shape)}")
        count = int(n.reshape(()))
        if count < 0:
            raise invalid(f"{'DequeueUpToOp' if up_to else 'DequeueManyOp'} requested {count} < 0 elements")
        _check_outputs(node, queue)
        return queue.dequeue_at_once(count) if at_once else queue.dequeue_many(count, allow_small=up_to)

    return compute


@kernel("QueueClose", "QueueCloseV2", blocking=True)
def build_close(node: KernelNode) -> Compute:
    """Waits for the enqueues that came before, unless it cancels them."""
    cancel = bool(node.attrs.get("cancel_pending_enqueues", False))
    return lambda handle: resource_of(node, handle, Queue).close(cancel_pending_enqueues=cancel)


@kernel("QueueSize", "QueueSizeV2")
def build_size(node: KernelNode) -> Compute:
    return lambda handle: np.array(resource_of(node, handle, Queue).size(), dtype=np.int32)


@kernel("QueueIsClosed", "QueueIsClosedV2")
def build_is_closed(node: KernelNode) -> Compute:
    return lambda handle: np.array(resource_of(node, handle, Queue).is_closed)
