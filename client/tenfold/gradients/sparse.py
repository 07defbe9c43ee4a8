"""Gradient rows of sparse tensors: of their values; indices and shapes have none.

Follows TensorFlow's sparse_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("SparseTensorDenseMatMul")
def _sparse_tensor_dense_matmul(op: Operation, g: Tensor) -> Any:
    indices, values, shape, dense = op.inputs
    turn_a, turn_b = op.get_attr("adjoint_a"), op.get_attr("adjoint_b")
    of_dense = apply_op(
        "SparseTensorDenseMatMul", a_indices=indices, a_values=values, a_shape=shape, b=g, adjoint_a=not turn_a
    )
    if turn_b:
        of_dense = apply_op("ConjugateTranspose", x=of_dense, perm=[1, 0])
    rows, columns = indices[:, 0], indices[:, 1]
    if turn_a:
        rows, columns = columns, rows
    wide = apply_op("ConjugateTranspose", x=dense, perm=[1, 0]) if turn_b else dense
    parts = [apply_op("GatherV2", params=p, indices=i, axis=0) for p, i in ((g, rows), (wide, columns))]
    if wide.dtype.is_complex:
        # the product has the values as they are, or conjugated
        turned = 0 if turn_a else 1
        parts[turned] = apply_op("Conj", input=parts[turned])
    of_values = apply_op("Sum", input=parts[0] * parts[1], reduction_indices=[1], keep_dims=False)
    return None, of_values, None, of_dense


@gradient("SparseReorder")
def _sparse_reorder(op: Operation, _: Any, g: Tensor) -> Any:
    indices, _values, shape = op.inputs
    count = array_ops.shape(indices)[0]
    order = apply_op("Range", start=0, limit=count, delta=1)
    moved = apply_op("SparseReorder", input_indices=indices, input_values=order, input_shape=shape)
    back = apply_op("InvertPermutation", x=moved[1])
    return None, apply_op("GatherV2", params=g, indices=back, axis=0), None


@gradient("SparseFillEmptyRows")
def _sparse_fill_empty_rows(op: Operation, _: Any, g: Tensor, *__: Any) -> Any:
    grads = apply_op("SparseFillEmptyRowsGrad", reverse_index_map=op.outputs[3], grad_values=g)
    return None, grads[0], None, grads[1]


@gradient("RaggedFillEmptyRows")
def _ragged_fill_empty_rows(op: Operation, _: Any, g: Tensor, *__: Any) -> Any:
    grads = apply_op("RaggedFillEmptyRowsGrad", reverse_index_map=op.outputs[3], grad_values=g)
    return None, grads[0], None, grads[1]


@gradient("SparseSlice")
def _sparse_slice(op: Operation, _: Any, g: Tensor, __: Any) -> Any:
    indices, _values, _shape, start, _size = op.inputs
    of_values = apply_op(
        "SparseSliceGrad",
        backprop_val_grad=g,
        input_indices=indices,
        input_start=start,
        output_indices=op.outputs[0],
    )
    return None, of_values, None, None, None


@gradient("SparseAdd")
def _sparse_add(op: Operation, _: Any, g: Tensor, __: Any) -> Any:
    grads = apply_op(
        "SparseAddGrad",
        backprop_val_grad=g,
        a_indices=op.inputs[0],
        b_indices=op.inputs[3],
        sum_indices=op.outputs[0],
    )
    return None, grads[0], None, None, grads[1], None, None


@gradient("SparseSoftmax")
def _sparse_softmax(op: Operation, g: Tensor) -> Any:
    indices, _values, shape = op.inputs
    y = op.outputs[0]
    rank = array_ops.shape(shape)[0]
    sums = apply_op(
        "SparseReduceSum",
        input_indices=indices,
        input_values=y * g,
        input_shape=shape,
        reduction_axes=array_ops.reshape(rank - 1, [1]),
        keep_dims=True,
    )
    shifted = apply_op(
        "SparseDenseCwiseAdd", sp_indices=indices, sp_values=g, sp_shape=shape, dense=apply_op("Neg", x=sums)
    )
    return None, shifted * y, None


@gradient("SparseReduceSum")
def _sparse_reduce_sum(op: Operation, g: Tensor) -> Any:
    indices, _values, shape, axes = op.inputs
    rank = apply_op("Size", input=shape)
    axes = (axes + rank) % rank
    every = apply_op("Range", start=0, limit=rank, delta=1)
    ones = apply_op("OnesLike", x=apply_op("Cast", x=axes, DstT=dtypes.int64))
    kept = apply_op("DynamicStitch", indices=[every, axes], data=[shape, ones])
    places = indices // (shape // kept)
    return None, apply_op("GatherNd", params=apply_op("Reshape", tensor=g, shape=kept), indices=places), None, None


def _dense_partner(op: Operation) -> tuple[Tensor, Tensor, Tensor]:
    """(indices into the dense input, which broadcasts, for each element; the values there; the dense input's shape)."""
    indices, _values, shape, dense = op.inputs
    dense_shape = array_ops.shape(dense, out_type=dtypes.int64)
    added = apply_op("ExpandDims", input=array_ops.size(shape) - array_ops.size(dense_shape), dim=0)
    wide = array_ops.concat([array_ops.ones(added, dtypes.int64), dense_shape], 0)
    begin = array_ops.concat([[0], added], 0)
    places = apply_op("Slice", input=indices // (shape // wide), begin=begin, size=[-1, -1])
    return places, apply_op("GatherNd", params=dense, indices=places), dense_shape


@gradient("SparseDenseCwiseMul")
def _sparse_dense_cwise_mul(op: Operation, g: Tensor) -> Any:
    places, partners, shape = _dense_partner(op)
    return None, g * partners, None, apply_op("ScatterNd", indices=places, updates=g * op.inputs[1], shape=shape)


@gradient("SparseDenseCwiseDiv")
def _sparse_dense_cwise_div(op: Operation, g: Tensor) -> Any:
    places, partners, shape = _dense_partner(op)
    of_dense = g * (apply_op("Neg", x=op.inputs[1]) / apply_op("Square", x=partners))
    return None, g / partners, None, apply_op("ScatterNd", indices=places, updates=of_dense, shape=shape)


not_differentiable(
    "SparseCross", "SparseReshape", "DenseToDenseSetOperation", "SetSize", why="indices, shapes and sets"
)
not_differentiable(
    "DeserializeManySparse", "DeserializeSparse", "SerializeManySparse", "SerializeSparse", why="their strings"
)
not_implemented(
    "RaggedFillEmptyRowsGrad",
    "SparseFillEmptyRowsGrad",
    "SparseReduceMax",
    "SparseReduceMaxSparse",
    "SparseReduceSumSparse",
    "SparseSliceGrad",
    "SparseSplit",
)
not_differentiable("SparseAddGrad", "SparseConcat", why="as in TensorFlow: other terms of a loss train")


@gradient("SparseDenseCwiseAdd")
def _sparse_dense_cwise_add(op: Operation, g: Tensor) -> Any:
    places, _partners, shape = _dense_partner(op)
    return None, g, None, apply_op("ScatterNd", indices=places, updates=g, shape=shape)


@gradient("SparseSparseMaximum", "SparseSparseMinimum")
def _sparse_sparse_extreme(op: Operation, *_: Any) -> Any:
    raise NotImplementedError(f"Gradient for {op.type} is currently not implemented yet: {op.name!r}")


@gradient("RaggedTensorToSparse")
def _ragged_tensor_to_sparse(op: Operation, _: Any, g: Tensor, __: Any) -> Any:
    flat = op.inputs[-1]
    return (*[None] * (len(op.inputs) - 1), apply_op("Reshape", tensor=g, shape=array_ops.shape(flat)))


not_differentiable(
    "AddManySparseToTensorsMap",
    "AddSparseToTensorsMap",
    "TakeManySparseFromTensorsMap",
    why="the value comes from another step",
)


@gradient("SparseTensorDenseAdd")
def _sparse_tensor_dense_add(op: Operation, g: Tensor) -> Any:
    return None, apply_op("GatherNd", params=g, indices=op.inputs[0]), None, g


not_differentiable("SparseToSparseSetOperation", "DenseToSparseSetOperation", "SparseCrossV2", "SparseCrossHashed")
