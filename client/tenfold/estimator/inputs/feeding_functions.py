"""Fills queues with the rows of arrays, data frames and generators; numpy_io.py and pandas_io.py are built on it.

The first component of every element is the row's number (of a data frame: its index). Follows TF 1.15's
estimator/inputs/queues/feeding_functions.py, with its names of operations and summaries.
"""

from __future__ import annotations

import collections
import inspect
import random
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold import logging, summary
from tenfold.estimator.inputs.feeding_queue_runner import FeedingQueueRunner
from tenfold.graph import name_scope
from tenfold.ops import array, math, queues
from tenfold.train.queue_runner import add_queue_runner
from tenfold_core import dtypes, errors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Rows = list[int]
    Generator = Callable[[], Iterator[Mapping[str, Any]]]


def is_data_frame(value: Any) -> bool:
    """Whether `value` is a pandas DataFrame; pandas is not loaded for it."""
    return any(
        kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas" for kind in type(value).__mro__
    )


def _get_integer_indices_for_next_batch(
    batch_indices_start: int,
    batch_size: int,
    epoch_end: int,
    array_length: int,
    current_epoch: int,
    total_epochs: int | None,
) -> tuple[Rows, int]:
    """(rows of the next batch, epochs that are over after it); the last batch ends with the last epoch.

    `epoch_end` is the last row of an epoch, which may begin anywhere. Raises OutOfRangeError after the last one.
    """
    if total_epochs is not None and current_epoch >= total_epochs:
        raise errors.OutOfRangeError(None, None, f"Already emitted {current_epoch} epochs.")
    rows = np.arange(batch_indices_start, batch_indices_start + batch_size) % array_length
    (ends,) = np.nonzero(rows == epoch_end)
    current_epoch += len(ends)
    if total_epochs is None or current_epoch < total_epochs:
        return rows.tolist(), current_epoch
    last = ends[len(ends) - 1 - (current_epoch - total_epochs)]
    return rows[: last + 1].tolist(), total_epochs


class _RowsFeedFn:
    """Walks through rows in order, epoch by epoch; subclasses say what a row has."""

    def __init__(
        self,
        placeholders: Sequence[Any],
        length: int,
        batch_size: int,
        random_start: bool,
        seed: int | None,
        num_epochs: int | None,
    ) -> None:
        self._placeholders = list(placeholders)
        self._max, self._batch_size, self._num_epochs = length, batch_size, num_epochs
        self._epoch = 0
        # the generator of the module, as in TensorFlow: a program that seeds it gets the same start
        random.seed(seed)
        self._trav = random.randrange(self._max) if random_start else 0
        self._epoch_end = (self._trav - 1) % self._max

    def __call__(self) -> dict[Any, Any]:
        """Placeholder → value of the next batch. Raises OutOfRangeError at the end."""
        rows, self._epoch = _get_integer_indices_for_next_batch(
            self._trav, self._batch_size, self._epoch_end, self._max, self._epoch, self._num_epochs
        )
        self._trav = (rows[-1] + 1) % self._max
        return dict(zip(self._placeholders, self._values(rows), strict=True))

    def _values(self, rows: Rows) -> list[Any]:
        """The number of each row, and its components."""
        raise NotImplementedError


def _taken(column: Any, rows: Rows) -> Any:
    """A copy of rows of an array, which its owner may change while they wait; quickly where they follow each other."""
    first, last = rows[0], rows[-1]
    return column[first : last + 1].copy() if last - first == len(rows) - 1 else column[rows]


class _ArrayFeedFn(_RowsFeedFn):
    """Rows of one array."""

    def __init__(
        self, placeholders: Sequence[Any], array: Any, batch_size: int, random_start: bool = False,
        seed: int | None = None, num_epochs: int | None = None,
    ) -> None:  # fmt: skip
        if len(placeholders) != 2:
            raise ValueError(f"_array_feed_fn expects 2 placeholders; got {len(placeholders)}.")
        self._array = array
        super().__init__(placeholders, len(array), batch_size, random_start, seed, num_epochs)

    def _values(self, rows: Rows) -> list[Any]:
        return [rows, _taken(self._array, rows)]


class _OrderedDictNumpyFeedFn(_RowsFeedFn):
    """Rows of arrays by name, all of one length."""

    def __init__(
        self, placeholders: Sequence[Any], ordered_dict_of_arrays: Mapping[str, Any], batch_size: int,
        random_start: bool = False, seed: int | None = None, num_epochs: int | None = None,
    ) -> None:  # fmt: skip
        if len(placeholders) != len(ordered_dict_of_arrays) + 1:
            raise ValueError(f"Expected {len(ordered_dict_of_arrays)} placeholders; got {len(placeholders)}.")
        self._arrays = list(ordered_dict_of_arrays.values())
        lengths = {len(each) for each in self._arrays}
        if len(lengths) != 1:
            raise ValueError("Array lengths must match.")
        super().__init__(placeholders, lengths.pop(), batch_size, random_start, seed, num_epochs)

    def _values(self, rows: Rows) -> list[Any]:
        return [rows, *(_taken(each, rows) for each in self._arrays)]


class _PandasFeedFn(_RowsFeedFn):
    """Rows of a data frame, by its columns."""

    def __init__(
        self, placeholders: Sequence[Any], dataframe: Any, batch_size: int, random_start: bool = False,
        seed: int | None = None, num_epochs: int | None = None,
    ) -> None:  # fmt: skip
        if len(placeholders) != len(dataframe.columns) + 1:
            raise ValueError(f"Expected {len(dataframe.columns) + 1} placeholders; got {len(placeholders)}.")
        self._dataframe = dataframe
        super().__init__(placeholders, len(dataframe), batch_size, random_start, seed, num_epochs)

    def _values(self, rows: Rows) -> list[Any]:
        chosen = self._dataframe.iloc[rows]
        return [chosen.index.to_numpy(), *(chosen[column].to_numpy() for column in chosen.columns)]


class _GeneratorFeedFn:
    """Dictionaries of arrays from a generator, begun anew for every epoch."""

    def __init__(
        self, placeholders: Sequence[Any], generator: Generator, batch_size: int, random_start: bool = False,
        seed: int | None = None, num_epochs: int | None = None, pad_value: Any = None,
    ) -> None:  # fmt: skip
        first = next(generator())
        if len(placeholders) != len(first):
            raise ValueError(f"Expected {len(first)} placeholders; got {len(placeholders)}.")
        self._keys = sorted(first)
        self._placeholders = list(placeholders)
        self._generator, self._iterator = generator, generator()
        self._batch_size, self._num_epochs, self._pad_value = batch_size, num_epochs, pad_value
        self._epoch = 0
        random.seed(seed)

    def __call__(self) -> dict[Any, Any]:
        """Placeholder → stacked values. Raises OutOfRangeError at the end, KeyError if a dictionary lacks a key."""
        if self._num_epochs and self._epoch >= self._num_epochs:
            raise errors.OutOfRangeError(None, None, f"Already emitted {self._epoch} epochs.")
        columns: list[list[Any]] = [[] for _ in self._keys]
        # as in TensorFlow, the batch size counts values, not rows
        while sum(map(len, columns)) < self._batch_size:
            row = self._next()
            for key, column in zip(self._keys, columns, strict=True):
                if key not in row:
                    raise KeyError(
                        f"key mismatch between dicts emitted by GenFun Expected {self._keys} keys; got {row.keys()}"
                    )
                column.append(row[key])
        if self._pad_value is not None:
            columns = [_pad_if_needed(column, self._pad_value) for column in columns]
        return {place: np.asarray(column) for place, column in zip(self._placeholders, columns, strict=True)}

    def _next(self) -> Mapping[str, Any]:
        try:
            return next(self._iterator)
        except StopIteration:
            self._epoch += 1
            self._iterator = self._generator()
            return next(self._iterator)


def _pad_if_needed(batch_key_item: list[Any], fillvalue: Any = 0) -> Any:
    """Arrays […, n] as one array [batch, …, longest n]. Raises ValueError if they differ in more than the last size."""
    leading = {each.shape[:-1] if each.ndim else None for each in batch_key_item}
    if len(leading) > 1:
        raise ValueError("Array shapes must match.")
    (shape,) = leading
    if shape is None or len({each.shape[-1] for each in batch_key_item}) == 1:
        return batch_key_item
    longest = max(each.shape[-1] for each in batch_key_item)
    padded = np.full((len(batch_key_item), *shape, longest), fillvalue, dtype=batch_key_item[0].dtype)
    for place, each in zip(padded, batch_key_item, strict=True):
        place[..., : each.shape[-1]] = each
    return padded


def _components(data: Any) -> tuple[list[Any], list[Any], Any]:
    """(types, shapes, class of feed functions) of the queue for `data`. Raises TypeError for what it cannot be."""
    if isinstance(data, np.ndarray):
        return [dtypes.int64, dtypes.as_dtype(data.dtype)], [(), data.shape[1:]], _ArrayFeedFn
    if isinstance(data, collections.OrderedDict):
        columns = list(data.values())
        types = [dtypes.int64, *(dtypes.as_dtype(each.dtype) for each in columns)]
        return types, [(), *(each.shape[1:] for each in columns)], _OrderedDictNumpyFeedFn
    if inspect.isfunction(data):
        first = next(data())
        values = [first[key] for key in sorted(first)]
        return [dtypes.as_dtype(each.dtype) for each in values], [each.shape for each in values], _GeneratorFeedFn
    if is_data_frame(data):
        # what is not a type of NumPy is pandas' own type of strings
        kinds = (data.index.dtype, *data.dtypes)
        types = [dtypes.as_dtype(each) if isinstance(each, np.dtype) else dtypes.string for each in kinds]
        return types, [()] * len(types), _PandasFeedFn
    raise TypeError(
        f"data must be either a numpy array or pandas DataFrame if pandas is installed; got {type(data).__name__}"
    )


def _enqueue_data(
    data: Any,
    capacity: int,
    shuffle: bool = False,
    min_after_dequeue: float | None = None,
    num_threads: int = 1,
    seed: int | None = None,
    name: str = "enqueue_input",
    enqueue_size: int = 1,
    num_epochs: int | None = None,
    pad_value: Any = None,
) -> Any:
    """A queue that the session's threads fill with the rows of `data`, `enqueue_size` at a time.

    `data` is an array, an OrderedDict of arrays, a data frame, or a function that makes a generator of dictionaries of
    arrays; only the last may be padded. `num_epochs` counts for each thread. Raises TypeError for other data,
    NotImplementedError for padding that is not possible.
    """
    with name_scope(name):
        types, shapes, feed_fn = _components(data)
        padded = pad_value is not None
        if padded and feed_fn is not _GeneratorFeedFn:
            raise NotImplementedError("padding is only available with generator usage")
        if padded and shuffle:
            raise NotImplementedError("padding and shuffling data at the same time is not implemented")
        _warn_of_threads(shuffle, num_threads, num_epochs)
        at_least = 0
        queue: Any
        if shuffle:
            at_least = int(capacity / 4 if min_after_dequeue is None else min_after_dequeue)
            queue = queues.RandomShuffleQueue(capacity, at_least, dtypes=types, shapes=shapes, seed=seed)
        elif padded:
            open_ended = [(*shape[:-1], None) if shape else shape for shape in shapes]
            queue = queues.PaddingFIFOQueue(capacity, dtypes=types, shapes=open_ended)
        else:
            queue = queues.FIFOQueue(capacity, dtypes=types, shapes=shapes)
        enqueue_ops, feed_fns = [], []
        further = {"pad_value": pad_value} if padded else {}
        for number in range(num_threads):
            # no shapes: any number of rows may be fed
            placeholders = [array.placeholder(dtype) for dtype in types]
            enqueue_ops.append(queue.enqueue_many(placeholders))
            own_seed = None if seed is None else (number + 1) * seed
            feed_fns.append(
                feed_fn(placeholders, data, enqueue_size, shuffle, own_seed, num_epochs=num_epochs, **further)
            )
        add_queue_runner(FeedingQueueRunner(queue=queue, enqueue_ops=enqueue_ops, feed_fns=feed_fns))
        room = capacity - at_least
        full = math.cast(math.maximum(0, queue.size() - at_least), dtypes.float32) * (1.0 / room)
        summary.scalar(f"queue/{queue.name}fraction_over_{at_least}_of_{room}_full", full)
        return queue


def _warn_of_threads(shuffle: bool, num_threads: int, num_epochs: int | None) -> None:
    if num_threads <= 1:
        return
    if num_epochs is not None:
        logging.warning(
            "enqueue_data has several threads and num_epochs, which counts for each of them: there will be %d times "
            "as many epochs. Use one thread to limit them.",
            num_threads,
        )
    if not shuffle or num_epochs is not None:
        logging.warning(
            "enqueue_data has %d threads, and each of them reads all rows in order: %s.",
            num_threads,
            "they are shuffled little" if shuffle else "use one thread to keep the order, or shuffle",
        )
