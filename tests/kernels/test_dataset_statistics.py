"""Figures of pipelines by their ops: aggregators that keep them, and those that write them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from support.dataset_machines import ANY, drained, numbers
from support.dataset_ops import DatasetSteps, refused
from tenfold_core import dtypes
from tenfold_kernels.resources.datasets.core import Run
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.sources import Listed
from tenfold_kernels.resources.datasets.statistics import StatsAggregator
from tenfold_kernels.resources.handles import LocalHandle
from tenfold_kernels.resources.summary_writers import SummaryWriter
from tenfold_protos import event_pb2, summary_pb2

if TYPE_CHECKING:
    from tenfold_kernels.resources.datasets.core import Dataset

HANDLES = ["StatsAggregatorHandle", "ExperimentalStatsAggregatorHandle", "StatsAggregatorHandleV2"]


@pytest.fixture
def steps() -> DatasetSteps:
    return DatasetSteps()


def run_through(steps: DatasetSteps, dataset: Dataset, handle: Any, tag: str = "", op: str = "") -> Any:
    made = steps.dataset(op or "SetStatsAggregatorDataset", dataset, handle, tag, "prefix")
    run = Run()
    drained(made.iterate(run))
    return run


@pytest.mark.parametrize("op", HANDLES)
def test_an_aggregator_is_shared_by_its_name(steps: DatasetSteps, op: str) -> None:
    first, second, other = (steps(op, name=name, shared_name=shared) for name, shared in ("ax", "bx", "ay"))
    assert isinstance(first.item().resource, StatsAggregator)
    assert first.item().resource is second.item().resource
    assert first.item().resource is not other.item().resource


@pytest.mark.parametrize("op", HANDLES[:2])
@pytest.mark.parametrize("prefix", ["", "Experimental"])
def test_figures_are_kept_until_they_are_asked_for(steps: DatasetSteps, op: str, prefix: str) -> None:
    handle = steps(op)
    texts = Listed((dtypes.string,), ANY, [(np.array([b"abc", b"d"], object),)] * 2)
    sized = steps.dataset(f"{prefix}BytesProducedStatsDataset", texts, "size")
    late = steps.dataset(f"{prefix}LatencyStatsDataset", sized, "late")
    run_through(steps, late, handle, op=f"{prefix}SetStatsAggregatorDataset")
    found = steps(f"{prefix}StatsAggregatorSummary", handle)
    assert found.shape == ()
    values = {each.tag: each.histo for each in summary_pb2.Summary.FromString(found.item()).value}
    assert sorted(values) == ["late", "size"]
    assert (values["size"].num, values["size"].sum) == (2, 8)
    assert values["late"].num == 2
    assert 0 <= values["late"].min <= values["late"].max < 60e6, "microseconds"


@pytest.mark.parametrize(("tag", "before"), [("mine", "mine::"), ("", "")])
def test_a_tag_stands_before_the_names(steps: DatasetSteps, tag: str, before: str) -> None:
    handle = steps("StatsAggregatorHandle")
    run = run_through(steps, Prefetch(numbers(3), 2), handle, tag)
    assert (run.statistics_tag, run.aggregator is handle.item().resource) == (tag, True)
    summary = summary_pb2.Summary.FromString(steps("StatsAggregatorSummary", handle).item())
    assert f"{before}PrefetchDataset/_5::buffer_size" in [each.tag for each in summary.value]


class Written(SummaryWriter):
    """Remembers its events."""

    def __init__(self) -> None:
        super().__init__("written")
        self.events: list[Any] = []

    def add(self, event: bytes) -> None:
        self.events.append(event_pb2.Event.FromString(event))


@pytest.mark.parametrize(("op", "pushes"), [("StatsAggregatorHandle", False), ("StatsAggregatorHandleV2", True)])
def test_figures_go_to_a_writer(steps: DatasetSteps, op: str, pushes: bool) -> None:
    handle, writer = steps(op), Written()
    device = handle.item().device
    assert (
        steps("StatsAggregatorSetSummaryWriter", handle, LocalHandle(device, "", "w", 0, "", writer).as_array()) is None
    )
    run_through(steps, steps.dataset("LatencyStatsDataset", numbers(3), "late"), handle)
    assert [event.summary.value[0].tag for event in writer.events] == ["late"] * 3 * pushes
    summary = summary_pb2.Summary.FromString(steps("StatsAggregatorSummary", handle).item())
    assert len(summary.value) == (not pushes)


def test_what_is_refused(steps: DatasetSteps) -> None:
    handle, words = steps("StatsAggregatorHandle"), np.array([b"x"], object)
    for op in ("BytesProducedStatsDataset", "LatencyStatsDataset"):
        with refused("^tag must be a scalar"):
            steps(op, numbers(3), words)
    with refused("^tag must be a scalar"):
        steps("SetStatsAggregatorDataset", numbers(3), handle, words, "")
    cache, _ = steps("AnonymousMemoryCache")
    with refused("using the wrong type"):
        steps("SetStatsAggregatorDataset", numbers(3), cache, "", "")
    with refused("using the wrong type"):
        steps("StatsAggregatorSummary", cache)
    for pair in ((cache, handle), (handle, cache)):
        with refused("using the wrong type"):
            steps("StatsAggregatorSetSummaryWriter", *pair)
