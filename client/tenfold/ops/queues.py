"""`FIFOQueue` and the other queues: a queue is on one task, and steps of every task can fill and empty it.

A step that enqueues to a full queue, or dequeues from an empty one, waits on the server until it can go on, the queue
is closed, or the step is cancelled. Follows TF 1.15's ops/data_flow_ops.py; accumulators are in accumulators.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

from tenfold.graph import convert_to_tensor, known_value, name_scope
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array, random_seed, slicing
from tenfold_core import dtypes as dtypes_module
from tenfold_core.dtypes import as_dtype
from tenfold_core.tensor_shape import Dimension, TensorShape, as_shape, unknown_shape

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType


class QueueBase:
    """A queue of tuples of tensors, named if `names` are given. Its methods make ops, which steps run."""

    def __init__(
        self, dtypes: Sequence[DType], shapes: Sequence[Any] | None, names: Sequence[str] | None, queue_ref: Any
    ) -> None:
        if shapes is not None and len(shapes) != len(dtypes):
            raise ValueError("Queue shapes must have the same length as dtypes")
        if names is not None and len(names) != len(dtypes):
            raise ValueError("Queue names must have the same length as dtypes")
        self._dtypes = list(dtypes)
        self._shapes = [unknown_shape() for _ in dtypes] if shapes is None else [TensorShape(s) for s in shapes]
        self._names = None if names is None else list(names)
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: Any, queues: list[QueueBase]) -> QueueBase:
        """The queue at `index`, an int32 scalar tensor read in each step. Raises TypeError if their types differ."""
        if not isinstance(queues, list) or not queues or not all(isinstance(each, QueueBase) for each in queues):
            raise TypeError("A list of queues expected")
        first = queues[0]
        if any(each.dtypes != first.dtypes for each in queues):
            raise TypeError("Queues do not have matching component dtypes.")
        if any(each.names != first.names for each in queues):
            raise TypeError("Queues do not have matching component names.")
        shapes = [reduce(_common_shape, several) for several in zip(*(each.shapes for each in queues), strict=True)]
        selected = slicing.gather(array.stack([each.queue_ref for each in queues]), index)
        return QueueBase(first.dtypes, shapes, first.names, selected)

    @property
    def queue_ref(self) -> Any:
        """The handle of the queue."""
        return self._queue_ref

    @property
    def name(self) -> str:
        return str(self._queue_ref.op.name)

    @property
    def dtypes(self) -> list[DType]:
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        return self._shapes

    @property
    def names(self) -> list[str] | None:
        return self._names

    def enqueue(self, vals: Any, name: str | None = None) -> Any:
        """An op that adds one element; it waits while the queue is full.

        `vals` is a tensor, a list, or with names a dictionary. The step fails with CancelledError if the queue is
        closed. Raises ValueError for values that do not fit.
        """
        with name_scope(name, f"{self._name}_enqueue", _as_list(vals)) as scope:
            values = self._components(vals)
            for value, shape in zip(values, self._shapes, strict=True):
                value.get_shape().assert_is_compatible_with(shape)
            return self._apply("Enqueue", scope, components=values)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Any:
        """An op that adds an element for each row of `vals`; all have the same number of rows."""
        with name_scope(name, f"{self._name}_EnqueueMany", _as_list(vals)) as scope:
            values = self._components(vals)
            rows = Dimension(None)
            for value, shape in zip(values, self._shapes, strict=True):
                whole = value.get_shape().with_rank_at_least(1)
                rows = rows.merge_with(whole[0])
                whole[1:].assert_is_compatible_with(shape)
            return self._apply("EnqueueMany", scope, components=values)

    def dequeue(self, name: str | None = None) -> Any:
        """The next element, as a tensor, a list or a dictionary; the step waits while there is none.

        OutOfRangeError if the queue is closed and empty.
        """
        taken = self._apply("Dequeue", name or f"{self._name}_Dequeue", component_types=self._dtypes)
        return self._dequeued(taken, TensorShape([]))

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """The next `n` elements, stacked; the step waits for them. OutOfRangeError if the queue closes with fewer."""
        taken = self._apply("DequeueMany", name or f"{self._name}_DequeueMany", n=n, component_types=self._dtypes)
        return self._dequeued(taken, TensorShape([known_value(convert_to_tensor(n))]))

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As `dequeue_many`, but a closed queue gives the remaining elements."""
        taken = self._apply("DequeueUpTo", name or f"{self._name}_DequeueUpTo", n=n, component_types=self._dtypes)
        return self._dequeued(taken, TensorShape([None]))

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Any:
        """An op that closes the queue: later enqueues fail; pending ones complete unless they are cancelled."""
        return self._apply("Close", name or f"{self._name}_Close", cancel_pending_enqueues=cancel_pending_enqueues)

    def is_closed(self, name: str | None = None) -> Any:
        """Whether the queue is closed, a bool scalar."""
        return self._apply("IsClosed", name or f"{self._name}_Is_Closed")

    def size(self, name: str | None = None) -> Any:
        """The number of elements, an int32 scalar."""
        return self._apply("Size", name or f"{self._name}_Size")

    def _apply(self, what: str, name: str, **arguments: Any) -> Any:
        suffix = "V2" if self._queue_ref.dtype == dtypes_module.resource else ""
        return apply_op(f"Queue{what}{suffix}", handle=self._queue_ref, name=name, **arguments)

    def _components(self, vals: Any) -> list[Any]:
        """The values as tensors of the queue's types, in its order."""
        if isinstance(vals, Mapping):
            if self._names is None:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(self._names) != sorted(vals):
                raise ValueError(
                    "Keys in dictionary to enqueue do not match names of Queue.  "
                    f"Dictionary: ({sorted(vals)}), Queue: ({sorted(self._names)})"
                )
            values: Sequence[Any] = [vals[name] for name in self._names]
        elif self._names is not None:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        else:
            values = vals if isinstance(vals, (list, tuple)) else [vals]
        if len(values) != len(self._dtypes):
            raise ValueError(f"The queue {self.name} has {len(self._dtypes)} components, {len(values)} were given")
        return [
            convert_to_tensor(value, dtype=dtype, name=f"component_{position}")
            for position, (value, dtype) in enumerate(zip(values, self._dtypes, strict=True))
        ]

    def _dequeued(self, result: Any, rows: TensorShape) -> Any:
        tensors = list(result) if isinstance(result, (list, tuple)) else [result]
        for tensor, shape in zip(tensors, self._shapes, strict=True):
            tensor.set_shape(rows.concatenate(shape))
        if self._names is not None:
            return dict(zip(self._names, tensors, strict=True))
        return tensors[0] if len(tensors) == 1 else tensors


class FIFOQueue(QueueBase):
    """First in, first out. `capacity` < 0 means no bound."""

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "fifo_queue",
    ) -> None:
        types, shapes, names = _component_lists(dtypes, shapes, names)
        ref = _create_queue("FIFOQueueV2", types, shapes, capacity, shared_name, name)
        super().__init__(types, shapes, names, ref)


class PaddingFIFOQueue(QueueBase):
    """First in, first out, of elements whose sizes differ: `dequeue_many` pads them with zeros to the largest.

    `shapes` must be given for every component; its unknown dimensions are those that may differ.
    """

    def __init__(
        self,
        capacity: int,
        dtypes: Any,
        shapes: Any,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "padding_fifo_queue",
    ) -> None:
        types, shapes, names = _component_lists(dtypes, shapes, names, partial=True)
        if shapes is None or len(types) != len(shapes):
            raise ValueError(
                f"Shapes must be provided for all components, but received {len(types)} dtypes and "
                f"{len(shapes or ())} shapes."
            )
        ref = _create_queue("PaddingFIFOQueueV2", types, shapes, capacity, shared_name, name)
        super().__init__(types, shapes, names, ref)


class RandomShuffleQueue(QueueBase):
    """Gives elements in random order; `min_after_dequeue` of them stay until it is closed, so that they mix."""

    def __init__(
        self,
        capacity: int,
        min_after_dequeue: int,
        dtypes: Any,
        shapes: Any = None,
        names: Any = None,
        seed: int | None = None,
        shared_name: str | None = None,
        name: str = "random_shuffle_queue",
    ) -> None:
        types, shapes, names = _component_lists(dtypes, shapes, names)
        graph_seed, op_seed = random_seed.get_seed(seed)
        if graph_seed is None and op_seed is None:
            graph_seed = op_seed = 0
        elif seed is None and shared_name is not None:
            # From the shared name, so that every client of the queue has the same seed, whatever else is in its graph.
            text = f"{graph_seed}{shared_name}".encode()
            op_seed = int(hashlib.md5(text, usedforsecurity=False).hexdigest()[:8], 16) & 0x7FFFFFFF
        ref = _create_queue(
            "RandomShuffleQueueV2",
            types,
            shapes,
            capacity,
            shared_name,
            name,
            min_after_dequeue=min_after_dequeue,
            seed=graph_seed,
            seed2=op_seed,
        )
        super().__init__(types, shapes, names, ref)


class PriorityQueue(QueueBase):
    """Gives elements by their priority, the smallest first; an int64 priority comes before the components."""

    def __init__(
        self,
        capacity: int,
        types: Any,
        shapes: Any = None,
        names: Any = None,
        shared_name: str | None = None,
        name: str = "priority_queue",
    ) -> None:
        components, shapes, _ = _component_lists(types, shapes, None)
        ref = _create_queue("PriorityQueueV2", components, shapes, capacity, shared_name, name)
        with_priority = [dtypes_module.int64, *components]
        super().__init__(with_priority, [TensorShape([]), *shapes] if shapes else None, names, ref)


def _create_queue(
    op: str, types: Sequence[DType], shapes: Any, capacity: int, shared_name: str | None, name: str, **more: Any
) -> Any:
    return apply_op(
        op,
        component_types=list(types),
        shapes=list(shapes or ()),
        capacity=capacity,
        shared_name=shared_name or "",
        name=name,
        **more,
    )


def _component_lists(
    dtypes: Any, shapes: Any, names: Any, *, partial: bool = False
) -> tuple[list[DType], list[TensorShape] | None, list[str] | None]:
    """Types, shapes and names as lists. Raises ValueError for shapes that are not known, unless `partial`."""
    types = [as_dtype(each) for each in (dtypes if isinstance(dtypes, (list, tuple)) else [dtypes])]
    if names is not None:
        names = list(names) if isinstance(names, (list, tuple)) else [names]
        if len(names) != len(types):
            raise ValueError("List of names must have the same length as the list of dtypes")
    return types, shape_list(shapes, partial=partial), names


def shape_list(shapes: Any, *, partial: bool = False) -> list[TensorShape] | None:
    """One shape, or a list of them, as a list. Raises TypeError and ValueError as `_component_lists`."""
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (list, tuple)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes.")
    if all(each is None or isinstance(each, int) for each in shapes):
        if partial:
            raise ValueError("When providing partial shapes, a list of shapes must be provided.")
        shapes = [shapes]
    result = [as_shape(each) for each in shapes]
    if not partial and any(not each.is_fully_defined() for each in result):
        raise ValueError(f"All shapes must be fully defined: {result}")
    if any(each.ndims is None for each in result):
        raise ValueError(f"All shapes must have a defined rank: {result}")
    return result


def _common_shape(one: TensorShape, other: TensorShape) -> TensorShape:
    """The shape with the dimensions on which both agree; the others are unknown."""
    if one.ndims is None or other.ndims is None or one.ndims != other.ndims:
        return unknown_shape()
    pairs = zip(one.as_list(), other.as_list(), strict=True)
    return TensorShape([a if a is not None and a == b else None for a, b in pairs])


def _as_list(vals: Any) -> list[Any]:
    if isinstance(vals, Mapping):
        return list(vals.values())
    return list(vals) if isinstance(vals, (list, tuple)) else [vals]
