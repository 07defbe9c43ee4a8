"""Datasets whose elements are several of another's: batches, padded batches, windows.

Used by cpu/dataset.py. Follows batch_dataset_op.cc, padded_batch_dataset_op.cc and window_dataset_op.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import errors
from tenfold_kernels.arrays import invalid, shape_text
from tenfold_kernels.resources.datasets.core import Array, Dataset, Element, Machine, Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType
    from tenfold_core.tensor_shape import TensorShape


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
        source = self._input.iterate(run)
        is_over = False

        def following() -> Element | None:
            nonlocal is_over
            elements: list[Element] = []
            while not is_over and len(elements) < self._size:
                run.check()
                element = source()
                if element is None:
                    is_over = True
                else:
                    elements.append(element)
            if not elements or (self._drop and len(elements) < self._size):
                return None
            return tuple(
                self._join(number, [element[number] for element in elements]) for number in range(len(elements[0]))
            )

        return following

    def _join(self, number: int, arrays: Sequence[Array]) -> Array:
        return stacked(number, arrays)

    def cardinality(self) -> int:
        count = self._input.cardinality()
        if count < 0:
            return count
        return count // self._size if self._drop else -(-count // self._size)


def stacked(number: int, arrays: Sequence[Array]) -> Array:
    """The arrays along a new first axis. Raises InvalidArgumentError where their shapes differ."""
    first = arrays[0]
    out = np.empty((len(arrays), *first.shape), first.dtype)
    for index, array in enumerate(arrays):
        if array.shape != first.shape:
            raise invalid(
                f"Cannot batch tensors with different shapes in component {number}. First element had shape "
                f"{shape_text(first.shape)} and element {index} had shape {shape_text(array.shape)}."
            )
        out[index] = array if array.ndim else array[()]
    out.setflags(write=False)
    return out


class PaddedBatch(Batch):
    """As Batch, of elements that are padded to one shape: a given size, or the largest of the batch (-1)."""

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
                raise errors.DataLossError(
                    None,
                    None,
                    f"Attempted to pad to a smaller size than the input element: axis {axis} of component {number} "
                    f"has {largest} entries, and {extent} were asked for.",
                )
        out = np.empty((len(arrays), *wanted), arrays[0].dtype)
        out[...] = self._values[number][()]
        for index, array in enumerate(arrays):
            where: tuple[int | slice, ...] = (index, *(slice(extent) for extent in array.shape))
            out[where] = array if array.ndim else array[()]
        out.setflags(write=False)
        return out


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
        for name, value in (("size", size), ("shift", shift), ("stride", stride)):
            if value <= 0:
                raise invalid(f"Window {name} must be greater than zero.")
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
                parts.append(Kept(dtype, shape, [(element[number],) for element in chosen]).as_array())
            return tuple(parts)

        return following


class Kept(Dataset):
    """Some elements that are at hand."""

    def __init__(self, dtype: DType, shape: TensorShape, elements: list[Element]) -> None:
        super().__init__((dtype,), (shape,))
        self._elements = elements

    def iterate(self, run: Run) -> Machine:
        elements = iter(self._elements)
        return lambda: next(elements, None)

    def cardinality(self) -> int:
        return len(self._elements)
