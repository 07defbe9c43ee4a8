"""The ops of conditional accumulators, dense and sparse, both families of handles. The machine is accumulators.py.

Follows conditional_accumulator_op.cc and sparse_conditional_accumulator_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.arrays import Array, invalid, shape_text, text_attr
from tenfold_kernels.cpu._compiled import merging
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.accumulators import Accumulator, DenseAccumulator, SparseAccumulator, moment
from tenfold_kernels.resources.handles import resource_of, shared_resource
from tenfold_kernels.typesets import COMPILED


@kernel("ConditionalAccumulator", "ResourceConditionalAccumulator", "SparseConditionalAccumulator")
def build_accumulator(node: KernelNode) -> Compute:
    type_: type[Accumulator] = SparseAccumulator if node.op.startswith("Sparse") else DenseAccumulator
    dtype, shape = node.attrs["dtype"], TensorShape(node.attrs["shape"])
    reduction = text_attr(node, "reduction_type", "MEAN")
    walk = merging.walk(dtype.as_numpy_dtype) if type_ is SparseAccumulator and dtype in COMPILED else None

    def check(accumulator: Accumulator) -> None:
        if accumulator.dtype is not dtype or str(accumulator.shape) != str(shape):
            raise invalid(
                f"Shared accumulator '{accumulator.name}' has type {accumulator.dtype.op_name} and shape "
                f"{accumulator.shape}; node '{node.name}' asks for {dtype.op_name} and {shape}."
            )

    def make(name: str) -> Accumulator:
        account = node.resources.quota.account(name)
        if type_ is SparseAccumulator:
            return SparseAccumulator(name, dtype, shape, reduction, walk, account)
        return DenseAccumulator(name, dtype, shape, reduction, account)

    return shared_resource(node, type_, make, check)


def _scalar(value: Array, what: str) -> int:
    if value.ndim:
        raise invalid(f"Argument {what} must be scalar, but had bad shape {shape_text(value.shape)}")
    return int(value)


@kernel("AccumulatorApplyGradient", "ResourceAccumulatorApplyGradient")
def build_apply_gradient(node: KernelNode) -> Compute:
    """Drops a gradient of an earlier step."""
    dtype, built = node.attrs["dtype"], moment()

    def compute(handle: Any, local_step: Array, gradient: Array) -> None:
        accumulator = resource_of(node, handle, DenseAccumulator)
        _check_type(node, accumulator, dtype)
        accumulator.apply(_scalar(local_step, "local_step"), gradient, built)

    return compute


@kernel("SparseAccumulatorApplyGradient")
def build_sparse_apply_gradient(node: KernelNode) -> Compute:
    """Drops a gradient of an earlier step."""
    dtype, has_shape, built = node.attrs["dtype"], bool(node.attrs["has_known_shape"]), moment()

    def compute(handle: Any, local_step: Array, indices: Array, values: Array, shape: Array) -> None:
        accumulator = resource_of(node, handle, SparseAccumulator)
        _check_type(node, accumulator, dtype)
        accumulator.apply(_scalar(local_step, "local_step"), indices, values, shape if has_shape else None, built)

    return compute


@kernel("AccumulatorTakeGradient", "ResourceAccumulatorTakeGradient", "SparseAccumulatorTakeGradient", blocking=True)
def build_take_gradient(node: KernelNode) -> Compute:
    """Waits until so many gradients have come."""
    type_ = SparseAccumulator if node.op.startswith("Sparse") else DenseAccumulator
    dtype = node.attrs["dtype"]

    def compute(handle: Any, required: Array) -> Any:
        accumulator: Accumulator = resource_of(node, handle, type_)
        _check_type(node, accumulator, dtype)
        return accumulator.take(_scalar(required, "num_required"))

    return compute


def _check_type(node: KernelNode, accumulator: Accumulator, dtype: Any) -> None:
    if accumulator.dtype is not dtype:
        raise invalid(f"Expected {node.op} with dtype {accumulator.dtype.op_name}, got {dtype.op_name}")


@kernel("AccumulatorSetGlobalStep", "ResourceAccumulatorSetGlobalStep")
def build_set_global_step(node: KernelNode) -> Compute:
    def compute(handle: Any, step: Array) -> None:
        accumulator: Accumulator = resource_of(node, handle, Accumulator)  # type: ignore[type-abstract]
        accumulator.set_global_step(_scalar(step, "new_global_step"))

    return compute


@kernel("AccumulatorNumAccumulated", "ResourceAccumulatorNumAccumulated")
def build_num_accumulated(node: KernelNode) -> Compute:
    def compute(handle: Any) -> Array:
        accumulator: Accumulator = resource_of(node, handle, Accumulator)  # type: ignore[type-abstract]
        return np.array(accumulator.count, dtype=np.int32)

    return compute
