"""`tf.test.Benchmark`: classes whose methods `benchmark…` are run by `--benchmarks=REGEX` and report what they measure.

A report is a dictionary, logged and kept in `Benchmark.reports`; with TEST_REPORT_FILE_PREFIX in the environment each
is a JSON file as well. Follows TF 1.15's platform/benchmark.py, whose files hold a protocol buffer instead.
"""

from __future__ import annotations

import inspect
import json
import os
import re
import statistics
import time
from typing import TYPE_CHECKING, Any, ClassVar

from tenfold import logging
from tenfold.graph import get_default_session
from tenfold_protos import config_pb2

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class Benchmark:
    """Base class of benchmarks; defining a subclass registers it."""

    #: Every benchmark class of the program, and all reports.
    classes: ClassVar[list[type[Benchmark]]] = []
    reports: ClassVar[list[dict[str, Any]]] = []

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        Benchmark.classes.append(cls)

    def report_benchmark(
        self,
        iters: int | None = None,
        cpu_time: float | None = None,
        wall_time: float | None = None,
        throughput: float | None = None,
        extras: Mapping[str, Any] | None = None,
        name: str | None = None,
        metrics: Sequence[Mapping[str, Any]] | None = None,
    ) -> None:
        """Reports seconds, MB/s and the like, under `name` or that of the benchmark's method."""
        given = {
            "iters": iters,
            "cpu_time": cpu_time,
            "wall_time": wall_time,
            "throughput": throughput,
            "extras": dict(extras or {}),
            "metrics": [dict(metric) for metric in metrics or ()],
        }
        full_name = self._full_name(name)
        report = {"name": full_name, **{key: value for key, value in given.items() if value}}
        Benchmark.reports.append(report)
        logging.info("Benchmark [%s] %s", full_name, json.dumps(report, default=str))
        prefix = os.environ.get("TEST_REPORT_FILE_PREFIX")
        if prefix:
            with open(prefix + full_name.replace("/", "__") + ".json", "w", encoding="utf-8") as file:
                json.dump(report, file, default=str)

    def _full_name(self, name: str | None) -> str:
        """`Class.name`; without a name that of the outermost method of this object that is running."""
        if name is None:
            running = [frame.function for frame in inspect.stack() if frame.frame.f_locals.get("self") is self]
            name = running[-1]
        return f"{type(self).__name__}.{name}"

    def run_op_benchmark(
        self,
        sess: Any,
        op_or_tensor: Any,
        feed_dict: Mapping[Any, Any] | None = None,
        burn_iters: int = 2,
        min_iters: int = 10,
        store_trace: bool = False,
        store_memory_usage: bool = True,
        name: str | None = None,
        extras: dict[str, Any] | None = None,
        mbs: float = 0,
    ) -> dict[str, Any]:
        """Runs a step `burn_iters` times, then times `min_iters` runs and reports the median. Returns the report.

        A further step is traced for the trace, or for the bytes that each allocator held at most.
        """
        for _ in range(burn_iters):
            sess.run(op_or_tensor, feed_dict=feed_dict)
        seconds = []
        for _ in range(min_iters):
            began = time.perf_counter()
            sess.run(op_or_tensor, feed_dict=feed_dict)
            seconds.append(time.perf_counter() - began)
        extras = {} if extras is None else extras
        unreported: dict[str, Any] = {}
        if store_trace or store_memory_usage:
            from tenfold.profiler.timeline import Timeline

            metadata = config_pb2.RunMetadata()
            options = config_pb2.RunOptions(trace_level=config_pb2.RunOptions.FULL_TRACE)
            sess.run(op_or_tensor, feed_dict=feed_dict, options=options, run_metadata=metadata)
            timeline = Timeline(metadata.step_stats)
            if store_trace:
                unreported["full_trace_chrome_format"] = timeline.generate_chrome_trace_format()
            if store_memory_usage:
                maximums = timeline.analyze_step_stats(show_memory=True).allocator_maximums
                extras |= {f"allocator_maximum_num_bytes_{k}": most.num_bytes for k, most in maximums.items()}
        median = statistics.median(seconds) if seconds else -1.0
        values: dict[str, Any] = {
            "iters": min_iters,
            "wall_time": median,
            "extras": extras,
            "name": name,
            "throughput": mbs / median,
        }
        self.report_benchmark(**values)
        extras |= unreported
        return values

    def evaluate(self, tensors: Any) -> Any:
        """Values of tensors in the default session. Raises ValueError without one."""
        session = get_default_session()
        if session is None:
            raise ValueError("Benchmark.evaluate needs a default session; use `with tf.Session():`")
        return session.run(tensors)


def benchmark_config() -> config_pb2.ConfigProto:
    """A ConfigProto without the optimizations that would remove a benchmark's repeated ops."""
    config = config_pb2.ConfigProto()
    rewrite = config.graph_options.rewrite_options
    rewrite.dependency_optimization = type(rewrite).OFF
    return config


def run_benchmarks(pattern: str) -> None:
    """Runs every method `benchmark…` whose `module.Class.method` has a match of `pattern`; "all" is every one."""
    for kind in list(Benchmark.classes):
        made: Benchmark | None = None
        for name in dir(kind):
            full = f"{kind.__module__}.{kind.__name__}.{name}"
            if not name.startswith("benchmark") or not callable(getattr(kind, name)):
                continue
            if pattern == "all" or re.search(pattern, full):
                made = made or kind()
                getattr(made, name)()
