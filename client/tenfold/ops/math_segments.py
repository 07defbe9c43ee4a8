"""Means over segments in any order; the sums are in ops/math.py. Node names follow TensorFlow 1.15."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold.graph.conversion import convert_to_tensor
from tenfold.graph.default_scopes import name_scope
from tenfold.ops import array, math

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


def _segment_counts(segment_ids: Any, num_segments: Any, like: Tensor) -> Tensor:
    """How many slices each segment has, at least 1, shaped to divide sums of slices of `like`."""
    segment_ids = convert_to_tensor(segment_ids)
    ones = array.ones(array.shape(segment_ids), like.dtype.base_dtype)
    counts = math.unsorted_segment_sum(array.reshape(ones, [-1]), array.reshape(segment_ids, [-1]), num_segments)
    extra = array.rank(like) - array.rank(segment_ids)
    view = array.concat([array.reshape(num_segments, [1]), array.fill(array.reshape(extra, [1]), 1)], 0)
    return math.maximum(array.reshape(counts, view), array.constant(1, counts.dtype))


def unsorted_segment_mean(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The mean of the slices of `data` that have the same segment id."""
    with name_scope(name, "UnsortedSegmentMean"):
        data = convert_to_tensor(data)
        size = convert_to_tensor(num_segments)
        summed = math.unsorted_segment_sum(data, segment_ids, size)
        return summed / _segment_counts(segment_ids, size, data)


def unsorted_segment_sqrt_n(data: Any, segment_ids: Any, num_segments: Any, name: str | None = None) -> Tensor:
    """The sum of the slices of `data` that have the same segment id, over the square root of their number."""
    with name_scope(name, "UnsortedSegmentSqrtN"):
        data = convert_to_tensor(data)
        size = convert_to_tensor(num_segments)
        summed = math.unsorted_segment_sum(data, segment_ids, size)
        return summed / math.sqrt(_segment_counts(segment_ids, size, data))
