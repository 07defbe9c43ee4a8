"""Input pipelines of queues: producers of file names and indices, `batch`, `shuffle_batch` and their variants.

Each makes a queue and adds a QueueRunner that fills it to the graph's collection; a Coordinator or a monitored session
runs those. Follows TF 1.15's training/input.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph import control_dependencies, convert_to_tensor, name_scope
from tenfold.graph.collections import GraphKeys
from tenfold.ops import array, control_flow, io, math, random, slicing
from tenfold.ops.queues import FIFOQueue
from tenfold.ops.variables import Variable
from tenfold.train.batching import Options, batched, fraction, plain, shuffled
from tenfold.train.queue_runner import QueueRunner, add_queue_runner
from tenfold_core import dtypes

if TYPE_CHECKING:
    from collections.abc import Sequence


def match_filenames_once(pattern: Any, name: str | None = None) -> Variable:
    """A local variable with the names of the files that match, looked up once, when it is initialised."""
    with name_scope(name, "matching_filenames", [pattern]) as scope:
        names: Variable = Variable(
            io.matching_files(pattern),
            name=scope.rstrip("/"),
            trainable=False,
            validate_shape=False,
            collections=[GraphKeys.LOCAL_VARIABLES],
        )
        return names


def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Any:
    """`tensor`, `num_epochs` times; then OutOfRangeError. Counts in the local variable `epochs`. ValueError below 1."""
    if num_epochs is None:
        return tensor
    if num_epochs <= 0:
        raise ValueError(f"num_epochs must be > 0 not {num_epochs}.")
    with name_scope(name, "limit_epochs", [tensor]) as scope:
        zero = array.constant(0, dtype=dtypes.int64)
        epochs = Variable(zero, name="epochs", trainable=False, collections=[GraphKeys.LOCAL_VARIABLES])
        with control_dependencies([epochs.count_up_to(num_epochs)]):
            return array.identity(tensor, name=scope)


def input_producer(
    input_tensor: Any,
    element_shape: Any = None,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    summary_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """A queue of the rows of `input_tensor`, again and again, in a new order each time if `shuffle`.

    Raises ValueError unless the rows' shape is known.
    """
    with name_scope(name, "input_producer", [input_tensor]):
        input_tensor = convert_to_tensor(input_tensor, name="input_tensor")
        element_shape = input_tensor.shape[1:].merge_with(element_shape)
        if not element_shape.is_fully_defined():
            raise ValueError(
                "Either `input_tensor` must have a fully defined shape or `element_shape` must be specified"
            )
        if shuffle:
            input_tensor = random.random_shuffle(input_tensor, seed=seed)
        input_tensor = limit_epochs(input_tensor, num_epochs)
        queue = FIFOQueue(
            capacity,
            [input_tensor.dtype.base_dtype],
            [element_shape],
            shared_name=shared_name,
            name=name or "fifo_queue",
        )
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many([input_tensor])], cancel_op=cancel_op))
        if summary_name is not None:
            fraction(summary_name, queue.size(), capacity)
        return queue


def string_input_producer(
    string_tensor: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
    cancel_op: Any = None,
) -> FIFOQueue:
    """`input_producer` of strings, such as names of files. Raises ValueError for an empty list."""
    empty = "string_input_producer requires a non-null input tensor"
    if isinstance(string_tensor, (list, tuple)) and not string_tensor:
        raise ValueError(empty)
    with name_scope(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, dtype=dtypes.string)
        with control_dependencies([control_flow.Assert(math.greater(array.size(strings), 0), [empty])]):
            strings = array.identity(strings)
        return input_producer(
            strings,
            [],
            num_epochs,
            shuffle,
            seed,
            capacity,
            shared_name,
            f"fraction_of_{capacity}_full",
            scope,
            cancel_op,
        )


def range_input_producer(
    limit: Any,
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> FIFOQueue:
    """`input_producer` of the numbers 0 … `limit` - 1."""
    with name_scope(name, "input_producer", [limit]) as scope:
        numbers = math.range(limit)
        summary_name = f"fraction_of_{capacity}_full"
        return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name, summary_name, scope)


def slice_input_producer(
    tensor_list: Sequence[Any],
    num_epochs: int | None = None,
    shuffle: bool = True,
    seed: int | None = None,
    capacity: int = 32,
    shared_name: str | None = None,
    name: str | None = None,
) -> list[Any]:
    """One row of each tensor, the same row of all, a different one in each step. Raises ValueError without tensors."""
    with name_scope(name, "input_producer", tensor_list):
        tensors = [convert_to_tensor(each) for each in tensor_list]
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        rows = array.shape(tensors[0])[0]
        queue = range_input_producer(rows, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [slicing.gather(each, index) for each in tensors]


def batch(
    tensors: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """Stacks `batch_size` values of `tensors` (a list or a dictionary, as the result).

    With `enqueue_many` each value holds several examples. `dynamic_pad` pads examples of different sizes with zeros.
    The end of the input raises OutOfRangeError, after a smaller last batch if that is allowed.
    """
    make = plain(capacity, dynamic_pad, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "batch", num_threads)
    return batched([tensors], True, make, options)


def maybe_batch(
    tensors: Any,
    keep_input: Any,
    batch_size: Any,
    num_threads: int = 1,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of those values, or rows with `enqueue_many`, for which the bool tensor `keep_input` is true."""
    make = plain(capacity, dynamic_pad, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "batch", num_threads)
    return batched([tensors], keep_input, make, options)


def batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` of several sources at once, a thread for each."""
    make = plain(capacity, dynamic_pad, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "batch_join")
    return batched(tensors_list, True, make, options)


def maybe_batch_join(
    tensors_list: Sequence[Any],
    keep_input: Any,
    batch_size: Any,
    capacity: int = 32,
    enqueue_many: bool = False,
    shapes: Any = None,
    dynamic_pad: bool = False,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch_join` of the examples for which `keep_input` is true."""
    make = plain(capacity, dynamic_pad, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "batch_join")
    return batched(tensors_list, keep_input, make, options)


def shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`batch` in random order: `min_after_dequeue` examples are always there to choose from."""
    make = shuffled(capacity, min_after_dequeue, seed, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "shuffle_batch", num_threads)
    return batched([tensors], True, make, options)


def maybe_shuffle_batch(
    tensors: Any,
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    num_threads: int = 1,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of the examples for which `keep_input` is true."""
    make = shuffled(capacity, min_after_dequeue, seed, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "shuffle_batch", num_threads)
    return batched([tensors], keep_input, make, options)


def shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch` of several sources at once, a thread for each."""
    make = shuffled(capacity, min_after_dequeue, seed, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "shuffle_batch_join")
    return batched(tensors_list, True, make, options)


def maybe_shuffle_batch_join(
    tensors_list: Sequence[Any],
    batch_size: Any,
    capacity: int,
    min_after_dequeue: int,
    keep_input: Any,
    seed: int | None = None,
    enqueue_many: bool = False,
    shapes: Any = None,
    allow_smaller_final_batch: bool = False,
    shared_name: str | None = None,
    name: str | None = None,
) -> Any:
    """`shuffle_batch_join` of the examples for which `keep_input` is true."""
    make = shuffled(capacity, min_after_dequeue, seed, shared_name)
    options = Options(batch_size, enqueue_many, shapes, allow_smaller_final_batch, name or "shuffle_batch_join")
    return batched(tensors_list, keep_input, make, options)
