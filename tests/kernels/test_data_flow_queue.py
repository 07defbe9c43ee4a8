"""The ops of queues: what a shared queue has to have alike, which types and numbers they refuse, what they hand on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.kernel_runs import Steps
from tenfold_core import dtypes, errors
from tenfold_core.chief_generation import AT_ONCE
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queues import UNBOUNDED, Queue
from tenfold_kernels.resources.waiting import Waiting

INT, FLOAT = dtypes.int32, dtypes.float32


class Queues(Steps):
    """Steps of which some make queues."""

    def queue(self, kind: str = "FIFOQueueV2", types: Any = (INT,), shapes: Any = ([],), **attrs: Any) -> Any:
        attrs = {"shared_name": b"q", "shapes": [TensorShape(shape) for shape in shapes], **attrs}
        return self(kind, component_types=list(types), **attrs)


@pytest.fixture
def steps() -> Queues:
    return Queues()


def queue_of(handle: Any) -> Queue:
    found = handle[()].resource
    assert isinstance(found, Queue)
    return found


@pytest.mark.parametrize(
    ("kind", "found"),
    [
        ("FIFOQueueV2", "FIFOQueue"),
        ("PaddingFIFOQueueV2", "PaddingFIFOQueue"),
        ("RandomShuffleQueueV2", "RandomShuffleQueue"),
        ("PriorityQueueV2", "PriorityQueue"),
    ],
)
def test_each_kind_says_what_it_is(steps: Queues, kind: str, found: str) -> None:
    queue = queue_of(steps.queue(kind, capacity=7))
    assert (queue.kind, queue.name, queue.capacity) == (found, "q", 7)
    types = (dtypes.int64, INT) if found == "PriorityQueue" else (INT,)
    assert queue.types == types
    assert [shape.as_list() for shape in queue.shapes or ()] == [[]] * len(types)
    assert queue.account is not None
    assert steps.resources.quota.queues == 1


def test_a_queue_may_declare_no_shapes(steps: Queues) -> None:
    queue = queue_of(steps.queue(shapes=()))
    assert (queue.shapes, queue.capacity) == (None, UNBOUNDED)


@pytest.mark.parametrize(
    ("first", "second", "message"),
    [
        ({}, {"kind": "PaddingFIFOQueueV2"}, "Expected FIFOQueue, found PaddingFIFOQueueV2"),
        ({"capacity": 5}, {"capacity": 6}, "Shared queue 'q' has capacity 5 but requested capacity was 6"),
        ({"capacity": -1}, {"capacity": 0}, f"capacity {UNBOUNDED} but requested capacity was 0"),
        ({}, {"types": (FLOAT,)}, r"component types \[int32\] but requested component types were \[float\]"),
        ({}, {"shapes": ([1],)}, r"component shapes \[\[\]\] but requested component shapes were \[\[1\]\]"),
        ({}, {"shapes": ()}, r"component shapes \[\[\]\] but requested component shapes were \[\]"),
        (
            {"min_after_dequeue": 1},
            {"min_after_dequeue": 2},
            "min_after_dequeue 1 but requested min_after_dequeue was 2",
        ),
        ({"seed": 1}, {"seed": 2}, r"has random seeds \(1, 0\) but requested seeds are \(2, 0\)"),
        ({"seed2": 1}, {"seed2": 2}, r"has random seeds \(0, 1\) but requested seeds are \(0, 2\)"),
    ],
)
def test_a_queue_of_a_name_is_made_alike(steps: Queues, first: Any, second: Any, message: str) -> None:
    shuffles = any(name.startswith(("min", "seed")) for name in first)
    kind = {"kind": "RandomShuffleQueueV2"} if shuffles else {}
    steps.queue(**kind, **first)
    steps.queue(**kind, **first)
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps.queue(**{**kind, **second})


def test_who_names_no_seeds_takes_those_that_are_there(steps: Queues) -> None:
    one = steps.queue("RandomShuffleQueueV2", seed=1, seed2=2)
    assert queue_of(steps.queue("RandomShuffleQueueV2")) is queue_of(one)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"shapes": ([], [])}, r"Different number of component types. Types: \[int32\], Shapes: \[\[\], \[\]\]"),
        ({"kind": "PaddingFIFOQueueV2", "shapes": ()}, "received 1 dtypes and 0 shapes"),
        ({"kind": "PaddingFIFOQueueV2", "shapes": ([], [])}, "received 1 dtypes and 2 shapes"),
        ({"kind": "PaddingFIFOQueueV2", "shapes": (None,)}, "components must have a known rank"),
        ({"kind": "RandomShuffleQueueV2", "min_after_dequeue": -1}, "min_after_dequeue -1 must be >= 0"),
        (
            {"kind": "RandomShuffleQueueV2", "min_after_dequeue": 3, "capacity": 3},
            "min_after_dequeue 3 must be < capacity 3",
        ),
    ],
)
def test_queues_that_cannot_be(steps: Queues, options: Any, message: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=message):
        steps.queue(**options)


def test_the_least_room_of_a_shuffle(steps: Queues) -> None:
    queue = queue_of(steps.queue("RandomShuffleQueueV2", min_after_dequeue=2, capacity=3, seed=5, seed2=6))
    assert (queue.store.min_after_dequeue, queue.store.seeds) == (2, (5, 6))  # type: ignore[attr-defined]
    endless = queue_of(steps.queue("RandomShuffleQueueV2", min_after_dequeue=9, shared_name=b"endless"))
    assert endless.capacity == UNBOUNDED


NAMES = ["QueueEnqueueV2", "QueueEnqueueManyV2", "QueueDequeueV2", "QueueDequeueManyV2", "QueueDequeueUpToV2"]


@pytest.mark.parametrize("op", NAMES)
def test_time_outs_are_refused(steps: Queues, op: str) -> None:
    inputs = {"Enqueue": [np.int32(1)], "EnqueueMany": [np.array([1], np.int32)], "Dequeue": []}
    given = inputs.get(op.removeprefix("Queue").removesuffix("V2"), [np.int32(1)])
    attrs = {} if "Enqueue" in op else {"component_types": [INT]}
    with pytest.raises(errors.InvalidArgumentError, match="Timeout not supported yet"):
        steps(op, steps.queue(), *given, timeout_ms=5, **attrs)


def test_types_are_those_of_the_queue(steps: Queues) -> None:
    handle = steps.queue(types=(INT, FLOAT), shapes=([], []))
    text = "Signature mismatch, have: resource,int32->.* expected: resource,int32,float32->"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        steps("QueueEnqueueV2", handle, np.int32(1))
    text = r"have: resource->int32 expected: resource->int32,float32"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        steps("QueueDequeueV2", handle, component_types=[INT])
    with pytest.raises(errors.InvalidArgumentError, match=r"have: resource,int32->int32 expected: resource,int32->"):
        steps("QueueDequeueManyV2", handle, np.int32(1), component_types=[INT])


@pytest.mark.parametrize(
    ("op", "name"), [("QueueDequeueManyV2", "DequeueManyOp"), ("QueueDequeueUpToV2", "DequeueUpToOp")]
)
def test_numbers_of_elements(steps: Queues, op: str, name: str) -> None:
    handle = steps.queue()
    with pytest.raises(errors.InvalidArgumentError, match=f"^{name} requested -1 < 0 elements"):
        steps(op, handle, np.int32(-1), component_types=[INT])
    with pytest.raises(errors.InvalidArgumentError, match=rf"{op} needs one number of elements, got shape \[2\]"):
        steps(op, handle, np.array([1, 2], np.int32), component_types=[INT])
    assert steps(op, handle, np.int32(0), component_types=[INT]).shape == (0,)
    steps("QueueEnqueueManyV2", handle, np.array([7, 8], np.int32))
    assert steps(op, handle, np.array([1], np.int32), component_types=[INT]).tolist() == [7]


def test_up_to_takes_less_once_closed_and_many_does_not(steps: Queues) -> None:
    handle = steps.queue()
    steps("QueueEnqueueV2", handle, np.int32(1))
    assert steps("QueueIsClosedV2", handle).tolist() is False
    assert isinstance(steps("QueueDequeueUpToV2", handle, np.int32(2), component_types=[INT]), Waiting)
    for each in list(queue_of(handle)._dequeues):
        assert each.waiting is not None
        each.waiting.cancel()
    steps("QueueCloseV2", handle)
    assert steps("QueueIsClosedV2", handle).tolist() is True
    with pytest.raises(errors.OutOfRangeError):
        steps("QueueDequeueManyV2", handle, np.int32(2), component_types=[INT])
    size = steps("QueueSizeV2", handle)
    assert (size.tolist(), size.dtype) == (1, np.int32)
    assert steps("QueueDequeueUpToV2", handle, np.int32(2), component_types=[INT]).tolist() == [1]


def test_a_node_that_must_not_wait_takes_what_is_there(steps: Queues) -> None:
    handle = steps.queue()
    steps("QueueEnqueueV2", handle, np.int32(1))
    for op, waits in (("QueueDequeueUpToV2", False), ("QueueDequeueManyV2", True)):
        found = steps(op, handle, np.int32(2), component_types=[INT], **{AT_ONCE: True})
        assert isinstance(found, Waiting) is waits
        if not waits:
            assert found.tolist() == [1]
    queue = steps.queue(shared_name=b"other")
    assert isinstance(steps("QueueDequeueUpToV2", queue, np.int32(2), component_types=[INT], **{AT_ONCE: 1}), Waiting)


@pytest.mark.parametrize("cancels", [True, False])
def test_a_close_cancels_what_waits_if_it_says_so(steps: Queues, cancels: bool) -> None:
    handle = steps.queue(capacity=1)
    steps("QueueEnqueueV2", handle, np.int32(1))
    waiting = steps("QueueEnqueueV2", handle, np.int32(2))
    closed = steps("QueueCloseV2", handle, cancel_pending_enqueues=cancels)
    assert (closed is None) is cancels
    assert waiting.is_open is not cancels


def test_what_goes_in_is_kept_as_it_was(steps: Queues) -> None:
    handle, value = steps.queue(shapes=([2],)), np.array([1, 2], np.int32)
    steps("QueueEnqueueV2", handle, value[:])
    many = np.array([[3, 4]], np.int32)
    steps("QueueEnqueueManyV2", handle, many[:])
    value[:] = 9
    many[:] = 9
    for wanted in ([1, 2], [3, 4]):
        assert steps("QueueDequeueV2", handle, component_types=[INT]).tolist() == wanted
