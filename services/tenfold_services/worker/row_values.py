"""A value for each of many elements: stacked in one array, or a list of arrays. Used by row_plan.py."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from tenfold_compiler.graph.rows import REDUCTIONS

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.arrays import Array

#: An element of more bytes than this goes through the ops alone: what lies between stays in the caches.
_LARGE = 1 << 16


@dataclass(frozen=True, slots=True)
class Stack:
    """A value for each element, along the first axis."""

    array: Array

    @property
    def is_large(self) -> bool:
        return self.array[:1].nbytes >= _LARGE

    @property
    def rank(self) -> int:
        return self.array.ndim - 1

    def each(self) -> list[Array]:
        if self.array.ndim > 1:
            return list(self.array)
        return [self.array[number : number + 1].reshape(()) for number in range(len(self.array))]


@dataclass(frozen=True, slots=True)
class Each:
    """A value for each element, of any shapes."""

    arrays: list[Array]

    @property
    def is_large(self) -> bool:
        return self.arrays[0].nbytes >= _LARGE

    @property
    def rank(self) -> int:
        return self.arrays[0].ndim

    def each(self) -> list[Array]:
        return self.arrays


Value: TypeAlias = "Array | Stack | Each"


class NotOneShape(Exception):
    """The elements' values cannot stand on top of each other."""


def stack(value: Stack | Each) -> Array:
    """Raises NotOneShape."""
    if isinstance(value, Stack):
        return value.array
    arrays = value.arrays
    out = np.empty((len(arrays), *arrays[0].shape), arrays[0].dtype)
    for number, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise NotOneShape
        out[number] = array if array.ndim else array[()]
    return out


def of_rank(value: Value, rank: int) -> Array:
    """A stack whose elements have that rank, with axes of one entry in front of their own; or what is no stack."""
    if not isinstance(value, Stack | Each):
        return value
    array = stack(value)
    return array.reshape(len(array), *(1,) * (rank + 1 - array.ndim), *array.shape[1:])


def _behind(axes: Array, rank: int) -> Array:
    """Axes of an element of that rank as those of a stack."""
    return np.asarray(np.where(axes < 0, axes + rank, axes) + 1, axes.dtype)


def _after(head: int, values: Array) -> Array:
    return np.concatenate(([head], values.reshape(-1))).astype(values.dtype)


#: Ops whose second input speaks of an element's axes → that input for a stack.
ON_AXES: dict[str, Callable[[Array, Array], Array]] = {
    **dict.fromkeys((*REDUCTIONS, "ReverseV2"), lambda axes, array: _behind(axes, array.ndim - 1)),
    "ExpandDims": lambda axis, array: _behind(axis, array.ndim),
    "Reshape": lambda shape, array: _after(len(array), shape),
    "Transpose": lambda axes, array: _after(0, axes + 1),
}
