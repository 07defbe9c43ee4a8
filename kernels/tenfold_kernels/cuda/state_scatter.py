"""Updates of a variable's rows and elements by index, on a GPU: Scatter*, ScatterNd*, ResourceScatter*.

Equal indices are applied in order (see _scatter.py), so that the result is the same in every run, and the CPU's but for
rounding. A row that is out of range is left out, as by TensorFlow's GPU kernels, and the quotient of an integer by 0 is
0: to raise an error, the host would have to wait.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu._nd_places import check_nd_updates
from tenfold_kernels.cpu._variables import is_resource, variable_reader
from tenfold_kernels.cpu.state_scatter import check_updates, operation_of
from tenfold_kernels.cuda._scatter import Meeting, scatter
from tenfold_kernels.cuda._types import ANY_NUMBERS, MOVED
from tenfold_kernels.cuda.array_scatter import scatter_nd
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray

#: Operation → the elementwise op that an update meets what there is by.
_OPS = {"Add": "Add", "Sub": "Sub", "Mul": "Mul", "Div": "Div", "Min": "Minimum", "Max": "Maximum", "Update": ""}
_ARITHMETIC = ("Add", "Sub", "Mul", "Div", "Min", "Max")
_ND = ("Add", "Sub", "Min", "Max")


def _both(names: Sequence[str], stem: str) -> tuple[str, ...]:
    return tuple(f"{prefix}{stem}{name}" for name in names for prefix in ("", "Resource"))


@kernel(*_both(_ARITHMETIC, "Scatter"), device="GPU", T=ANY_NUMBERS, dtype=ANY_NUMBERS)
@kernel(*_both(("Update",), "Scatter"), device="GPU", T=MOVED, dtype=MOVED)
def build_scatter(node: KernelNode) -> Compute:
    """updates has the shape of indices and then of a row, or is a scalar. Gives the reference, where there is one."""
    meeting = _meeting_of(node)

    def update(buffer: DeviceArray, indices: DeviceArray, updates: DeviceArray) -> None:
        check_updates(buffer.shape, indices, updates)
        rows = updates.reshape((indices.size, *buffer.shape[1:])) if updates.ndim else updates
        scatter(meeting, buffer, indices.reshape((indices.size,)), rows)

    return _updating(node, update)


@kernel(*_both(_ND[:2], "ScatterNd"), device="GPU", T=ANY_NUMBERS | COMPLEX)
@kernel(*_both(_ND[2:], "ScatterNd"), device="GPU", T=ANY_NUMBERS)
@kernel(*_both(("Update",), "ScatterNd"), device="GPU", T=MOVED)
def build_scatter_nd(node: KernelNode) -> Compute:
    """The last dimension of indices leads into the first dimensions of the variable."""
    meeting = _meeting_of(node)

    def update(buffer: DeviceArray, indices: DeviceArray, updates: DeviceArray) -> None:
        check_nd_updates(indices, updates, buffer.shape)  # type: ignore[arg-type] # their shapes are all that it reads
        scatter_nd(meeting, buffer, indices, updates)

    return _updating(node, update)


def _meeting_of(node: KernelNode) -> Meeting:
    return Meeting(_OPS[operation_of(node.op)])


def _updating(node: KernelNode, update: Callable[..., None]) -> Compute:
    """(variable, indices, updates) → the reference or nothing; `update` gets its array, under its lock."""
    resource, read = is_resource(node), variable_reader(node)

    def compute(ref: Any, indices: DeviceArray, updates: DeviceArray) -> Any:
        variable = read(ref)
        with variable.lock:
            update(variable.buffer(exclusive=resource), indices, updates)
        return None if resource else variable

    return compute
