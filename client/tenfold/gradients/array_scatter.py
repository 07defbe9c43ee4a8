"""Gradient rows of scatters into a tensor. Follows TensorFlow's ops/array_grad.py.

Definitions in tenfold_core/opdefs/array.py; scatters into variables are in state.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.broadcast import undo_broadcast
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


@gradient("TensorScatterMax", "TensorScatterMin")
def _tensor_scatter_extreme(op: Operation, g: Tensor) -> Any:
    # Of an element and the updates of its place those that are the extreme share the gradient evenly.
    tensor, indices, updates = op.inputs
    out = op.outputs[0]
    kept = apply_op("Cast", x=apply_op("Equal", x=tensor, y=out), DstT=g.dtype)
    reached = apply_op("Equal", x=updates, y=apply_op("GatherNd", params=out, indices=indices))
    taken = apply_op("Cast", x=reached, DstT=g.dtype)
    share = g / apply_op("TensorScatterAdd", tensor=kept, indices=indices, updates=taken)
    return share * kept, None, taken * apply_op("GatherNd", params=share, indices=indices)


@gradient("TensorStridedSliceUpdate")
def _tensor_strided_slice_update(op: Operation, g: Tensor) -> Any:
    _, begin, end, strides, value = op.inputs
    where: dict[str, Any] = {"begin": begin, "end": end, "strides": strides}
    for name in ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"):
        where[name] = op.get_attr(name)
    kept = apply_op("TensorStridedSliceUpdate", input=g, value=apply_op("ZerosLike", x=value), **where)
    # the value was repeated to the shape of the slice, which may lack dimensions of the tensor, and have others
    part = apply_op("StridedSlice", input=g, **where)
    _, of_value = undo_broadcast(part, value, None, part)
    return kept, None, None, None, of_value
