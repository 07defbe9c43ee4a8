"""Reductions by segment: sorted, unsorted, and of chosen rows, with their gradients. The work is done by _scatter.py.

Ids are in the GPU's memory and are not checked: rows of an id out of range are dropped, as on TensorFlow's GPUs; sorted
ids that are not sorted are not noticed. A segment is reduced in the order of its rows, a long one in pieces. Where the
number of segments is that of the last id, the host waits for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tenfold_core import dtypes
from tenfold_core.memory_limits import allow
from tenfold_kernels.arrays import invalid, one_number, output_type
from tenfold_kernels.cpu.math_reduction import check_segment_shapes, highest_finite, lowest_finite, segment_count
from tenfold_kernels.cpu.math_segments import check_vectors, dense_rows, numbered_segments
from tenfold_kernels.cuda import _moves
from tenfold_kernels.cuda._runtime import runtime_of
from tenfold_kernels.cuda._scatter import Meeting, scatter, scatter_sorted, share
from tenfold_kernels.cuda._types import ANY_FLOATS, ANY_NUMBERS, INDICES, ON_HOST
from tenfold_kernels.registry import EVERYTHING, Compute, KernelNode, kernel, no_kernel, shared_kernel
from tenfold_kernels.typesets import COMPLEX

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array
    from tenfold_kernels.cuda._arrays import DeviceArray

_ORDERED = ("SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin")
_UNORDERED = ("UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin")
_ANY_INDICES = INDICES | {dtypes.int16}
_NUMBERED = ("SegmentSumV2", "SegmentProdV2", "SegmentMaxV2", "SegmentMinV2")
shared_kernel(*_ORDERED, *_UNORDERED, *_NUMBERED, host=(EVERYTHING,), T=ON_HOST)
no_kernel(
    "SparseSegmentSumGradV2",
    "SparseSegmentMeanGradV2",
    "SparseSegmentSqrtNGradV2",
    device="GPU",
    why="how many rows they give is known when the indices have been looked at",
)


def _expression(op: str) -> str:
    """What a reduction's op reduces by."""
    return next(text for name, text in (("Prod", "Mul"), ("Max", "Maximum"), ("Min", "Minimum"), ("S", "Add"))
                if name in op)  # fmt: skip




@kernel("SegmentMean", device="GPU", replays=False, T=ANY_FLOATS, Tindices=INDICES)
@kernel("SegmentSum", "SegmentProd", "SegmentMax", "SegmentMin", device="GPU", replays=False, T=ANY_NUMBERS,
        Tindices=INDICES)  # fmt: skip
def build_segment(node: KernelNode) -> Compute:
    """Sorted ids; a row for every id up to the last, of zeros (SegmentProd: ones) if no row has it."""
    meeting = Meeting(_expression(node.op), keeps=False, divide="mean" if node.op == "SegmentMean" else "")
    empty = constant(node, float(node.op == "SegmentProd"))

    def compute(data: DeviceArray, ids: DeviceArray) -> DeviceArray:
        check_segment_shapes(data, ids)  # type: ignore[arg-type] # their shapes are all that it reads
        out = filled(data, (rows_of(ids), *data.shape[1:]), empty)
        scatter_sorted(meeting, out, ids, data)
        return out

    return compute


def rows_of(ids: DeviceArray) -> int:
    """One more than the last id, which the host waits for. Raises InvalidArgumentError for a negative one."""
    rows = int(ids.rows(ids.size - 1, ids.size).to_host()[0]) + 1 if ids.size else 0
    if rows < 0 or (ids.size and not rows):
        raise invalid("segment ids must be >= 0")
    return rows


def constant(node: KernelNode, value: float) -> DeviceArray | None:
    """A scalar of the output's type, where it is not 0."""
    return runtime_of(node.device).to_device(np.array(value, output_type(node))) if value != 0 else None


def filled(like: DeviceArray, shape: tuple[int, ...], value: DeviceArray | None = None) -> DeviceArray:
    """A new array of the type of `like`: of zeros, or of `value`."""
    allow(shape, like.dtype)
    out = like.runtime.empty(shape, like.dtype)
    if value is None:
        like.runtime.zero(out)
    else:
        _moves.fill(out, value)
    return out


@kernel(_UNORDERED[0], device="GPU", host=("num_segments",), T=ANY_NUMBERS | COMPLEX, Tindices=_ANY_INDICES)
@kernel(*_UNORDERED[1:], device="GPU", host=("num_segments",), T=ANY_NUMBERS, Tindices=_ANY_INDICES)
@kernel(*_NUMBERED, device="GPU", host=("num_segments",), T=ANY_NUMBERS, Tindices=INDICES)
def build_unsorted_segment(node: KernelNode) -> Compute:
    """Rows of `data` (all leading dimensions that the ids have) reduced by id. An id without rows gives the neutral
    number, which is finite.
    """
    dtype = np.dtype(output_type(node))
    by = _expression(node.op)
    least = {"Maximum": lowest_finite, "Minimum": highest_finite}.get(by)
    meeting, empty = Meeting(by), constant(node, least(dtype) if least is not None else int(by == "Mul"))

    def compute(data: DeviceArray, ids: DeviceArray, num_segments: Array) -> DeviceArray:
        if node.op in _NUMBERED:
            count = numbered_segments(data, ids, num_segments)
        else:
            count = segment_count(data, ids, num_segments)  # type: ignore[arg-type] # as above
        row = data.shape[ids.ndim :]
        out = filled(data, (count, *row), empty)
        scatter(meeting, out, ids.reshape((ids.size,)), data.reshape((ids.size, *row)))
        return out

    return compute


_CHOSEN = ("SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN")


@kernel(*_CHOSEN, device="GPU", replays=False, T=ANY_FLOATS, Tidx=INDICES, Tsegmentids=INDICES)
@kernel(*(f"{op}WithNumSegments" for op in _CHOSEN), device="GPU", host=("num_segments",), T=ANY_FLOATS, Tidx=INDICES,
        Tsegmentids=INDICES)  # fmt: skip
def build_sparse_segment(node: KernelNode) -> Compute:
    """Reduction of data[indices] into so many rows as the last id or `num_segments` says; no rows give zeros. An index
    out of range gives zeros, too.
    """
    divide = "mean" if "Mean" in node.op else "sqrtn" if "SqrtN" in node.op else ""
    meeting = Meeting("Add", keeps=False, divide=divide)

    def compute(
        data: DeviceArray, indices: DeviceArray, ids: DeviceArray, num_segments: Array | None = None
    ) -> DeviceArray:
        check_vectors(indices, ids)  # type: ignore[arg-type] # as above
        if data.ndim < 1:
            raise invalid("Shape must be at least rank 1")
        count = rows_of(ids) if num_segments is None else one_number(num_segments, "num_segments")
        if count < 0:
            raise invalid("segment ids must be >= 0")
        out = filled(data, (count, *data.shape[1:]))
        scatter_sorted(meeting, out, ids, data, indices)
        return out

    return compute


@kernel("SparseSegmentSumGrad", "SparseSegmentMeanGrad", "SparseSegmentSqrtNGrad", device="GPU", host=("output_dim0",),
        T=ANY_FLOATS, Tidx=INDICES, Tsegmentids=INDICES)  # fmt: skip
def build_sparse_segment_gradient(node: KernelNode) -> Compute:
    """(grad, indices, segment_ids, rows) → the gradient of data: each segment's, added at its indices."""
    divide = "mean" if "Mean" in node.op else "sqrtn" if "SqrtN" in node.op else ""
    meeting = Meeting("Add")

    def compute(gradient: DeviceArray, indices: DeviceArray, ids: DeviceArray, rows: Array) -> DeviceArray:
        count = dense_rows("output_dim0", indices, ids, rows)  # type: ignore[arg-type] # as above
        if gradient.ndim < 1:
            raise invalid("Shape must be at least rank 1")
        out = filled(gradient, (count, *gradient.shape[1:]))
        scatter(meeting, out, indices, share(gradient, ids, divide) if divide else gradient, ids)
        return out

    return compute
