"""Where a step's time goes on Tenfold: kernels by op, Python by function, page faults. `programs.py --profile PROGRAM`,
and recommenders.py likewise.

The plain time comes first, from steps without any tracing; the kernels' times come from traced steps, Python's
functions from steps under cProfile. Both slow the step down: read them as shares.
"""

from __future__ import annotations

import cProfile
import pstats
import resource
import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    from models import Model

#: Traced steps, and lines shown of each table.
TRACED, LINES = 10, 25


def main(build: Callable[[Any], Model], seconds: float) -> None:
    """Prints the tables of the program that `build` adds to the default graph, run in this process."""
    import tenfold as tf

    server = tf.train.Server.create_local_server()
    graph = tf.Graph()
    with graph.as_default():
        model = build(tf)
        init = tf.global_variables_initializer()
    started = time.perf_counter()
    with tf.Session(server.target, graph=graph) as sess:
        sess.run(init)
        print(f"variables initialized after {time.perf_counter() - started:.3f} s")
        model.step(sess.run, 0)
        print(f"first step done after {time.perf_counter() - started:.3f} s")
        _timed(model, sess.run, seconds / 2)
        _kernels(tf, model, sess)
        _functions(model, sess.run, seconds / 2)


def _timed(model: Model, run: Any, seconds: float) -> None:
    number, deadline = 0, time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        model.step(run, number)
        number += 1
    taken, before, busy = [], resource.getrusage(resource.RUSAGE_SELF).ru_minflt, time.process_time()
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        start = time.perf_counter()
        model.step(run, number)
        taken.append(time.perf_counter() - start)
        number += 1
    faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
    cpu = time.process_time() - busy
    middle = sorted(taken)[len(taken) // 2]
    print(
        f"{len(taken)} steps: p50 {1e3 * middle:.3f} ms, {1e3 * cpu / len(taken):.3f} ms of processor time and "
        f"{faults / len(taken):.1f} page faults a step"
    )


def _kernels(tf: Any, model: Model, sess: Any) -> None:
    """The time of kernels by op over traced steps, from the step's own statistics."""
    options = tf.RunOptions(trace_level=tf.RunOptions.FULL_TRACE)
    kernels = Kernels(sess.graph)

    def run(*arguments: Any) -> Any:
        metadata = tf.RunMetadata()
        values = sess.run(*arguments, options=options, run_metadata=metadata)
        kernels.add(metadata.step_stats)
        return values

    for number in range(TRACED):
        model.step(run, number)
    kernels.show(TRACED)


class Kernels:
    """What the kernels of traced steps took, by op and by node."""

    def __init__(self, graph: Any) -> None:
        self._ops = {node.name: node.op for node in graph.as_graph_def().node}
        self._spent: dict[str, float] = defaultdict(float)
        self._calls: dict[str, int] = defaultdict(int)
        self._slowest: dict[str, float] = defaultdict(float)

    def add(self, step_stats: Any) -> None:
        for device in step_stats.dev_stats:
            for node in device.node_stats:
                took = node.op_end_rel_micros - node.op_start_rel_micros
                op = self._ops.get(node.node_name, node.node_name.partition("(")[0])
                self._spent[op] += took
                self._calls[op] += 1
                self._slowest[f"{op:24} {node.node_name}"] += took

    def show(self, steps: int) -> None:
        for title, table in (("by op", self._spent), ("by node", self._slowest)):
            whole = sum(table.values()) or 1.0
            print(f"\nkernels {title}, traced: {whole / steps / 1e3:.3f} ms a step")
            for what, took in sorted(table.items(), key=lambda item: -item[1])[:LINES]:
                count = f"{self._calls[what] // steps:6} calls" if what in self._calls else ""
                print(f"  {100 * took / whole:5.1f} %  {took / steps:10.1f} µs  {count}  {what}")


def _functions(model: Model, run: Any, seconds: float) -> None:
    profile, number = cProfile.Profile(), 0
    deadline = time.perf_counter() + seconds
    profile.enable()
    while time.perf_counter() < deadline:
        model.step(run, number)
        number += 1
    profile.disable()
    print(f"\nPython's functions over {number} steps")
    pstats.Stats(profile).sort_stats("tottime").print_stats(LINES)
