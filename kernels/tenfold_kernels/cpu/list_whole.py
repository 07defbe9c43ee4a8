"""Tensor lists made of tensors, and tensors made of whole lists: stack, gather, scatter, split, concat.

Ops on single elements, and the checks that both share, are in list.py. Follows list_kernels.h and list_kernels.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core.memory_limits import allow
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu.list import check_has_rows, checked_value, defined_dims, merged_with, rows_of, shape_of
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.elements import zeros
from tenfold_kernels.resources.queues import shape_text as partial_text
from tenfold_kernels.resources.tensor_arrays import check_count, merged
from tenfold_kernels.resources.tensor_lists import TensorList, list_of

if TYPE_CHECKING:
    from tenfold_core.dtypes import DType


def _stacked(elements: list[Array | None], shape: tuple[int, ...], dtype: DType) -> Array:
    """[N, ...]; what is not set becomes zeros."""
    allow((len(elements), *shape), dtype.as_numpy_dtype)
    out, nothing = np.empty((len(elements), *shape), dtype=dtype.as_numpy_dtype), zeros((), dtype)
    for index, element in enumerate(elements):
        # of a scalar its value: an array of texts would hold the array itself
        out[index] = (nothing if element is None else element)[()]
    return out


@kernel("TensorListStack")
def build_stack(node: KernelNode) -> Compute:
    expected = int(node.attrs.get("num_elements", -1))

    def compute(handle: Array, shape: Array) -> Array:
        found = checked_value(node, handle)
        if expected not in (-1, found.length):
            text = f"Operation expected a list with {expected} elements but got a list with"
            raise invalid(f"{text} {found.length} elements.")
        partial = merged(shape_of(shape), found.shape)
        if not found.length:
            text = "Tried to stack elements of an empty list with non-fully-defined element_shape: "
            return _stacked([], defined_dims(partial, text + partial_text(partial)), found.dtype)
        elements = found.elements
        partial = merged_with(partial, elements)
        text = (
            "Tried to stack list which only contains uninitialized tensors and has a non-fully-defined element_shape: "
        )
        return _stacked(elements, defined_dims(partial, text + partial_text(partial)), found.dtype)

    return compute


@kernel("TensorListFromTensor")
def build_from_tensor(node: KernelNode) -> Compute:
    def compute(value: Array, shape: Array) -> Array:
        elements, wanted = rows_of(value), shape_of(shape)
        _check_rows(wanted, value)
        return TensorList(node.attrs["element_dtype"], wanted, elements).as_array()

    return compute


def _check_rows(wanted: TensorShape, value: Array) -> None:
    if not wanted.is_compatible_with(TensorShape(value.shape[1:])):
        text = f"Specified a list with shape {partial_text(wanted)} from a tensor with shape"
        raise invalid(f"{text} {shape_text(value.shape[1:])}")


@kernel("TensorListGather")
def build_gather(node: KernelNode) -> Compute:
    def compute(handle: Array, indices: Array, shape: Array) -> Array:
        found = checked_value(node, handle)
        partial = merged(shape_of(shape), found.shape)
        if not indices.size and not partial.is_fully_defined():
            text = "Tried to gather 0-elements from a list with non-fully-defined shape: "
            raise invalid(text + partial_text(partial))
        elements = []
        for index in indices.ravel().tolist():
            if not 0 <= index < found.length:
                raise invalid(f"Trying to gather element {index} in a list with {found.length} elements.")
            elements.append(found[index])
        partial = merged_with(partial, elements)
        text = "Tried to gather uninitialized tensors from a list with non-fully-defined element_shape: "
        return _stacked(elements, defined_dims(partial, text + partial_text(partial)), found.dtype)

    return compute


@kernel("TensorListScatter", "TensorListScatterV2")
def build_scatter(node: KernelNode) -> Compute:
    dtype = node.attrs["element_dtype"]

    def compute(value: Array, indices: Array, shape: Array, num_elements: Array | None = None) -> Array:
        if num_elements is not None and num_elements.ndim:
            raise invalid("num_elements must be a scalar")
        count, wanted, rows = -1 if num_elements is None else int(num_elements), shape_of(shape), rows_of(value)
        if count < -1:
            raise invalid(f"TensorListScatter expects num_elements >= -1, found: {count}")
        _check_rows(wanted, value)
        if indices.size != len(value):
            raise invalid(f"Invalid number of rows in input tensor. Expected: {indices.size} Actual: {len(value)}")
        places = indices.ravel().tolist()
        for index in places:
            if index < 0:
                raise invalid("Indices in TensorListScatter must all be non-negative.")
            if count not in (-1,) and index >= count:
                raise invalid(f"TensorListScatter: Trying to scatter at index {index} in list with size {count}")
        size = max(places, default=-1) + 1 if count < 0 else count
        check_count(size, "A TensorList")
        elements: list[Array | None] = [None] * size
        for index, row in zip(places, rows, strict=True):
            elements[index] = row
        return TensorList(dtype, wanted, elements).as_array()

    return compute


@kernel("TensorListScatterIntoExistingList")
def build_scatter_into(node: KernelNode) -> Compute:
    def compute(handle: Array, value: Array, indices: Array) -> Array:
        found, dtype, rows = list_of(handle), node.attrs["element_dtype"], rows_of(value)
        if found.dtype is not dtype:
            text = f"Invalid data types; input tensor type: {dtype.op_name} list element_type: {found.dtype.op_name}"
            raise invalid(text)
        if indices.ndim != 1:
            raise invalid(f"Expected indices to be a vector, but received shape: {shape_text(indices.shape)}")
        if len(indices) != len(value):
            raise invalid(f"Expected len(indices) == tensor.shape[0], but saw: {len(indices)} vs. {len(value)}")
        places = indices.tolist()
        if any(index < 0 for index in places):
            raise invalid("Indices in TensorListScatter must all be non-negative.")
        size = max(found.length, max(places, default=-1) + 1)
        check_count(size, "A TensorList")
        elements = [*found.elements, *[None] * (size - found.length)]
        for index, row in zip(places, rows, strict=True):
            elements[index] = row
        return found.with_elements(elements).as_array()

    return compute


@kernel("TensorListSplit")
def build_split(node: KernelNode) -> Compute:
    def compute(value: Array, shape: Array, lengths: Array) -> Array:
        wanted = shape_of(shape)
        if wanted.ndims == 0:
            raise invalid(
                f"TensorListSplit requires element_shape to be at least of rank 1, but saw: {partial_text(wanted)}"
            )
        check_has_rows(value)
        rest = TensorShape(None) if wanted.ndims is None else TensorShape(wanted.as_list()[1:])
        if not rest.is_compatible_with(TensorShape(value.shape[1:])):
            text = f"tensor shape {shape_text(value.shape)} is not compatible with element_shape"
            raise invalid(f"{text} {partial_text(wanted)}")
        if lengths.ndim != 1:
            raise invalid(f"Expected lengths to be a vector, received shape: {shape_text(lengths.shape)}")
        elements, start = [], 0
        for length in lengths.tolist():
            if length < 0:
                raise invalid(f"Invalid value in lengths: {length}")
            end = start + length
            if end > len(value):
                raise invalid(f"Attempting to slice [{start}, {end}] from tensor with length {len(value)}")
            elements.append(value[start:end])
            start = end
        if start != len(value):
            raise invalid(f"Unused values in tensor. Length of tensor: {len(value)} Values used: {start}")
        return TensorList(node.attrs["element_dtype"], wanted, elements).as_array()

    return compute


@kernel("TensorListConcat", "TensorListConcatV2")
def build_concat(node: KernelNode) -> Compute:
    """([sum of lengths, ...], lengths [N] int64)."""
    declared = TensorShape(node.attrs.get("element_shape"))
    if declared.ndims == 0:
        raise invalid("element_shape must not be empty")

    def compute(handle: Array, shape: Array | None = None, leading_dims: Array | None = None) -> tuple[Array, Array]:
        found = checked_value(node, handle)
        whole = declared if shape is None else merged(shape_of(shape), found.shape)
        if whole.ndims == 0:
            raise invalid("Concat requires elements to be at least vectors, found scalars instead.")
        first = None if whole.ndims is None or shape is None else whole.as_list()[0]
        rest = TensorShape(None) if whole.ndims is None else TensorShape(whole.as_list()[1:])
        if not found.length:
            text = "All except the first dimension must be fully defined when concating an empty tensor list. "
            sizes = defined_dims(rest, f"{text}element_shape: {partial_text(rest)}")
            return np.empty((0, *sizes), dtype=found.dtype.as_numpy_dtype), np.empty(0, dtype=np.int64)
        elements = found.elements
        known = set()
        for index, element in enumerate(elements):
            if element is None:
                continue
            if not element.ndim:
                raise invalid(f"Concat saw a scalar shape at index {index} but requires at least vectors.")
            rest = merged(rest, TensorShape(element.shape[1:]))
            if first not in (None, len(element)):
                raise invalid(
                    "First entry of element_shape input does not match the first dim of list element at index: "
                    f"{index} Expected: {first} Actual: {len(element)}"
                )
            known.add(len(element))
        if first is None and len(known) == 1 and not found.shape.is_fully_defined():
            first = known.pop()
        text = "Trying to concat list with only uninitialized tensors but element_shape_except_first_dim is not fully "
        sizes = defined_dims(rest, f"{text}defined: {partial_text(rest)}")
        pieces = [
            element if element is not None else zeros((_length(index, first, leading_dims), *sizes), found.dtype)
            for index, element in enumerate(elements)
        ]
        return np.concatenate(pieces), np.array([len(piece) for piece in pieces], dtype=np.int64)

    return compute


def _length(index: int, first: int | None, leading_dims: Array | None) -> int:
    """How long an element is taken to be that was never set."""
    if first is not None and (leading_dims is None or index >= leading_dims.size):
        return first
    if leading_dims is None:
        raise invalid(
            "Concating lists with uninitialized tensors is not supported in this version of TensorListConcat. "
            "Consider updating your GraphDef to run the newer version."
        )
    if index >= leading_dims.size:
        raise invalid(
            f"List contains uninitialized tensor at index {index} but leading_dims has only {leading_dims.size} "
            "elements."
        )
    length = int(leading_dims.reshape(-1)[index])
    if length < 0:
        raise invalid(f"leading_dims[{index}] is {length}: the length of an element must be >= 0")
    return length


@kernel("TensorListConcatLists")
def build_concat_lists(node: KernelNode) -> Compute:
    """Element by element of two tensors of lists: one list after the other."""

    def compute(a: Array, b: Array) -> Array:
        if a.shape != b.shape:
            raise invalid(f"Incompatible input TensorList tensor shapes: {shape_text(a.shape)} {shape_text(b.shape)}")
        out: Any = np.empty(a.shape, dtype=object)
        for place in np.ndindex(a.shape):
            one, other = checked_value(node, a[(*place, ...)]), checked_value(node, b[(*place, ...)])
            if one.shape != other.shape:
                raise invalid(
                    f"input_a and input_b TensorList element shapes are not identical at index {place}. "
                    f"Saw {one.shape} vs. {other.shape}"
                )
            joined = TensorList(one.dtype, merged(one.shape, other.shape), [*one.elements, *other.elements])
            out[place] = joined
        return np.asarray(out)

    return compute
