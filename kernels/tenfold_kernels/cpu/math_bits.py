"""Bits: bitwise logic, shifts, counts of ones, and the same bits as another type. Outputs of Bitcast may be views.

Follows bitwise_ops.cc, population_count_op.cc and bitcast_op.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, as_array, contiguous, incompatible, input_type, invalid, output_type
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import INTEGER


def _broadcasting(function: Any) -> Compute:
    def compute(x: Array, y: Array) -> Array:
        try:
            return as_array(function(x, y))
        except ValueError:
            raise incompatible(x, y) from None

    return compute


@kernel("BitwiseAnd", "BitwiseOr", "BitwiseXor", T=INTEGER)
def build_bitwise(node: KernelNode) -> Compute:
    return _broadcasting({"And": np.bitwise_and, "Or": np.bitwise_or, "Xor": np.bitwise_xor}[node.op[len("Bitwise") :]])


@kernel("LeftShift", "RightShift", T=INTEGER)
def build_shift(node: KernelNode) -> Compute:
    """Shifts by less than nothing count as none, by all bits or more as by all but one."""
    dtype = np.dtype(output_type(node))
    shift: Any = np.left_shift if node.op == "LeftShift" else np.right_shift
    most = dtype.type(8 * dtype.itemsize - 1)
    return _broadcasting(lambda x, y: shift(x, np.clip(y, dtype.type(0), most)))


@kernel("Invert", T=INTEGER)
def build_invert(node: KernelNode) -> Compute:
    return lambda x: as_array(np.invert(x))


@kernel("PopulationCount", T=INTEGER)
def build_population_count(node: KernelNode) -> Compute:
    """How many bits are set, of a negative number those of its two's complement."""

    def compute(x: Array) -> Array:
        as_bytes = np.ascontiguousarray(x).reshape(-1, 1).view(np.uint8)
        return as_array(np.unpackbits(as_bytes, axis=1).sum(axis=1, dtype=np.uint8)).reshape(x.shape)

    return compute


@kernel("Bitcast", views=True)
def build_bitcast(node: KernelNode) -> Compute:
    """Types of another size take or give a last dimension of their ratio."""
    source, target = np.dtype(input_type(node)), np.dtype(output_type(node))

    def compute(x: Array) -> Array:
        x = contiguous(x)
        if source.itemsize == target.itemsize:
            return x.view(target)
        if source.itemsize > target.itemsize:
            return x.reshape(*x.shape, 1).view(target)
        ratio = target.itemsize // source.itemsize
        if x.ndim == 0 or x.shape[-1] != ratio:
            raise invalid(f"Cannot bitcast from {node.input_types[0].op_name} to {node.output_types[0].op_name}")
        wider: Array = x.view(target)
        return wider.reshape(x.shape[:-1])

    return compute
