"""Updates of a variable's rows and elements by index, on a GPU: Scatter*, ScatterNd*, ResourceScatter*.

Equal indices are applied in order (see _rows.py), so that the result is the same in every run, and the CPU's. A row
that is out of range is left out, as by TensorFlow's GPU kernels: to raise an error, the host would have to wait.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.cpu._nd_places import check_nd_updates
from tenfold_kernels.cpu._variables import is_resource, variable_reader
from tenfold_kernels.cpu.state_scatter import check_updates, operation_of
from tenfold_kernels.cuda import _picks, _rows, loop_text
from tenfold_kernels.cuda._launch import Kernel
from tenfold_kernels.cuda._types import MOVED, NUMBERS
from tenfold_kernels.fusion import expressions
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray

#: Operation → the elementwise op that combines the old element with the new one.
_OPS = {"Add": "Add", "Sub": "Sub", "Mul": "Mul", "Div": "Div", "Min": "Minimum", "Max": "Maximum"}
_ND = ("Add", "Sub", "Min", "Max")


def _both(names: Sequence[str], stem: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{stem}{name}" for name in names for prefix in ("", "Resource"))


@kernel(*_both(tuple(_OPS), "Scatter"), device="GPU", T=NUMBERS, dtype=NUMBERS)
@kernel(*_both(("Update",), "Scatter"), device="GPU", T=MOVED, dtype=MOVED)
def build_scatter(node: KernelNode) -> Compute:
    """updates has the shape of indices and then of a row, or is a scalar. Gives the reference, where there is one."""
    launch = _launcher(node, node.input_types[1].as_numpy_dtype)

    def update(buffer: DeviceArray, indices: DeviceArray, updates: DeviceArray) -> None:
        check_updates(buffer.shape, indices, updates)
        launch(buffer, indices, updates, buffer.shape[0], math.prod(buffer.shape[1:]))

    return _updating(node, update)


@kernel(*_both(_ND, "ScatterNd"), device="GPU", T=NUMBERS)
@kernel(*_both(("Update",), "ScatterNd"), device="GPU", T=MOVED)
def build_scatter_nd(node: KernelNode) -> Compute:
    """The last dimension of indices leads into the first dimensions of the variable."""
    launch = _launcher(node, np.int64)

    def update(buffer: DeviceArray, indices: DeviceArray, updates: DeviceArray) -> None:
        check_nd_updates(indices, updates, buffer.shape)  # type: ignore[arg-type] # their shapes are all that it reads
        depth = indices.shape[-1]
        outer = buffer.shape[:depth]
        rows = _picks.row_numbers(indices, outer)
        launch(buffer, rows, updates, math.prod(outer), math.prod(buffer.shape[depth:]))

    return _updating(node, update)


def _updating(node: KernelNode, update: Callable[..., None]) -> Compute:
    """(variable, indices, updates) → the reference or nothing; `update` gets its array, under its lock."""
    resource, read = is_resource(node), variable_reader(node)

    def compute(ref: Any, indices: DeviceArray, updates: DeviceArray) -> Any:
        variable = read(ref)
        with variable.lock:
            update(variable.buffer(exclusive=resource), indices, updates)
        return None if resource else variable

    return compute


def _launcher(node: KernelNode, index: Any) -> Callable[..., None]:
    """(table, rows, updates, rows of the table, elements of a row) → nothing."""
    operation = operation_of(node.op)
    dtype = np.dtype(node.input_types[2].base_dtype.as_numpy_dtype)
    if operation == "Update":
        dtype = _as_moved(dtype)
    launched = _compiled(operation, dtype, np.dtype(index))

    def launch(table: DeviceArray, rows: DeviceArray, updates: DeviceArray, limit: int, width: int) -> None:
        # a scalar is the update of every element
        step = int(updates.ndim > 0)
        _rows.update_rows(launched, rows, limit, width, (step,), (table.view(dtype), updates.view(dtype)))

    return launch


def _as_moved(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """A type of that size that Numba knows."""
    return np.dtype(f"uint{8 * dtype.itemsize}") if dtype.itemsize <= 8 else dtype


@functools.cache
def _compiled(operation: str, dtype: np.dtype[Any], index: np.dtype[Any]) -> Kernel:
    """Its number is 1, or 0 for an update that is a scalar; its arrays are the table and the updates."""
    from tenfold_kernels.cuda._code import elementwise

    text = _rows.text(["step"], ["table"], ["updates"], (), f"x0 = {_combined(operation, dtype)}")
    types = _rows.types(1, index, [dtype, dtype])
    return Kernel(elementwise.function(text), types)


def _combined(operation: str, dtype: np.dtype[Any]) -> str:
    new = "updates[place * step]"
    if operation == "Update":
        return new
    if operation == "Div" and dtype.kind in "iu":
        # NumPy's quotient by zero
        return expressions.cast(f"(x0 // {new} if {new} != 0 else 0)", dtype)
    return loop_text.expression(_OPS[operation], {}, ["x0", new], [dtype, dtype], dtype)
