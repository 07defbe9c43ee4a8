"""Arithmetic on SparseTensors: sums, products with dense matrices, reductions, softmax; segments of gathered rows.

The other functions are in sparse.py. Follows TF 1.15's ops/sparse_ops.py and math_ops.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.graph.op_builder import apply_op, tensor_op
from tenfold.graph.sparse_tensor import SparseTensor, as_sparse, is_sparse
from tenfold.ops import array
from tenfold.ops import math as m
from tenfold.ops.sparse import renamed
from tenfold_core import dtypes

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def sparse_add(a: Any, b: Any, threshold: Any = None, thresh: Any = None) -> Any:
    """The sum: sparse if both are sparse (elements of at most `threshold` dropped), dense if one is dense."""
    threshold = renamed(threshold, thresh, "threshold", "thresh")
    if not is_sparse(a) and not is_sparse(b):
        raise TypeError("At least one input should be SparseTensor; do you mean to use tf.add()?")
    if not (is_sparse(a) and is_sparse(b)):
        sparse, dense = (a, b) if is_sparse(a) else (b, a)
        sparse = as_sparse(sparse)
        return tensor_op(
            "SparseTensorDenseAdd",
            a_indices=sparse.indices,
            a_values=sparse.values,
            a_shape=sparse.dense_shape,
            b=dense,
        )
    a, b = as_sparse(a), as_sparse(b)
    kept = convert_to_tensor(0 if threshold is None else threshold, dtype=a.values.dtype.real_dtype, name="threshold")
    indices, values, shape = apply_op("SparseAdd", **_pair(a, b), thresh=kept)
    a.get_shape().assert_is_compatible_with(b.get_shape())
    known = array.broadcast_static_shape(a.get_shape(), b.get_shape())
    return SparseTensor(indices, values, known.as_list() if known.is_fully_defined() else shape)


def _pair(a: SparseTensor, b: SparseTensor) -> dict[str, Any]:
    return {
        f"{letter}_{part}": tensor
        for letter, sparse in (("a", a), ("b", b))
        for part, tensor in (("indices", sparse.indices), ("values", sparse.values), ("shape", sparse.dense_shape))
    }


def _elementwise(op_type: str, sp_a: Any, sp_b: Any, name: str | None) -> SparseTensor:
    a, b = as_sparse(sp_a), as_sparse(sp_b)
    indices, values = apply_op(op_type, name, **_pair(a, b))
    return SparseTensor(indices, values, a.dense_shape)


def sparse_maximum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The larger of both, element by element; missing elements count as zero."""
    return _elementwise("SparseSparseMaximum", sp_a, sp_b, name)


def sparse_minimum(sp_a: Any, sp_b: Any, name: str | None = None) -> SparseTensor:
    """The smaller of both, element by element; missing elements count as zero."""
    return _elementwise("SparseSparseMinimum", sp_a, sp_b, name)


def sparse_dense_cwise_add(sp_t: SparseTensor, dense_t: Any) -> SparseTensor:
    """The elements of `sp_t` plus those of `dense_t` at the same places."""
    return sp_t._with("SparseDenseCwiseAdd", dense_t)


def sparse_tensor_dense_matmul(
    sp_a: Any, b: Any, adjoint_a: bool = False, adjoint_b: bool = False, name: str | None = None
) -> Tensor:
    """The dense product of a sparse and a dense matrix, each conjugated and transposed on request."""
    a = as_sparse(sp_a)
    with name_scope(name, "SparseTensorDenseMatMul", [a.indices, a.values, b]) as scope:
        return tensor_op(
            "SparseTensorDenseMatMul",
            scope,
            a_indices=a.indices,
            a_values=a.values,
            a_shape=a.dense_shape,
            b=convert_to_tensor(b, name="b"),
            adjoint_a=adjoint_a,
            adjoint_b=adjoint_b,
        )


def sparse_softmax(sp_input: Any, name: str | None = None) -> SparseTensor:
    """Softmax over the last dimension, over the elements that are present."""
    sparse = as_sparse(sp_input)
    with name_scope(name, "SparseSoftmax", [sparse.indices, sparse.values]):
        values = tensor_op(
            "SparseSoftmax", sp_indices=sparse.indices, sp_values=sparse.values, sp_shape=sparse.dense_shape
        )
        return SparseTensor(sparse.indices, values, sparse.dense_shape)


def _reduced(
    op_type: str, sp_input: Any, axis: Any, keepdims: bool | None, reduction_axes: Any, keep_dims: bool | None
) -> Any:
    sparse = as_sparse(sp_input)
    axis = renamed(axis, reduction_axes, "axis", "reduction_axes")
    if axis is None:
        rank = sparse.get_shape().ndims
        axis = list(range(rank)) if rank is not None else m.range(0, array.size(sparse.dense_shape))
    return apply_op(
        op_type,
        input_indices=sparse.indices,
        input_values=sparse.values,
        input_shape=sparse.dense_shape,
        reduction_axes=axis,
        keep_dims=bool(renamed(keepdims, keep_dims, "keepdims", "keep_dims")),
    )


def sparse_reduce_sum(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Sums over dimensions `axis` (default: all), as a dense tensor."""
    total: Tensor = _reduced("SparseReduceSum", sp_input, axis, keepdims, reduction_axes, keep_dims)
    return total


def sparse_reduce_max(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> Tensor:
    """Maxima of the elements over dimensions `axis` (default: all), as a dense tensor; zero where there is none."""
    largest: Tensor = _reduced("SparseReduceMax", sp_input, axis, keepdims, reduction_axes, keep_dims)
    return largest


def sparse_reduce_sum_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """`sparse_reduce_sum` as a SparseTensor."""
    return SparseTensor(*_reduced("SparseReduceSumSparse", sp_input, axis, keepdims, reduction_axes, keep_dims))


def sparse_reduce_max_sparse(
    sp_input: Any,
    axis: Any = None,
    keepdims: bool | None = None,
    reduction_axes: Any = None,
    keep_dims: bool | None = None,
) -> SparseTensor:
    """`sparse_reduce_max` as a SparseTensor."""
    return SparseTensor(*_reduced("SparseReduceMaxSparse", sp_input, axis, keepdims, reduction_axes, keep_dims))


def sparse_matmul(
    a: Any,
    b: Any,
    transpose_a: bool = False,
    transpose_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """The product of dense matrices that hold many zeros."""
    return tensor_op(
        "SparseMatMul",
        name,
        a=a,
        b=b,
        transpose_a=transpose_a,
        transpose_b=transpose_b,
        a_is_sparse=a_is_sparse,
        b_is_sparse=b_is_sparse,
    )


def _segments(op_type: str, data: Any, indices: Any, segment_ids: Any, name: str | None, count: Any) -> Tensor:
    arguments = {"data": data, "indices": indices, "segment_ids": segment_ids}
    if count is not None:
        op_type, arguments["num_segments"] = op_type + "WithNumSegments", m.cast(count, dtypes.int32)
    return tensor_op(op_type, name, **arguments)


def sparse_segment_sum(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Sums of the rows `data[indices]` that belong to one segment. `segment_ids` are sorted."""
    return _segments("SparseSegmentSum", data, indices, segment_ids, name, num_segments)


def sparse_segment_mean(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Means of the rows `data[indices]` that belong to one segment."""
    return _segments("SparseSegmentMean", data, indices, segment_ids, name, num_segments)


def sparse_segment_sqrt_n(
    data: Any, indices: Any, segment_ids: Any, name: str | None = None, num_segments: Any = None
) -> Tensor:
    """Sums of the rows `data[indices]` that belong to one segment, over the square root of their number."""
    return _segments("SparseSegmentSqrtN", data, indices, segment_ids, name, num_segments)


def edit_distance(hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance") -> Tensor:
    """The Levenshtein distance of the sequences in the last dimension; `normalize` divides by `truth`'s length."""
    for what, tensor in (("Hypothesis", hypothesis), ("Truth", truth)):
        if not is_sparse(tensor):
            raise TypeError(f"{what} must be a SparseTensor.")
    return tensor_op(
        "EditDistance",
        name,
        hypothesis_indices=hypothesis.indices,
        hypothesis_values=hypothesis.values,
        hypothesis_shape=hypothesis.dense_shape,
        truth_indices=truth.indices,
        truth_values=truth.values,
        truth_shape=truth.dense_shape,
        normalize=normalize,
    )
