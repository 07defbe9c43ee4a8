"""One trace over all tasks, for Perfetto and chrome://tracing, from what each program traced of its steps.

A task is a process of the trace; a thread of a device, and the client's steps, are tracks of it. Arrows lead from Send
to Recv. The clocks of the hosts are aligned by clocks.py. Made by the control service; timeline.py is TensorFlow's view
of one step. What the file holds is described in docs/traces.md.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tenfold.profiler.clocks import Correction, Orders, corrections
from tenfold.profiler.timeline import free_lane, meta_event, parse_label
from tenfold_core.opdefs.runtime_ops import RECV_OPS, SEND_OPS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tenfold_protos.step_stats_pb2 import NodeExecStats
    from tenfold_protos.trace_pb2 import ProgramTrace, TracedStep

#: "/job:ps/replica:0/task:0" and what follows it in a device's name.
_DEVICE = re.compile(r"(?P<task>/job:[^/]+(?:/replica:\d+)?/task:\d+)/?(?:device:)?(?P<kind>.*)")


@dataclass(slots=True)
class _Slice:
    """What ran from `begin` to `end`, in nanoseconds since the epoch by the clock of its task's host."""

    task: str
    track: str
    name: str
    category: str
    begin: int
    end: int
    arguments: dict[str, Any]
    thread: int = 0


@dataclass(slots=True)
class _Arrow:
    """A tensor on its way."""

    tensor: str
    sent: _Slice
    received: _Slice


def cluster_trace(
    programs: Sequence[tuple[str, ProgramTrace]],
    *,
    clocks: Mapping[str, str] | None = None,
    missing: Sequence[tuple[str, str]] = (),
) -> dict[str, Any]:
    """The trace as a JSON object: `traceEvents`, and `metadata` about clocks, steps and who is missing.

    `programs`: the task of each and what it traced. `clocks`: task → the host whose clock it has, where that is known;
    the others have clocks of their own. `missing`: tasks that traced nothing, and why.
    """
    clock_of = _Clocks(clocks or {})
    slices: list[_Slice] = []
    arrows: list[_Arrow] = []
    orders = Orders()
    steps: list[dict[str, Any]] = []
    for program, trace in programs:
        for number, step in enumerate(trace.step):
            client, nodes, sent = _read(program, number, step)
            slices += [client, *nodes]
            arrows += sent
            steps.append(
                {"task": program, "step": number, "fetches": list(step.fetch), "nodes": len(nodes)}
                | ({"error": step.error} if step.error else {})
            )
            _note_orders(orders, clock_of, client, nodes, sent)
    tasks = sorted({each.task for each in slices}, key=_natural)
    reference = clock_of(programs[0][0]) if programs else ""
    found = corrections(orders, reference) if programs else {}
    corrected = {task: found.get(clock_of(task), Correction(0, None)) for task in tasks}
    for each in slices:
        each.begin += corrected[each.task].offset
        each.end += corrected[each.task].offset
    start = min((each.begin for each in slices), default=0)
    pids = {task: pid for pid, task in enumerate(tasks, start=1)}
    events = [*_processes(pids, corrected), *_tracks(slices, pids, start)]
    return {
        "traceEvents": [*events, *_flows(arrows, pids, start)],
        "displayTimeUnit": "ms",
        "metadata": {
            "start_time_ns": start,
            "reference": programs[0][0] if programs else None,
            "tasks": [
                {"task": task, "pid": pids[task], "clock": clock_of(task), **_shown(corrected[task])} for task in tasks
            ],
            "steps": steps,
            "notes": [{"task": task, "note": trace.note} for task, trace in programs if trace.note],
            "missing": [{"task": task, "reason": why} for task, why in missing],
        },
    }


class _Clocks:
    """Task → the name of its clock."""

    def __init__(self, hosts: Mapping[str, str]) -> None:
        self._hosts = hosts

    def __call__(self, task: str) -> str:
        return self._hosts.get(task) or task


def _read(program: str, number: int, step: TracedStep) -> tuple[_Slice, list[_Slice], list[_Arrow]]:
    """The step at its client, its nodes, and what they sent each other."""
    shown = {"step": number, "fetches": ", ".join(step.fetch)} | ({"error": step.error} if step.error else {})
    begin = step.begin_nanos
    client = _Slice(program, "client", "Session.run", "Step", begin, max(step.end_nanos, begin + 1), shown)
    nodes: list[_Slice] = []
    sends: dict[tuple[str, str, str], list[_Slice]] = {}
    receives: dict[tuple[str, str, str], list[_Slice]] = {}
    for device in step.step_stats.dev_stats:
        where = _DEVICE.fullmatch(device.device)
        task, kind = (where["task"], where["kind"]) if where else (device.device, "")
        for stats in device.node_stats:
            name, op, inputs = parse_label(stats)
            arguments: dict[str, Any] = {"node": name, "op": op, "bytes": _bytes(stats), "client": program}
            arguments["step"] = number
            at, until = _times(stats)
            node = _Slice(task, kind or "device", op, "Op", at, until, arguments, stats.thread_id)
            nodes.append(node)
            tensor, _, other = ", ".join(inputs).rpartition(" @")
            if tensor and op in SEND_OPS:
                sends.setdefault((tensor, device.device, other), []).append(node)
            elif tensor and op in RECV_OPS:
                receives.setdefault((tensor, other, device.device), []).append(node)
            elif inputs:
                arguments["inputs"] = ", ".join(inputs)
    arrows: list[_Arrow] = []
    for key, received in receives.items():
        # in a loop an edge is used several times, in order
        pairs = zip(sorted(sends.get(key, ()), key=_by_begin), sorted(received, key=_by_end), strict=False)
        for sent, got in pairs:
            sent.arguments["bytes"] = got.arguments["bytes"]
            arrows.append(_Arrow(key[0], sent, got))
    return client, nodes, arrows


def _note_orders(
    orders: Orders, clock_of: _Clocks, client: _Slice, nodes: Sequence[_Slice], arrows: Sequence[_Arrow]
) -> None:
    mine = clock_of(client.task)
    for node in nodes:
        theirs = clock_of(node.task)
        orders.add(mine, theirs, client.begin, node.begin)
        orders.add(theirs, mine, node.end, client.end)
    for arrow in arrows:
        orders.add(clock_of(arrow.sent.task), clock_of(arrow.received.task), arrow.sent.begin, arrow.received.end)


def _times(stats: NodeExecStats) -> tuple[int, int]:
    """When a node began and ended. TensorFlow's old releases count microseconds."""
    begin = stats.all_start_nanos or stats.all_start_micros * 1000
    took = max(stats.all_end_rel_nanos, stats.op_end_rel_nanos)
    return begin, begin + max(1, took or max(stats.all_end_rel_micros, stats.op_end_rel_micros) * 1000)


def _bytes(stats: NodeExecStats) -> int:
    """Bytes of the node's outputs."""
    return sum(memory.total_bytes for memory in stats.memory) or sum(
        output.tensor_description.allocation_description.requested_bytes for output in stats.output
    )


def _processes(pids: Mapping[str, int], corrected: Mapping[str, Correction]) -> Iterator[dict[str, Any]]:
    for task, pid in pids.items():
        offset = f"{corrected[task].offset / 1000} µs"
        yield meta_event("process_name", pid, name=task.replace("/replica:0", ""), clock_offset=offset)
        yield meta_event("process_labels", pid, labels=f"clock_offset {offset}")
        yield meta_event("process_sort_index", pid, sort_index=pid)


def _shown(correction: Correction) -> dict[str, float | None]:
    error = correction.error
    return {
        "clock_offset_us": correction.offset / 1000,
        "clock_error_us": None if error is None else error / 1000,
    }


def _tracks(slices: list[_Slice], pids: Mapping[str, int], start: int) -> Iterator[dict[str, Any]]:
    """The tracks' names and the slices on them. A thread that waits for several tensors at once has several tracks."""
    groups: dict[tuple[str, bool, str, int], list[_Slice]] = {}
    for each in slices:
        groups.setdefault((each.task, each.category == "Op", each.track, each.thread), []).append(each)
    numbers = dict.fromkeys(pids, 0)
    for (task, is_device, track, thread), members in sorted(groups.items()):
        ends: list[int] = []
        first = numbers[task]
        for each in sorted(members, key=_by_begin):
            each.thread = first + free_lane(ends, each.begin, each.end)
            yield {
                "ph": "X",
                "cat": each.category,
                "name": each.name,
                "pid": pids[task],
                "tid": each.thread,
                "ts": (each.begin - start) / 1000,
                "dur": (each.end - each.begin) / 1000,
                "args": each.arguments,
            }
        numbers[task] += len(ends)
        for lane in range(len(ends)):
            name = f"{track} thread {thread}" if is_device else track
            shown = f"{name} +{lane}" if lane else name
            yield {**meta_event("thread_name", pids[task], name=shown), "tid": first + lane}
            yield {**meta_event("thread_sort_index", pids[task], sort_index=first + lane), "tid": first + lane}


def _flows(arrows: Sequence[_Arrow], pids: Mapping[str, int], start: int) -> Iterator[dict[str, Any]]:
    """Two events for each tensor: it leaves when its Send begins, and comes as its Recv ends."""
    for number, arrow in enumerate(arrows, start=1):
        left = arrow.sent.begin
        # the last moment within the slice of the Recv, so that the arrow ends there
        came = max(arrow.received.end - 1, arrow.received.begin, left)
        common = {"id": number, "cat": "Tensor", "name": arrow.tensor}
        yield {**common, "ph": "s", **_at(arrow.sent, pids, left - start)}
        yield {**common, "ph": "f", "bp": "e", **_at(arrow.received, pids, came - start)}


def _at(where: _Slice, pids: Mapping[str, int], when: int) -> dict[str, Any]:
    return {"pid": pids[where.task], "tid": where.thread, "ts": when / 1000}


def _by_begin(each: _Slice) -> int:
    return each.begin


def _by_end(each: _Slice) -> int:
    return each.end


def _natural(task: str) -> list[tuple[int, str]]:
    """worker/2 before worker/10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", task)]
