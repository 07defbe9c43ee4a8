"""The ops of TensorArrays and stacks, on every device. The machines are tensor_arrays.py; `flow` only orders ops.

Elements may be in the memory of a device (elements.py); handles, indices and flows are in the host's.
TensorArray V3 carries a resource, V1 a reference to a string, V2 a plain string; see handles.py. Follows
tensor_array_ops.cc and stack.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import errors
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, as_shape, invalid, shape_text, text_attr
from tenfold_kernels.registry import Compute, KernelNode, bindable, kernel
from tenfold_kernels.resources.elements import HOST
from tenfold_kernels.resources.handles import handle_for, resource_of
from tenfold_kernels.resources.queues import shape_text as partial_shape_text
from tenfold_kernels.resources.tensor_arrays import Stack, TensorArray, unique_name

if TYPE_CHECKING:
    from tenfold_kernels.resources.elements import Elements

#: The container that TensorFlow names in an array's handle.
_ARRAYS, _STACKS = "_tensor_arrays", "_stacks"


def _flow() -> Array:
    return np.zeros((), dtype=np.float32)


def _index(value: Array) -> int:
    if value.ndim:
        raise invalid(f"TensorArray index must be scalar, but had shape: {shape_text(value.shape)}")
    return int(value)


def _array_of(node: KernelNode, handle: Any, dtype: Any = None, verb: str = "requested") -> TensorArray:
    array = resource_of(node, handle, TensorArray)
    if dtype is not None and array.dtype is not dtype:
        raise invalid(f"TensorArray dtype is {array.dtype.op_name} but Op {verb} dtype {dtype.op_name}.")
    return array


@kernel("TensorArrayV3", "TensorArrayV2", "TensorArray")
def build_tensor_array(node: KernelNode) -> Compute:
    return tensor_array_kernel(node, HOST)


def tensor_array_kernel(node: KernelNode, elements: Elements) -> Compute:
    """A new array, of elements of that memory, in every step, and in every iteration that the op runs in."""
    stem = text_attr(node, "tensor_array_name") or node.name
    has_flow = len(node.output_types) == 2
    element_shape = TensorShape(node.attrs.get("element_shape"))

    def compute(size: Array) -> Any:
        if size.ndim:
            raise invalid(f"TensorArray size must be scalar, but had shape: {shape_text(size.shape)}")
        array = TensorArray(
            unique_name(stem),
            node.attrs["dtype"],
            int(size),
            element_shape,
            dynamic_size=bool(node.attrs.get("dynamic_size", False)),
            clear_after_read=bool(node.attrs.get("clear_after_read", True)),
            identical_element_shapes=bool(node.attrs.get("identical_element_shapes", False)),
            elements=elements,
        )
        handle = handle_for(node, _ARRAYS, array.name, array)
        return (handle, _flow()) if has_flow else handle

    return compute


@kernel("TensorArrayGradV3", "TensorArrayGradV2", "TensorArrayGrad", "TensorArrayGradWithShape")
def build_gradient(node: KernelNode) -> Compute:
    """The array of gradients of an array: one per source, however often it is asked for."""
    source, has_flow = text_attr(node, "source"), len(node.output_types) == 2
    #: Asked for in each turn of a loop: a handle costs more than to look for it.
    key = f"{source} {node.device}" if node.op == "TensorArrayGradV3" else ""

    def compute(handle: Any, flow: Array, shape_to_prepend: Array | None = None) -> Any:
        array = _array_of(node, handle)
        if key and (known := array.gradient_handles.get(key)) is not None:
            return known, _flow()
        gradient = array.gradient(source, None if shape_to_prepend is None else as_shape(shape_to_prepend))
        made = handle_for(node, _ARRAYS, gradient.name, gradient)
        if key:
            array.gradient_handles[key] = made
        return (made, _flow()) if has_flow else made

    return compute


@kernel("TensorArrayWriteV3", "TensorArrayWriteV2", "TensorArrayWrite")
def build_write(node: KernelNode) -> Compute:
    dtype = node.attrs["T"]

    def compute(handle: Any, index: Array, value: Array, flow: Array) -> Array:
        position = _index(index)
        _array_of(node, handle, dtype, "is trying to write").write(position, value)
        return _flow()

    return compute


@kernel("TensorArrayReadV3", "TensorArrayReadV2", "TensorArrayRead")
def build_read(node: KernelNode) -> Compute:
    dtype = node.attrs["dtype"]
    return lambda handle, index, flow: _array_of(node, handle, dtype).read(_index(index))


@kernel("TensorArrayGatherV3", "TensorArrayGatherV2", "TensorArrayGather", "TensorArrayPack")
def build_gather(node: KernelNode) -> Compute:
    """[N, ...] of N elements; Pack takes all of them."""
    dtype, shape = node.attrs["dtype"], TensorShape(node.attrs.get("element_shape"))

    def gather(array: TensorArray, indices: list[int]) -> Any:
        array.merge_element_shape(shape)
        if not indices:
            if not shape.is_fully_defined():
                raise errors.unimplemented(
                    f"TensorArray has size zero, but element shape {partial_shape_text(shape)} is not fully defined. "
                    "Currently only static shapes are supported when packing zero-size TensorArrays."
                )
            return array.elements.zeros((0, *(d or 0 for d in shape.as_list())), dtype)
        values = [array.read(index) for index in indices]
        first = values[0].shape
        if not shape.is_compatible_with(TensorShape(first)):
            raise invalid(
                f"TensorArray was passed element_shape {partial_shape_text(shape)} which does not match the Tensor "
                f"at index 0: {shape_text(first)}"
            )
        for i, value in enumerate(values):
            if value.shape != first:
                raise invalid(
                    f"TensorArray has inconsistent shapes.  Index 0 has shape: {shape_text(first)} but index {i} has "
                    f"shape: {shape_text(value.shape)}"
                )
        return array.elements.stack(values)

    def compute_gather(handle: Any, indices: Array, flow: Array) -> Any:
        array = _array_of(node, handle, dtype)
        return gather(array, _vector(indices, "indices").tolist())

    def compute_pack(handle: Any, flow: Array) -> Any:
        array = _array_of(node, handle, dtype)
        return gather(array, list(range(array.pack_size)))

    return compute_pack if node.op == "TensorArrayPack" else compute_gather


def _vector(value: Array, what: str) -> Array:
    if value.ndim != 1:
        raise invalid(f"Expected {what} to be a vector, but received shape: {shape_text(value.shape)}")
    return value


@kernel("TensorArrayScatterV3", "TensorArrayScatterV2", "TensorArrayScatter")
def build_scatter(node: KernelNode) -> Compute:
    dtype = node.attrs["T"]

    def compute(handle: Any, indices: Array, value: Array, flow: Array) -> Array:
        array = _array_of(node, handle, dtype, "is trying to write")
        _check_unpacked(value)
        _vector(indices, "indices")
        if len(indices) != value.shape[0]:
            text = f"Expected len(indices) == values.shape[0], but saw: {len(indices)} vs. {value.shape[0]}"
            raise invalid(text)
        last = int(indices.max()) if len(indices) else -1
        size = max(array.size, last + 1) if array.dynamic_size else array.size
        if last >= size:
            raise invalid(f"Max scatter index must be < array size ({last} vs. {size})")
        for index, row in zip(indices.tolist(), array.elements.each(value), strict=True):
            array.write(index, row)
        return _flow()

    return compute


@kernel("TensorArrayUnpack")
def build_unpack(node: KernelNode) -> Compute:
    dtype = node.attrs["T"]

    def compute(handle: Any, value: Array, flow: Array) -> Array:
        array = _array_of(node, handle, dtype, "is trying to write")
        _check_unpacked(value)
        size = max(array.size, value.shape[0]) if array.dynamic_size else array.size
        if value.shape[0] != size:
            text = f"Input value must have first dimension equal to the array size ({value.shape[0]} vs. {size})"
            raise invalid(text)
        array.mark_size(size)
        for index, row in enumerate(array.elements.each(value)):
            array.write(index, row)
        return _flow()

    return compute


def _check_unpacked(value: Array) -> None:
    if not value.ndim:
        raise invalid(f"Input value for unpack must be at least a vector but received shape: {shape_text(value.shape)}")


@kernel("TensorArrayConcatV3", "TensorArrayConcatV2", "TensorArrayConcat")
def build_concat(node: KernelNode) -> Compute:
    """([sum of lengths, ...], lengths [N] int64)."""
    dtype, shape = node.attrs["dtype"], TensorShape(node.attrs.get("element_shape_except0"))

    def compute(handle: Any, flow: Array) -> tuple[Any, Array]:
        array = _array_of(node, handle, dtype)
        size = array.pack_size
        if not size:
            if not shape.is_fully_defined():
                raise errors.unimplemented(
                    f"TensorArray has size zero, but element_shape_except0 {partial_shape_text(shape)} is not fully "
                    "defined. Currently only static shapes are supported when concatenating zero-size TensorArrays."
                )
            empty = array.elements.zeros((0, *(d or 0 for d in shape.as_list())), dtype)
            return empty, np.empty(0, dtype=np.int64)
        values = [array.read(index) for index in range(size)]
        for i, value in enumerate(values):
            if not value.ndim:
                raise invalid(
                    f"Concat saw a scalar shape at index {i} but requires at least vectors.  Did you mean to call pack?"
                )
            first, rest = values[0].shape[1:], value.shape[1:]
            if not i and not shape.is_compatible_with(TensorShape(rest)):
                raise invalid(
                    f"TensorArray was passed element_shape_except0 {partial_shape_text(shape)} but index 0 has "
                    f"(excepting dimension 0) shape: {shape_text(rest)} which does not match."
                )
            if rest != first:
                raise invalid(
                    "TensorArray has inconsistent shapes.  Index 0 has (excepting dimension 0) shape: "
                    f"{shape_text(first)} but index {i} has (excepting dimension 0) shape: {shape_text(rest)}"
                )
        lengths = np.array([value.shape[0] for value in values], dtype=np.int64)
        return array.elements.concatenate(values), lengths

    return compute


@kernel("TensorArraySplitV3", "TensorArraySplitV2", "TensorArraySplit")
def build_split(node: KernelNode) -> Compute:
    dtype = node.attrs["T"]

    def compute(handle: Any, value: Array, lengths: Array, flow: Array) -> Array:
        array = _array_of(node, handle)
        if lengths.ndim != 1:
            raise invalid(f"Expected lengths to be a vector, received shape: {shape_text(lengths.shape)}")
        if not value.ndim:
            text = f"Expected value to be at least a vector, but received shape: {shape_text(value.shape)}"
            raise invalid(text)
        total = int(lengths.sum())
        if total != value.shape[0] or (len(lengths) and int(lengths.min()) < 0):
            raise invalid(
                f"Expected sum of lengths to be equal to values.shape[0], but sum of lengths is {total} and value's "
                f"shape is: {shape_text(value.shape)} "
            )
        size = max(array.size, len(lengths)) if array.dynamic_size else array.size
        if size != len(lengths):
            raise invalid(
                f"TensorArray's size is not equal to the size of lengths ({size} vs. {len(lengths)}), and the "
                "TensorArray is not marked as dynamically resizeable"
            )
        _array_of(node, handle, dtype, "is trying to write")
        array.mark_size(size)
        start = 0
        for index, length in enumerate(lengths.tolist()):
            array.write(index, array.elements.rows(value, start, start + length))
            start += length
        return _flow()

    return compute


@kernel("TensorArraySizeV3", "TensorArraySizeV2", "TensorArraySize")
def build_size(node: KernelNode) -> Compute:
    return lambda handle, flow: np.array(_array_of(node, handle).open_size(), dtype=np.int32)


@kernel("TensorArrayCloseV3", "TensorArrayCloseV2", "TensorArrayClose")
def build_close(node: KernelNode) -> Compute:
    return lambda handle: _array_of(node, handle).close()


@kernel("StackV2", "Stack")
def build_stack(node: KernelNode) -> Compute:
    """A new stack in every step. V1 has no maximum."""
    stem = text_attr(node, "stack_name") or node.name

    def compute(max_size: Array | None = None) -> Any:
        if max_size is not None and max_size.ndim:
            raise invalid(f"Stack size must be a scalar, but had shape: {shape_text(max_size.shape)}")
        limit = -1 if max_size is None else int(max_size)
        stack = Stack(unique_name(stem), node.attrs["elem_type"], limit)
        return handle_for(node, _STACKS, stack.name, stack)

    return compute


@kernel("StackPushV2", "StackPush")
def build_push(node: KernelNode) -> Compute:
    """Gives the element on. A loop binds its stacks once, not in each turn."""
    dtype = node.attrs["T"]

    def stack_of(handle: Any) -> Stack:
        stack = resource_of(node, handle, Stack)
        if stack.dtype is not dtype:
            raise invalid(f"Must have type {stack.dtype.as_datatype_enum} but got {dtype.as_datatype_enum}")
        return stack

    def compute(handle: Any, value: Array) -> Array:
        stack_of(handle).push(value)
        return value

    return bindable(compute, lambda handle: stack_of(handle).pusher())


@kernel("StackPopV2", "StackPop")
def build_pop(node: KernelNode) -> Compute:
    return bindable(
        lambda handle: resource_of(node, handle, Stack).pop(), lambda handle: resource_of(node, handle, Stack).popper()
    )


@kernel("StackCloseV2", "StackClose")
def build_stack_close(node: KernelNode) -> Compute:
    return lambda handle: resource_of(node, handle, Stack).close()
