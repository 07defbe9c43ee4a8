"""Records of files, read by several readers into one queue; or by one reader, once.

Follows TensorFlow 1.15's contrib/slim/python/slim/data/parallel_reader.py.
"""

from __future__ import annotations

from typing import Any

from tenfold import gfile
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import math
from tenfold.ops.queues import FIFOQueue, RandomShuffleQueue
from tenfold.train.batching import fraction
from tenfold.train.input import string_input_producer
from tenfold.train.queue_runner import QueueRunner, add_queue_runner
from tenfold_core import dtypes as types

__all__ = ["ParallelReader", "get_data_files", "parallel_read", "single_pass_read"]


class ParallelReader:
    """Reads with several readers of a class into `common_queue`, which has two components, both strings.

    Raises TypeError for another queue.
    """

    def __init__(self, reader_class: Any, common_queue: Any, num_readers: int = 4, reader_kwargs: Any = None) -> None:
        if len(common_queue.dtypes) != 2 or any(each != types.string for each in common_queue.dtypes):
            raise TypeError("common_queue.dtypes must be [tf.string, tf.string]")
        self._readers = [reader_class(**(reader_kwargs or {})) for _ in range(num_readers)]
        self._common_queue = common_queue

    @property
    def num_readers(self) -> int:
        """How many readers there are."""
        return len(self._readers)

    @property
    def common_queue(self) -> Any:
        """The queue that they fill."""
        return self._common_queue

    def read(self, queue: Any, name: str | None = None) -> Any:
        """(key, value) of the next record of the files that `queue` names."""
        self._fill_from(queue)
        return self._common_queue.dequeue(name=name)

    def read_up_to(self, queue: Any, num_records: int, name: str | None = None) -> Any:
        """(keys, values) of up to `num_records` records."""
        self._fill_from(queue)
        return self._common_queue.dequeue_up_to(num_records, name)

    def _fill_from(self, queue: Any) -> None:
        adds = [self._common_queue.enqueue(reader.read(queue)) for reader in self._readers]
        add_queue_runner(QueueRunner(self._common_queue, adds))

    def num_records_produced(self, name: str | None = None) -> Any:
        """How many records the readers have read."""
        return math.add_n([reader.num_records_produced() for reader in self._readers], name=name)

    def num_work_units_completed(self, name: str | None = None) -> Any:
        """How many files the readers have finished."""
        return math.add_n([reader.num_work_units_completed() for reader in self._readers], name=name)


def parallel_read(
    data_sources: Any,
    reader_class: Any,
    num_epochs: int | None = None,
    num_readers: int = 4,
    reader_kwargs: Any = None,
    shuffle: bool = True,
    dtypes: Any = None,
    capacity: int = 256,
    min_after_dequeue: int = 128,
    seed: int | None = None,
    scope: Any = None,
) -> Any:
    """(key, value) of the next record of the files, which queue runners read ahead, shuffled by default."""
    files = get_data_files(data_sources)
    with name_scope(scope, "parallel_read"):
        names = string_input_producer(files, num_epochs=num_epochs, shuffle=shuffle, seed=seed, name="filenames")
        kinds = dtypes or [types.string, types.string]
        if shuffle:
            queue: Any = RandomShuffleQueue(capacity, min_after_dequeue, kinds, seed=seed, name="common_queue")
        else:
            queue = FIFOQueue(capacity, kinds, name="common_queue")
        fraction(f"fraction_of_{capacity}_full", queue.size(), capacity)
        return ParallelReader(reader_class, queue, num_readers, reader_kwargs).read(names)


def single_pass_read(data_sources: Any, reader_class: Any, reader_kwargs: Any = None, scope: Any = None) -> Any:
    """(key, value) of the next record of the files, in order and once."""
    files = get_data_files(data_sources)
    with name_scope(scope, "single_pass_read"):
        names = string_input_producer(files, num_epochs=1, shuffle=False, capacity=1, name="filenames")
        return reader_class(**(reader_kwargs or {})).read(names)


def get_data_files(data_sources: Any) -> list[str]:
    """The files of names and patterns. Raises ValueError if there are none."""
    if isinstance(data_sources, (list, tuple)):
        files = [file for source in data_sources for file in get_data_files(source)]
    elif any(mark in data_sources for mark in "*?["):
        files = gfile.Glob(data_sources)
    else:
        files = [data_sources]
    if not files:
        raise ValueError(f"No data files found in {data_sources}")
    return files
