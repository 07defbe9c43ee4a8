"""RecordInput: batches of TFRecord files' records in random order, epoch after epoch.

A buffer is filled from several files in turn and gives a random record of it; an epoch is over when all of its records
have been given. The files of an epoch are shuffled by its number and the seed, and the order shifted. Reads on the
thread of the step that wants a batch. Follows record_input_op.cc and record_yielder.cc; which record comes when is
another one than there, where it depends on threads.
"""

from __future__ import annotations

import random
import threading
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_core.file_names import file_path
from tenfold_core.graph_files import graph_files
from tenfold_core.records import RecordReader
from tenfold_kernels.arrays import invalid, objects, text_attr
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Iterator


class RecordYielder:
    """The records of files that match patterns, separated by commas. Thread-safe; `batch` blocks while it reads."""

    def __init__(
        self, patterns: str, compression: str, *, seed: int, shift: float, buffered: int, open_files: int
    ) -> None:
        self._patterns, self._compression = patterns.split(","), compression
        self._seed, self._shift, self._buffered, self._open_files = seed, shift, buffered, open_files
        self._lock = threading.Lock()
        self._random = random.Random(seed)
        self._epoch = 0
        #: Records that were read and not given; at most `buffered`.
        self._buffer: list[bytes] = []
        #: What of the epoch was not read.
        self._rest: Iterator[bytes] = iter(())

    def batch(self, count: int) -> list[bytes]:
        """The next `count` records. Raises NotFoundError without files, OutOfRangeError where they hold no record."""
        with self._lock:
            return [self._one() for _ in range(count)]

    def _one(self) -> bytes:
        self._fill()
        if not self._buffer:
            self._rest = self._records(self._next_files())
            self._fill()
            if not self._buffer:
                raise errors.out_of_range(f"There is no record in {','.join(self._patterns)}")
        place = self._random.randrange(len(self._buffer))
        self._buffer[place], self._buffer[-1] = self._buffer[-1], self._buffer[place]
        return self._buffer.pop()

    def _fill(self) -> None:
        while len(self._buffer) < self._buffered:
            record = next(self._rest, None)
            if record is None:
                return
            self._buffer.append(record)

    def _next_files(self) -> list[str]:
        self._epoch += 1
        files = [name for pattern in self._patterns for name in sorted(graph_files().matching(file_path(pattern)))]
        if not files:
            raise errors.not_found(f"Found no files at {','.join(self._patterns)}")
        random.Random(f"{self._seed} {self._epoch}").shuffle(files)
        first = int(self._shift * len(files)) if 0 <= self._shift < 1 else 0
        return files[first:] + files[:first]

    def _records(self, files: list[str]) -> Iterator[bytes]:
        """A record of each of the open files in turn; the next file is opened when one is at its end."""
        waiting = iter(files)
        reading: list[Iterator[bytes]] = []
        while True:
            while len(reading) < self._open_files and (path := next(waiting, None)) is not None:
                reading.append(self._of_file(path))
            if not reading:
                return
            for each in list(reading):
                record = next(each, None)
                if record is None:
                    reading.remove(each)
                else:
                    yield record

    def _of_file(self, path: str) -> Iterator[bytes]:
        with RecordReader(path, self._compression, files=graph_files()) as reader:
            yield from reader


@kernel("RecordInput", blocking=True)
def build_record_input(node: KernelNode) -> Compute:
    """[batch_size] records; its place in the files is the node's own."""
    numbers = {name: int(node.attrs[name]) for name in ("file_buffer_size", "file_parallelism", "batch_size")}
    for name, number in numbers.items():
        if number < 1:
            raise invalid(f"{name} must be at least 1, got {number}")
    yielder = RecordYielder(
        text_attr(node, "file_pattern"),
        text_attr(node, "compression_type"),
        seed=int(node.attrs["file_random_seed"]),
        shift=float(node.attrs["file_shuffle_shift_ratio"]),
        buffered=numbers["file_buffer_size"],
        open_files=numbers["file_parallelism"],
    )

    return lambda: objects(yielder.batch(numbers["batch_size"]))
