"""Datasets that remember: what a whole pass gave is kept in memory, and later passes read it.

Used by cpu/dataset.py; file_caches.py is the sibling that keeps it in a file. Follows cache_dataset_ops.cc.
"""

from __future__ import annotations

import threading
from typing import Any

from tenfold_kernels.resources.datasets.core import Dataset, Element, Machine, Run, Same, State, within


class MemoryCache:
    """The elements of one whole pass over a dataset; empty until a pass is over. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.elements: list[Element] | None = None

    def keep(self, elements: list[Element]) -> None:
        with self._lock:
            if self.elements is None:
                self.elements = elements


class Cache(Same):
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

    def at(self, index: int, run: Run) -> Element:
        held = self._cache.elements
        return self.input.at(index, run) if held is None else held[within(index, len(held))]
