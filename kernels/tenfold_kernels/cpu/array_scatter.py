"""Tensors with some elements updated: TensorScatter*, ScatterNdNonAliasingAdd, Inplace*. Outputs are fresh.

An index out of bounds is an error that names it. Scatters into variables are in state_scatter.py. Follows
scatter_nd_op.cc and inplace_ops.cc.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tenfold_kernels.arrays import Array, invalid, shape_text
from tenfold_kernels.cpu.array_gather import check_nd_updates, update_place
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import BOOL, NUMERIC, REAL

#: Op → how an update meets what is there.
_SCATTERS: dict[str, Any] = {
    "TensorScatterSub": np.subtract,
    "TensorScatterMax": np.maximum,
    "TensorScatterMin": np.minimum,
    "ScatterNdNonAliasingAdd": np.add,
}


@kernel("TensorScatterSub", T=NUMERIC)
@kernel("ScatterNdNonAliasingAdd", T=NUMERIC | BOOL)
@kernel("TensorScatterMax", "TensorScatterMin", T=REAL)
def build_tensor_scatter(node: KernelNode) -> Compute:
    """A copy of the tensor with the updates worked in; updates to one place accumulate."""
    meet = _SCATTERS[node.op]

    def compute(tensor: Array, indices: Array, updates: Array) -> Array:
        check_nd_updates(indices, updates, tensor.shape)
        out = tensor.copy()
        meet.at(*update_place(out, indices), updates)
        return out

    return compute


@kernel("InplaceUpdate")
@kernel("InplaceAdd", "InplaceSub", T=NUMERIC)
def build_inplace(node: KernelNode) -> Compute:
    """(x, rows, values) → a copy of x with those rows changed: no kernel writes to an input."""

    def compute(x: Array, rows: Array, values: Array) -> Array:
        if x.ndim < 1 or values.shape != (*rows.shape, *x.shape[1:]):
            raise invalid(f"v must have the shape of the rows of x that i names: {shape_text(values.shape)}")
        out = x.copy()
        if len(x) == 0:
            return out
        # TensorFlow wraps the row numbers round.
        at = rows % len(x)
        if node.op == "InplaceUpdate":
            out[at] = values
        else:
            (np.add if node.op == "InplaceAdd" else np.subtract).at(out, at, values)
        return out

    return compute
