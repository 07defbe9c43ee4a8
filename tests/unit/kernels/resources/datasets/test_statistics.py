"""Figures that a pipeline notes of itself: their names, how many there are, and that none are noted unasked."""

from __future__ import annotations

from typing import Any

import numpy as np

from support.dataset_machines import INT, SCALAR, Called, drained, mapped, numbers
from tenfold_kernels.cpu.summary import histogram
from tenfold_kernels.resources.datasets.core import Dataset, Run
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.statistics import StatsAggregator, aggregated, latency


def figures(dataset: Dataset, prefix: str = "") -> dict[str, Any]:
    """Name → the last value, or the number of samples."""
    aggregator = StatsAggregator(False, histogram)
    drained(aggregated(dataset, aggregator, prefix).iterate(Run()))
    return {
        value.tag: value.histo.num if value.HasField("histo") else value.simple_value
        for value in aggregator.summary().value
    }


def test_a_filter_counts_what_it_keeps_and_drops() -> None:
    found = figures(Filter(numbers(10), Called(lambda n: n % 3 == 0), ()))
    assert found == {"FilterDataset/_4::filtered_elements": 4, "FilterDataset/_4::dropped_elements": 6}


def test_buffers_are_told_apart_by_their_numbers() -> None:
    inner = Filter(Prefetch(numbers(6), 2), Called(lambda n: np.array(True)), ())
    found = figures(Prefetch(inner, 1), "mine")
    assert found["mine::PrefetchDataset/_5::buffer_capacity"] == 2
    assert found["mine::PrefetchDataset/_8::buffer_capacity"] == 1
    assert found["mine::PrefetchDataset/_8::buffer_utilization"] == 6, "the end is no element"


def test_calls_are_timed() -> None:
    found = figures(ParallelMap(INT, SCALAR, numbers(5), Called(lambda n: n * 2), (), True, 2, True))
    assert found["ParallelMapDataset/_4::execution_time"] == 5
    assert "ParallelMapDataset/_4::thread_utilization" in found


def test_a_prefix_stands_before_the_tag() -> None:
    assert figures(latency(mapped(numbers(3), lambda n: n), "late"), "mine") == {"mine::late": 3}
