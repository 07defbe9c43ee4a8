"""Shuffled datasets, in TensorFlow's very order for the same seeds.

A buffer holds elements of one epoch or, when the shuffle also repeats, of several, each a slice of it; the next element
is drawn from the first slice that is not empty. Seeds come from a generator that outlives the iterators where epochs
must differ. Whole blocks of elements are drawn at once where the source gives such. The buffers are in
shuffle_buffer.py. Used by cpu/dataset_shuffle.py. Follows shuffle_dataset_op.cc and random_seed_ops.cc.
"""

from __future__ import annotations

import secrets
import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from tenfold_core import errors
from tenfold_kernels.arrays import invalid
from tenfold_kernels.resources.datasets.core import INFINITE, UNKNOWN, Dataset, Element, Like, Machine, Run, State
from tenfold_kernels.resources.datasets.shuffle_buffer import Elements, Numbers, Rows, Uneven
from tenfold_kernels.resources.datasets.sources import row

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Elements that are asked of the source at once, at most.
_BLOCK = 4096
#: A buffer that spans more epochs than this is not filled further.
_MAX_EPOCHS = 3


class SeedGenerator:
    """Gives each epoch its seeds: always the same, or the next of a sequence. Thread-safe."""

    def __init__(self, seed: int, seed2: int, reshuffle: bool) -> None:
        if seed == 0 and seed2 == 0:
            seed, seed2 = secrets.randbits(63), secrets.randbits(63)
        self.seeds, self._lock = (seed, seed2), threading.Lock()
        self._sequence = Numbers((seed, seed2)) if reshuffle else None
        self._drawn = 0

    @property
    def reshuffles(self) -> bool:
        return self._sequence is not None

    def draw(self) -> tuple[int, int]:
        if self._sequence is None:
            return self.seeds
        with self._lock:
            self._drawn += 1
            return self._sequence.one(), self._sequence.one()

    def save(self) -> State:
        """Its seeds, and how many epochs it was asked for."""
        with self._lock:
            return *self.seeds, self._drawn

    def restore(self, state: Any) -> None:
        with self._lock:
            first, second, self._drawn = state
            self.seeds = (first, second)
            if self._sequence is not None:
                self._sequence = Numbers((first, second), 2 * self._drawn)


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
        self,
        dataset: Dataset,
        buffer_size: int,
        seeds: SeedGenerator,
        count: int = 1,
        is_one_sequence: bool = False,
        exchange: Callable[..., None] | None = None,
    ) -> None:
        """With the loop `exchange` of cpu/_compiled/drawing.py it gives blocks, where its input does."""
        super().__init__(dataset)
        if buffer_size <= 0 and buffer_size != UNKNOWN:
            raise invalid("buffer_size must be greater than zero or UNKNOWN_CARDINALITY")
        if count <= 0 and count != -1:
            raise invalid("count must be greater than zero or equal to -1.")
        self._size, self._seeds, self._count = buffer_size, seeds, count
        self._is_one_sequence, self._exchange = is_one_sequence, exchange

    def iterate(self, run: Run) -> Machine:
        machine = _Shuffling(
            self.input, self._size, self._seeds, self._count, self._is_one_sequence, run, self._exchange
        )
        return Machine(machine.following, machine.save, machine.restore, machine.block)

    def fused(self, count: int) -> Dataset | None:
        """This, repeated, as TensorFlow 1.x's rewriter makes it: one sequence of numbers for all epochs."""
        if self._count != 1 or not self._seeds.reshuffles or not (count == -1 or count > 0):
            return None
        seeds = SeedGenerator(*self._seeds.seeds, reshuffle=False)
        return Shuffle(self.input, self._size, seeds, count, True, self._exchange)

    def cardinality(self) -> int:
        count = self.input.cardinality()
        if self._count == -1 or count == INFINITE:
            return INFINITE
        return UNKNOWN if count == UNKNOWN else count * self._count


class _Shuffling:
    """The machine. The buffer grows as it fills: its size is what a program says."""

    def __init__(
        self,
        dataset: Dataset,
        size: int,
        seeds: SeedGenerator,
        count: int,
        is_one_sequence: bool,
        run: Run,
        exchange: Callable[..., None] | None,
    ) -> None:
        self._is_one_sequence, self._exchange = is_one_sequence, exchange
        self._dataset, self._seeds, self._count, self._run = dataset, seeds, count, run
        self._holds_all = size == UNKNOWN
        self._size = 0 if self._holds_all else size
        #: Rows once blocks were asked for and the source gave one, before there was anything else.
        self._buffer: Elements | Rows = Elements()
        self._slices: deque[_Slice] = deque()
        self._source: Machine | None = None
        self._epoch = 0
        self._has_any = False
        #: What the source raised after elements that were drawn: comes when it is asked again.
        self._failure: errors.OpError | None = None
        #: Elements of the source for which there was no place yet: their shapes are others than those before.
        self._pending: deque[Element] = deque()
        self._random = Numbers(seeds.draw())

    def save(self) -> State:
        failure = self._failure
        return {
            "size": self._size,
            "buffer": self._items(),
            "slices": [(part.start, part.end, part.is_complete) for part in self._slices],
            "source": None if self._source is None else (self._source.save(),),
            "epoch": self._epoch,
            "has_any": self._has_any,
            "numbers": (*self._random.seeds, self._random.drawn),
            "seeds": self._seeds.save(),
            "failure": None if failure is None else (failure.code, failure.message),
            "pending": list(self._pending),
        }

    def _items(self) -> list[tuple[int, Element]]:
        if isinstance(self._buffer, Elements):
            return self._buffer.items()
        return self._buffer.items_at(
            place % self._size for part in self._slices for place in range(part.start, part.end)
        )

    def restore(self, state: Any) -> None:
        self._size, self._epoch, self._has_any = state["size"], state["epoch"], state["has_any"]
        self._buffer = Elements((index, tuple(element)) for index, element in state["buffer"])
        self._slices.clear()
        for start, end, is_complete in state["slices"]:
            part = _Slice(start)
            part.end, part.is_complete = end, is_complete
            self._slices.append(part)
        self._seeds.restore(state["seeds"])
        first, second, drawn = state["numbers"]
        self._random = Numbers((first, second), drawn)
        failure = state.get("failure")
        self._pending = deque(tuple(element) for element in state.get("pending", ()))
        self._failure = None if failure is None else errors.from_code(int(failure[0]), str(failure[1]))
        self._source = None
        if state["source"] is not None:
            self._source = self._dataset.iterate(self._run)
            self._source.restore(state["source"][0])

    def following(self) -> Element | None:
        self._fill()
        if not len(self._buffer):
            return None
        first = self._serving()
        place = (first.start + self._random.one() % (first.end - first.start)) % self._size
        element = self._buffer.take(place, first.start % self._size)
        first.start += 1
        return element

    def block(self, most: int) -> Element | None:
        """As `following` so many times, up to the end of an epoch of the source or of the buffer."""
        if isinstance(self._buffer, Elements) and not self._begins_with_rows():
            return None
        self._fill()
        if not isinstance(self._buffer, Rows) or not len(self._buffer):
            return None
        first = self._serving()
        part, count = None, 1
        if len(self._buffer) < self._size:
            # nothing comes in any more, at least until this slice is empty
            count = min(most, first.end - first.start)
        elif self._source is not None and self._source.block is not None:
            is_alone = len(self._slices) == 1
            left = most if is_alone else min(most, first.end - first.start)
            part = self._more(self._source, min(left - 1, _BLOCK)) if left > 1 else None
            count = 1 if part is None else 1 + len(part[0])
        if not isinstance(self._buffer, Rows):
            return None
        grows = len(self._slices) == 1
        found = self._buffer.draw(self._random.some(count), first.start, first.end, part, grows)
        first.start += count
        self._slices[-1].end += count - 1 if part is not None else 0
        return found

    def _begins_with_rows(self) -> bool:
        """Whether the buffer can be one of rows: nothing is in it yet, and the source gives a block."""
        if self._exchange is None or len(self._buffer) or self._holds_all or self._failure is not None or self._slices:
            return False
        self._begin_epoch()
        assert self._source is not None
        part = None if self._source.block is None else self._source.block(min(self._size, _BLOCK))
        if part is None:
            return False
        buffer = Rows(self._size, self._exchange)
        self._buffer = buffer
        self._has_any = True
        self._put_rows(buffer, part)
        return True

    def _more(self, source: Machine, most: int) -> Element | None:
        """Elements for the places that are about to become free. None at an end, and where something went wrong."""
        assert source.block is not None
        assert isinstance(self._buffer, Rows)
        try:
            part = source.block(most)
        except errors.CancelledError:
            raise
        except errors.OpError as error:
            self._failure = error
            return None
        if part is not None:
            try:
                self._buffer.check(part)
            except Uneven:
                self._buffer = Elements(self._items())
                self._pending.extend(_apart(part))
                return None
        return part

    def _serving(self) -> _Slice:
        """The first slice that is not empty; each begins new numbers."""
        while self._slices[0].start == self._slices[0].end:
            self._slices.popleft()
            if not self._is_one_sequence:
                self._random = Numbers(self._seeds.draw())
        return self._slices[0]

    def _begin_epoch(self) -> None:
        self._slices.append(_Slice(self._slices[-1].end if self._slices else 0))
        self._source = self._dataset.iterate(self._run)
        self._epoch += 1

    def _fill(self) -> None:
        while self._wants_more():
            self._run.check()
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if self._source is None:
                self._begin_epoch()
            assert self._source is not None
            buffer = self._buffer
            if isinstance(buffer, Rows) and self._source.block is not None:
                part = self._source.block(min(self._size - len(buffer), _BLOCK))
                if part is not None:
                    self._has_any = True
                    self._put_rows(buffer, part)
                    continue
            last = self._slices[-1]
            element = self._pending.popleft() if self._pending else self._source.following()
            if element is None:
                last.is_complete = True
                self._source = None
                if not self._has_any and self._count == -1:
                    return  # nothing, for ever, is nothing
                continue
            self._has_any = True
            if self._holds_all and len(buffer) == self._size:
                self._size += 1
                buffer.put(self._size - 1, element)
                last.end += 1
            else:
                self._put(last, element)

    def _put_rows(self, buffer: Rows, part: Element) -> None:
        last = self._slices[-1]
        try:
            buffer.put_rows(last.end % self._size, part)
        except Uneven:
            for element in _apart(part):
                self._put(last, element)
            return
        last.end += len(part[0])

    def _put(self, last: _Slice, element: Element) -> None:
        try:
            self._buffer.put(last.end % self._size, element)
        except Uneven:
            self._buffer = Elements(self._items())
            self._buffer.put(last.end % self._size, element)
        last.end += 1

    def _wants_more(self) -> bool:
        if self._source is None and self._count != -1 and self._epoch >= self._count:
            return False
        if len(self._slices) > _MAX_EPOCHS and len(self._buffer):
            return False
        if self._holds_all:
            serving = next((part for part in self._slices if part.start != part.end), None)
            if serving is None or not serving.is_complete:
                return True
        return len(self._buffer) < self._size


def _apart(part: Element) -> Iterator[Element]:
    for number in range(len(part[0])):
        yield tuple(row(array, number) for array in part)
