"""The common part of all forms of `batch` in input.py: queue, runner, dequeue. Follows TF 1.15's input.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold import summary
from tenfold.graph import convert_to_tensor, known_value, name_scope
from tenfold.graph.sparse_tensor import SparseTensor, is_sparse
from tenfold.ops import array, math, slicing, sparse
from tenfold.ops.queues import FIFOQueue, PaddingFIFOQueue, QueueBase, RandomShuffleQueue
from tenfold.train.queue_runner import QueueRunner, add_queue_runner
from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape, as_shape

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType

#: Makes the queue from types and shapes, and adds the summary of how full it is.
MakeQueue = Callable[[list[Any], list[Any]], QueueBase]


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments that all forms of `batch` share."""

    batch_size: Any
    enqueue_many: bool
    shapes: Any
    allow_smaller_final_batch: bool
    name: str
    num_threads: int = 1


def plain(capacity: int, dynamic_pad: bool, shared_name: str | None) -> MakeQueue:
    """A queue that keeps the order."""

    def make(types: list[Any], shapes: list[Any]) -> QueueBase:
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue = kind(capacity, types, shapes, shared_name=shared_name)
        fraction(f"fraction_of_{capacity}_full", queue.size(), capacity)
        return queue

    return make


def shuffled(capacity: int, min_after_dequeue: int, seed: int | None, shared_name: str | None) -> MakeQueue:
    """A queue that shuffles. Raises ValueError unless `capacity` is more than `min_after_dequeue`."""
    if capacity <= min_after_dequeue:
        raise ValueError(f"capacity {capacity} must be bigger than min_after_dequeue {min_after_dequeue}.")

    def make(types: list[Any], shapes: list[Any]) -> QueueBase:
        queue = RandomShuffleQueue(capacity, min_after_dequeue, types, shapes, seed=seed, shared_name=shared_name)
        over = capacity - min_after_dequeue
        fraction(
            f"fraction_over_{min_after_dequeue}_of_{over}_full", math.maximum(0, queue.size() - min_after_dequeue), over
        )
        return queue

    return make


def fraction(name: str, size: Any, capacity: int) -> None:
    """Adds a summary of how full a queue is."""
    summary.scalar(name, math.cast(size, dtypes.float32) * (1.0 / capacity))


def batched(tensors_list: Sequence[Any], keep_input: Any, make: MakeQueue, options: Options) -> Any:
    """Queues the values of each of `tensors_list`; stacked, in the form of the first (list or dictionary).

    Raises ValueError without tensors, for ranks that are not known, or a `keep_input` of another shape; TypeError if
    the sources differ in types.
    """
    if not tensors_list:
        raise ValueError("Expected at least one set of tensors")
    original = tensors_list[0]
    flat = [_flat(tensors, original) for tensors in tensors_list]
    with name_scope(options.name, options.name, [each for tensors in flat for each in tensors]) as scope:
        if not flat[0]:
            raise ValueError("Expected at least one tensor in batch().")
        packing = [_Packing.of(several, options.enqueue_many) for several in zip(*flat, strict=True)]
        sources = [[pack(each) for pack, each in zip(packing, tensors, strict=True)] for tensors in flat]
        queue = make(_types(sources), component_shapes(sources, packing, options))
        enqueues = [_enqueue(queue, source, keep_input, options.enqueue_many) for source in sources]
        add_queue_runner(QueueRunner(queue, enqueues * options.num_threads))
        take = queue.dequeue_up_to if options.allow_smaller_final_batch else queue.dequeue_many
        taken = take(options.batch_size, name=scope)
        if any(each.sparse for each in packing):
            parts = [pack.undo(each) for pack, each in zip(packing, _as_list(taken), strict=True)]
            taken = parts if isinstance(taken, Sequence) else parts[0]
    if isinstance(original, Mapping):
        values = taken if len(original) > 1 else [taken]
        return dict(zip(sorted(original, key=str), values, strict=True))
    return taken


@dataclass(frozen=True, slots=True)
class _Packing:
    """How one component is queued: unchanged, or, for a sparse tensor, as three strings per example."""

    sparse: bool
    many: bool
    dtype: Any = None
    #: Shape of one example, where it is known.
    rank: int | None = None

    @classmethod
    def of(cls, several: Sequence[Any], many: bool) -> _Packing:
        """The packing of a component. Raises ValueError, or TypeError, if they cannot be in one queue."""
        kinds = {is_sparse(each) for each in several}
        if len(kinds) > 1:
            raise ValueError(f"Inconsistent SparseTensors list: {several}")
        if not kinds.pop():
            return cls(False, many)
        types = {each.dtype for each in several}
        if len(types) > 1:
            raise TypeError(f"Expected types to be consistent: {' vs. '.join(sorted(t.name for t in types))}.")
        shape = several[0].dense_shape.shape
        for each in several[1:]:
            shape = shape.merge_with(each.dense_shape.shape)
        rank = shape.with_rank(1).as_list()[0]
        return cls(True, many, types.pop(), None if rank is None else rank - many)

    def __call__(self, value: Any) -> Any:
        if not self.sparse:
            return convert_to_tensor(value)
        given = value if isinstance(value, SparseTensor) else SparseTensor.from_value(value)
        return sparse.serialize_many_sparse(given) if self.many else sparse.serialize_sparse(given)

    def undo(self, taken: Any) -> Any:
        return sparse.deserialize_many_sparse(taken, self.dtype, self.rank) if self.sparse else taken


def packing_of(several: Sequence[Any]) -> _Packing:
    """How one component of single examples, the same of each source, is queued."""
    return _Packing.of(several, False)


def _as_list(taken: Any) -> list[Any]:
    return list(taken) if isinstance(taken, Sequence) else [taken]


def _flat(tensors: Any, original: Any) -> list[Any]:
    """A source's tensors in the order in which they are queued."""
    if not isinstance(original, Mapping):
        return list(tensors)
    if set(tensors) != set(original):
        raise ValueError("All dictionaries in tensors_list must have the same keys")
    return [tensors[key] for key in sorted(tensors, key=str)]


def _types(sources: Sequence[Sequence[Any]]) -> list[DType]:
    types = [each.dtype.base_dtype for each in sources[0]]
    for source in sources[1:]:
        others = [each.dtype.base_dtype for each in source]
        if others != types:
            raise TypeError(
                f"Expected types to be consistent: {', '.join(t.name for t in types)} vs. "
                f"{', '.join(t.name for t in others)}."
            )
    return types


def component_shapes(sources: Sequence[Sequence[Any]], packing: Sequence[_Packing], options: Options) -> list[Any]:
    """The shape of each component of one example."""
    if options.shapes is not None:
        return [as_shape([3] if pack.sparse else each) for pack, each in zip(packing, options.shapes, strict=True)]
    shapes: list[TensorShape] = []
    for several in zip(*sources, strict=True):
        each: list[TensorShape] = []
        for tensor in several:
            if tensor.shape.ndims is None:
                raise ValueError(f"Cannot infer Tensor's rank: {tensor}")
            each.append(tensor.shape.with_rank_at_least(1)[1:] if options.enqueue_many else tensor.shape)
            each[0].merge_with(each[-1])  # raises if they do not fit
        # the first source's shape: a shape known in another source need not hold for all
        shapes.append(each[0])
    return shapes


def _enqueue(queue: QueueBase, tensors: list[Any], keep_input: Any, enqueue_many: bool) -> Any:
    """The op that adds the examples that are to be kept."""
    keep = convert_to_tensor(keep_input)
    if keep.shape.ndims is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if keep.shape.ndims > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    if keep.shape.ndims == 1 and not enqueue_many:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if known_value(keep) is not None and keep.shape.ndims == 0 and bool(known_value(keep)):
        return queue.enqueue_many(tensors) if enqueue_many else queue.enqueue(tensors)
    rows = tensors if enqueue_many else [array.expand_dims(each, 0) for each in tensors]
    if keep.shape.ndims == 0:
        keep = array.fill(array.shape(rows[0])[:1], keep)
    # an empty batch is no error: it adds nothing
    chosen = [slicing.dynamic_partition(each, math.cast(keep, dtypes.int32), 2)[1] for each in rows]
    return queue.enqueue_many(chosen)
