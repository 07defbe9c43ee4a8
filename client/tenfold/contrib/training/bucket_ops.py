"""`bucket`: batches of examples that belong together, such as sentences of about the same length.

A queue for each bucket fills one queue of batches. The parts of batching are train/batching.py's. Follows TensorFlow
1.15's contrib/training/python/training/bucket_ops.py.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tenfold import summary
from tenfold.graph import convert_to_tensor, known_value, name_scope
from tenfold.ops import array, control_flow, math, slicing
from tenfold.ops.control_flow_cond import cond
from tenfold.ops.queues import FIFOQueue, PaddingFIFOQueue
from tenfold.ops.reductions import reduce_min
from tenfold.train.batching import Options, component_shapes, packing_of
from tenfold.train.queue_runner import QueueRunner, add_queue_runner
from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape

_CLOSED = (errors.OutOfRangeError, errors.CancelledError)


def bucket(
    tensors: Any,
    which_bucket: Any,
    batch_size: Any,
    num_buckets: int,
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """(bucket, batch of one bucket): examples `tensors`, a list or dictionary, go to bucket `which_bucket`.

    `batch_size` may be a list, one for each bucket. An example for which the scalar bool `keep_input` is false is
    dropped. Queue runners fill the queues; the end of the input raises OutOfRangeError.
    Raises ValueError without tensors and for lists that do not have `num_buckets` elements.
    """
    sized = isinstance(batch_size, (list, tuple))
    if sized and len(batch_size) != num_buckets:
        raise ValueError("If batch_size is a list it must have num_buckets elements")
    given_sizes = list(batch_size) if sized else [batch_size] * num_buckets
    capacities = [capacity] * num_buckets if bucket_capacities is None else bucket_capacities
    if len(capacities) != num_buckets:
        raise ValueError(
            f"The list bucket_capacities ({bucket_capacities}) must have exactly num_buckets ({num_buckets}) elements."
        )
    flat = _flat(tensors)
    with name_scope(name, "bucket", flat) as scope:
        if not flat:
            raise ValueError("Expected at least one tensor in bucket().")
        keep = convert_to_tensor(keep_input)
        if keep.get_shape().ndims is None:
            raise ValueError("`keep_input` dimensions must be known at graph construction.")
        if keep.get_shape().ndims:
            raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
        packing = [packing_of([each]) for each in flat]
        values = [pack(each) for pack, each in zip(packing, flat, strict=True)]
        sizes = [convert_to_tensor(each, dtype=dtypes.int32, name="batch_size") for each in given_sizes]
        types = [each.dtype.base_dtype for each in values]
        options = Options(batch_size, False, shapes, allow_smaller_final_batch, scope)
        each_shape = component_shapes([values], packing, options)
        which = convert_to_tensor(which_bucket, dtype=dtypes.int32, name="which_bucket")
        kind: Any = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queues = [
            kind(
                capacities[place],
                types,
                each_shape,
                shared_name=None if shared_name is None else f"{shared_name}_{place}",
                name=f"bucket_queue_{place}",
            )
            for place in range(num_buckets)
        ]
        known = None if allow_smaller_final_batch or sized else known_value(sizes[0])
        batch_shapes = [TensorShape([None if known is None else int(known)]).concatenate(s) for s in queues[0].shapes]
        top = PaddingFIFOQueue(
            capacity,
            [dtypes.int32, *types],
            [TensorShape([]), *batch_shapes],
            shared_name=shared_name,
            name="top_queue",
        )

        def into_bucket() -> Any:
            adds = [
                cond(math.equal(which, place), functools.partial(queue.enqueue, values), control_flow.no_op)
                for place, queue in enumerate(queues)
            ]
            return control_flow.group(*adds, name="group_enqueues")

        always = known_value(keep)
        add = into_bucket() if always is not None and bool(always) else cond(keep, into_bucket, control_flow.no_op)
        moves = []
        for place, queue in enumerate(queues):
            take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
            taken = take(sizes[place], name=f"read_bucket_{place}")
            parts = list(taken) if isinstance(taken, (list, tuple)) else [taken]
            moves.append(top.enqueue([array.constant(place), *parts], name=f"enqueue_from_bucket_{place}"))
        add_queue_runner(QueueRunner(queues[0], moves, top.close(), top.close(cancel_pending_enqueues=True), _CLOSED))
        add_queue_runner(
            QueueRunner(
                top,
                [add] * num_threads,
                control_flow.group(*[queue.close() for queue in queues]),
                control_flow.group(*[queue.close(cancel_pending_enqueues=True) for queue in queues]),
                _CLOSED,
            )
        )
        for queue in queues:
            summary.scalar(f"bucket/{queue.name}/size", math.cast(top.size(), dtypes.float32))
        filled = math.cast(top.size(), dtypes.float32) * (1.0 / capacity)
        summary.scalar(f"bucket/{top.name}/fraction_of_{capacity}_full", filled)
        number, *parts = top.dequeue(name="dequeue_top")
        parts = [pack.undo(each) for pack, each in zip(packing, parts, strict=True)]
        return number, _like(tensors, parts)


def _flat(tensors: Any) -> list[Any]:
    return [tensors[key] for key in sorted(tensors, key=str)] if isinstance(tensors, Mapping) else list(tensors)


def _like(original: Any, parts: list[Any]) -> Any:
    """The parts in the form that `tf.train.batch` gives: a dictionary, or a list, or the only tensor of a list."""
    if isinstance(original, Mapping):
        return dict(zip(sorted(original, key=str), parts, strict=True))
    return parts if len(parts) > 1 else parts[0]


def bucket_by_sequence_length(
    input_length: Any,
    tensors: Any,
    batch_size: Any,
    bucket_boundaries: Sequence[int],
    num_threads: int = 1,
    capacity: int = 32,
    bucket_capacities: Sequence[int] | None = None,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    keep_input: Any = True,
    shared_name: str | None = None,
    name: str | None = None,
) -> tuple[Any, Any]:
    """(lengths, batch) of examples of about the same length: bucket `i` is up to `bucket_boundaries[i]`, exclusive.

    Raises TypeError for boundaries that are no integers, ValueError for those that do not grow.
    """
    if not isinstance(bucket_boundaries, (list, tuple)):
        raise TypeError(f"bucket_boundaries must be a list or tuple, but received: {bucket_boundaries}")
    if not bucket_boundaries:
        raise ValueError("bucket_boundaries must not be empty")
    for low, high in itertools.pairwise(bucket_boundaries):
        if not isinstance(low, int) or not isinstance(high, int):
            raise TypeError(f"bucket boundaries must be integers, but saw: {low} and {high}")
        if low >= high:
            raise ValueError(f"Buckets must contain sequential increasing lengths, but saw: {low} before {high}")
    flat = _flat(tensors)
    with name_scope(name, "bucket_by_sequence_length", [input_length, *flat]):
        length = convert_to_tensor(input_length, dtype=dtypes.int32, name="input_length")
        limits = np.iinfo(np.int32)
        lows, highs = [int(limits.min), *bucket_boundaries], [*bucket_boundaries, int(limits.max)]
        inside = math.logical_and(math.less_equal(lows, length), math.less(length, highs))
        which = math.cast(reduce_min(slicing.where(inside)), dtypes.int32)
        _, taken = bucket(
            tensors=[length, *flat],
            which_bucket=which,
            batch_size=batch_size,
            num_buckets=len(bucket_boundaries) + 1,
            num_threads=num_threads,
            capacity=capacity,
            bucket_capacities=bucket_capacities,
            shapes=None if shapes is None else [TensorShape([]), *shapes],
            dynamic_pad=dynamic_pad,
            allow_smaller_final_batch=allow_smaller_final_batch,
            keep_input=keep_input,
            shared_name=shared_name,
        )
        return taken[0], _like(tensors, taken[1:])
