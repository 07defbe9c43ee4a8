"""`tf.contrib.learn.read_batch_examples` and its siblings: batches of records of files, through queues.

Thin over the queues of `tf.train`. Follows TensorFlow 1.15's `contrib/learn/python/learn/learn_io/graph_io.py`.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, ParamSpec

from tenfold import gfile, summary
from tenfold.graph import Tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.sparse_tensor import SparseTensor
from tenfold.named import named
from tenfold.ops import array, math
from tenfold.ops.parsing import parse_example
from tenfold.ops.queues import FIFOQueue
from tenfold.ops.readers import TFRecordReader
from tenfold.train.input import batch_join, shuffle_batch_join, string_input_producer
from tenfold.train.queue_runner import QueueRunner, add_queue_runner
from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Callable

P = ParamSpec("P")
#: The key of the records' keys, among parsed features.
KEY_FEATURE_NAME = "__key__"


def _files(pattern: Any, randomize: bool) -> list[str]:
    patterns = pattern if isinstance(pattern, list) else [pattern]
    if not patterns:
        raise ValueError("No files given to dequeue_examples.")
    found = [name for each in patterns for name in gfile.Glob(each)]
    if not found:
        raise ValueError(f"No files match {pattern}.")
    return found if randomize else sorted(found)


def read_keyed_batch_examples(
    file_pattern: Any,
    batch_size: Any,
    reader: Any,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    num_threads: int = 1,
    read_batch_size: int = 1,
    parse_fn: Any = None,
    name: str | None = None,
    seed: int | None = None,
) -> Any:
    """(keys, examples) of a batch, both strings [batch], or what `parse_fn` makes of the examples.

    `reader` is a class such as `tf.TextLineReader`. Raises ValueError for no files and sizes that make no sense.
    """
    names = _files(file_pattern, randomize_input)
    if not queue_capacity or queue_capacity <= 0:
        raise ValueError(f"Invalid queue_capacity {queue_capacity}.")
    known = not isinstance(batch_size, Tensor)
    if batch_size is None or (known and not 0 < batch_size < queue_capacity):
        raise ValueError(f"Invalid batch_size {batch_size}, with queue_capacity {queue_capacity}.")
    for what, value in (("read_batch_size", read_batch_size), ("num_threads", num_threads)):
        if not value or value <= 0:
            raise ValueError(f"Invalid {what} {value}.")
    if num_epochs is not None and num_epochs <= 0:
        raise ValueError(f"Invalid num_epochs {num_epochs}.")
    with name_scope(name, "read_batch_examples", [file_pattern]) as scope:
        with name_scope("file_name_queue") as queue_scope:
            queue = string_input_producer(
                array.constant(names, name="input"),
                shuffle=randomize_input,
                num_epochs=num_epochs,
                name=queue_scope,
                seed=seed,
            )
        with name_scope("read"):
            rows = [_row(reader(), queue, read_batch_size, parse_fn) for _ in range(num_threads)]
        shared: dict[str, Any] = {
            "capacity": queue_capacity,
            "enqueue_many": read_batch_size > 1,
            "name": scope,
            "allow_smaller_final_batch": num_epochs is not None,
        }
        if randomize_input:
            least = max(queue_capacity - 3 * batch_size, batch_size) if known else int(queue_capacity * 0.4)
            found = shuffle_batch_join(rows, batch_size, min_after_dequeue=least, seed=seed, **shared)
        else:
            found = batch_join(rows, batch_size, **shared)
        if parse_fn and isinstance(found, dict):
            return found.pop(KEY_FEATURE_NAME), found
        return found


def _row(reader: Any, queue: Any, read_batch_size: int, parse_fn: Any) -> Any:
    keys, examples = reader.read_up_to(queue, read_batch_size) if read_batch_size > 1 else reader.read(queue)
    if not parse_fn:
        return keys, examples
    parsed = parse_fn(examples)
    return {**parsed, KEY_FEATURE_NAME: keys} if isinstance(parsed, dict) else (keys, parsed)


def _without_keys(keyed: Callable[P, Any], name: str, doc: str) -> Callable[P, Any]:
    @functools.wraps(keyed)
    def read(*args: P.args, **kwargs: P.kwargs) -> Any:
        return keyed(*args, **kwargs)[1]

    return named(read, name, doc)


read_batch_examples = _without_keys(
    read_keyed_batch_examples, "read_batch_examples", "The examples of `read_keyed_batch_examples`."
)


def read_keyed_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    reader: Any,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    parse_fn: Any = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> Any:
    """(keys, features by name) of a batch of Example protos, parsed by `features` and queued."""
    with name_scope(name, "read_batch_features", [file_pattern]) as scope:
        keys, examples = read_keyed_batch_examples(
            file_pattern,
            batch_size,
            reader,
            randomize_input,
            num_epochs,
            queue_capacity,
            reader_num_threads,
            batch_size if read_batch_size is None else read_batch_size,
            parse_fn,
            scope,
        )
        parsed = parse_example(examples, features)
        return queue_parsed_features(parsed, keys, feature_queue_capacity, num_enqueue_threads, scope)


def read_batch_features(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    reader: Any,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    feature_queue_capacity: int = 100,
    reader_num_threads: int = 1,
    num_enqueue_threads: int = 2,
    parse_fn: Any = None,
    name: str | None = None,
    read_batch_size: int | None = None,
) -> Any:
    """The features of `read_keyed_batch_features`."""
    return read_keyed_batch_features(
        file_pattern,
        batch_size,
        features,
        reader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads,
        feature_queue_capacity,
        num_enqueue_threads,
        parse_fn,
        name,
        read_batch_size,
    )[1]


def read_batch_record_features(
    file_pattern: Any,
    batch_size: Any,
    features: Any,
    randomize_input: bool = True,
    num_epochs: int | None = None,
    queue_capacity: int = 10000,
    reader_num_threads: int = 1,
    name: str | None = "dequeue_record_examples",
) -> Any:
    """The same for TFRecord files."""
    return read_batch_features(
        file_pattern,
        batch_size,
        features,
        TFRecordReader,
        randomize_input,
        num_epochs,
        queue_capacity,
        reader_num_threads=reader_num_threads,
        name=name,
    )


def queue_parsed_features(
    parsed_features: Any,
    keys: Any = None,
    feature_queue_capacity: int = 100,
    num_enqueue_threads: int = 2,
    name: str | None = None,
) -> Any:
    """(keys or None, features by name) of a queue that is filled with them, so that they are parsed ahead."""
    names = sorted(parsed_features)
    with name_scope(name, "queue_parsed_features"):
        tensors: list[Any] = []
        for each in names:
            value = parsed_features[each]
            sparse = isinstance(value, SparseTensor)
            tensors.extend([value.indices, value.values, value.dense_shape] if sparse else [value])
        if keys is not None:
            tensors.append(keys)
        queue = FIFOQueue(feature_queue_capacity, [tensor.dtype for tensor in tensors])
        tag = f"queue/parsed_features/{queue.name}/fraction_of_{feature_queue_capacity}_full"
        summary.scalar(tag, math.cast(queue.size(), dtypes.float32) * (1.0 / feature_queue_capacity))
        enqueue = [queue.enqueue(tensors) for _ in range(num_enqueue_threads)]
        closed = (errors.OutOfRangeError, errors.CancelledError)
        add_queue_runner(QueueRunner(queue, enqueue, queue_closed_exception_types=closed))
        found: Any = queue.dequeue()
        found = found if isinstance(found, list) else [found]
        for given, tensor in zip(found, tensors, strict=True):
            given.set_shape(tensor.get_shape())
        rest = iter(found)
        made = {
            each: SparseTensor(next(rest), next(rest), next(rest))
            if isinstance(parsed_features[each], SparseTensor)
            else next(rest)
            for each in names
        }
        return (None if keys is None else next(rest)), made
