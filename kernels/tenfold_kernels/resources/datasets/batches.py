"""Datasets whose elements are several of another's: batches, padded and sparse batches, windows.

A batch of a source that gives blocks is such a block: no element is made by itself. Used by cpu/dataset*.py. Follows
batch_dataset_op.cc, padded_batch_dataset_op.cc, dense_to_sparse_batch_dataset_op.cc and window_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes, errors
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.datasets.core import (
    UNKNOWN,
    Array,
    Dataset,
    Element,
    Machine,
    Run,
    State,
    dataset_of,
    within,
)
from tenfold_kernels.resources.datasets.sources import Listed
from tenfold_kernels.resources.datasets.stacks import joined, stacked
from tenfold_kernels.resources.tensor_variants import vector_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape

#: Elements of a block at most.
_BLOCK = 4096


class Batch(Dataset):
    """Elements on top of each other, `size` at a time; the last batch may be smaller."""

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        size: int,
        drop_remainder: bool,
    ) -> None:
        super().__init__(types, shapes, dataset)
        if size <= 0:
            raise invalid("Batch size must be greater than zero.")
        self._input, self._size, self._drop = dataset, size, drop_remainder
        self.weigh(size)

    def iterate(self, run: Run) -> Machine:
        return self._batches(self._input.iterate(run), run)

    def _batches(self, source: Machine, run: Run) -> Machine:
        take, size = source.following, self._size
        give = source.block if self._joins_blocks else None
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            if is_over:
                return None
            parts: list[Element] = []
            count = 0
            if give is not None:
                while count < size and (part := give(min(size - count, _BLOCK))) is not None:
                    run.check()
                    parts.append(part)
                    count += len(part[0])
                if count == size:
                    return parts[0] if len(parts) == 1 else joined(parts)
            elements: list[Element] = []
            while count < size:
                run.check()
                element = take()
                if element is None:
                    is_over = True
                    break
                elements.append(element)
                count += 1
            if not count or (self._drop and count < size):
                return None
            if elements:
                columns = zip(*elements, strict=True)
                parts.append(tuple(self._join(number, arrays) for number, arrays in enumerate(columns)))
            return parts[0] if len(parts) == 1 else joined(parts)

        def restore(state: Any) -> None:
            nonlocal is_over
            is_over, inner = state
            source.restore(inner)

        return Machine(following, lambda: (is_over, source.save()), restore)

    #: Whether a batch is its elements on top of each other, and nothing more.
    _joins_blocks = True

    def _join(self, number: int, arrays: Sequence[Array]) -> Array:
        return stacked(number, arrays)

    def cardinality(self) -> int:
        count = self._input.cardinality()
        if count < 0:
            return count
        return count // self._size if self._drop else -(-count // self._size)

    def at(self, index: int, run: Run) -> Element:
        total = self._input.cardinality()
        first = within(index, self.cardinality()) * self._size
        last = first + self._size if total < 0 else min(first + self._size, total)
        elements = [self._input.at(number, run) for number in range(first, last)]
        return tuple(self._join(number, arrays) for number, arrays in enumerate(zip(*elements, strict=True)))


class PaddedBatch(Batch):
    """As Batch, of elements that are padded to one shape: a given size, or the largest of the batch (-1)."""

    _joins_blocks = False

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        size: int,
        padded: Sequence[Sequence[int]],
        values: Sequence[Array],
        drop_remainder: bool,
    ) -> None:
        super().__init__(types, shapes, dataset, size, drop_remainder)
        for shape in padded:
            if any(extent < -1 for extent in shape):
                raise invalid(f"Padded sizes must be -1 or >= 0, got {shape_text(shape)}")
        self._padded, self._values = padded, values

    def _join(self, number: int, arrays: Sequence[Array]) -> Array:
        wanted = list(self._padded[number])
        for array in arrays:
            if array.ndim != len(wanted):
                raise invalid(
                    "All elements in a batch must have the same rank as the padded shape for component"
                    f"{number}: expected rank {len(wanted)} but got element with rank {array.ndim}"
                )
        for axis, extent in enumerate(self._padded[number]):
            largest = max(array.shape[axis] for array in arrays)
            if extent == -1:
                wanted[axis] = largest
            elif largest > extent:
                raise errors.data_loss(
                    f"Attempted to pad to a smaller size than the input element: axis {axis} of component {number} "
                    f"has {largest} entries, and {extent} were asked for."
                )
        allow((len(arrays), *wanted), arrays[0].dtype)
        out = np.empty((len(arrays), *wanted), arrays[0].dtype)
        out[...] = self._values[number][()]
        for index, array in enumerate(arrays):
            where: tuple[int | slice, ...] = (index, *(slice(extent) for extent in array.shape))
            out[where] = array if array.ndim else array[()]
        out.setflags(write=False)
        return out


def _check_window(size: int, shift: int, stride: int) -> None:
    for name, value in (("size", size), ("shift", shift), ("stride", stride)):
        if value <= 0:
            raise invalid(f"Window {name} must be greater than zero.")


class Window(Dataset):
    """Datasets of `size` elements each, `stride` apart within, `shift` apart between windows."""

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        size: int,
        shift: int,
        stride: int,
        drop_remainder: bool,
    ) -> None:
        super().__init__(types, shapes, dataset)
        _check_window(size, shift, stride)
        self._input, self._size, self._shift, self._stride = dataset, size, shift, stride
        self._drop = drop_remainder
        self.weigh(max(size * stride, shift))

    def iterate(self, run: Run) -> Machine:
        source, buffer = self._input.iterate(run), list[Element]()
        reach = (self._size - 1) * self._stride + 1
        skip, is_over = 0, False

        def following() -> Element | None:
            nonlocal skip, is_over
            while not is_over and (skip or len(buffer) < reach):
                run.check()
                element = source()
                if element is None:
                    is_over = True
                elif skip:
                    skip -= 1
                else:
                    buffer.append(element)
            if not buffer or (self._drop and len(buffer) < reach):
                return None
            chosen = buffer[: reach : self._stride]
            skip = max(self._shift - len(buffer), 0)
            del buffer[: self._shift]
            parts = []
            for number, (dtype, shape) in enumerate(zip(self._input.types, self._input.shapes, strict=True)):
                parts.append(Listed((dtype,), (shape,), [(element[number],) for element in chosen]).as_array())
            return tuple(parts)

        def save() -> State:
            return skip, is_over, list(buffer), source.save()

        def restore(state: Any) -> None:
            nonlocal skip, is_over
            skip, is_over, held, inner = state
            buffer[:] = [tuple(element) for element in held]
            source.restore(inner)

        return Machine(following, save, restore)

    def cardinality(self) -> int:
        count = self._input.cardinality()
        if count < 0:
            return count
        whole, rest = divmod(count, self._shift)
        return whole + (rest > 0 and not self._drop)


class SlidingBatch(Batch):
    """Batches of `size` elements each, `stride` apart within, `shift` apart between batches."""

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        size: int,
        shift: int,
        stride: int,
        drop_remainder: bool,
    ) -> None:
        _check_window(size, shift, stride)
        super().__init__(types, shapes, dataset, size, drop_remainder)
        self._windows = Window((dtypes.variant,) * len(types), (), dataset, size, shift, stride, drop_remainder)

    def iterate(self, run: Run) -> Machine:
        source = self._windows.iterate(run)

        def following() -> Element | None:
            windows = source.following()
            if windows is None:
                return None
            columns = []
            for number, window in enumerate(windows):
                machine = dataset_of(window).iterate(run)
                columns.append(stacked(number, [element[0] for element in iter(machine.following, None)]))
            return tuple(columns)

        return Machine(following, source.save, source.restore)

    def cardinality(self) -> int:
        return UNKNOWN


class SparseBatch(Batch):
    """Batches of rows as sparse tensors: a vector of three variants each. Every row has at most `row_shape`."""

    _joins_blocks = False

    def __init__(
        self,
        types: Sequence[DType],
        shapes: Sequence[TensorShape],
        dataset: Dataset,
        size: int,
        row_shape: Sequence[int],
    ) -> None:
        super().__init__(types, shapes, dataset, size, drop_remainder=False)
        self._row_shape = tuple(row_shape)

    def iterate(self, run: Run) -> Machine:
        source = self._input.iterate(run)

        def following() -> Element | None:
            rows: list[Array] = []
            while len(rows) < self._size and (element := source.following()) is not None:
                run.check()
                rows.append(element[0])
            return self._sparse(rows) if rows else None

        return Machine(following, source.save, source.restore)

    def _sparse(self, rows: Sequence[Array]) -> Element:
        rank = len(self._row_shape)
        extents = list(self._row_shape)
        for array in rows:
            if array.ndim != rank:
                raise invalid(
                    f"Input element had shape ({shape_text(array.shape)}) that is incompatible with the row shape "
                    f"({shape_text(self._row_shape)})."
                )
        for axis, extent in enumerate(self._row_shape):
            largest = max(array.shape[axis] for array in rows)
            if extent == -1:
                extents[axis] = largest
            elif largest > extent:
                raise errors.data_loss(
                    f"Input element had shape that is larger than the row shape ({shape_text(self._row_shape)}): axis "
                    f"{axis} has {largest} entries."
                )
        allow((sum(array.size for array in rows), rank + 1), np.int64)
        indices = np.empty((sum(array.size for array in rows), rank + 1), np.int64)
        at = 0
        for number, array in enumerate(rows):
            part = indices[at : at + array.size]
            part[:, 0] = number
            if array.size:
                part[:, 1:] = np.indices(array.shape).reshape(rank, array.size).T
            at += array.size
        values = np.concatenate([array.reshape(-1) for array in rows])
        shape = np.array([len(rows), *extents], np.int64)
        for array in (indices, values, shape):
            array.setflags(write=False)
        return (vector_of(indices, values, shape),)
