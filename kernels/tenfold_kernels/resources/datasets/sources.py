"""Datasets that have no input: tensors, ranges, records of files, what a generator's functions give.

Used by cpu/dataset_sources.py. Follows tensor_slice_dataset_op.cc, range_dataset_op.cc, tf_record_dataset_op.cc,
generator_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.datasets.core import UNKNOWN, Array, Dataset, Element, Machine, Run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.registry import Function


class Tensors(Dataset):
    """One element: the tensors."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], element: Element) -> None:
        super().__init__(types, shapes)
        self._element = element

    def iterate(self, run: Run) -> Machine:
        left = [self._element]
        return lambda: left.pop() if left else None

    def cardinality(self) -> int:
        return 1


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
                raise errors.InvalidArgumentError(None, None, "All components must be at least 1-dimensional")
            if len(array) != len(tensors[0]):
                raise errors.InvalidArgumentError(
                    None, None, "All components must have the same size in the 0th dimension"
                )
        self._tensors = tensors

    def iterate(self, run: Run) -> Machine:
        at, end = 0, self.cardinality()

        def following() -> Element | None:
            nonlocal at
            if at >= end:
                return None
            at += 1
            return tuple(row(array, at - 1) for array in self._tensors)

        return following

    def cardinality(self) -> int:
        return len(self._tensors[0]) if self._tensors else 0


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
            raise errors.UnimplementedError(
                None,
                None,
                "The SparseTensor must be ordered in the batch dimension; handling arbitrarily ordered "
                "input is not currently supported.",
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

        return following

    def cardinality(self) -> int:
        return int(self._shape[0])


class Range(Dataset):
    """start, start + step, … before stop."""

    def __init__(self, types: Sequence[DType], shapes: Sequence[TensorShape], start: int, stop: int, step: int) -> None:
        super().__init__(types, shapes)
        if step == 0:
            raise errors.InvalidArgumentError(None, None, "step must be a non-zero integer.")
        self._range, self._type = range(start, stop, step), self.types[0].as_numpy_dtype

    def iterate(self, run: Run) -> Machine:
        numbers = iter(self._range)

        def following() -> Element | None:
            number = next(numbers, None)
            return None if number is None else (np.array(number, self._type),)

        return following

    def cardinality(self) -> int:
        return len(self._range)


class Records(Dataset):
    """The records of some files, one file after the other; `records(name)` reads one. Blocks on the disk."""

    def __init__(self, names: Sequence[bytes], records: Callable[[bytes], Iterator[bytes]]) -> None:
        super().__init__((dtypes.string,), (TensorShape([]),))
        self._names, self._records = tuple(names), records

    def iterate(self, run: Run) -> Machine:
        names = iter(self._names)
        current: Iterator[bytes] | None = None

        def following() -> Element | None:
            nonlocal current
            while True:
                if current is None:
                    name = next(names, None)
                    if name is None:
                        return None
                    current = self._records(name)
                try:
                    record = next(current, None)
                except errors.OpError:
                    current = None  # the next file is asked next
                    raise
                if record is not None:
                    value = np.empty((), object)
                    value[()] = record
                    return (value,)
                current = None

        return following


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

    def iterate(self, run: Run) -> Machine:
        state: Any = None
        is_over = False

        def following() -> Element | None:
            nonlocal state, is_over
            if is_over:
                return None
            if state is None:
                state = run.call(self._begin[0], self._begin[1])
            try:
                return run.call(self._following[0], [*state, *self._following[1]])
            except errors.OutOfRangeError:
                is_over = True
                run.call(self._end[0], [*state, *self._end[1]])
                return None

        return following

    def cardinality(self) -> int:
        return UNKNOWN
