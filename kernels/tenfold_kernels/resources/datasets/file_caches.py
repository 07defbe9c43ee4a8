"""A dataset that remembers in a file: what a whole pass gave is written, and later passes, of any process, read it.

Theory: while the first pass goes on, its elements are in parts, <name>_0, <name>_1, …: each checkpoint ends one, so
that what is saved needs no element again. A lock beside each part keeps other iterators from writing it. Once the pass
is over, the parts become the file of the name itself, and the locks go. An iterator that is given up takes away the
part that no checkpoint knows of. All are TFRecord files of elements. Used by cpu/dataset.py. Follows
cache_dataset_ops.cc, whose files are TensorFlow's tensor bundles.
"""

from __future__ import annotations

import contextlib
import functools
import threading
import weakref
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.file_errors import os_errors
from tenfold_core.graph_files import graph_files
from tenfold_core.records import RecordReader, RecordWriter
from tenfold_kernels.resources.datasets import states
from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run, Same, State

if TYPE_CHECKING:
    from collections.abc import Iterator


class FileCache(Same):
    """The input the first time over, and a file from then on; two passes at once may not both write it."""

    is_slow = True

    def __init__(self, dataset: Dataset, name: str) -> None:
        super().__init__(dataset)
        self._name = name

    def iterate(self, run: Run) -> Machine:
        is_reading = self._is_whole()
        machine = self._reading(run) if is_reading else self._writing(run)

        def restore(state: Any) -> None:
            nonlocal is_reading, machine
            is_reading, inner = state
            if not is_reading and self._is_whole():
                # it was written to its end since
                is_reading, inner = True, inner[0]
            machine = self._reading(run) if is_reading else self._writing(run)
            machine.restore(inner)

        return Machine(lambda: machine.following(), lambda: (is_reading, machine.save()), restore)

    def _is_whole(self) -> bool:
        return graph_files().exists(self._name)

    def _reading(self, run: Run) -> Machine:
        at = 0
        source = _elements(self._name)

        def following() -> Element | None:
            nonlocal at
            element = next(source, None)
            at += element is not None
            return element

        def restore(state: Any) -> None:
            for _ in range(state):
                run.check()
                following()

        return Machine(following, lambda: at, restore)

    def _writing(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        #: The part that is written alone; a list, for the finalizer.
        current = [_Part(self._name, 0)]
        count = number = 0
        is_over = False

        def following() -> Element | None:
            nonlocal count, is_over
            if is_over:
                return None
            run.check()
            part = current[0]
            if not part.is_open:
                part.open()
            element = source.following()
            if element is not None:
                part.write(element)
                count += 1
                return element
            part.finish()
            _join(self._name, number + 1)
            is_over = True
            return None

        def save() -> State:
            nonlocal number
            if is_over:
                return count, number, None
            if current[0].is_open:
                current[0].finish()
                number += 1
                current[0] = _Part(self._name, number)
            return count, number, (source.save(),)

        def restore(state: Any) -> None:
            nonlocal count, number, is_over
            count, number, inner = state
            is_over = inner is None
            if inner is not None:
                source.restore(inner[0])
                current[0] = _Part(self._name, number)

        # whichever comes first: the session's end, another start of the iterator, or the last reference
        run.when_closed(functools.partial(_give_up, current))
        weakref.finalize(following, _give_up, current)
        return Machine(following, save, restore)


class _Part:
    """Elements between two checkpoints. Nothing is there until it is opened. It may be given up from another thread."""

    def __init__(self, name: str, number: int) -> None:
        self.path = f"{name}_{number}"
        self.lock = f"{self.path}.lockfile"
        self._unfinished = f"{self.path}.unfinished"
        self._writer: RecordWriter | None = None
        #: Guards the writer, and what follows.
        self._mutex = threading.Lock()
        self._is_given_up = False

    @property
    def is_open(self) -> bool:
        return self._writer is not None

    def open(self) -> None:
        """Raises AlreadyExistsError where another iterator writes it, or a checkpoint has ended it."""
        with self._mutex:
            self._check()
            files = graph_files()
            if files.exists(self.path):
                raise errors.already_exists(
                    f"Existing cache files found: \n{self.path}\nTo continue delete the above files."
                )
            if files.exists(self.lock):
                raise errors.already_exists(
                    "There appears to be a concurrent caching iterator running - cache lockfile already exists "
                    f"('{self.lock}'). If you are sure no other running TF computations are using this cache prefix, "
                    "delete the lockfile and re-initialize the iterator."
                )
            with os_errors(self.lock):
                files.create(self.lock).close()
            self._writer = RecordWriter(self._unfinished, files=files)

    def write(self, element: Element) -> None:
        record = states.to_bytes(list(element))
        with self._mutex:
            self._check().write(record)

    def finish(self) -> None:
        """All of it is under its name; the lock stays."""
        with self._mutex:
            self._check().close()
            with os_errors(self.path):
                graph_files().replace(self._unfinished, self.path)
            self._writer = None

    def _check(self) -> Any:
        """The writer, if it is opened. Raises CancelledError where nobody wants it any more."""
        if self._is_given_up:
            raise errors.cancelled("The iterator was deleted.")
        return self._writer

    def give_up(self) -> None:
        """Takes away what was not finished, as far as that goes."""
        with self._mutex:
            self._is_given_up = True
            writer, self._writer = self._writer, None
            if writer is None:
                return
            with contextlib.suppress(errors.OpError):
                writer.close()
            for path in (self._unfinished, self.lock):
                _unlink(path)


def _give_up(current: list[_Part]) -> None:
    for part in current:
        part.give_up()


def _join(name: str, count: int) -> None:
    """Makes `count` finished parts the file `name`, and takes their locks away."""
    parts = [_Part(name, number) for number in range(count)]
    whole = parts[0].path
    if count > 1:
        whole = f"{name}.unfinished"
        writer = RecordWriter(whole, files=graph_files())
        try:
            for part in parts:
                for record in _records(part.path):
                    writer.write(record)
        finally:
            writer.close()
    with os_errors(name):
        graph_files().replace(whole, name)
    for part in parts:
        if count > 1:
            _unlink(part.path)
        _unlink(part.lock)


def _unlink(path: str) -> None:
    with contextlib.suppress(errors.OpError, OSError):
        graph_files().unlink(path)


def _elements(name: str) -> Iterator[Element]:
    for record in _records(name):
        yield tuple(states.from_bytes(record))


def _records(name: str) -> Iterator[bytes]:
    with RecordReader(name, "", files=graph_files()) as reader:
        yield from reader
