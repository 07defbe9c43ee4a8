"""`Timeline`: what a traced step did on each device of each task, as a Chrome trace (chrome://tracing, Perfetto).

Made of RunMetadata.step_stats. A device is a process of the trace, each lane of it a thread; tensors that pass from op
to op are arrows, and so are those from a Send on one device to a Recv on another. allocations.py counts memory.
Follows the format of TF 1.15's client/timeline.py.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from tenfold.profiler.allocations import AllocationMaximum, Allocations

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tenfold_protos.step_stats_pb2 import NodeExecStats, StepStats

#: "name = Op(input, input)", a worker's label of an execution.
_LABEL = re.compile(r"(?P<name>.*?) = (?P<op>[^(\s]+)\((?P<inputs>.*)\)", re.DOTALL)


#: The process of the trace that shows the memory of the allocators.
_ALLOCATORS = 0


class ChromeTrace:
    """The events of a trace."""

    def __init__(self, events: list[dict[str, Any]]) -> None:
        self.events = events

    def format_to_string(self, pretty: bool = False) -> str:
        """As JSON text: {"traceEvents": […]}; `pretty` adds indentation."""
        trace = {"traceEvents": self.events}
        return json.dumps(trace, indent=4) if pretty else json.dumps(trace, separators=(",", ":"))


class StepStatsAnalysis(NamedTuple):
    """A trace, and the peak of each allocator; the latter is empty without `show_memory`."""

    chrome_trace: ChromeTrace
    allocator_maximums: dict[str, AllocationMaximum]


class Timeline:
    """The trace of one step. `graph` is accepted for compatibility and ignored."""

    def __init__(self, step_stats: StepStats, graph: Any = None) -> None:
        self._step_stats = step_stats

    def generate_chrome_trace_format(self, show_dataflow: bool = True, show_memory: bool = False) -> str:
        """The trace as JSON text: {"traceEvents": […]}. Times are microseconds since the epoch."""
        return self.analyze_step_stats(show_dataflow, show_memory).chrome_trace.format_to_string(pretty=True)

    def analyze_step_stats(self, show_dataflow: bool = True, show_memory: bool = True) -> StepStatsAnalysis:
        """The trace, with arrows from op to op and tensors in memory if requested, and the allocators' peaks."""
        events: list[dict[str, Any]] = []
        #: Node → (end, process, lane) of its execution; and of what a Send made, by the edge's name.
        made: dict[str, tuple[int, int, int]] = {}
        wanted: list[tuple[list[str], int, int, int]] = []
        allocations = Allocations()
        for process, device in enumerate(self._step_stats.dev_stats, start=1):
            events.append(meta_event("process_name", process, name=f"{device.device} Compute"))
            ends: list[int] = []
            for stats in sorted(device.node_stats, key=lambda each: (each.all_start_micros, each.node_name)):
                name, op, inputs = parse_label(stats)
                begin = stats.all_start_micros
                duration = max(stats.all_end_rel_micros, stats.op_end_rel_micros, 1)
                lane = free_lane(ends, begin, begin + duration)
                arguments: dict[str, Any] = {"name": name, "op": op}
                arguments |= {f"input{position}": each for position, each in enumerate(inputs)}
                events.append(
                    {
                        "ph": "X",
                        "cat": "Op",
                        "name": op,
                        "pid": process,
                        "tid": lane,
                        "ts": begin,
                        "dur": duration,
                        "args": arguments,
                    }
                )
                made[name] = (begin + duration, process, lane)
                wanted.append((inputs, begin, process, lane))
                if show_memory:
                    allocations.made(stats, name, process, lane, begin + duration)
                    allocations.read(inputs, begin + duration)
        if show_dataflow:
            events.extend(_arrows(made, wanted))
        maximums: dict[str, AllocationMaximum] = {}
        if show_memory:
            events.append(meta_event("process_name", _ALLOCATORS, name="Allocators"))
            events.extend(allocations.events())
            for allocator, changes in allocations.changes().items():
                events.extend(_counter(allocator, time, held) for time, held, _ in changes)
                maximums[allocator] = changes[-1][2]
        return StepStatsAnalysis(ChromeTrace(events), maximums)


def parse_label(stats: NodeExecStats) -> tuple[str, str, list[str]]:
    """(node, op, inputs), from the label where it has TensorFlow's form."""
    match = _LABEL.fullmatch(stats.timeline_label)
    if match is None:
        return stats.node_name, stats.timeline_label.partition(":")[0] or stats.node_name, []
    inputs = match["inputs"]
    return match["name"] or stats.node_name, match["op"], [each.strip() for each in inputs.split(",") if each.strip()]


def free_lane(ends: list[int], begin: int, end: int) -> int:
    """The first lane that is free at `begin`; executions in one lane never overlap."""
    for lane, busy_until in enumerate(ends):
        if busy_until <= begin:
            ends[lane] = end
            return lane
    ends.append(end)
    return len(ends) - 1


def _arrows(
    made: dict[str, tuple[int, int, int]], wanted: list[tuple[list[str], int, int, int]]
) -> Iterator[dict[str, Any]]:
    """Two events for each tensor that was read: the start and the end of its arrow."""
    number = 0
    for inputs, begin, process, lane in wanted:
        for each in inputs:
            source = made.get(each.lstrip("^").partition(":")[0])
            if source is None:
                continue
            end, from_process, from_lane = source
            yield _flow("s", number, each, from_process, from_lane, min(end, begin))
            yield _flow("t", number, each, process, lane, begin)
            number += 1


def _flow(phase: str, number: int, name: str, process: int, lane: int, at: int) -> dict[str, Any]:
    return {"ph": phase, "id": number, "cat": "DataFlow", "name": name, "pid": process, "tid": lane, "ts": at}


def _counter(allocator: str, at: int, held: int) -> dict[str, Any]:
    """The bytes that an allocator holds from `at` on."""
    return {
        "ph": "C",
        "cat": "Memory",
        "name": allocator,
        "pid": _ALLOCATORS,
        "tid": 0,
        "ts": at,
        "args": {allocator: held},
    }


def meta_event(kind: str, process: int, **arguments: Any) -> dict[str, Any]:
    """What names a process of the trace, or says more of it."""
    return {"ph": "M", "name": kind, "pid": process, "args": arguments}
