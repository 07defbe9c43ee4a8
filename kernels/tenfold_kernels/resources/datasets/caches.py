"""Datasets that remember: what a whole pass gave is kept, in memory or in a file, and later passes read it.

A file is a TFRecord file of elements, under its name once the pass that writes it is over. Used by cpu/dataset.py.
Follows cache_dataset_ops.cc; its files are TensorFlow's tensor bundles, ours are our own.
"""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_core.checkpoint.files import os_errors
from tenfold_core.graph_files import graph_files
from tenfold_core.records import RecordReader, RecordWriter
from tenfold_kernels.resources.datasets import states
from tenfold_kernels.resources.datasets.core import Dataset, Element, Like, Machine, Run, State, within

if TYPE_CHECKING:
    from collections.abc import Iterator


class MemoryCache:
    """The elements of one whole pass over a dataset; empty until a pass is over. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.elements: list[Element] | None = None

    def keep(self, elements: list[Element]) -> None:
        with self._lock:
            if self.elements is None:
                self.elements = elements


class Cache(Like):
    """The input the first time over, and memory from then on."""

    def __init__(self, dataset: Dataset, cache: MemoryCache) -> None:
        super().__init__(dataset)
        self._cache = cache

    def iterate(self, run: Run) -> Machine:
        held = self._cache.elements
        source = self.input.iterate(run) if held is None else None
        seen: list[Element] = [] if held is None else held
        at = 0

        def following() -> Element | None:
            nonlocal at
            if source is None:
                if at >= len(seen):
                    return None
                at += 1
                return seen[at - 1]
            element = source.following()
            if element is None:
                self._cache.keep(seen)
            else:
                seen.append(element)
            return element

        def save() -> State:
            # What was seen goes with it: who restores has an empty cache.
            return at, list(seen), None if source is None else source.save()

        def restore(state: Any) -> None:
            nonlocal at, seen, source
            at, inner = state[0], state[2]
            seen = [tuple(element) for element in state[1]]
            if inner is None:
                source = None
                self._cache.keep(seen)
            else:
                source = self.input.iterate(run)
                source.restore(inner)

        return Machine(following, save, restore)

    def cardinality(self) -> int:
        return self.input.cardinality()

    def at(self, index: int, run: Run) -> Element:
        held = self._cache.elements
        return self.input.at(index, run) if held is None else held[within(index, len(held))]


class FileCache(Like):
    """The input the first time over, and a file from then on; two passes at once may not both write it."""

    is_slow = True

    def __init__(self, dataset: Dataset, name: str) -> None:
        super().__init__(dataset)
        self._name = name

    def iterate(self, run: Run) -> Machine:
        if graph_files().exists(self._name):
            return self._reading(run)
        return self._writing(run)

    def _reading(self, run: Run) -> Machine:
        at = 0

        def elements() -> Iterator[Element]:
            with RecordReader(self._name, "", files=graph_files()) as reader:
                while (record := reader.read()) is not None:
                    yield tuple(states.from_bytes(record))

        source = elements()

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
        lock, unfinished = f"{self._name}.lockfile", f"{self._name}.unfinished"
        if graph_files().exists(lock):
            raise errors.AlreadyExistsError(
                None,
                None,
                f"There appears to be a concurrent caching iterator running: cache lockfile already exists ('{lock}'). "
                "If you are sure no other running TF computations are using this cache prefix, delete the lockfile and "
                "re-initialize the iterator.",
            )
        source = self.input.iterate(run)
        #: The file while it is written, which is closed with the machine.
        opened: list[RecordWriter] = []
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            if is_over:
                return None
            if not opened:
                with os_errors(lock):
                    graph_files().create(lock).close()
                opened.append(RecordWriter(unfinished, files=graph_files()))
            element = source.following()
            if element is not None:
                opened[0].write(states.to_bytes(list(element)))
                return element
            opened[0].close()
            with os_errors(self._name):
                graph_files().replace(unfinished, self._name)
                graph_files().unlink(lock)
            is_over = True
            return None

        weakref.finalize(following, _close, opened)
        return Machine(following)

    def cardinality(self) -> int:
        return self.input.cardinality()


def _close(files: list[RecordWriter]) -> None:
    for file in files:
        file.close()
