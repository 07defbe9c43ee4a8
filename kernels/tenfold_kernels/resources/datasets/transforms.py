"""Datasets made of others without calling functions: repetition, parts, pairs, one after the other, caches.

Used by cpu/dataset.py. Follows the kernels of the same names under core/kernels/data.
"""

from __future__ import annotations

import threading

from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Element, Like, Machine, Run
from tenfold_kernels.resources.datasets.shuffle import Shuffle


class Repeat(Like):
    """The input `count` times over; for ever where it is negative."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def iterate(self, run: Run) -> Machine:
        if run.fuses_shuffles and isinstance(self.input, Shuffle) and (fused := self.input.fused(self._count)):
            return fused.iterate(run)
        source: Machine | None = None
        left, has_any = self._count, False

        def following() -> Element | None:
            nonlocal source, left, has_any
            while left:
                if source is None:
                    source, has_any = self.input.iterate(run), False
                element = source()
                if element is not None:
                    has_any = True
                    return element
                source = None
                left -= 1
                run.check()
                if not has_any and (left < 0 or not self.is_slow):
                    left = 0  # nothing, however often, is nothing
            return None

        return following

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count < 0:
            return 0 if count == 0 else INFINITE
        if self._count == 0:
            return 0
        return count if count < 0 else count * self._count


class Take(Like):
    """The first `count` elements; all where it is negative."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        taken = 0

        def following() -> Element | None:
            nonlocal taken
            if 0 <= self._count <= taken:
                return None
            element = source()
            taken += element is not None
            return element

        return following

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count < 0 or count == UNKNOWN:
            return count
        return self._count if count == INFINITE else min(count, self._count)


class Skip(Like):
    """All but the first `count` elements; none where it is negative."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count
        self.weigh(count)

    def iterate(self, run: Run) -> Machine:
        if self._count < 0:
            return lambda: None
        source = self.input.iterate(run)
        skipped = 0

        def following() -> Element | None:
            nonlocal skipped
            while skipped < self._count:
                run.check()
                if source() is None:
                    return None
                skipped += 1
            return source()

        return following

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count < 0:
            return 0
        return count if count < 0 else max(count - self._count, 0)


class Shard(Like):
    """Every `shards`-th element, from `index` on."""

    def __init__(self, dataset: Dataset, shards: int, index: int) -> None:
        super().__init__(dataset)
        if shards <= 0:
            raise invalid(f"Number of shards must be greater than zero (currently num_shards = {shards}).")
        if not 0 <= index < shards:
            raise invalid(f"Index must be between 0 and {shards - 1} (currently index = {index}).")
        self._shards, self._index = shards, index
        self.weigh(shards)

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        at = 0

        def following() -> Element | None:
            nonlocal at
            while (element := source()) is not None:
                run.check()
                at += 1
                if (at - 1) % self._shards == self._index:
                    return element
            return None

        return following

    def cardinality(self) -> int:
        count = self.input.cardinality()
        return count if count < 0 else max(0, -(-(count - self._index) // self._shards))


class Zip(Dataset):
    """The components of all inputs next to each other; as long as the shortest."""

    def iterate(self, run: Run) -> Machine:
        sources = [dataset.iterate(run) for dataset in self.inputs]
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            parts = [] if is_over else [source() for source in sources]
            if is_over or any(part is None for part in parts):
                is_over = True
                return None
            return tuple(array for part in parts if part is not None for array in part)

        return following

    def cardinality(self) -> int:
        counts = [dataset.cardinality() for dataset in self.inputs]
        if UNKNOWN in counts:
            return UNKNOWN
        return min((count for count in counts if count != INFINITE), default=INFINITE)


class Concatenate(Dataset):
    """One input, and then the other."""

    def iterate(self, run: Run) -> Machine:
        datasets = iter(self.inputs)
        source: Machine | None = None

        def following() -> Element | None:
            nonlocal source
            while True:
                if source is None:
                    dataset = next(datasets, None)
                    if dataset is None:
                        return None
                    source = dataset.iterate(run)
                element = source()
                if element is not None:
                    return element
                source = None

        return following

    def cardinality(self) -> int:
        counts = [dataset.cardinality() for dataset in self.inputs]
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)


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
        if held is not None:
            elements = iter(held)
            return lambda: next(elements, None)
        source, seen = self.input.iterate(run), list[Element]()

        def following() -> Element | None:
            element = source()
            if element is None:
                self._cache.keep(seen)
            else:
                seen.append(element)
            return element

        return following

    def cardinality(self) -> int:
        return self.input.cardinality()
