"""The service's own metrics for Prometheus: requests, steps, its process, and the state of registry and sessions at the
moment of the scrape. scrape.py adds those of the tasks and the runs.

One `Metrics` per app, with a registry of its own, so that one process can have several apps (tests do).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tenfold_core.build_info import build_info
from tenfold_core.task_metrics import BUILD_INFO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: From an in-process step to one that takes minutes.
_STEP_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)


class Metrics:
    """All series. `watch` adds a gauge whose samples a function returns at each scrape."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        known = build_info()
        Gauge(BUILD_INFO.name, BUILD_INFO.help, list(known), registry=self._registry).labels(**known).set(1)
        self.requests = Counter(
            "tenfold_control_requests",
            "Requests by route and status.",
            ["method", "route", "status"],
            registry=self._registry,
        )
        self.request_seconds = Histogram(
            "tenfold_control_request_seconds",
            "Time to answer, long-polls included.",
            ["route"],
            registry=self._registry,
        )
        self.step_seconds = Histogram(
            "tenfold_control_step_seconds",
            "Time of a step over REST, by outcome code.",
            ["code"],
            buckets=_STEP_BUCKETS,
            registry=self._registry,
        )
        self.leases_lost = Counter(
            "tenfold_control_tasks_lost", "Times that a task was declared lost.", ["cluster"], registry=self._registry
        )

    def watch(
        self,
        name: str,
        help_text: str,
        labels: tuple[str, ...],
        sample: Callable[[], Iterator[tuple[tuple[str, ...], float]]],
    ) -> None:
        self._registry.register(_Watched(name, help_text, labels, sample))

    def render(self) -> bytes:
        """The text of all series of this service itself."""
        return generate_latest(self._registry)


class _Watched(Collector):
    def __init__(
        self,
        name: str,
        help_text: str,
        labels: tuple[str, ...],
        sample: Callable[[], Iterator[tuple[tuple[str, ...], float]]],
    ) -> None:
        self._name, self._help, self._labels, self._sample = name, help_text, labels, sample

    def collect(self) -> Iterator[Metric]:
        family = GaugeMetricFamily(self._name, self._help, labels=self._labels)
        for labels, value in self._sample():
            family.add_metric(labels, value)
        yield family

    def describe(self) -> Iterator[Metric]:
        yield GaugeMetricFamily(self._name, self._help, labels=self._labels)
