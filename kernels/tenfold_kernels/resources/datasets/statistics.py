"""What a pipeline tells of itself: datasets that note figures with an aggregator, and the aggregators.

One of the first kind keeps them until its summary is asked for, one of the second writes each to a summary writer.
Used by cpu/dataset_statistics.py. Follows stats_aggregator_ops.cc and stats_dataset_ops.cc.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_kernels.resources.datasets.core import Aggregator, Dataset, Element, Machine, Run, Same, SetUp
from tenfold_protos import event_pb2, summary_pb2

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold_kernels.resources.summary_writers import SummaryWriter

#: Values of one name that a histogram is made of, the latest ones.
_KEPT = 1 << 16


class StatsAggregator:
    """Thread-safe. `pushes`: figures go to the writer that it was given; without one they are dropped."""

    def __init__(self, pushes: bool, histogram: Callable[[Any], Any]) -> None:
        """`histogram` makes a HistogramProto of values."""
        self._pushes, self._histogram = pushes, histogram
        self._lock = threading.Lock()
        self._values: dict[str, list[float]] = {}
        self._scalars: dict[str, float] = {}
        self._writer: SummaryWriter | None = None

    def write_to(self, writer: SummaryWriter) -> None:
        with self._lock:
            if self._pushes:
                self._writer = writer

    def add_to_histogram(self, name: str, value: float, step: int) -> None:
        with self._lock:
            values = self._values.setdefault(name, [])
            values.append(value)
            if len(values) > _KEPT:
                del values[: _KEPT // 2]
            writer, seen = self._writer, list(values) if self._writer is not None else []
        if writer is not None:
            self._write(writer, step, summary_pb2.Summary.Value(tag=name, histo=self._histogram(np.array(seen))))

    def add_scalar(self, name: str, value: float, step: int) -> None:
        with self._lock:
            self._scalars[name] = value
            writer = self._writer
        if writer is not None:
            self._write(writer, step, summary_pb2.Summary.Value(tag=name, simple_value=value))

    def _write(self, writer: SummaryWriter, step: int, value: summary_pb2.Summary.Value) -> None:
        event = event_pb2.Event(wall_time=time.time(), step=step, summary=summary_pb2.Summary(value=[value]))
        writer.add(event.SerializeToString())

    def summary(self) -> summary_pb2.Summary:
        """All figures so far; nothing for one that pushes them."""
        summary = summary_pb2.Summary()
        if self._pushes:
            return summary
        with self._lock:
            values = {name: np.array(held) for name, held in self._values.items()}
            scalars = dict(self._scalars)
        for name, held in values.items():
            summary.value.add(tag=name, histo=self._histogram(held))
        for name, scalar in scalars.items():
            summary.value.add(tag=name, simple_value=scalar)
        return summary


class Figures:
    """What one pass over a dataset notes of itself."""

    def __init__(self, aggregator: Aggregator, name: str) -> None:
        self._aggregator, self._name = aggregator, name
        self._count = 0

    def sample(self, name: str, value: float) -> None:
        self._count += 1
        self._aggregator.add_to_histogram(f"{self._name}::{name}", value, self._count)

    def scalar(self, name: str, value: float) -> None:
        self._count += 1
        self._aggregator.add_scalar(f"{self._name}::{name}", value, self._count)


def figures_of(run: Run, dataset: Dataset, kind: str) -> Figures | None:
    """None where nobody collects them. `kind` is TensorFlow's name of the dataset."""
    if run.aggregator is None:
        return None
    name = f"{kind}/_{dataset.node_number}"
    return Figures(run.aggregator, f"{run.statistics_tag}::{name}" if run.statistics_tag else name)


def aggregated(dataset: Dataset, aggregator: StatsAggregator, tag: str) -> Dataset:
    """The input, whose figures go to the aggregator: each name with `tag` and "::" before it."""

    def set_up(run: Run) -> None:
        run.aggregator, run.statistics_tag = aggregator, tag

    return SetUp(dataset, set_up)


class _Noting(Same):
    """The input; a figure of each element, and of the seconds that it took, is noted."""

    def __init__(self, dataset: Dataset, tag: str, figure: Callable[[Element, float], float]) -> None:
        super().__init__(dataset)
        self._tag, self._figure = tag, figure

    def iterate(self, run: Run) -> Machine:
        source, count = self.input.iterate(run), 0

        def following() -> Element | None:
            nonlocal count
            begin = time.perf_counter()
            element = source.following()
            if element is not None and run.aggregator is not None:
                name = f"{run.statistics_tag}::{self._tag}" if run.statistics_tag else self._tag
                run.aggregator.add_to_histogram(name, self._figure(element, time.perf_counter() - begin), count)
                count += 1
            return element

        return Machine(following, source.save, source.restore)


def bytes_produced(dataset: Dataset, tag: str) -> Dataset:
    """The input; the bytes of each element are noted."""
    return _Noting(dataset, tag, lambda element, seconds: float(_bytes(element)))


def latency(dataset: Dataset, tag: str) -> Dataset:
    """The input; the microseconds that each element took are noted."""
    return _Noting(dataset, tag, lambda element, seconds: seconds * 1e6)


def _bytes(element: Element) -> int:
    """What its tensors take: a string as many bytes as it has, and its place."""
    total = 0
    for array in element:
        total += array.nbytes if array.dtype != object else sum(len(item) for item in array.flat)
    return total
