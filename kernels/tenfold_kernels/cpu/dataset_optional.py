"""The ops of Optionals, which gradients of control flow v2 hand from a branch to its gradient.

The other ops of the dataset family have no kernels. Follows optional_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.optionals import Optional, optional_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_core.dtypes import DType


@kernel("OptionalFromValue")
def build_from_value(node: KernelNode) -> Compute:
    return lambda *components: Optional(components).as_array()


@kernel("OptionalNone")
def build_none(node: KernelNode) -> Compute:
    return lambda: Optional().as_array()


@kernel("OptionalHasValue")
def build_has_value(node: KernelNode) -> Compute:
    return lambda value: np.array(optional_of(value).components is not None)


@kernel("OptionalGetValue")
def build_get_value(node: KernelNode) -> Compute:
    """Its components. Raises InvalidArgumentError for none, and for others than the op's types and shapes."""
    types: Sequence[DType] = node.attrs["output_types"]
    shapes = node.attrs["output_shapes"]
    if len(types) != len(shapes):
        raise invalid(f"output_types and output_shapes must be as many, got {len(types)} and {len(shapes)}.")

    def compute(value: Array) -> Any:
        components = optional_of(value).components
        if components is None:
            raise invalid("The given optional does not have a value.")
        if len(components) != len(types):
            raise invalid(
                f"The given optional has {len(components)} components, expected number of components: {len(types)}."
            )
        for number, (component, dtype, shape) in enumerate(zip(components, types, shapes, strict=True)):
            if component.dtype != dtype.as_numpy_dtype:
                raise invalid(
                    f"The given optional does not match the expected type for component {number}. Expected: "
                    f"{dtype.op_name}. Actual: {component.dtype}."
                )
            if not shape.is_compatible_with(component.shape):
                raise invalid(
                    f"The given optional does not match the expected shape for component {number}. Expected: {shape}. "
                    f"Actual: {shape_text(component.shape)}."
                )
        return components[0] if len(components) == 1 else components

    return compute
