"""Updates brought to elements by index tuples: ScatterNd, TensorScatter*. An index out of range is passed over.

Updates to one place meet in their order (_scatter.py), as on the CPU; in TensorFlow's kernels for GPUs in any order.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from tenfold_kernels.cpu._nd_places import check_nd_updates, scattered_shape
from tenfold_kernels.cuda import _picks
from tenfold_kernels.cuda._scatter import Meeting, scatter
from tenfold_kernels.cuda._types import ANY_NUMBERS, INDICES, MOVED, ON_HOST
from tenfold_kernels.cuda.array_gather import MANY_INDICES, check_policy
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

#: Op → how an update meets what is there.
_MEETINGS = {
    "TensorScatterUpdate": Meeting(""),
    "TensorScatterAdd": Meeting("Add"),
    "ScatterNdNonAliasingAdd": Meeting("Add"),
    "TensorScatterSub": Meeting("Sub"),
    "TensorScatterMax": Meeting("Maximum"),
    "TensorScatterMin": Meeting("Minimum"),
}
_ADDITION = Meeting("Add")

shared_kernel("ScatterNd", *_MEETINGS, host=(EVERYTHING,), T=ON_HOST)
no_kernel("InplaceAdd", "InplaceSub", "InplaceUpdate", device="GPU", why="no program of the op census uses them")
no_kernel("SparseToDense", device="GPU", why="it has to say which index is wrong: it runs where they can be looked at")


@kernel("ScatterNd", device="GPU", host=("shape",), T=ANY_NUMBERS | COMPLEX, Tindices=MANY_INDICES)
def build_scatter_nd(node: KernelNode) -> Compute:
    """Zeros of `shape` with the updates added; updates to one place accumulate."""
    check_policy(node)

    def compute(indices: DeviceArray, updates: DeviceArray, shape: Array) -> DeviceArray:
        dims = scattered_shape(indices, updates, shape)  # type: ignore[arg-type] # its shape is all that it reads
        out = updates.runtime.empty(dims, updates.dtype)
        updates.runtime.zero(out)
        scatter_nd(_ADDITION, out, indices, updates)
        return out

    return compute


@kernel("TensorScatterUpdate", device="GPU", T=MOVED, Tindices=MANY_INDICES)
@kernel("TensorScatterAdd", "TensorScatterSub", "ScatterNdNonAliasingAdd", device="GPU", T=ANY_NUMBERS | COMPLEX,
        Tindices=INDICES)  # fmt: skip
@kernel("TensorScatterMax", "TensorScatterMin", device="GPU", T=ANY_NUMBERS, Tindices=INDICES)
def build_tensor_scatter(node: KernelNode) -> Compute:
    """A copy of the tensor with the updates worked in."""
    check_policy(node)
    meeting = _MEETINGS[node.op]

    def compute(tensor: DeviceArray, indices: DeviceArray, updates: DeviceArray) -> DeviceArray:
        check_nd_updates(indices, updates, tensor.shape)  # type: ignore[arg-type] # as above
        out = tensor.runtime.empty(tensor.shape, tensor.dtype)
        tensor.runtime.copy(tensor, out)
        scatter_nd(meeting, out, indices, updates)
        return out

    return compute


def scatter_nd(meeting: Meeting, target: DeviceArray, indices: DeviceArray, updates: DeviceArray) -> None:
    """Brings updates [N…, W…] to target[indices[n…]] in place, indices [N…, D], target [S0, …, SD-1, W…]."""
    depth = indices.shape[-1]
    rows = target.reshape((math.prod(target.shape[:depth]), *target.shape[depth:]))
    count = math.prod(indices.shape[:-1])
    numbers = _picks.row_numbers(indices, target.shape[:depth]).reshape((count,))
    scatter(meeting, rows, numbers, updates.reshape((count, *target.shape[depth:])))
