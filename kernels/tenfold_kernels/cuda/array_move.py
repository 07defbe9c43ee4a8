"""Parts of arrays, arrays in another order, and arrays put together: Slice, Split, Transpose, Concat, Pack and theirs.

A part that is one piece of its input is a view. Everything else is one copy (_moves.py) for each input or output.
Elements of all types of a fixed size are moved; int32 is moved in the host's memory, see _types.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_kernels.arrays import remembering
from tenfold_kernels.cpu.array import check_joined, concat_axis, joined_axis, pack_axis
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.cuda._views import build_view
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_kernels.cuda._arrays import DeviceArray


@kernel("Unpack", device="GPU", views=True, T=MOVED)
@kernel("Split", device="GPU", views=True, host=("split_dim",), T=MOVED)
@kernel("SplitV", device="GPU", views=True, host=("size_splits", "split_dim"), T=MOVED)
@kernel("Slice", device="GPU", views=True, host=("begin", "size"), T=MOVED)
@kernel("StridedSlice", device="GPU", views=True, host=("begin", "end", "strides"), T=MOVED)
@kernel("Transpose", device="GPU", views=True, host=("perm",), T=MOVED)
@kernel("ConjugateTranspose", device="GPU", views=True, host=("perm",), T=MOVED - COMPLEX)
@kernel("ReverseV2", device="GPU", views=True, host=("axis",), T=MOVED)
def build_part(node: KernelNode) -> Compute:
    return build_view(node)


shared_kernel("Unpack", "Split", "SplitV", "Slice", "StridedSlice", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("Transpose", "ReverseV2", "ConjugateTranspose", host=(EVERYTHING,), T=ON_HOST)
shared_kernel("Pack", "Concat", "ConcatV2", host=(EVERYTHING,), T=ON_HOST)
# Sizes, and what is made of them, are small.
shared_kernel("ConcatOffset", host=(EVERYTHING,))


@kernel("ConcatV2", device="GPU", views=True, host=("axis",), T=MOVED)
def build_concat_v2(node: KernelNode) -> Compute:
    axis_of = remembering(concat_axis)
    return lambda *inputs: join(inputs[:-1], axis_of(inputs[-1]))


@kernel("Concat", device="GPU", views=True, host=("concat_dim",), T=MOVED)
def build_concat(node: KernelNode) -> Compute:
    axis_of = remembering(concat_axis)
    return lambda axis, *values: join(values, axis_of(axis))


def join(values: Sequence[DeviceArray], axis: int) -> DeviceArray:
    """The arrays one after another along `axis`: a copy for each. Raises InvalidArgumentError as the CPU's kernel."""
    where = joined_axis(axis, values[0].ndim)
    check_joined(values, where)  # type: ignore[arg-type] # their shapes are all that it reads
    filled = [each for each in values if each.size]
    if len(filled) == 1:
        return filled[0]
    first = values[0]
    length = sum(each.shape[where] for each in values)
    out = first.runtime.empty((*first.shape[:where], length, *first.shape[where + 1 :]), first.dtype)
    at = _moves.whole(out)
    begin = 0
    for each in filled:
        _moves.put(each, out, _moves.Place(each.shape, at.strides, begin * at.strides[where]))
        begin += each.shape[where]
    return out


@kernel("Pack", device="GPU", views=True, T=MOVED)
def build_pack(node: KernelNode) -> Compute:
    axis = int(node.attrs.get("axis", 0))

    def compute(*values: DeviceArray) -> DeviceArray:
        first = values[0]
        where = pack_axis(values, axis)  # type: ignore[arg-type] # their shapes are all that it reads
        shape = (*first.shape[:where], len(values), *first.shape[where:])
        if len(values) == 1:
            return first.reshape(shape)
        out = first.runtime.empty(shape, first.dtype)
        strides = list(_moves.whole(out).strides)
        step = strides.pop(where)
        for number, value in enumerate(values):
            _moves.put(value, out, _moves.Place(value.shape, tuple(strides), number * step))
        return out

    return compute
