"""Gradient rows of scatters into a tensor. Follows TensorFlow's ops/array_grad.py.

Definitions in tenfold_core/opdefs/array.py; scatters into variables are in state.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("TensorScatterAdd")
def _tensor_scatter_add(op: Operation, g: Tensor) -> Any:
    return g, None, apply_op("GatherNd", params=g, indices=op.inputs[1])


@gradient("TensorScatterSub")
def _tensor_scatter_sub(op: Operation, g: Tensor) -> Any:
    return g, None, apply_op("Neg", x=apply_op("GatherNd", params=g, indices=op.inputs[1]))


@gradient("TensorScatterUpdate")
def _tensor_scatter_update(op: Operation, g: Tensor) -> Any:
    _, indices, updates = op.inputs
    kept = apply_op("TensorScatterUpdate", tensor=g, indices=indices, updates=apply_op("ZerosLike", x=updates))
    return kept, None, apply_op("GatherNd", params=g, indices=indices)


@gradient("ScatterNdNonAliasingAdd")
def _scatter_nd_add(op: Operation, g: Tensor) -> Any:
    return g, None, apply_op("GatherNd", params=g, indices=op.inputs[1])
