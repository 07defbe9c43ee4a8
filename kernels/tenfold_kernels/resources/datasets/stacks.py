"""Elements on top of each other: what batches are made of, and what functions take that work row by row.

Used by batches.py, functional.py and transforms.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import invalid, shape_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.resources.datasets.core import Array, Element


def joined(parts: Sequence[Element]) -> Element:
    """Stacked elements, one behind the other. Raises InvalidArgumentError where their shapes differ."""
    columns = []
    for number, arrays in enumerate(zip(*parts, strict=True)):
        inner = arrays[0].shape[1:]
        for array in arrays:
            if array.shape[1:] != inner:
                raise invalid(
                    f"Cannot batch tensors with different shapes in component {number}. First element had shape "
                    f"{shape_text(inner)} and a later element had shape {shape_text(array.shape[1:])}."
                )
        column = np.concatenate(arrays)
        column.setflags(write=False)
        columns.append(column)
    return tuple(columns)


def stacked(number: int, arrays: Sequence[Array]) -> Array:
    """The arrays along a new first axis. Raises InvalidArgumentError where their shapes differ."""
    first = arrays[0]
    allow((len(arrays), *first.shape), first.dtype)
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
