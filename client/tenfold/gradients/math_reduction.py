"""Gradient rows of reductions, running sums and segment sums; definitions in framework/opdefs/math.py.

reduction.py has the shape arithmetic. The rest of the family is in math.py and math_unary.py.
Follows TensorFlow's ops/math_grad.py; `g` is the gradient of the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.reduction import kept_shape, product_of_others, reduced_count, spread
from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.ops import array as array_ops
from tenfold.ops.op_builder import apply_op

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


@gradient("Sum")
def _sum(op: Operation, g: Tensor) -> Any:
    return spread(op, g), None


@gradient("Mean")
def _mean(op: Operation, g: Tensor) -> Any:
    spread_g = spread(op, g)
    return apply_op("RealDiv", x=spread_g, y=reduced_count(op, spread_g.dtype), name="truediv"), None


@gradient("Max", "Min")
def _max(op: Operation, g: Tensor) -> Any:
    # Several equal extremes share the gradient.
    x, axes = op.inputs
    shape = kept_shape(op)
    extreme = apply_op("Reshape", tensor=op.outputs[0], shape=shape)
    g = apply_op("Reshape", tensor=g, shape=shape)
    chosen = apply_op("Cast", x=apply_op("Equal", x=extreme, y=x), DstT=g.dtype)
    count = apply_op("Reshape", tensor=apply_op("Sum", input=chosen, reduction_indices=axes), shape=shape)
    return chosen / count * g, None


@gradient("Prod")
def _prod(op: Operation, g: Tensor) -> Any:
    # The product of the others, not the product over the entry: that one fails on zeros.
    return spread(op, g) * product_of_others(op), None


@gradient("UnsortedSegmentSum")
def _unsorted_segment_sum(op: Operation, g: Tensor) -> Any:
    # Rows with a negative id were dropped on the way forward and get nothing back.
    data, ids = op.inputs[:2]
    zero = apply_op("ZerosLike", x=ids)
    rows = apply_op("GatherV2", params=g, indices=apply_op("Maximum", x=ids, y=zero), axis=0)
    kept = apply_op("Cast", x=apply_op("GreaterEqual", x=ids, y=zero), DstT=g.dtype)
    # A 1 for each dimension that data has beyond the ids, so that a flag covers its row.
    extra = apply_op("Sub", x=array_ops.rank(data), y=array_ops.rank(ids))
    ones = apply_op("Fill", dims=apply_op("ExpandDims", input=extra, dim=0), value=1)
    kept_shape_of_rows = apply_op("ConcatV2", values=[array_ops.shape(ids), ones], axis=0)
    return rows * apply_op("Reshape", tensor=kept, shape=kept_shape_of_rows), None, None


@gradient("SegmentSum")
def _segment_sum(op: Operation, g: Tensor) -> Any:
    return apply_op("GatherV2", params=g, indices=op.inputs[1], axis=0), None


@gradient("Cumsum")
def _cumsum(op: Operation, g: Tensor) -> Any:
    back = apply_op(
        "Cumsum",
        x=g,
        axis=op.inputs[1],
        exclusive=op.get_attr("exclusive"),
        reverse=not op.get_attr("reverse"),
    )
    return back, None


not_differentiable(
    "All",
    "Any",
    "ArgMax",
    "ArgMin",
    "Bincount",
    why="decisions, indices and counts",
)
not_implemented(
    "Cumprod",
    "EuclideanNorm",
    "SegmentMax",
    "SegmentMean",
    "SegmentMin",
    "SegmentProd",
    "SparseSegmentMean",
    "SparseSegmentMeanGrad",
    "SparseSegmentSqrtN",
    "SparseSegmentSum",
    "UnsortedSegmentMax",
    "UnsortedSegmentMin",
    "UnsortedSegmentProd",
)
