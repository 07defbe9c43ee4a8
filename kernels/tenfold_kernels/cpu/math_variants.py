"""AddN and ZerosLike of variants: what the gradients of control flow v2 do with TensorLists and Optionals.

Registered beside the kernels for numbers (math_add_n.py, array.py). Follows tensor_list_util.cc and aggregate_ops.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.optionals import Optional
from tenfold_kernels.resources.queues import shape_text as partial_text
from tenfold_kernels.resources.tensor_arrays import merged
from tenfold_kernels.resources.tensor_lists import TensorList


@kernel("AddN", T=(dtypes.variant,), views=True)
def build_add_n(node: KernelNode) -> Compute:
    """Lists are added element by element; what one of them has not set counts as zeros."""

    def compute(*inputs: Array) -> Array:
        total = inputs[0]
        for i, other in enumerate(inputs[1:], 1):
            if other.shape != total.shape:
                raise invalid(
                    f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                    f"Input 0: {shape_text(total.shape)} != input {i}: {shape_text(other.shape)}"
                )
            total = _added_arrays(total, other)
        return total

    return compute


def _added_arrays(a: Array, b: Array) -> Array:
    out = np.empty(a.shape, dtype=object)
    for place in np.ndindex(a.shape):
        x, y = a[place], b[place]
        if isinstance(x, Optional) and isinstance(y, Optional):
            out[place] = _added_optionals(x, y)
            continue
        if not isinstance(x, TensorList) or not isinstance(y, TensorList):
            raise invalid(f"No AddN of variants of type {type(x).__name__} and {type(y).__name__}")
        out[place] = _added(x, y)
    return out


def _added_optionals(a: Optional, b: Optional) -> Optional:
    if a.components is None and b.components is None:
        return a
    if a.components is None or b.components is None:
        raise invalid("Cannot add optionals because one has a value and the other doesn't.")
    if len(a.components) != len(b.components):
        raise invalid("Cannot add optionals because they have different numbers of components.")
    return Optional(
        tuple(
            _added_arrays(x, y) if x.dtype == object else np.asarray(np.add(x, y))
            for x, y in zip(a.components, b.components, strict=True)
        )
    )


def _added(a: TensorList, b: TensorList) -> TensorList:
    if a.dtype is not b.dtype:
        text = f"Trying to add two lists of tensors of different dtypes. One is {a.dtype.op_name} and the other is"
        raise invalid(f"{text} {b.dtype.op_name}")
    if not a.shape.is_compatible_with(b.shape):
        text = f"One is {partial_text(a.shape)} and the other is {partial_text(b.shape)}"
        raise invalid(f"Trying to add two lists of tensors with incompatible element shapes. {text}")
    if a.length != b.length:
        text = f"Trying to add two lists of tensors with different lengths. One is {a.length} and the other is"
        raise invalid(f"{text} {b.length}")
    shape = merged(a.shape, b.shape)
    elements: list[Array | None] = []
    for x, y in zip(a.elements, b.elements, strict=True):
        if x is None or y is None:
            elements.append(y if x is None else x)
            continue
        merged(TensorShape(x.shape), TensorShape(y.shape))
        elements.append(_added_arrays(x, y) if a.dtype is dtypes.variant else np.asarray(np.add(x, y)))
    return TensorList(a.dtype, shape, elements, a.max_num_elements)


def _zeros(value: Array) -> Array:
    return zeros_like(value) if value.dtype == object else np.zeros(value.shape, dtype=value.dtype)


def zeros_like(value: Array) -> Array:
    """A variant of the same kind, all zeros. Raises InvalidArgumentError for a variant that has no zeros."""
    out = np.empty(value.shape, dtype=object)
    for place in np.ndindex(value.shape):
        found = value[place]
        if isinstance(found, Optional):
            out[place] = Optional(None if found.components is None else tuple(map(_zeros, found.components)))
            continue
        if not isinstance(found, TensorList):
            raise invalid(f"No ZerosLike of a variant of type {type(found).__name__}")
        out[place] = found.with_elements([None if x is None else _zeros(x) for x in found.elements])
    return out
