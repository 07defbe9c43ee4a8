"""Gradient rows of segment sums with a given number of segments, and of sparse segment reductions.

Those of SegmentSum and similar ops are in math_reduction.py. Follows TensorFlow's math_grad.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.gradients.registry import gradient
from tenfold.graph.op_builder import apply_op
from tenfold.ops import array as array_ops

if TYPE_CHECKING:
    from tenfold.graph.operation import Operation
    from tenfold.graph.tensor import Tensor


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
