"""`tf.data.experimental.StatsAggregator`: collects figures about pipelines, read as a summary.

Datasets send to it what `latency_stats`, `bytes_produced_stats` and `StatsOptions` ask for. Follows TensorFlow 1.15's
data/experimental/ops/stats_aggregator.py.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold.graph.op_builder import tensor_op

if TYPE_CHECKING:
    from tenfold.graph.tensor import Tensor


class StatsAggregator:
    """The figures of the datasets whose options name it."""

    def __init__(self) -> None:
        self._resource = tensor_op("StatsAggregatorHandle")

    def get_summary(self) -> Tensor:
        """A scalar string, a serialized Summary of all figures so far."""
        return tensor_op("StatsAggregatorSummary", iterator=self._resource)
