"""Sums of many tensors of numbers: AddN, AccumulateNV2. Those of variants are in math_variants.py.

Follows aggregate_ops.cc.
"""

from __future__ import annotations

import numpy as np

from tenfold_kernels.arrays import Array, invalid, returning_array, shape_text
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.typesets import NUMERIC


@kernel("AddN", "AccumulateNV2", T=NUMERIC, views=True)
def build_add_n(node: KernelNode) -> Compute:
    """No broadcasting. A single input is passed on as it is."""

    add = returning_array(np.add)

    def compute(*inputs: Array) -> Array:
        first = inputs[0]
        shape = first.shape
        for i, x in enumerate(inputs):
            if x.shape != shape:
                raise invalid(
                    f"Inputs to operation {node.name} of type {node.op} must have the same size and shape.  "
                    f"Input 0: {shape_text(shape)} != input {i}: {shape_text(x.shape)}"
                )
        if len(inputs) == 1:
            return first
        out: Array = add(first, inputs[1])
        for x in inputs[2:]:
            np.add(out, x, out)
        return out

    return compute
