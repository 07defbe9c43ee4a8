"""Ops of what pipelines tell of themselves: aggregators, and the datasets that note figures with them.

The machines are datasets/statistics.py. Follows stats_aggregator_ops.cc, stats_dataset_ops.cc.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_kernels.cpu.dataset_sources import text
from tenfold_kernels.cpu.summary import histogram, serialized
from tenfold_kernels.registry import Compute, KernelNode, kernel
from tenfold_kernels.resources.datasets.core import dataset_of
from tenfold_kernels.resources.datasets.statistics import StatsAggregator, aggregated, bytes_produced, latency
from tenfold_kernels.resources.handles import resource_of, shared_resource
from tenfold_kernels.resources.summary_writers import SummaryWriter

if TYPE_CHECKING:
    from tenfold_kernels.arrays import Array


@kernel("StatsAggregatorHandle", "StatsAggregatorHandleV2", "ExperimentalStatsAggregatorHandle")
def build_handle(node: KernelNode) -> Compute:
    pushes = node.op == "StatsAggregatorHandleV2"
    return shared_resource(node, StatsAggregator, lambda name: StatsAggregator(pushes, histogram))


@kernel("StatsAggregatorSummary", "ExperimentalStatsAggregatorSummary")
def build_summary(node: KernelNode) -> Compute:
    """All figures so far, as a serialized Summary."""
    return lambda handle: serialized(resource_of(node, handle, StatsAggregator).summary())


@kernel("StatsAggregatorSetSummaryWriter")
def build_set_summary_writer(node: KernelNode) -> Compute:
    def compute(handle: Any, writer: Any) -> None:
        resource_of(node, handle, StatsAggregator).write_to(resource_of(node, writer, SummaryWriter))

    return compute


@kernel("SetStatsAggregatorDataset", "ExperimentalSetStatsAggregatorDataset")
def build_set_aggregator(node: KernelNode) -> Compute:
    def compute(dataset: Array, handle: Any, tag: Array, prefix: Array) -> Any:
        aggregator = resource_of(node, handle, StatsAggregator)
        return aggregated(dataset_of(dataset), aggregator, text(tag, "tag")).as_array()

    return compute


@kernel("BytesProducedStatsDataset", "ExperimentalBytesProducedStatsDataset")
def build_bytes_produced(node: KernelNode) -> Compute:
    return lambda dataset, tag: bytes_produced(dataset_of(dataset), text(tag, "tag")).as_array()


@kernel("LatencyStatsDataset", "ExperimentalLatencyStatsDataset")
def build_latency(node: KernelNode) -> Compute:
    return lambda dataset, tag: latency(dataset_of(dataset), text(tag, "tag")).as_array()
