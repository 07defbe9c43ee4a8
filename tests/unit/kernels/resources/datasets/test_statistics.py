"""Figures that a pipeline notes of itself: their names, how many there are, and that none are noted unasked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from support.dataset_machines import INT, SCALAR, Called, drained, mapped, numbers
from tenfold_core import dtypes
from tenfold_kernels.cpu.summary import histogram
from tenfold_kernels.resources.datasets import statistics
from tenfold_kernels.resources.datasets.core import Dataset, Run
from tenfold_kernels.resources.datasets.functional import Filter
from tenfold_kernels.resources.datasets.parallel import ParallelMap
from tenfold_kernels.resources.datasets.prefetch import Prefetch
from tenfold_kernels.resources.datasets.sources import Listed
from tenfold_kernels.resources.datasets.statistics import (
    Figures,
    StatsAggregator,
    aggregated,
    bytes_produced,
    figures_of,
    latency,
)
from tenfold_protos import event_pb2, summary_pb2

if TYPE_CHECKING:
    import pytest


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


# -- aggregators and what writes to them -------------------------------------------------------------------------------


class Noted:
    """An aggregator that remembers each call."""

    def __init__(self) -> None:
        self.samples: list[tuple[str, float, int]] = []
        self.scalars: list[tuple[str, float, int]] = []

    def add_to_histogram(self, name: str, value: float, step: int) -> None:
        self.samples.append((name, value, step))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        self.scalars.append((name, value, step))


class Written:
    """A summary writer that remembers its events."""

    def __init__(self) -> None:
        self.events: list[event_pb2.Event] = []

    def add(self, event: bytes) -> None:
        self.events.append(event_pb2.Event.FromString(event))


def over(dataset: Dataset, prefix: str = "") -> Noted:
    noted = Noted()
    drained(aggregated(dataset, noted, prefix))  # type: ignore[arg-type]
    return noted


def test_figures_are_numbered() -> None:
    noted = Noted()
    figures = Figures(noted, "it")
    figures.sample("a", 1.5)
    figures.scalar("b", 2.5)
    figures.sample("a", 3.5)
    assert noted.samples == [("it::a", 1.5, 1), ("it::a", 3.5, 3)]
    assert noted.scalars == [("it::b", 2.5, 2)]


def test_bytes_of_elements_are_noted() -> None:
    texts = np.array([b"abc", b"", b"de"], object)
    dataset = Listed((*INT, dtypes.string), SCALAR * 2, [(np.zeros((2, 3)), texts), (np.zeros(1, np.int8), texts[:1])])
    assert over(bytes_produced(dataset, "size")).samples == [("size", 53, 0), ("size", 4, 1)]
    assert over(bytes_produced(dataset, "size"), "mine").samples[1] == ("mine::size", 4, 1)


def test_the_time_of_each_element_is_noted_in_microseconds(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([1.0, 1.25, 2.0, 2.5, 3.0])
    monkeypatch.setattr(statistics.time, "perf_counter", lambda: next(now))
    machine = aggregated(latency(numbers(2), "late"), noted := Noted(), "").iterate(Run())  # type: ignore[arg-type]
    for _ in range(3):
        machine()
    assert noted.samples == [("late", 250_000, 0), ("late", 500_000, 1)], "the end is no element"


def test_without_an_aggregator_nothing_is_noted() -> None:
    dataset = bytes_produced(latency(numbers(3), "late"), "size")
    assert drained(dataset) == [0, 1, 2]
    assert dataset.cardinality() == 3
    machine, other = dataset.iterate(Run()), dataset.iterate(Run())
    machine()
    other.restore(machine.save())
    assert drained(other) == [1, 2]
    assert figures_of(Run(), dataset, "Kind") is None


def test_an_aggregator_of_one_pass_is_of_its_input_too() -> None:
    dataset = aggregated(numbers(3), Noted(), "mine")  # type: ignore[arg-type]
    assert dataset.cardinality() == 3
    run = Run()
    assert dataset.at(1, run)[0] == 1
    assert run.statistics_tag == "mine"


def test_an_aggregator_keeps_figures_until_its_summary() -> None:
    aggregator = StatsAggregator(False, histogram)
    aggregator.write_to(written := Written())  # type: ignore[arg-type]
    aggregator.add_to_histogram("h", 2.0, 1)
    aggregator.add_to_histogram("h", 4.0, 2)
    aggregator.add_scalar("s", 5.0, 3)
    aggregator.add_scalar("s", 6.0, 4)
    for _ in range(2):
        found, single = aggregator.summary().value
        assert (found.tag, found.histo.num, found.histo.sum) == ("h", 2, 6)
        assert (single.tag, single.simple_value) == ("s", 6)
    assert written.events == []


def test_an_aggregator_that_pushes_writes_each_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(statistics.time, "time", lambda: 7.0)
    aggregator = StatsAggregator(True, histogram)
    aggregator.add_scalar("s", 4.0, 1)
    aggregator.write_to(written := Written())  # type: ignore[arg-type]
    aggregator.add_scalar("s", 5.0, 2)
    for value, step in ((2.0, 3), (4.0, 4)):
        aggregator.add_to_histogram("h", value, step)
    assert aggregator.summary() == summary_pb2.Summary()
    assert [(event.step, event.wall_time) for event in written.events] == [(2, 7), (3, 7), (4, 7)]
    (scalar,), (first,), (second,) = (event.summary.value for event in written.events)
    assert (scalar.tag, scalar.simple_value) == ("s", 5)
    assert (first.tag, first.histo.num, second.histo.num, second.histo.sum) == ("h", 1, 2, 6)


def test_a_histogram_is_of_the_latest_values(monkeypatch: pytest.MonkeyPatch) -> None:
    assert statistics._KEPT == 65536
    monkeypatch.setattr(statistics, "_KEPT", 4)
    aggregator = StatsAggregator(False, histogram)
    for value in range(1, 6):
        assert [each.histo.num for each in aggregator.summary().value] == [value - 1] * (value > 1)
        aggregator.add_to_histogram("h", value, value)
    (found,) = aggregator.summary().value
    assert (found.histo.num, found.histo.min, found.histo.max) == (3, 3, 5), "half of them went"
