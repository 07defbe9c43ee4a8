"""Gradient rows of reductions, running sums and segment sums; definitions in tenfold_core/opdefs/math.py.

reduction.py has the shape arithmetic. The rest of the family is in math.py and math_unary.py.
Follows TensorFlow's ops/math_grad.py; `g` is the gradient of the output.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.reduction import kept_shape, product_of_others, reduced_count, spread
from tenfold.gradients.registry import gradient, not_differentiable, not_implemented
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops
from tenfold_core import dtypes

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
    # Equal extremes share the gradient evenly.
    x, axes = op.inputs
    shape = kept_shape(op)
    extreme = apply_op("Reshape", tensor=op.outputs[0], shape=shape)
    g = apply_op("Reshape", tensor=g, shape=shape)
    chosen = apply_op("Cast", x=apply_op("Equal", x=extreme, y=x), DstT=g.dtype)
    count = apply_op("Reshape", tensor=apply_op("Sum", input=chosen, reduction_indices=axes), shape=shape)
    return chosen / count * g, None


@gradient("Prod", holomorphic=True)
def _prod(op: Operation, g: Tensor) -> Any:
    # The product of the other entries. Dividing the product by the entry would fail for zeros.
    return spread(op, g) * product_of_others(op), None


@gradient("UnsortedSegmentSum")
def _unsorted_segment_sum(op: Operation, g: Tensor) -> Any:
    # The op dropped rows with a negative id, so their gradient is zero.
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


@gradient("Cumprod", holomorphic=True)
def _cumprod(op: Operation, g: Tensor) -> Any:
    # The slope of an element is the sum of the products that have it, each divided by it. The first zero of a row has
    # the products in which it counts as one; behind it all products, and so all slopes, are zero.
    x, axis = op.inputs
    exclusive, reverse = op.get_attr("exclusive"), op.get_attr("reverse")

    def product(values: Tensor) -> Any:
        return apply_op("Cumprod", x=values, axis=axis, exclusive=exclusive, reverse=reverse)

    def total(values: Tensor, backwards: bool) -> Any:
        return apply_op("Cumsum", x=values, axis=axis, exclusive=exclusive and backwards, reverse=reverse != backwards)

    zeros, ones = apply_op("ZerosLike", x=x), apply_op("OnesLike", x=x)
    is_zero = apply_op("Equal", x=x, y=zeros)
    counts = total(apply_op("Cast", x=is_zero, DstT=dtypes.int32), backwards=False)
    is_first = apply_op("LogicalAnd", x=is_zero, y=apply_op("Equal", x=counts, y=array_ops.ones_like(counts)))
    filled = apply_op("SelectV2", condition=is_first, t=ones, e=x)
    of_first = total(product(filled) * g, backwards=True)
    of_others = total(product(x) * g, backwards=True) / apply_op("SelectV2", condition=is_zero, t=ones, e=x)
    other = apply_op("SelectV2", condition=is_zero, t=zeros, e=of_others)
    return apply_op("SelectV2", condition=is_first, t=of_first, e=other), None


@gradient("CumulativeLogsumexp")
def _cumulative_logsumexp(op: Operation, g: Tensor) -> Any:
    # The sum of g · exp(x − out) over the sums with an element, by logarithms: g is taken apart by its sign.
    x, axis = op.inputs
    lowest = array_ops.fill(array_ops.shape(g), array_ops.constant(g.dtype.min, g.dtype.base_dtype))
    nothing = apply_op("ZerosLike", x=g)
    parts = []
    for part in (g, apply_op("Neg", x=g)):
        is_more = apply_op("Greater", x=part, y=nothing)
        safe = apply_op("SelectV2", condition=is_more, t=part, e=apply_op("OnesLike", x=g))
        logarithm = apply_op("SelectV2", condition=is_more, t=apply_op("Log", x=safe), e=lowest)
        back = apply_op("CumulativeLogsumexp", x=logarithm - op.outputs[0], axis=axis,
                        exclusive=op.get_attr("exclusive"), reverse=not op.get_attr("reverse"))  # fmt: skip
        parts.append(apply_op("Exp", x=back + x))
    return parts[0] - parts[1], None


@gradient("EuclideanNorm")
def _euclidean_norm(op: Operation, g: Tensor) -> Any:
    shape = kept_shape(op)
    norm = apply_op("Reshape", tensor=op.outputs[0], shape=shape)
    return op.inputs[0] * (apply_op("Reshape", tensor=g, shape=shape) / norm), None


def _flagged(values: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
    """The segment's value for each slice, and False where the id is negative: such slices were dropped."""
    zero = apply_op("ZerosLike", x=ids)
    gathered = apply_op("GatherV2", params=values, indices=apply_op("Maximum", x=ids, y=zero), axis=0)
    kept = apply_op("GreaterEqual", x=ids, y=zero)
    extra = apply_op("Sub", x=array_ops.rank(gathered), y=array_ops.rank(ids))
    ones = apply_op("Fill", dims=apply_op("ExpandDims", input=extra, dim=0), value=1)
    view = apply_op("ConcatV2", values=[array_ops.shape(ids), ones], axis=0)
    everywhere = apply_op("OnesLike", x=apply_op("Equal", x=gathered, y=gathered))
    return gathered, apply_op("LogicalAnd", x=apply_op("Reshape", tensor=kept, shape=view), y=everywhere)


@gradient("SegmentMean")
def _segment_mean(op: Operation, g: Tensor) -> Any:
    data, ids = op.inputs
    ones = apply_op("Fill", dims=apply_op("ExpandDims", input=array_ops.rank(data) - 1, dim=0), value=1)
    view = apply_op("ConcatV2", values=[array_ops.shape(ids), ones], axis=0)
    counts = apply_op("SegmentSum", data=array_ops.ones(view, g.dtype.base_dtype), segment_ids=ids)
    return apply_op("GatherV2", params=g / counts, indices=ids, axis=0), None


@gradient("SegmentProd")
def _segment_prod(op: Operation, g: Tensor) -> Any:
    # As for UnsortedSegmentProd: with one zero in a segment only the zero's derivative is not zero.
    data, ids = op.inputs
    is_zero = apply_op("Equal", x=data, y=apply_op("ZerosLike", x=data))
    zeros_each = apply_op("SegmentSum", data=apply_op("Cast", x=is_zero, DstT=dtypes.int32), segment_ids=ids)
    many = apply_op("Greater", x=zeros_each, y=array_ops.ones_like(zeros_each))
    g = apply_op("SelectV2", condition=many, t=apply_op("ZerosLike", x=g), e=g)
    filled = apply_op("SelectV2", condition=is_zero, t=apply_op("OnesLike", x=data), e=data)
    of_zeros, products, back = (
        apply_op("GatherV2", params=rows, indices=ids, axis=0)
        for rows in (apply_op("SegmentProd", data=filled, segment_ids=ids), op.outputs[0], g)
    )
    return back * apply_op("SelectV2", condition=is_zero, t=of_zeros, e=products / filled), None


@gradient("SegmentMax", "SegmentMin")
def _segment_extreme(op: Operation, g: Tensor) -> Any:
    # Equal extremes share the gradient evenly.
    data, ids = op.inputs
    chosen = apply_op("Equal", x=data, y=apply_op("GatherV2", params=op.outputs[0], indices=ids, axis=0))
    counts = apply_op("SegmentSum", data=apply_op("Cast", x=chosen, DstT=g.dtype), segment_ids=ids)
    share = apply_op("GatherV2", params=g / counts, indices=ids, axis=0)
    return apply_op("SelectV2", condition=chosen, t=share, e=apply_op("ZerosLike", x=share)), None


@gradient("UnsortedSegmentMax", "UnsortedSegmentMin")
def _unsorted_segment_extreme(op: Operation, g: Tensor) -> Any:
    data, ids, count = op.inputs
    extreme, kept = _flagged(op.outputs[0], ids)
    chosen = apply_op("LogicalAnd", x=apply_op("Equal", x=data, y=extreme), y=kept)
    ones = apply_op("Cast", x=chosen, DstT=g.dtype)
    sharing = apply_op("UnsortedSegmentSum", data=ones, segment_ids=ids, num_segments=count)
    share = _flagged(g / sharing, ids)[0]
    return apply_op("SelectV2", condition=chosen, t=share, e=apply_op("ZerosLike", x=share)), None, None


@gradient("UnsortedSegmentProd")
def _unsorted_segment_prod(op: Operation, g: Tensor) -> Any:
    # An entry's derivative is the product of the others; with one zero, only the zero's derivative is not zero.
    data, ids, count = op.inputs
    zero = apply_op("ZerosLike", x=data)
    is_zero = apply_op("Equal", x=data, y=zero)
    ones = apply_op("Cast", x=is_zero, DstT=g.dtype)
    zeros_each = apply_op("UnsortedSegmentSum", data=ones, segment_ids=ids, num_segments=count)
    g = apply_op("SelectV2", condition=apply_op("Greater", x=zeros_each, y=array_ops.ones_like(zeros_each)),
                 t=apply_op("ZerosLike", x=g), e=g)  # fmt: skip
    filled = apply_op("SelectV2", condition=is_zero, t=apply_op("OnesLike", x=data), e=data)
    others = apply_op("UnsortedSegmentProd", data=filled, segment_ids=ids, num_segments=count)
    product, kept = _flagged(op.outputs[0], ids)
    partial = apply_op("SelectV2", condition=is_zero, t=_flagged(others, ids)[0], e=product / filled)
    result = _flagged(g, ids)[0] * partial
    return apply_op("SelectV2", condition=kept, t=result, e=apply_op("ZerosLike", x=result)), None, None


not_differentiable(
    "All",
    "Any",
    "ArgMax",
    "ArgMin",
    "Bincount",
    why="decisions, indices and counts",
)
not_implemented("SparseSegmentMeanGrad")
