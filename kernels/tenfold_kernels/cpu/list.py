"""The ops of TensorLists. Lists are values (tensor_lists.py): an op that changes one gives another one.

An element shape comes as an input: a vector with -1 for unknown sizes, or the scalar -1 for an unknown rank. Elements
that were never set read as zeros, if their shape can be told. Ops on whole lists are in list_whole.py. Follows
list_kernels.h and list_kernels.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid, output_type, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.elements import zeros
from tenfold_kernels.resources.queues import shape_text as partial_text
from tenfold_kernels.resources.tensor_arrays import check_count, merged
from tenfold_kernels.resources.tensor_lists import TensorList, list_of

if TYPE_CHECKING:
    from collections.abc import Iterable


def shape_of(value: Array) -> TensorShape:
    """The partial shape that a shape input says."""
    if not value.ndim:
        if int(value) != -1:
            raise invalid("The only valid scalar shape tensor is the fully unknown shape specified as -1.")
        return TensorShape(None)
    if value.ndim > 1:
        raise invalid(f"element_shape must be at most rank 1 but has the shape of {shape_text(value.shape)}")
    return TensorShape([None if size < 0 else size for size in value.tolist()])


def checked_value(node: KernelNode, value: Array) -> TensorList:
    """The list of input 0. Raises InvalidArgumentError if its elements are of another type than the op's."""
    found, dtype = list_of(value), node.attrs["element_dtype"]
    if found.dtype is not dtype:
        text = f"Invalid data types; op elements {dtype.op_name} but list elements {found.dtype.op_name}"
        raise invalid(text)
    return found


def merged_with(shape: TensorShape, elements: Iterable[Array | None]) -> TensorShape:
    """`shape`, and what the elements that are set tell besides."""
    for element in elements:
        if element is not None:
            shape = merged(shape, TensorShape(element.shape))
    return shape


def defined_dims(shape: TensorShape, message: str) -> tuple[int, ...]:
    """Its sizes. Raises InvalidArgumentError when some are unknown."""
    if not shape.is_fully_defined():
        raise invalid(message)
    return tuple(size or 0 for size in shape.as_list())


def _scalar(value: Array, what: str) -> int:
    if value.ndim:
        raise invalid(f"{what} expected to be a scalar but got shape: {shape_text(value.shape)}")
    return int(value)


def check_has_rows(value: Array) -> None:
    """Raises InvalidArgumentError for a scalar."""
    if not value.ndim:
        raise invalid(f"Tensor must be at least a vector, but saw shape: {shape_text(value.shape)}")


def rows_of(value: Array) -> list[Array | None]:
    """The slices of a tensor along its first dimension. Raises InvalidArgumentError for a scalar."""
    check_has_rows(value)
    return [value[index, ...] for index in range(len(value))]


@kernel("EmptyTensorList")
def build_empty(node: KernelNode) -> Compute:
    dtype = node.attrs["element_dtype"]

    def compute(shape: Array, max_num_elements: Array) -> Array:
        limit = _scalar(max_num_elements, "max_num_elements")
        return TensorList(dtype, shape_of(shape), (), limit).as_array()

    return compute


@kernel("TensorListReserve")
def build_reserve(node: KernelNode) -> Compute:
    dtype = node.attrs["element_dtype"]

    def compute(shape: Array, num_elements: Array) -> Array:
        count = _scalar(num_elements, "num_elements")
        if count < 0:
            raise invalid(f"The num_elements to reserve must be a non negative number, but got {count}")
        check_count(count, "A TensorList")
        return TensorList(dtype, shape_of(shape), [None] * count).as_array()

    return compute


@kernel("TensorListPushBack")
def build_push_back(node: KernelNode) -> Compute:
    def compute(handle: Array, element: Array) -> Array:
        found = list_of(handle)
        if not found.shape.is_compatible_with(TensorShape(element.shape)):
            raise invalid(
                "Tried to append a tensor with incompatible shape to a list. Op element shape: "
                f"{shape_text(element.shape)} list shape: {partial_text(found.shape)}"
            )
        checked_value(node, handle)
        if 0 <= found.max_num_elements <= found.length:
            raise invalid(
                f"Tried to push item into a full list list size: {found.length} "
                f"max_num_elements: {found.max_num_elements}"
            )
        return found.push(element).as_array()

    return compute


@kernel("TensorListPushBackBatch")
def build_push_back_batch(node: KernelNode) -> Compute:
    """Pushes row i onto list i. [B] lists, [B, ...]."""

    def compute(handles: Array, value: Array) -> Array:
        if not value.ndim:
            raise invalid(f"Expected tensor to be at least a vector, but saw shape: {shape_text(value.shape)}")
        if handles.ndim != 1:
            raise invalid(f"Expected input_handles to be a vector, but saw shape: {shape_text(handles.shape)}")
        if len(handles) != len(value):
            raise invalid(f"Expected tensor.shape[0] == input_handles.size, but saw {len(value)} vs. {len(handles)}")
        out = np.empty(len(handles), dtype=object)
        for index in range(len(handles)):
            found, element = checked_value(node, handles[index, ...]), value[index, ...]
            if not found.shape.is_compatible_with(TensorShape(element.shape)):
                raise invalid(
                    "Tried to append a tensor with incompatible shape to a list at index "
                    f"{index}. Op element shape: {shape_text(element.shape)} list shape: {partial_text(found.shape)}"
                )
            out[index] = found.push(element)
        return out

    return compute


@kernel("TensorListPopBack")
def build_pop_back(node: KernelNode) -> Compute:
    def compute(handle: Array, shape: Array) -> tuple[Array, Array]:
        found = checked_value(node, handle)
        if not found.length:
            raise invalid("Trying to pop from an empty list.")
        element = found[found.length - 1]
        if element is None:
            partial = merged(shape_of(shape), found.shape)
            text = f"Trying to read an uninitialized tensor but element_shape is not fully defined.{partial}"
            element = zeros(defined_dims(partial, text), found.dtype)
        return found.pop().as_array(), element

    return compute


@kernel("TensorListLength")
def build_length(node: KernelNode) -> Compute:
    return lambda handle: np.array(list_of(handle).length, dtype=np.int32)


@kernel("TensorListElementShape")
def build_element_shape(node: KernelNode) -> Compute:
    dtype = output_type(node)

    def compute(handle: Array) -> Array:
        shape = list_of(handle).shape
        if shape.ndims is None:
            return np.array(-1, dtype=dtype)
        return np.array([-1 if size is None else size for size in shape.as_list()], dtype=dtype)

    return compute


@kernel("TensorListGetItem")
def build_get_item(node: KernelNode) -> Compute:
    def compute(handle: Array, index: Array, shape: Array) -> Array:
        found, at = checked_value(node, handle), int(index)
        if not 0 <= at < found.length:
            raise invalid(f"Trying to access element {at} in a list with {found.length} elements.")
        element = found[at]
        if element is not None:
            return element
        partial = merged(shape_of(shape), found.shape)
        if not partial.is_fully_defined():
            partial = merged_with(partial, found.elements)
        text = (
            "Trying to read an uninitialized tensor but element_shape is not fully defined: "
            f"{partial_text(partial)} and no list element is set."
        )
        return zeros(defined_dims(partial, text), found.dtype)

    return compute


@kernel("TensorListSetItem")
def build_set_item(node: KernelNode) -> Compute:
    resize = bool(node.attrs.get("resize_if_index_out_of_bounds", False))

    def compute(handle: Array, index: Array, item: Array) -> Array:
        found, at = checked_value(node, handle), int(index)
        if at < 0 or (at >= found.length and not resize):
            raise invalid(f"Trying to modify element {at} in a list with {found.length} elements.")
        if not found.shape.is_compatible_with(TensorShape(item.shape)):
            raise invalid(
                "Tried to set a tensor with incompatible shape at a list index. Item element shape: "
                f"{shape_text(item.shape)} list shape: {partial_text(found.shape)}"
            )
        if at == found.length:
            return found.push(item).as_array()
        if at > found.length:
            check_count(at + 1, "A TensorList")
            found = found.with_elements([*found.elements, *[None] * (at + 1 - found.length)])
        return found.set(at, item).as_array()

    return compute


@kernel("TensorListResize")
def build_resize(node: KernelNode) -> Compute:
    def compute(handle: Array, size: Array) -> Array:
        found, count = list_of(handle), _scalar(size, "size")
        if count < 0:
            raise invalid(f"TensorListSlice expects size to be non-negative. Got: {count}")
        check_count(count, "A TensorList")
        elements = found.elements[:count]
        return found.with_elements([*elements, *[None] * (count - len(elements))]).as_array()

    return compute
