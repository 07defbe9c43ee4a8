"""One file from what several programs traced: processes, tracks, arrows, clocks, who is missing."""

from __future__ import annotations

from typing import Any

from support.trace_check import check_trace
from tenfold.profiler.cluster_trace import cluster_trace
from tenfold_protos.trace_pb2 import ProgramTrace

PS, W0, W1 = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0", "/job:worker/replica:0/task:10"
US, BASE = 1000, 1_700_000_000_000_000_000


def device(task: str) -> str:
    return f"{task}/device:CPU:0"


def traced(worker: str, *, ahead: int = 0, at: int = 0, iterations: int = 1) -> ProgramTrace:
    """A step of `worker` that reads `w` of ps, whose clock is `ahead` by so many microseconds."""
    trace = ProgramTrace()
    step = trace.step.add(begin_nanos=BASE + at * US, end_nanos=BASE + (at + 100) * US, fetch=["loss:0", "train"])
    ps = step.step_stats.dev_stats.add(device=device(PS))
    own = step.step_stats.dev_stats.add(device=device(worker))
    for number in range(iterations):
        shift = at + 20 * number
        add(ps, "send", f"send = _Send(w @{device(worker)})", shift + 20 + ahead, 5)
        add(own, "recv", f"recv = _Recv(w @{device(PS)})", shift + 10, 22, 4096)
    add(own, "y", "y = MatMul(x, recv)", at + 95, 3, 64, thread=8)
    return trace


def add(to: Any, node: str, label: str, at: int, took: int, size: int = 0, thread: int = 7) -> None:
    stats = to.node_stats.add(node_name=node, timeline_label=label, thread_id=thread)
    stats.all_start_nanos, stats.all_end_rel_nanos = BASE + at * US, took * US
    if size:
        stats.memory.add(total_bytes=size)


def of(found: dict[str, Any], phase: str) -> list[dict[str, Any]]:
    return [event for event in found["traceEvents"] if event["ph"] == phase]


def test_a_task_is_a_process_and_a_thread_of_a_device_a_track() -> None:
    found = cluster_trace([(W1, traced(W1)), (W0, traced(W0, at=200))])

    check_trace(found)
    assert [task["task"] for task in found["metadata"]["tasks"]] == [PS, W0, W1]
    names = {event["pid"]: event["args"]["name"] for event in of(found, "M") if event["name"] == "process_name"}
    assert names == {1: "/job:ps/task:0", 2: "/job:worker/task:0", 3: "/job:worker/task:10"}
    tracks = {event["args"]["name"] for event in of(found, "M") if event["name"] == "thread_name" and event["pid"] == 2}
    assert tracks == {"client", "CPU:0 thread 7", "CPU:0 thread 8"}


def test_a_slice_says_what_it_is() -> None:
    found = cluster_trace([(W0, traced(W0))])

    (multiplied,) = [event for event in of(found, "X") if event["name"] == "MatMul"]
    assert (multiplied["ts"], multiplied["dur"]) == (95.0, 3.0)
    assert multiplied["args"] == {
        "node": "y",
        "op": "MatMul",
        "bytes": 64,
        "client": W0,
        "step": 0,
        "inputs": "x, recv",
    }
    (client,) = [event for event in of(found, "X") if event["cat"] == "Step"]
    assert (client["ts"], client["dur"], client["args"]["fetches"]) == (0.0, 100.0, "loss:0, train")


def test_an_arrow_leads_from_send_to_receive() -> None:
    found = cluster_trace([(W0, traced(W0))])

    (start,), (end,) = of(found, "s"), of(found, "f")
    assert (start["name"], start["pid"], start["ts"]) == ("w", 1, 20.0)
    assert (end["name"], end["pid"], end["ts"]) == ("w", 2, 31.999)
    (sent,) = [event for event in of(found, "X") if event["name"] == "_Send"]
    assert sent["args"]["bytes"] == 4096


def test_an_edge_of_a_loop_has_an_arrow_for_each_iteration() -> None:
    found = cluster_trace([(W0, traced(W0, iterations=3))])

    check_trace(found)
    assert [event["ts"] for event in of(found, "s")] == [20.0, 40.0, 60.0]


def test_the_clock_of_another_host_is_aligned() -> None:
    found = cluster_trace([(W0, traced(W0, ahead=5000))])

    check_trace(found)
    ps, worker = found["metadata"]["tasks"]
    assert worker["clock_offset_us"] == 0
    # received by 32: the true 5000 is within the error
    assert abs(ps["clock_offset_us"] + 5000) <= ps["clock_error_us"] < 50
    (named,) = [event for event in of(found, "M") if event["name"] == "process_name" and event["pid"] == 1]
    assert named["args"]["clock_offset"] == f"{ps['clock_offset_us']} µs"


def test_tasks_of_one_host_share_its_clock() -> None:
    found = cluster_trace([(W0, traced(W0))], clocks={PS: "here", W0: "here"})

    for task in found["metadata"]["tasks"]:
        assert (task["clock"], task["clock_offset_us"], task["clock_error_us"]) == ("here", 0, 0)


def test_who_is_missing_and_why() -> None:
    trace = traced(W0)
    trace.note = "1 of 2 steps ended in time"

    about = cluster_trace([(W0, trace)], missing=[(W1, "it ran no step within 3 s")])["metadata"]

    assert about["missing"] == [{"task": W1, "reason": "it ran no step within 3 s"}]
    assert about["notes"] == [{"task": W0, "note": "1 of 2 steps ended in time"}]
    assert about["steps"] == [{"task": W0, "step": 0, "fetches": ["loss:0", "train"], "nodes": 3}]


def test_times_of_an_old_tensorflow_are_microseconds() -> None:
    trace = ProgramTrace()
    step = trace.step.add(begin_nanos=BASE, end_nanos=BASE + 100 * US)
    stats = step.step_stats.dev_stats.add(device=f"{PS}/cpu:0").node_stats.add(timeline_label="y = Neg(x)")
    stats.all_start_micros, stats.op_end_rel_micros = BASE // US + 10, 7

    found = cluster_trace([(W0, trace)])

    (slice_,) = [event for event in of(found, "X") if event["name"] == "Neg"]
    assert (slice_["ts"], slice_["dur"]) == (10.0, 7.0)
    assert "cpu:0 thread 0" in [event["args"].get("name") for event in of(found, "M")]


def test_nothing_at_all_is_an_empty_file() -> None:
    found = cluster_trace([], missing=[(W0, "it did not report in time")])

    check_trace(found)
    assert found["traceEvents"] == []
