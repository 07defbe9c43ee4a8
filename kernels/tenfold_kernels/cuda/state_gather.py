"""ResourceGather and ResourceGatherNd: rows picked straight from a variable in a GPU's memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu._variables import variable_of
from tenfold_kernels.cpu.array_gather import gather_axis, gather_batch
from tenfold_kernels.cuda import _picks
from tenfold_kernels.cuda._types import INDICES, MOVED
from tenfold_kernels.cuda.array_gather import pick_nd
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray


@kernel("ResourceGather", device="GPU", dtype=MOVED, Tindices=INDICES)
def build_resource_gather(node: KernelNode) -> Compute:
    """An index out of range gives 0. The variable is read at its turn on the GPU, so that no snapshot is needed."""
    batch_attr = int(node.attrs.get("batch_dims", 0))

    def compute(resource: Array, indices: DeviceArray) -> DeviceArray:
        variable = variable_of(node, resource)
        with variable.lock:
            table: Any = variable.value
            axis, batch = gather_axis(table, batch_attr), 0
            if batch_attr:
                batch = gather_batch(table, indices, axis, batch_attr)  # type: ignore[arg-type] # shapes are all it reads
            return _picks.gather(table, indices, axis, batch)

    return compute


@kernel("ResourceGatherNd", device="GPU", dtype=MOVED, Tindices=INDICES)
def build_resource_gather_nd(node: KernelNode) -> Compute:
    def compute(resource: Array, indices: DeviceArray) -> DeviceArray:
        variable = variable_of(node, resource)
        with variable.lock:
            table: Any = variable.value
            return pick_nd(table, indices)

    return compute
