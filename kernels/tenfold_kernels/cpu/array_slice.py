"""Slice, StridedSlice, its gradient and its assignments. Slices are views of the input (of a read-only one read-only).

The five masks of StridedSlice become one NumPy index; Python's slices clamp exactly as TensorFlow's do. Follows
strided_slice_op.cc's ValidateStridedSliceOp.
"""

from __future__ import annotations

from types import EllipsisType
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, as_array, as_shape, invalid, is_frozen, shape_text
from tenfold_kernels.cpu._variables import is_resource, variable_of
from tenfold_kernels.registry import Compute, KernelNode, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.resources.state import Variable

#: What a NumPy index is made of; None is a new axis.
Part = slice | int | EllipsisType | None
Index = tuple[Part, ...]


@kernel("Slice", views=True)
def build_slice(node: KernelNode) -> Compute:
    """A size of -1 takes the rest of the dimension."""
    #: begin, size and shape of the last call whose begin and size were constants, and their index.
    last: tuple[Any, Any, tuple[int, ...], Any] = (None, None, (), None)

    def compute(x: Array, begin: Array, size: Array) -> Array:
        nonlocal last
        known = last
        if known[0] is begin and known[1] is size and known[2] == x.shape:
            found: Array = x[known[3]]
            return found
        if begin.ndim != 1 or size.ndim != 1 or begin.size != x.ndim or size.size != x.ndim:
            raise invalid(
                "Expected begin and size arguments to be 1-D tensors of size "
                f"{x.ndim}, but got shapes {shape_text(begin.shape)} and {shape_text(size.shape)} instead."
            )
        index: list[Any] = []
        for i, (b, s, d) in enumerate(zip(begin.tolist(), size.tolist(), x.shape, strict=True)):
            n = d - b if s == -1 else s
            if not 0 <= b <= d:
                raise invalid(f"Expected begin[{i}] in [0, {d}], but got {b}")
            if not 0 <= n <= d - b:
                raise invalid(f"Expected size[{i}] in [0, {d - b}], but got {s}")
            index.append(slice(b, b + n))
        index.append(Ellipsis)
        if is_frozen(begin) and is_frozen(size):
            last = begin, size, x.shape, tuple(index)
        return as_array(x[tuple(index)])

    return compute


class StridedSliceSpec:
    """The masks of a StridedSlice node, turned into an index for one set of begin, end and strides."""

    def __init__(self, node: KernelNode) -> None:
        names = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")
        self.begin, self.end, self.ellipsis, self.new_axis, self.shrink = (int(node.attrs.get(n, 0)) for n in names)
        if self.ellipsis & (self.ellipsis - 1):
            raise invalid("Multiple ellipses in slice spec not allowed")

    def index(self, shape: tuple[int, ...], begin: Array, end: Array, strides: Array) -> Index:
        """The NumPy index into an array of `shape`. Raises InvalidArgumentError where TensorFlow does."""
        if not begin.shape == end.shape == strides.shape or begin.ndim != 1:
            raise invalid(
                "Expected begin, end, and strides to be 1D equal size tensors, but got shapes "
                f"{shape_text(begin.shape)}, {shape_text(end.shape)}, and {shape_text(strides.shape)} instead."
            )
        count = begin.size
        picked = sum(1 for i in range(count) if not (self.new_axis | self.ellipsis) >> i & 1)
        # new_axis bits do not count where the ellipsis stands.
        index: list[Part] = []
        dim = 0
        seen_ellipsis = False
        for i, (b, e, s) in enumerate(zip(begin.tolist(), end.tolist(), strides.tolist(), strict=True)):
            bit = 1 << i
            if self.ellipsis & bit:
                index.append(Ellipsis)
                seen_ellipsis = True
                dim += max(0, len(shape) - picked)
                continue
            if self.new_axis & bit:
                index.append(None)
                continue
            if dim >= len(shape):
                raise invalid(f"Index out of range using input dim {dim}; input has only {len(shape)} dims")
            if s == 0:
                raise invalid(f"strides[{i}] must be non-zero")
            if self.shrink & bit:
                if s < 0:
                    raise invalid("only stride 1 allowed on non-range indexing.")
                if not -shape[dim] <= b < shape[dim]:
                    raise invalid(f"slice index {b} of dimension {dim} out of bounds.")
                index.append(b)
            else:
                index.append(slice(None if self.begin & bit else b, None if self.end & bit else e, s))
            dim += 1
        # The closing ellipsis keeps a result of rank 0 an array.
        return tuple(index) if seen_ellipsis else (*index, Ellipsis)

    def remembered(self) -> Callable[[tuple[int, ...], Array, Array, Array], Index]:
        """`index`, which knows its last answer where begin, end and strides were constants."""
        last: tuple[Any, Any, Any, tuple[int, ...], Index] = (None, None, None, (), ())

        def index(shape: tuple[int, ...], begin: Array, end: Array, strides: Array) -> Index:
            nonlocal last
            known = last
            if known[0] is begin and known[1] is end and known[2] is strides and known[3] == shape:
                return known[4]
            found = self.index(shape, begin, end, strides)
            if is_frozen(begin) and is_frozen(end) and is_frozen(strides):
                last = begin, end, strides, shape, found
            return found

        return index


@kernel("StridedSlice", views=True)
def build_strided_slice(node: KernelNode) -> Compute:
    index = StridedSliceSpec(node).remembered()
    return lambda x, begin, end, strides: x[index(x.shape, begin, end, strides)]


@kernel("StridedSliceAssign", "ResourceStridedSliceAssign")
def build_strided_slice_assign(node: KernelNode) -> Compute:
    """Writes into the slice of a variable. Gives the reference, where there is one."""
    spec, resource = StridedSliceSpec(node), is_resource(node)

    def compute(ref: Any, begin: Array, end: Array, strides: Array, value: Array) -> Any:
        variable = variable_of(node, ref)
        with variable.lock:
            buffer = variable.buffer(exclusive=resource)
            check_slice_type(node, variable, buffer, value)
            _put(buffer, spec.index(buffer.shape, begin, end, strides), value)
        return None if resource else variable

    return compute


def check_slice_type(node: KernelNode, variable: Variable, buffer: Array, value: Array) -> None:
    """Raises InvalidArgumentError unless what is assigned has the variable's type."""
    if buffer.dtype != value.dtype:
        given, held = node.input_types[4].op_name, variable.dtype.op_name
        raise invalid(f"l-value dtype {held} does not match r-value dtype {given}")


def check_slice_value(value: Array, part: Array) -> None:
    """Raises InvalidArgumentError unless `value` can be broadcast to the slice, or that is empty."""
    if not part.size:
        return
    own = part.shape[max(0, part.ndim - value.ndim) :]
    if value.ndim > part.ndim or any(size not in (1, wanted) for size, wanted in zip(value.shape, own, strict=True)):
        raise invalid(
            f"Cannot broadcast input shape {shape_text(value.shape)} into final shape {shape_text(part.shape)}"
        )


def _put(buffer: Array, index: Index, value: Array) -> None:
    part = buffer[index]
    check_slice_value(value, part)
    if part.size:
        buffer[index] = value


@kernel("StridedSliceGrad")
def build_strided_slice_grad(node: KernelNode) -> Compute:
    """Zeros (or empty strings) of the given shape, with dy where the slice was taken.

    Of several slices the sum: a pass (compiler/optimize/sums.py) gives begin, end, strides and dy of each.
    """
    count = len(node.input_types) // 4
    indices = [StridedSliceSpec(node).remembered() for _ in range(count)]

    def compute(shape: Array, *slices: Array) -> Array:
        dtype = slices[3].dtype
        if shape.ndim != 1:
            raise invalid(f"shape must be 1-D, got shape {shape_text(shape.shape)}")
        sizes = as_shape(shape, dtype=dtype)
        z = np.full(sizes, b"", dtype) if dtype.hasobject else np.zeros(sizes, dtype)
        for i, index in enumerate(indices):
            begin, end, strides, dy = slices[4 * i : 4 * i + 4]
            part = z[index(z.shape, begin, end, strides)]
            check_slice_gradient(dy, part)
            if count > 1:
                np.add(part, dy, part)
            else:
                part[...] = dy
        return z

    return compute


def check_slice_gradient(dy: Array, part: Array) -> None:
    """Raises InvalidArgumentError unless dy has the shape of the slice."""
    if part.shape != dy.shape:
        raise invalid(f"shape of dy was {shape_text(dy.shape)} instead of {shape_text(part.shape)}")


@kernel("TensorStridedSliceUpdate")
def build_strided_slice_update(node: KernelNode) -> Compute:
    """A copy of the input with the slice replaced."""
    spec = StridedSliceSpec(node)

    def compute(x: Array, begin: Array, end: Array, strides: Array, value: Array) -> Array:
        out = x.copy()
        index = spec.index(x.shape, begin, end, strides)
        try:
            out[index] = value
        except ValueError as error:
            raise invalid(f"TensorStridedSliceUpdate '{node.name}': {error}") from None
        return out

    return compute
