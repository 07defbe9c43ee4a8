"""Bitcast: the same bytes as elements of another type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_core import dtypes
from tenfold_kernels.cuda._arrays import DeviceArray
from tenfold_kernels.cuda._types import MOVED
from tenfold_kernels.cuda._views import ghost
from tenfold_kernels.registry import Compute, KernelNode, kernel, lookup

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array

_BITS = MOVED | {dtypes.int32, dtypes.uint32, dtypes.uint64}


@kernel("Bitcast", device="GPU", views=True, T=_BITS, type=_BITS)
def build_bitcast(node: KernelNode) -> Compute:
    """A view, of a copy where its elements would lie between those that a GPU reads at once. What shape it has, the
    CPU's kernel says of an array without memory.
    """
    cast = lookup(node, "CPU")(node)

    def compute(x: DeviceArray) -> DeviceArray:
        found: Array = cast(ghost(x.shape, x.dtype))
        if x.offset % found.dtype.itemsize:
            copied = x.runtime.empty(x.shape, x.dtype)
            x.runtime.copy(x, copied)
            x = copied
        return DeviceArray(x.runtime, x.buffer, found.shape, found.dtype, x.offset)

    return compute
