"""What a TensorArray does with its elements besides keeping them, for arrays of the host's memory or of a device's.

`HOST` is for NumPy arrays; cuda/_elements.py has the twin for a GPU. Used by tensor_arrays.py and by the kernels of
cpu/data_flow_array.py, which serve on every device.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from tenfold_core.memory_limits import allow

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.arrays import Array


class Elements(Protocol):
    """Arrays of one memory. None of these changes what it is given; results may be views of it."""

    def zeros(self, shape: Sequence[int], dtype: DType) -> Any:
        """A tensor of zeros, or of empty strings. Raises ResourceExhaustedError for one that is too large."""
        ...

    def add(self, x: Any, y: Any) -> Any:
        """The sum of two arrays of one shape."""
        ...

    def stack(self, values: Sequence[Any]) -> Any:
        """[N, ...] of N arrays of one shape, at least one."""
        ...

    def concatenate(self, values: Sequence[Any]) -> Any:
        """The rows of all of them, at least one."""
        ...

    def each(self, value: Any) -> Iterable[Any]:
        """The rows of an array, one after the other, without their first dimension."""
        ...

    def rows(self, value: Any, begin: int, end: int) -> Any:
        """Some rows of an array."""
        ...


def zeros(shape: Sequence[int], dtype: DType) -> Array:
    """A tensor of zeros, or of empty strings. Raises ResourceExhaustedError for one that is too large."""
    allow(shape, dtype.as_numpy_dtype)
    if dtype.name == "string":
        out = np.empty(tuple(shape), dtype=object)
        out.fill(b"")
        return out
    return np.zeros(tuple(shape), dtype=dtype.as_numpy_dtype)


class _Host:
    """NumPy's."""

    def zeros(self, shape: Sequence[int], dtype: DType) -> Any:
        return zeros(shape, dtype)

    def add(self, x: Any, y: Any) -> Any:
        return x + y

    def stack(self, values: Sequence[Any]) -> Any:
        first = values[0].shape
        if len(first):
            # one call of NumPy's, where np.stack takes several for each element
            return np.concatenate(values).reshape(len(values), *first)
        return np.stack(values)

    def concatenate(self, values: Sequence[Any]) -> Any:
        return np.concatenate(values)

    def each(self, value: Any) -> Iterable[Any]:
        return map(_element, value)

    def rows(self, value: Any, begin: int, end: int) -> Any:
        return value[begin:end]


def _element(row: Any) -> Any:
    """A row of an array as an array, which a row of a vector is not."""
    if isinstance(row, np.ndarray):
        return row
    element = np.empty((), dtype=object if isinstance(row, bytes) else row.dtype)
    element[()] = row
    return element


HOST: Elements = _Host()
