"""What a TensorArray does with elements in a GPU's memory: see resources/elements.py.

Stacking takes a copy on the stream for each element, and never waits. Rows are views: they keep the whole array alive.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import errors
from tenfold_kernels.cuda import _loops
from tenfold_kernels.cuda.loop_text import Loop, has_expression
from tenfold_kernels.fusion.runs import FusedOp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_core.dtypes import DType
    from tenfold_kernels.cuda._arrays import DeviceArray
    from tenfold_kernels.cuda._runtime import Runtime


class DeviceElements:
    """Of one GPU."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    def zeros(self, shape: Sequence[int], dtype: DType) -> DeviceArray:
        out = self._runtime.empty(tuple(shape), np.dtype(dtype.as_numpy_dtype))
        self._runtime.zero(out)
        return out

    def add(self, x: DeviceArray, y: DeviceArray) -> DeviceArray:
        """Raises UnimplementedError for types that a GPU's loops have no arithmetic for."""
        if not has_expression("Add", [x.dtype, y.dtype], x.dtype):
            raise errors.unimplemented(f"No sum of {x.dtype.name} on a GPU.")
        steps = (FusedOp("Add", (), (("input", 0), ("input", 1)), x.dtype),)
        return _loops.run_loop(partial(Loop, steps=steps, outputs=(0,)), [x, y])[0]

    def stack(self, values: Sequence[DeviceArray]) -> DeviceArray:
        out = self._runtime.empty((len(values), *values[0].shape), values[0].dtype)
        for number, value in enumerate(values):
            self._runtime.copy(value, out.rows(number, number + 1))
        return out

    def concatenate(self, values: Sequence[DeviceArray]) -> DeviceArray:
        rows = sum(value.shape[0] for value in values)
        out = self._runtime.empty((rows, *values[0].shape[1:]), values[0].dtype)
        begin = 0
        for value in values:
            end = begin + value.shape[0]
            self._runtime.copy(value, out.rows(begin, end))
            begin = end
        return out

    def each(self, value: DeviceArray) -> Iterable[DeviceArray]:
        shape = value.shape[1:]
        return (value.rows(number, number + 1).reshape(shape) for number in range(value.shape[0]))

    def rows(self, value: DeviceArray, begin: int, end: int) -> DeviceArray:
        return value.rows(begin, end)
