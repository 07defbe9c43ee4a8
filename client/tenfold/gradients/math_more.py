"""Gradient rows of mathematics beyond gradients/math.py: bits, segments that are told their size, logarithms of sums.

Follows TensorFlow's ops/math_grad.py and linalg_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.ops import array as array_ops
from tenfold.ops.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("Digamma")
def _digamma(op: Operation, g: Tensor) -> Any:
    x = op.inputs[0]
    return g * apply_op("Polygamma", a=apply_op("OnesLike", x=x), x=x)


@gradient("Polygamma", broadcasts=True)
def _polygamma(op: Operation, g: Tensor) -> Any:
    order, x = op.inputs
    return None, g * apply_op("Polygamma", a=order + 1.0, x=x)


@gradient("ClipByValue")
def _clip_by_value(op: Operation, g: Tensor) -> Any:
    x, low, high = op.inputs
    zeros = apply_op("ZerosLike", x=g)
    below, above = apply_op("Less", x=x, y=low), apply_op("Greater", x=x, y=high)
    inside = apply_op("SelectV2", condition=apply_op("LogicalOr", x=below, y=above), t=zeros, e=g)

    def fold(part: Tensor, like: Tensor) -> Any:
        shape = array_ops.shape(like)
        axes = apply_op("BroadcastGradientArgs", s0=array_ops.shape(x), s1=shape)[1]
        return apply_op("Reshape", tensor=apply_op("Sum", input=part, reduction_indices=axes), shape=shape)

    return (
        inside,
        fold(apply_op("SelectV2", condition=below, t=g, e=zeros), low),
        fold(apply_op("SelectV2", condition=above, t=g, e=zeros), high),
    )


@gradient("SparseTensorDenseAdd")
def _sparse_tensor_dense_add(op: Operation, g: Tensor) -> Any:
    return None, apply_op("GatherNd", params=g, indices=op.inputs[0]), None, g


@gradient("Cross")
def _cross(op: Operation, g: Tensor) -> Any:
    a, b = op.inputs
    return apply_op("Cross", a=b, b=g), apply_op("Cross", a=g, b=a)


@gradient("SegmentSumV2")
def _segment_sum_v2(op: Operation, g: Tensor) -> Any:
    return apply_op("GatherV2", params=g, indices=op.inputs[1], axis=0), None, None


def _register_sparse_segment(op_type: str, back: str) -> None:
    @gradient(op_type)
    def _sized(op: Operation, g: Tensor) -> Any:
        data, indices, ids, *count = op.inputs
        rows = array_ops.shape(data)[0]
        of_data = apply_op(back, grad=g, indices=indices, segment_ids=ids, output_dim0=rows)
        return of_data, None, None, *[None for _ in count]


_register_sparse_segment("SparseSegmentSum", "SparseSegmentSumGrad")
_register_sparse_segment("SparseSegmentMean", "SparseSegmentMeanGrad")
_register_sparse_segment("SparseSegmentSqrtN", "SparseSegmentSqrtNGrad")
_register_sparse_segment("SparseSegmentSumWithNumSegments", "SparseSegmentSumGrad")
_register_sparse_segment("SparseSegmentMeanWithNumSegments", "SparseSegmentMeanGrad")
_register_sparse_segment("SparseSegmentSqrtNWithNumSegments", "SparseSegmentSqrtNGrad")


def _not_zero(x: Tensor) -> Tensor:
    different = apply_op("NotEqual", x=x, y=apply_op("ZerosLike", x=x))
    result: Tensor = apply_op("Cast", x=different, DstT=x.dtype.base_dtype)
    return result


@gradient("Xlogy", broadcasts=True)
def _xlogy(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    return apply_op("Xlogy", x=_not_zero(x), y=y) * g, apply_op("Xdivy", x=x, y=y) * g


@gradient("Xdivy", broadcasts=True)
def _xdivy(op: Operation, g: Tensor) -> Any:
    x, y = op.inputs
    minus = apply_op("Xdivy", x=apply_op("Neg", x=x), y=y * y)
    return apply_op("Xdivy", x=_not_zero(x), y=y) * g, minus * g


not_differentiable(
    "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Bucketize", "DenseBincount", "Invert", "LeftShift", "PopulationCount",
    "RightShift", why="bits and counts",
)  # fmt: skip
not_implemented(
    "BatchMatMulV3",
    "CumulativeLogsumexp",
    "SegmentMaxV2",
    "SegmentMinV2",
    "SegmentProdV2",
    "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtNGrad",
    "SparseSegmentSqrtNGradV2",
    "SparseSegmentSumGrad",
    "SparseSegmentSumGradV2",
)
