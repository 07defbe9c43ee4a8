"""Gradient rows of variables and of the ops that change them; definitions in tenfold_core/opdefs/state.py.

Reading a resource variable is differentiable (the gradient belongs to the handle), changing state is not.
Follows TensorFlow's ops/resource_variable_ops.py and ops/state_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable
from tenfold.graph.indexed_slices import IndexedSlices
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("ReadVariableOp")
def _read_variable(op: Operation, g: Any) -> Any:
    return g


@gradient("ResourceGather")
def _resource_gather(op: Operation, g: Tensor) -> Any:
    handle, indices = op.inputs
    with handle.graph.colocate_with(handle.op):
        shape = apply_op("VariableShape", input=handle)
    count = apply_op("ExpandDims", input=apply_op("Size", input=indices), dim=0)
    tail = shape[1:]
    rows = apply_op("Reshape", tensor=g, shape=array_ops.concat([count, tail], 0))
    return IndexedSlices(rows, apply_op("Reshape", tensor=indices, shape=[-1]), shape), None


@gradient("ResourceGatherNd")
def _resource_gather_nd(op: Operation, g: Tensor) -> Any:
    handle, indices = op.inputs
    with handle.graph.colocate_with(handle.op):
        shape = apply_op("VariableShape", input=handle, out_type=indices.dtype.base_dtype)
    known = indices.get_shape()
    if known.ndims == 2 and known.as_list()[1] == 1:
        return IndexedSlices(g, apply_op("Squeeze", input=indices, squeeze_dims=[1]), shape), None
    return apply_op("ScatterNd", indices=indices, updates=g, shape=shape), None


not_differentiable(
    "DestroyResourceOp",
    "DestroyTemporaryVariable",
    "DisableCopyOnRead",
    "IsVariableInitialized",
    "TemporaryVariable",
    "VarHandleOp",
    "VarIsInitializedOp",
    "Variable",
    "VariableShape",
    "VariableV2",
    why="holds or asks about state",
)
not_differentiable(
    "ApplyAdaMax",
    "ApplyAdadelta",
    "ApplyAdagrad",
    "ApplyAdagradDA",
    "ApplyAdagradV2",
    "ApplyAdam",
    "ApplyAddSign",
    "ApplyCenteredRMSProp",
    "ApplyFtrl",
    "ApplyFtrlV2",
    "ApplyGradientDescent",
    "ApplyMomentum",
    "ApplyPowerSign",
    "ApplyProximalAdagrad",
    "ApplyProximalGradientDescent",
    "ApplyRMSProp",
    "Assign",
    "AssignAdd",
    "AssignAddVariableOp",
    "AssignSub",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "CountUpTo",
    "ResourceApplyAdaMax",
    "ResourceApplyAdadelta",
    "ResourceApplyAdagrad",
    "ResourceApplyAdagradDA",
    "ResourceApplyAdagradV2",
    "ResourceApplyAdam",
    "ResourceApplyAdamWithAmsgrad",
    "ResourceApplyCenteredRMSProp",
    "ResourceApplyFtrl",
    "ResourceApplyFtrlV2",
    "ResourceApplyGradientDescent",
    "ResourceApplyKerasMomentum",
    "ResourceApplyMomentum",
    "ResourceApplyProximalAdagrad",
    "ResourceApplyProximalGradientDescent",
    "ResourceApplyRMSProp",
    "ResourceCountUpTo",
    "ResourceScatterAdd",
    "ResourceScatterDiv",
    "ResourceScatterMax",
    "ResourceScatterMin",
    "ResourceScatterMul",
    "ResourceScatterNdAdd",
    "ResourceScatterNdUpdate",
    "ResourceScatterSub",
    "ResourceScatterUpdate",
    "ResourceSparseApplyAdadelta",
    "ResourceSparseApplyAdagrad",
    "ResourceSparseApplyAdagradDA",
    "ResourceSparseApplyAdagradV2",
    "ResourceSparseApplyCenteredRMSProp",
    "ResourceSparseApplyFtrl",
    "ResourceSparseApplyFtrlV2",
    "ResourceSparseApplyKerasMomentum",
    "ResourceSparseApplyMomentum",
    "ResourceSparseApplyProximalAdagrad",
    "ResourceSparseApplyProximalGradientDescent",
    "ResourceSparseApplyRMSProp",
    "ScatterAdd",
    "ScatterDiv",
    "ScatterMax",
    "ScatterMin",
    "ScatterMul",
    "ScatterNdAdd",
    "ScatterNdSub",
    "ScatterNdUpdate",
    "ScatterSub",
    "ScatterUpdate",
    "SparseApplyAdadelta",
    "SparseApplyAdagrad",
    "SparseApplyAdagradDA",
    "SparseApplyAdagradV2",
    "SparseApplyCenteredRMSProp",
    "SparseApplyFtrl",
    "SparseApplyFtrlV2",
    "SparseApplyMomentum",
    "SparseApplyProximalAdagrad",
    "SparseApplyProximalGradientDescent",
    "SparseApplyRMSProp",
    why="changes state",
)
not_differentiable(
    "ResourceScatterNdMax",
    "ResourceScatterNdMin",
    "ResourceScatterNdSub",
    "ScatterNdMax",
    "ScatterNdMin",
    why="an update of a variable",
)
