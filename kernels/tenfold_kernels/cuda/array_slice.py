"""What writes into a slice: gradients of slices, assignments to them. Slices themselves are in array_move.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.arrays import as_shape
from tenfold_kernels.cpu._variables import is_resource, variable_of
from tenfold_kernels.cpu.array_slice import StridedSliceSpec, check_slice_gradient, check_slice_type, check_slice_value
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._types import MOVED, ON_HOST
from tenfold_kernels.cuda._views import ghost, place_of
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, shared_kernel

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

_BOUNDS = ("begin", "end", "strides")
shared_kernel("StridedSliceGrad", "TensorStridedSliceUpdate", host=(EVERYTHING,), T=ON_HOST)


@kernel("StridedSliceGrad", device="GPU", host=("shape", *_BOUNDS), T=MOVED)
def build_strided_slice_grad(node: KernelNode) -> Compute:
    """Zeros of the given shape, with dy where the slice was taken."""
    runtime, index = runtime_of(node.device), StridedSliceSpec(node).remembered()

    def compute(shape: Array, begin: Array, end: Array, strides: Array, dy: DeviceArray) -> DeviceArray:
        dims = as_shape(shape, dtype=dy.dtype)
        of = ghost(dims, dy.dtype)
        part = of[index(dims, begin, end, strides)]
        check_slice_gradient(dy, part)  # type: ignore[arg-type] # its shape is all that it reads
        out = runtime.empty(dims, dy.dtype)
        if dy.size != out.size:
            runtime.zero(out)
        _moves.put(dy, out, place_of(part, of))
        return out

    return compute


@kernel("StridedSliceAssign", "ResourceStridedSliceAssign", device="GPU", host=_BOUNDS, T=MOVED)
def build_strided_slice_assign(node: KernelNode) -> Compute:
    """Writes into the slice of a variable. Gives the reference, where there is one."""
    spec, resource = StridedSliceSpec(node), is_resource(node)

    def compute(ref: Any, begin: Array, end: Array, strides: Array, value: DeviceArray) -> Any:
        variable = variable_of(node, ref)
        with variable.lock:
            buffer: Any = variable.buffer(exclusive=resource)
            of = ghost(buffer.shape, buffer.dtype)
            part = of[spec.index(buffer.shape, begin, end, strides)]
            check_slice_type(node, variable, buffer, value)  # type: ignore[arg-type] # types are all that it reads
            check_slice_value(value, part)  # type: ignore[arg-type] # as above
            _put(value, buffer, part, of)
        return None if resource else variable

    return compute


@kernel("TensorStridedSliceUpdate", device="GPU", host=_BOUNDS, T=MOVED)
def build_strided_slice_update(node: KernelNode) -> Compute:
    """A copy of the input with the slice replaced."""
    spec = StridedSliceSpec(node)

    def compute(x: DeviceArray, begin: Array, end: Array, strides: Array, value: DeviceArray) -> DeviceArray:
        of = ghost(x.shape, x.dtype)
        part = of[spec.index(x.shape, begin, end, strides)]
        check_slice_value(value, part)  # type: ignore[arg-type] # as above
        out = x.runtime.empty(x.shape, x.dtype)
        x.runtime.copy(x, out)
        _put(value, out, part, of)
        return out

    return compute


def _put(value: DeviceArray, target: DeviceArray, part: Array, of: Array) -> None:
    """Writes `value`, broadcast to its shape, to where `part` is in `of`, which has the target's shape."""
    added = part.ndim - value.ndim
    own = [stride if size != 1 else 0 for size, stride in zip(value.shape, _moves.whole(value).strides, strict=True)]
    _moves.move(value, _moves.Place(part.shape, (*(0,) * added, *own)), target, place_of(part, of))
