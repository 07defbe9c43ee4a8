"""Datasets that have no input: tensors, ranges, records of files, what a generator's functions give.

Used by cpu/dataset_sources.py. Follows tensor_slice_dataset_op.cc, range_dataset_op.cc, tf_record_dataset_op.cc,
generator_dataset_op.cc.
"""

from __future__ import annotations

import itertools
import logging
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import invalid, scalar_object
from tenfold_kernels.philox import Philox
from tenfold_kernels.resources.datasets.core import (
    INFINITE,
    UNKNOWN,
    Array,
    Dataset,
    Element,
    Machine,
    Run,
    State,
    within,
)
from tenfold_kernels.resources.datasets.threads import pool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.registry import Function


_log = logging.getLogger(__name__)


class Tensors(Dataset):
    """One element: the tensors."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], element: Element) -> None:
        super().__init__(types, shapes)
        self._element = element

    def iterate(self, run: Run) -> Machine:
        left = [self._element]

        def restore(state: Any) -> None:
            left[:] = [self._element] if state else []

        return Machine(lambda: left.pop() if left else None, lambda: bool(left), restore)

    def cardinality(self) -> int:
        return 1

    def at(self, index: int, run: Run) -> Element:
        within(index, 1)
        return self._element


class Listed(Dataset):
    """The elements that are given, one after the other; their shapes may differ."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], elements: Sequence[Element]) -> None:
        super().__init__(types, shapes)
        self._elements = tuple(elements)

    def iterate(self, run: Run) -> Machine:
        at = 0

        def following() -> Element | None:
            nonlocal at
            if at >= len(self._elements):
                return None
            at += 1
            return self._elements[at - 1]

        def restore(state: Any) -> None:
            nonlocal at
            at = state

        return Machine(following, lambda: at, restore)

    def cardinality(self) -> int:
        return len(self._elements)

    def at(self, index: int, run: Run) -> Element:
        return self._elements[within(index, len(self._elements))]


def row(array: Array, index: int) -> Array:
    """One entry along the first axis, in memory of its own, read-only."""
    out = array[index : index + 1].reshape(array.shape[1:]).copy()
    out.setflags(write=False)
    return out


class Slices(Dataset):
    """An element for each row of the tensors, which have as many."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], tensors: Element) -> None:
        super().__init__(types, shapes)
        for array in tensors:
            if not array.ndim:
                raise invalid("All components must be at least 1-dimensional")
            if len(array) != len(tensors[0]):
                raise invalid("All components must have the same size in the 0th dimension")
        self._tensors = tensors

    def iterate(self, run: Run) -> Machine:
        at, end = 0, self.cardinality()

        def following() -> Element | None:
            nonlocal at
            if at >= end:
                return None
            at += 1
            return tuple(row(array, at - 1) for array in self._tensors)

        def block(most: int) -> Element | None:
            nonlocal at
            if at >= end:
                return None
            first, at = at, min(at + most, end)
            return tuple(array[first:at] for array in self._tensors)

        def restore(state: Any) -> None:
            nonlocal at
            at = state

        return Machine(following, lambda: at, restore, block)

    def cardinality(self) -> int:
        return len(self._tensors[0]) if self._tensors else 0

    def at(self, index: int, run: Run) -> Element:
        within(index, self.cardinality())
        return tuple(row(array, index) for array in self._tensors)


class SparseSlices(Dataset):
    """A sparse tensor's rows: indices, values and shape of each. Its indices stand in order."""

    def __init__(self, dtype: DType, indices: Array, values: Array, shape: Array) -> None:
        rank = len(shape) - 1
        super().__init__(
            (dtypes.int64, dtype, dtypes.int64),
            (TensorShape([None, rank]), TensorShape([None]), TensorShape([rank])),
        )
        rows = indices[:, 0]
        if len(rows) and (np.diff(rows) < 0).any():
            raise errors.unimplemented(
                "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered "
                "input is not currently supported."
            )
        self._indices, self._values, self._shape = indices, values, shape

    def iterate(self, run: Run) -> Machine:
        at, rows = 0, self._indices[:, 0]

        def following() -> Element | None:
            nonlocal at
            if at >= self.cardinality():
                return None
            first, last = np.searchsorted(rows, [at, at + 1])
            at += 1
            found = (self._indices[first:last, 1:].copy(), self._values[first:last].copy(), self._shape[1:].copy())
            for array in found:
                array.setflags(write=False)
            return found

        def restore(state: Any) -> None:
            nonlocal at
            at = state

        return Machine(following, lambda: at, restore)

    def cardinality(self) -> int:
        return int(self._shape[0])


class Range(Dataset):
    """start, start + step, … before stop."""

    scalars = 3

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], start: int, stop: int, step: int) -> None:
        super().__init__(types, shapes)
        if step == 0:
            raise invalid("step must be a non-zero integer.")
        self._range, self._type = range(start, stop, step), self.types[0].as_numpy_dtype

    def iterate(self, run: Run) -> Machine:
        numbers, at, end = self._range, 0, len(self._range)
        dtype, array = self._type, np.array

        def following() -> Element | None:
            nonlocal at
            if at >= end:
                return None
            number = numbers[at]
            at += 1
            return (array(number, dtype),)

        def block(most: int) -> Element | None:
            nonlocal at
            if at >= end:
                return None
            part = numbers[at : at + most]
            at += len(part)
            return (np.arange(part.start, part.stop, part.step, dtype=np.int64).astype(dtype, copy=False),)

        def restore(state: Any) -> None:
            nonlocal at
            at = state

        return Machine(following, lambda: at, restore, block)

    def cardinality(self) -> int:
        return len(self._range)

    def at(self, index: int, run: Run) -> Element:
        return (np.array(self._range[within(index, len(self._range))], self._type),)


class RandomNumbers(Dataset):
    """uint32 after uint32 of a generator, without end; `seeds()` says with which seeds a pass begins."""

    def __init__(
        self, types: Sequence[DType], shapes: Sequence[TensorShape], seeds: Callable[[], tuple[int, int]]
    ) -> None:
        super().__init__(types, shapes)
        self._seeds = seeds

    def iterate(self, run: Run) -> Machine:
        mask = (1 << 64) - 1
        seeds, given = self._seeds(), 0
        numbers = Philox(seeds[0] & mask, (seeds[1] & mask) << 64).single()

        def following() -> Element | None:
            nonlocal given
            given += 1
            return (np.array(next(numbers), np.int64),)

        def restore(state: Any) -> None:
            nonlocal seeds, given, numbers
            *seeds_then, given = state
            seeds = (seeds_then[0], seeds_then[1])
            numbers = Philox(seeds[0] & mask, (seeds[1] & mask) << 64).single()
            for _ in range(given):
                next(numbers)

        return Machine(following, lambda: (*seeds, given), restore)

    def cardinality(self) -> int:
        return INFINITE


class Records(Dataset):
    """The records of some files, one file after the other; `records(name)` reads one. Blocks on the disk."""

    def __init__(self, names: Sequence[bytes], records: Callable[[bytes], Iterator[bytes]]) -> None:
        super().__init__((dtypes.string,), (TensorShape([]),))
        self._names, self._records = tuple(names), records

    def iterate(self, run: Run) -> Machine:
        names, file, given = self._names, 0, 0
        current: Iterator[bytes] | None = None
        #: What the file raised behind records that were given together: comes when it is asked again.
        failure: errors.OpError | None = None

        def record() -> bytes | None:
            nonlocal current, file, given, failure
            while file < len(names):
                if current is None:
                    current = self._records(names[file])
                try:
                    if failure is not None:
                        raise failure
                    found = next(current, None)
                except errors.OpError:
                    current, file, given, failure = None, file + 1, 0, None  # the next file is asked next
                    raise
                if found is not None:
                    given += 1
                    return found
                current, file, given = None, file + 1, 0
            return None

        def following() -> Element | None:
            found = record()
            if found is None:
                return None
            return (scalar_object(found),)

        def block(most: int) -> Element | None:
            nonlocal given, failure
            first = record()
            if first is None:
                return None
            found = [first]
            assert current is not None
            try:
                found.extend(itertools.islice(current, most - 1))
            except errors.OpError as error:
                failure = error
            given += len(found) - 1
            values = np.empty(len(found), object)
            values[:] = found
            return (values,)

        def save() -> State:
            return file, given

        def restore(state: Any) -> None:
            nonlocal current, file, given, failure
            file, given = state
            current = failure = None
            if given:
                current = self._records(names[file])
                for _ in range(given):
                    run.check()
                    next(current, None)

        return Machine(following, save, restore, block)


class _Begun:
    """A generator's state. The function that ends it is called once: at its end, or when nobody can ask it any more."""

    def __init__(self, state: Element, end: tuple[Function, Element]) -> None:
        self.state, self._end = state, end
        self._forgotten = weakref.finalize(self, _end_later, state, end)
        # the program is over then, and its functions with it
        self._forgotten.atexit = False

    def end(self, run: Run) -> None:
        self._forgotten.detach()
        run.call(self._end[0], [*self.state, *self._end[1]])


def _end_later(state: Element, end: tuple[Function, Element]) -> None:
    """On a thread of the pool: where the last reference is dropped, no function may be called."""

    def call() -> None:
        try:
            Run().call(end[0], [*state, *end[1]])
        except errors.OpError as error:
            _log.debug("A generator could not be ended: %s", error.message)

    pool.submit(call)


class Generated(Dataset):
    """What `following` gives for the state that `begin` made, until it raises OutOfRangeError; then `end` is called."""

    is_slow = True

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        begin: tuple[Function, Element],
        following: tuple[Function, Element],
        end: tuple[Function, Element],
    ) -> None:
        super().__init__(types, shapes)
        self._begin, self._following, self._end = begin, following, end
        self.functions = (begin[0], following[0], end[0])

    def iterate(self, run: Run) -> Machine:
        begun: _Begun | None = None
        is_over = False

        def following() -> Element | None:
            nonlocal begun, is_over
            if is_over:
                return None
            if begun is None:
                begun = _Begun(run.call(self._begin[0], self._begin[1]), self._end)
            try:
                return run.call(self._following[0], [*begun.state, *self._following[1]])
            except errors.OutOfRangeError:
                is_over = True
                begun.end(run)
                return None

        return Machine(following)

    def cardinality(self) -> int:
        return UNKNOWN
