"""What a histogram of a summary comes to in a few numbers, for who draws it over time. Pure. Used by file_writer.py."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tenfold_protos.histogram_pb2 import HistogramProto


@dataclass(frozen=True, slots=True)
class Distribution:
    """The values of a tensor: percentiles, and the square root of the sum of their squares."""

    lowest: float
    p5: float
    median: float
    p95: float
    highest: float
    norm: float


def distribution_of(histogram: HistogramProto) -> Distribution | None:
    """Percentiles are as exact as the buckets are narrow. None for a histogram without values."""
    if not histogram.num > 0 or len(histogram.bucket) != len(histogram.bucket_limit):
        return None
    low, middle, high = (_percentile(histogram, share) for share in (0.05, 0.5, 0.95))
    return Distribution(histogram.min, low, middle, high, histogram.max, math.sqrt(max(histogram.sum_squares, 0.0)))


def _percentile(histogram: HistogramProto, share: float) -> float:
    """The value below which `share` of the values are, taken to be spread evenly within their bucket."""
    first: float = histogram.min
    last: float = histogram.max
    wanted, below = share * sum(histogram.bucket), 0.0
    edges = pairwise((first, *histogram.bucket_limit))
    for (left, right), count in zip(edges, histogram.bucket, strict=True):
        if count > 0 and below + count >= wanted:
            found = left + (right - left) * (wanted - below) / count
            return min(max(found, first), last)
        below += count
    return last
