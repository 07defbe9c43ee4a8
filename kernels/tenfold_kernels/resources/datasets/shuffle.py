"""Shuffled datasets, in TensorFlow's very order for the same seeds.

A buffer holds elements of one epoch or, when the shuffle also repeats, of several, each a slice of it; the next element
is drawn from the first slice that is not empty. Seeds come from a generator that outlives the iterators where epochs
must differ. Used by cpu/dataset_transforms.py. Follows shuffle_dataset_op.cc and random_seed_ops.cc.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.philox import Philox
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Element, Like, Machine, Run, State

if TYPE_CHECKING:
    from collections.abc import Iterator

_MASK64 = (1 << 64) - 1
#: A buffer that spans more epochs than this is not filled further.
_MAX_EPOCHS = 3


def numbers(seed: int, seed2: int) -> Iterator[int]:
    """uint32 after uint32 of the generator with these seeds."""
    return Philox(seed & _MASK64, (seed2 & _MASK64) << 64).single()


class SeedGenerator:
    """Gives each epoch its seeds: always the same, or the next of a sequence. Thread-safe."""

    def __init__(self, seed: int, seed2: int, reshuffle: bool) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(63), secrets.randbits(63)
        self.seeds, self._lock = (seed, seed2), threading.Lock()
        self._sequence = numbers(seed, seed2) if reshuffle else None
        self._drawn = 0

    @property
    def reshuffles(self) -> bool:
        return self._sequence is not None

    def draw(self) -> tuple[int, int]:
        if self._sequence is None:
            return self.seeds
        with self._lock:
            self._drawn += 1
            return next(self._sequence), next(self._sequence)

    def save(self) -> State:
        """Its seeds, and how many epochs it was asked for."""
        with self._lock:
            return *self.seeds, self._drawn

    def restore(self, state: Any) -> None:
        with self._lock:
            first, second, self._drawn = state
            self.seeds = (first, second)
            if self._sequence is not None:
                self._sequence = numbers(first, second)
                for _ in range(2 * self._drawn):
                    next(self._sequence)


class _Slice:
    """One epoch's elements in the buffer: positions, which wrap around."""

    __slots__ = ("end", "is_complete", "start")

    def __init__(self, at: int) -> None:
        self.start = self.end = at
        self.is_complete = False


class Shuffle(Like):
    """The input in random order, drawn out of a buffer; `count` epochs, for ever where it is -1.

    `buffer_size` -2 holds a whole epoch.
    """

    is_slow = True

    def __init__(
        self, dataset: Dataset, buffer_size: int, seeds: SeedGenerator, count: int = 1, is_one_sequence: bool = False
    ) -> None:
        super().__init__(dataset)
        if buffer_size <= 0 and buffer_size != UNKNOWN:
            raise errors.InvalidArgumentError(
                None, None, "buffer_size must be greater than zero or UNKNOWN_CARDINALITY"
            )
        if count <= 0 and count != -1:
            raise errors.InvalidArgumentError(None, None, "count must be greater than zero or equal to -1.")
        self._size, self._seeds, self._count = buffer_size, seeds, count
        self._is_one_sequence = is_one_sequence

    def iterate(self, run: Run) -> Machine:
        machine = _Shuffling(self.input, self._size, self._seeds, self._count, self._is_one_sequence, run)
        return Machine(machine.following, machine.save, machine.restore)

    def fused(self, count: int) -> Dataset | None:
        """This, repeated, as TensorFlow 1.x's rewriter makes it: one sequence of numbers for all epochs."""
        if self._count != 1 or not self._seeds.reshuffles or not (count == -1 or count > 0):
            return None
        return Shuffle(self.input, self._size, SeedGenerator(*self._seeds.seeds, reshuffle=False), count, True)

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count == -1 or count == INFINITE:
            return INFINITE
        return UNKNOWN if count == UNKNOWN else count * self._count


class _Shuffling:
    """The machine. The buffer grows as it fills: its size is what a program says."""

    def __init__(
        self, dataset: Dataset, size: int, seeds: SeedGenerator, count: int, is_one_sequence: bool, run: Run
    ) -> None:
        self._is_one_sequence = is_one_sequence
        self._dataset, self._seeds, self._count, self._run = dataset, seeds, count, run
        self._holds_all = size == UNKNOWN
        self._size = 0 if self._holds_all else size
        self._buffer: dict[int, Element] = {}
        self._slices: deque[_Slice] = deque()
        self._source: Machine | None = None
        self._epoch = 0
        self._has_any = False
        self._begin_numbers(seeds.draw())

    def _begin_numbers(self, seeds: tuple[int, int]) -> None:
        self._epoch_seeds, self._drawn, self._random = seeds, 0, numbers(*seeds)

    def save(self) -> State:
        return {
            "size": self._size,
            "buffer": list(self._buffer.items()),
            "slices": [(part.start, part.end, part.is_complete) for part in self._slices],
            "source": None if self._source is None else (self._source.save(),),
            "epoch": self._epoch,
            "has_any": self._has_any,
            "numbers": (*self._epoch_seeds, self._drawn),
            "seeds": self._seeds.save(),
        }

    def restore(self, state: Any) -> None:
        self._size, self._epoch, self._has_any = state["size"], state["epoch"], state["has_any"]
        self._buffer = {index: tuple(element) for index, element in state["buffer"]}
        self._slices.clear()
        for start, end, is_complete in state["slices"]:
            part = _Slice(start)
            part.end, part.is_complete = end, is_complete
            self._slices.append(part)
        self._seeds.restore(state["seeds"])
        first, second, drawn = state["numbers"]
        self._begin_numbers((first, second))
        for _ in range(drawn):
            next(self._random)
        self._drawn = drawn
        self._source = None
        if state["source"] is not None:
            self._source = self._dataset.iterate(self._run)
            self._source.restore(state["source"][0])

    def following(self) -> Element | None:
        self._fill()
        if not self._buffer:
            return None
        while self._slices[0].start == self._slices[0].end:
            self._slices.popleft()
            if not self._is_one_sequence:
                self._begin_numbers(self._seeds.draw())
        first = self._slices[0]
        self._drawn += 1
        index = (first.start + next(self._random) % (first.end - first.start)) % self._size
        element = self._buffer.pop(index)
        head = first.start % self._size
        if index != head:
            # The slice's first element takes the place of the one that was drawn.
            self._buffer[index] = self._buffer.pop(head)
        first.start += 1
        return element

    def _fill(self) -> None:
        while self._wants_more():
            self._run.check()
            if self._source is None:
                self._slices.append(_Slice(self._slices[-1].end if self._slices else 0))
                self._source = self._dataset.iterate(self._run)
                self._epoch += 1
            last = self._slices[-1]
            element = self._source.following()
            if element is None:
                last.is_complete = True
                self._source = None
                if not self._has_any and self._count == -1:
                    return  # nothing, for ever, is nothing
                continue
            self._has_any = True
            if self._holds_all and len(self._buffer) == self._size:
                self._size += 1
                self._buffer[self._size - 1] = element
            else:
                self._buffer[last.end % self._size] = element
            last.end += 1

    def _wants_more(self) -> bool:
        if self._source is None and self._count != -1 and self._epoch >= self._count:
            return False
        if len(self._slices) > _MAX_EPOCHS and self._buffer:
            return False
        if self._holds_all:
            serving = next((part for part in self._slices if part.start != part.end), None)
            if serving is None or not serving.is_complete:
                return True
        return len(self._buffer) < self._size
