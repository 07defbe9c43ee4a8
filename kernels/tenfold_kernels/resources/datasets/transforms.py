"""Datasets made of others without calling functions: repetition, parts, pairs, one after the other, pieces of elements.

Used by cpu/dataset.py. Caches are in caches.py. Follows the kernels of the same names under core/kernels/data.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.datasets.core import (
    INFINITE,
    UNKNOWN,
    Dataset,
    Element,
    Like,
    Machine,
    Run,
    State,
    within,
)
from tenfold_kernels.resources.datasets.shuffle import Shuffle
from tenfold_kernels.resources.datasets.sources import row
from tenfold_kernels.resources.datasets.stacks import joined

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


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
        gives_blocks = False

        def following() -> Element | None:
            nonlocal source, left, has_any
            while left:
                if source is None:
                    source, has_any = self.input.iterate(run), False
                element = source.following()
                if element is not None:
                    has_any = True
                    return element
                source = None
                left -= 1
                run.check()
                if not has_any and (left < 0 or not self.is_slow):
                    left = 0  # nothing, however often, is nothing
            return None

        def block(most: int) -> Element | None:
            nonlocal source, has_any, gives_blocks
            if not left:
                return None
            if source is None:
                source, has_any = self.input.iterate(run), False
            found = None if source.block is None else source.block(most)
            if found is not None:
                has_any = gives_blocks = True
            elif gives_blocks:
                # an end, as a rule: a block of one goes over it
                element = following()
                found = None if element is None else tuple(array[np.newaxis] for array in element)
            return found

        def save() -> State:
            nonlocal source, has_any
            if source is None and left:  # what it has drawn, even if it was not asked for an element yet
                source, has_any = self.input.iterate(run), False
            return left, has_any, None if source is None else source.save()

        def restore(state: Any) -> None:
            nonlocal source, left, has_any
            left, has_any, inner = state
            source = None
            if inner is not None:
                source = self.input.iterate(run)
                source.restore(inner)

        return Machine(following, save, restore, block)

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count < 0:
            return 0 if count == 0 else INFINITE
        if self._count == 0:
            return 0
        return count if count < 0 else count * self._count

    def at(self, index: int, run: Run) -> Element:
        within(index, self.cardinality())
        count = self.input.cardinality()
        return self.input.at(index if count < 0 else index % count, run)


class Take(Like):
    """The first `count` elements; all where it is negative."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        count, take = self._count, source.following
        taken = 0

        def following() -> Element | None:
            nonlocal taken
            if 0 <= count <= taken:
                return None
            element = take()
            taken += element is not None
            return element

        def block(most: int) -> Element | None:
            nonlocal taken
            if source.block is None or 0 <= count <= taken:
                return None
            found = source.block(most if count < 0 else min(most, count - taken))
            if found is not None:
                taken += len(found[0])
            return found

        def restore(state: Any) -> None:
            nonlocal taken
            taken, inner = state
            source.restore(inner)

        return Machine(following, lambda: (taken, source.save()), restore, block)

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count < 0 or count == UNKNOWN:
            return count
        return self._count if count == INFINITE else min(count, self._count)

    def at(self, index: int, run: Run) -> Element:
        return self.input.at(within(index, self.cardinality()), run)


class Skip(Like):
    """All but the first `count` elements; none where it is negative."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count
        self.weigh(count)

    def iterate(self, run: Run) -> Machine:
        if self._count < 0:
            return Machine(lambda: None, lambda: None, lambda state: None)
        source = self.input.iterate(run)
        count, take = self._count, source.following
        skipped = 0

        def following() -> Element | None:
            nonlocal skipped
            while skipped < count:
                run.check()
                if take() is None:
                    return None
                skipped += 1
            return take()

        def block(most: int) -> Element | None:
            return None if skipped < count or source.block is None else source.block(most)

        def restore(state: Any) -> None:
            nonlocal skipped
            skipped, inner = state
            source.restore(inner)

        return Machine(following, lambda: (skipped, source.save()), restore, block)

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count < 0:
            return 0
        return count if count < 0 else max(count - self._count, 0)

    def at(self, index: int, run: Run) -> Element:
        return self.input.at(within(index, self.cardinality()) + self._count, run)


class Shard(Like):
    """Every `shards`-th element, from `index` on; with `needs_one`, each shard must have an element."""

    def __init__(self, dataset: Dataset, shards: int, index: int, needs_one: bool = False) -> None:
        super().__init__(dataset)
        if shards <= 0:
            raise invalid(f"Number of shards must be greater than zero (currently num_shards = {shards}).")
        if not 0 <= index < shards:
            raise invalid(f"Index must be between 0 and {shards - 1} (currently index = {index}).")
        self._shards, self._index, self._needs_one = shards, index, needs_one
        self.weigh(shards)

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)
        take, at = source.following, 0

        def following() -> Element | None:
            nonlocal at
            while (element := take()) is not None:
                run.check()
                at += 1
                if (at - 1) % self._shards == self._index:
                    return element
            if self._needs_one and at < self._shards:
                raise invalid(
                    "Could not apply FILE based sharding: the dataset only has "
                    f"{at} file(s), which is not enough for the required {self._shards} shards/workers."
                )
            return None

        def restore(state: Any) -> None:
            nonlocal at
            at, inner = state
            source.restore(inner)

        return Machine(following, lambda: (at, source.save()), restore)

    def cardinality(self) -> int:
        count = self.input.cardinality()
        return count if count < 0 else max(0, -(-(count - self._index) // self._shards))

    def at(self, index: int, run: Run) -> Element:
        return self.input.at(self._index + within(index, self.cardinality()) * self._shards, run)


class Zip(Dataset):
    """The components of all inputs next to each other; as long as the shortest."""

    def iterate(self, run: Run) -> Machine:
        sources = [dataset.iterate(run) for dataset in self.inputs]
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            parts = [] if is_over else [source.following() for source in sources]
            if is_over or any(part is None for part in parts):
                is_over = True
                return None
            return tuple(array for part in parts if part is not None for array in part)

        def restore(state: Any) -> None:
            nonlocal is_over
            is_over, inner = state
            for source, saved in zip(sources, inner, strict=True):
                source.restore(saved)

        return Machine(following, lambda: (is_over, [source.save() for source in sources]), restore)

    def cardinality(self) -> int:
        counts = [dataset.cardinality() for dataset in self.inputs]
        if UNKNOWN in counts:
            return UNKNOWN
        return min((count for count in counts if count != INFINITE), default=INFINITE)

    def at(self, index: int, run: Run) -> Element:
        within(index, self.cardinality())
        return tuple(array for dataset in self.inputs for array in dataset.at(index, run))


class Concatenate(Dataset):
    """One input, and then the other."""

    def iterate(self, run: Run) -> Machine:
        source: Machine | None = None
        number = 0

        def following() -> Element | None:
            nonlocal source, number
            while number < len(self.inputs):
                if source is None:
                    source = self.inputs[number].iterate(run)
                element = source.following()
                if element is not None:
                    return element
                source, number = None, number + 1
            return None

        def save() -> State:
            nonlocal source
            if source is None and number < len(self.inputs):
                source = self.inputs[number].iterate(run)
            return number, None if source is None else source.save()

        def restore(state: Any) -> None:
            nonlocal source, number
            number, inner = state
            source = None
            if inner is not None:
                source = self.inputs[number].iterate(run)
                source.restore(inner)

        return Machine(following, save, restore)

    def cardinality(self) -> int:
        counts = [dataset.cardinality() for dataset in self.inputs]
        if INFINITE in counts:
            return INFINITE
        return UNKNOWN if UNKNOWN in counts else sum(counts)

    def at(self, index: int, run: Run) -> Element:
        within(index, self.cardinality())
        first = self.inputs[0].cardinality()
        if first == INFINITE or index < first:
            return self.inputs[0].at(index, run)
        return self.inputs[1].at(index - first, run)


class Unbatch(Dataset):
    """An element for each row of each element."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], dataset: Dataset) -> None:
        super().__init__(types, shapes, dataset)
        self._input = dataset

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        current: Element = ()
        at = end = 0

        def fill() -> bool:
            nonlocal current, at, end
            while at >= end:
                run.check()
                element = source.following()
                if element is None:
                    return False
                at, end = 0, _rows(element)
                current = element
            return True

        def following() -> Element | None:
            nonlocal at
            if at >= end and not fill():
                return None
            at += 1
            return tuple(row(array, at - 1) for array in current)

        def block(most: int) -> Element | None:
            nonlocal at
            if at >= end:
                return None
            first, at = at, min(at + most, end)
            return tuple(array[first:at] for array in current)

        def restore(state: Any) -> None:
            nonlocal current, at, end
            at, current, inner = state[0], tuple(state[1]), state[2]
            end = _rows(current) if current else 0
            source.restore(inner)

        return Machine(following, lambda: (at, current if at < end else (), source.save()), restore, block)

    def cardinality(self) -> int:
        count = self._input.cardinality()
        if count in (0, INFINITE):
            return count
        rows = {shape.as_list()[0] for shape in self._input.shapes if shape.ndims}
        known = rows.pop() if len(rows) == 1 else None
        return UNKNOWN if count < 0 or known is None else count * known


def _rows(element: Element) -> int:
    """How many rows all components have. Raises InvalidArgumentError where they have not as many."""
    first = element[0]
    if not all(array.ndim for array in element):
        raise invalid("Unbatch expects tensors of at least one dimension, got a scalar component.")
    for number, array in enumerate(element):
        if len(array) != len(first):
            raise invalid(
                f"Input element must have the same batch size in each component. Component 0 had size {len(first)} "
                f"but component {number} had size {len(array)}."
            )
    return len(first)


class Rebatch(Dataset):
    """The rows of the input's elements in elements of other sizes: `sizes` in turn, for ever.

    With `within_elements`, each element of the input is cut by itself into as many parts as there are sizes, whatever
    they are: release 1.15's way to share a batch between replicas.
    """

    def __init__(
        self, types: Sequence[DType], shapes: Sequence[TensorShape], dataset: Dataset, sizes: Sequence[int], drop: bool
    ) -> None:
        super().__init__(types, shapes, dataset)
        if not sizes or any(size < 0 for size in sizes) or not any(sizes):
            raise invalid(f"Rebatch needs batch sizes, none negative and not all 0, got {shape_text(sizes)}.")
        self._input, self._sizes, self._drop = dataset, tuple(sizes), drop

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        held: list[Element] = []
        turn = 0
        is_over = False

        def following() -> Element | None:
            nonlocal turn, is_over
            size = self._sizes[turn % len(self._sizes)]
            while not is_over and sum(len(part[0]) for part in held) < size:
                run.check()
                element = source.following()
                if element is None:
                    is_over = True
                elif _rows(element):
                    held.append(element)
            have = sum(len(part[0]) for part in held)
            if is_over and (not have or (self._drop and have < size)):
                return None
            turn += 1
            parts, missing = [], size
            if not size:
                return tuple(array[:0] for array in held[0]) if held else None
            while missing and held:
                rows = min(missing, len(held[0][0]))
                parts.append(tuple(array[:rows] for array in held[0]))
                if rows == len(held[0][0]):
                    held.pop(0)
                else:
                    held[0] = tuple(array[rows:] for array in held[0])
                missing -= rows
            return parts[0] if len(parts) == 1 else joined(parts)

        def restore(state: Any) -> None:
            nonlocal turn, is_over
            turn, is_over, parts, inner = state
            held[:] = [tuple(part) for part in parts]
            source.restore(inner)

        return Machine(following, lambda: (turn, is_over, list(held), source.save()), restore)


class Split(Dataset):
    """Each element cut into at most `parts` pieces of rows, as equal as they can be: a batch for so many replicas."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], dataset: Dataset, parts: int) -> None:
        super().__init__(types, shapes, dataset)
        if parts <= 0:
            raise invalid(f"num_replicas must be greater than zero, got {parts}.")
        self._input, self._parts = dataset, parts

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)
        pieces: list[Element] = []

        def following() -> Element | None:
            while not pieces:
                run.check()
                element = source.following()
                if element is None:
                    return None
                rows = _rows(element)
                size = -(-rows // self._parts)
                pieces.extend(tuple(a[at : at + size] for a in element) for at in range(0, rows, max(size, 1)))
            return pieces.pop(0)

        def restore(state: Any) -> None:
            pieces[:] = [tuple(piece) for piece in state[0]]
            source.restore(state[1])

        return Machine(following, lambda: (list(pieces), source.save()), restore)


class IgnoreErrors(Like):
    """The elements that can be made; those that cannot are left out."""

    def iterate(self, run: Run) -> Machine:
        source = self.input.iterate(run)

        def following() -> Element | None:
            while True:
                run.check()
                try:
                    return source.following()
                except errors.CancelledError:
                    raise
                except errors.OpError:
                    continue

        return Machine(following, source.save, source.restore)


class Expected(Like):
    """The input, which must have `count` elements."""

    def __init__(self, dataset: Dataset, count: int) -> None:
        super().__init__(dataset)
        self._count = count

    def iterate(self, run: Run) -> Machine:
        source, seen = self.input.iterate(run), 0

        def following() -> Element | None:
            nonlocal seen
            element = source.following()
            seen += element is not None
            if (element is None and 0 <= self._count != seen) or (element is not None and 0 <= self._count < seen):
                raise errors.failed_precondition(
                    f"Input dataset was expected to contain {self._count} elements but contained "
                    f"{'only' if seen < self._count else 'at least'} {seen} elements."
                )
            return element

        def restore(state: Any) -> None:
            nonlocal seen
            seen, inner = state
            source.restore(inner)

        return Machine(following, lambda: (seen, source.save()), restore)

    def cardinality(self) -> int:
        return self._count

    def at(self, index: int, run: Run) -> Element:
        return self.input.at(index, run)
