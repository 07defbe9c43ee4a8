"""BroadcastTo: one copy that reads some elements again and again. What works out shapes does so on the host."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_kernels.cpu.math_broadcast import broadcast_shape
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

shared_kernel("BroadcastArgs", "BroadcastGradientArgs", host=(EVERYTHING,))
shared_kernel("BroadcastTo", host=(EVERYTHING,), T=ON_HOST)


@kernel("BroadcastTo", device="GPU", views=True, host=("shape",), T=MOVED)
def build_broadcast_to(node: KernelNode) -> Compute:
    def compute(x: DeviceArray, shape: Array) -> DeviceArray:
        dims = broadcast_shape(x, shape)  # type: ignore[arg-type] # its shape and type are all that it reads
        return x if x.shape == dims else broadcast(x, dims)

    return compute


def broadcast(x: DeviceArray, shape: tuple[int, ...]) -> DeviceArray:
    """A copy of x repeated along new dimensions and those of size 1."""
    added = len(shape) - x.ndim
    own = [stride if size != 1 else 0 for size, stride in zip(x.shape, _moves.whole(x).strides, strict=True)]
    out = x.runtime.empty(shape, x.dtype)
    _moves.move(x, _moves.Place(shape, (*(0,) * added, *own)), out, _moves.whole(out))
    return out
