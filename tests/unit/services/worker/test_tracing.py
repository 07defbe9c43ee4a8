"""The log of tensors that came from other tasks: by step and device, bounded, given away once."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from support.parts import PartBuilder
from support.programs import compiled
from tenfold_core import dtypes
from tenfold_core.rendezvous_key import make_key
from tenfold_protos.step_stats_pb2 import NodeExecStats
from tenfold_services.worker import tracing
from tenfold_services.worker.execution import StepIO
from tenfold_services.worker.tracing import TracedExecution, TransferLog

PS = "/job:ps/replica:0/task:0"
CPU, GPU = (f"/job:worker/replica:0/task:1/device:{kind}:0" for kind in ("CPU", "GPU"))


def key(device: str = CPU, tensor: str = "w:0") -> str:
    return make_key(f"{PS}/device:CPU:0", 1, device, tensor)


@pytest.mark.parametrize(
    ("value", "amount"), [(np.zeros(4, np.float32), "16B"), (np.zeros(1 << 18, np.float32), "1.0MB"), (object(), "0B")]
)
def test_what_an_entry_says(value: object, amount: str) -> None:
    log, begin = TransferLog(), time.time_ns() - 5_000_000
    log.note(7, key(), begin, value)

    (device,) = log.take(7).dev_stats
    (entry,) = device.node_stats

    assert device.device == CPU
    assert entry.node_name == "RecvTensor"
    assert entry.timeline_label == f"[{amount}] w:0 from {PS} to /job:worker/replica:0/task:1"
    assert entry.all_start_micros == begin // 1000
    assert entry.all_end_rel_micros >= 5000


def test_entries_stand_by_the_device_that_received() -> None:
    log = TransferLog()
    for device in (CPU, GPU, CPU):
        log.note(7, key(device), 0, np.zeros(1))

    assert [(found.device, len(found.node_stats)) for found in log.take(7).dev_stats] == [(CPU, 2), (GPU, 1)]


def test_a_step_is_given_away_once_and_forgotten_on_request() -> None:
    log = TransferLog()
    log.note(7, key(), 0, np.zeros(1))
    assert log.take(7).dev_stats
    assert not log.take(7).dev_stats
    log.note(8, key(), 0, np.zeros(1))
    log.clear()
    assert not log.take(8).dev_stats


def test_the_log_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_LOGGED_STEPS", 2)
    monkeypatch.setattr(tracing, "_LOGGED_TRANSFERS", 3)
    log = TransferLog()
    for step in (1, 2, 3):
        for _ in range(5):
            log.note(step, key(), 0, np.zeros(1))

    assert [sum(len(device.node_stats) for device in log.take(step).dev_stats) for step in (1, 2, 3)] == [0, 3, 3]


@pytest.mark.parametrize(("size", "amount"), [(104857, "104857B"), (104858, "0.1MB"), (3 << 20, "3.0MB")])
def test_large_amounts_are_written_in_megabytes(size: int, amount: str) -> None:
    log = TransferLog()
    log.note(7, key(), 0, np.zeros(size, np.int8))
    (device,) = log.take(7).dev_stats
    assert device.node_stats[0].timeline_label.startswith(f"[{amount}] ")


@pytest.mark.parametrize(("took", "micros", "nanos"), [(0, 1, 1), (-5, 1, 1), (999, 1, 999), (2500, 2, 2500)])
def test_a_run_takes_a_microsecond_at_least(took: int, micros: int, nanos: int) -> None:
    stats = NodeExecStats()
    tracing._time(stats, 7_000_123, 7_000_123 + took)

    assert (stats.all_start_micros, stats.scheduled_micros) == (7000, 7000)
    assert (stats.op_end_rel_micros, stats.all_end_rel_micros) == (micros, micros)
    assert (stats.all_start_nanos, stats.scheduled_nanos) == (7_000_123, 7_000_123)
    assert (stats.op_end_rel_nanos, stats.all_end_rel_nanos) == (nanos, nanos)


# -- a traced step -----------------------------------------------------------------------------------------------------


def traced(part: PartBuilder, feeds: dict[str, Any], kernels: dict[str, Any] | None = None) -> TracedExecution:
    program = compiled(part)
    for node in program.compiled.part.nodes:
        if kernels and node.name in kernels:
            program.compiled.kernels[node.index] = kernels[node.name]  # type: ignore[index]
    return TracedExecution(program.compiled, program.node_edges, StepIO(feeds, lambda *_: None))


def squares() -> tuple[PartBuilder, str, str]:
    part = PartBuilder()
    x = part.feed("x")
    part.node("Square", "y", ["x"], T=dtypes.float32)
    return part, x, part.fetch("y")


def test_each_node_is_recorded_with_its_outputs_and_their_memory() -> None:
    part, x, y = squares()
    execution = traced(part, {x: np.float32([[2, 3]])})
    execution.advance()

    assert execution.fetched()[y].tolist() == [[4.0, 9.0]]
    (device,) = execution.step_stats.dev_stats
    assert device.device == part.device
    labels = {stats.node_name: stats.timeline_label for stats in device.node_stats}
    assert labels == {
        "x": f"x = _Recv(x @{part.device})",
        "y": "y = Square(x)",
        "send_fetch_y": f"send_fetch_y = _Send(fetch_y @{part.device})",
    }
    (square,) = [stats for stats in device.node_stats if stats.node_name == "y"]
    (output,) = square.output
    described = output.tensor_description
    assert (output.slot, described.dtype) == (0, dtypes.float32.as_datatype_enum)
    assert [dim.size for dim in described.shape.dim] == [1, 2]
    allocation = described.allocation_description
    assert (allocation.requested_bytes, allocation.allocated_bytes, allocation.allocator_name) == (8, 8, "cpu")
    ((memory,),) = [square.memory]
    assert (memory.allocator_name, memory.total_bytes, memory.peak_bytes) == ("cpu", 8, 8)
    assert square.thread_id == threading.get_native_id() & 0xFFFFFFFF
    assert square.all_end_rel_nanos >= 1
    (sent,) = [stats for stats in device.node_stats if stats.node_name == "send_fetch_y"]
    assert not sent.output
    assert not sent.memory


def test_memory_of_several_outputs_is_added_up_and_none_is_not_written() -> None:
    stats = NodeExecStats()
    tracing._describe(stats, [np.zeros(2), object(), np.array([b"ab"], object), np.zeros(0, np.float32), np.zeros(3)])

    assert [output.slot for output in stats.output] == [0, 2, 3, 4]
    assert [output.tensor_description.dtype for output in stats.output] == [
        dtype.as_datatype_enum for dtype in (dtypes.float64, dtypes.string, dtypes.float32, dtypes.float64)
    ]
    ((memory,),) = [stats.memory]
    assert memory.total_bytes == memory.peak_bytes == 16 + 8 + 0 + 24
    empty = NodeExecStats()
    tracing._describe(empty, [np.zeros(0)])
    assert len(empty.output) == 1
    assert not empty.memory


def test_a_gpus_memory_is_its_allocators_and_its_time_its_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    class OnGpu:
        dtype, shape, nbytes, runtime = np.dtype(np.float32), (2,), 8, SimpleNamespace(index=3)

    monkeypatch.setattr(tracing, "DeviceArray", OnGpu)
    part, x, _ = squares()
    execution = traced(part, {x: np.float32([2])}, {"y": lambda x: OnGpu()})
    execution.advance()

    first, streams = execution.step_stats.dev_stats
    assert streams.device == f"{part.device}/stream:all"
    (ran,) = streams.node_stats
    assert ran.node_name == "y:Square@@Square"
    (square,) = [stats for stats in first.node_stats if stats.node_name == "y"]
    assert [memory.allocator_name for memory in square.memory] == ["GPU_3_bfc"]
    assert ran.all_start_nanos == square.all_start_nanos


def test_a_dead_node_is_not_recorded() -> None:
    part = PartBuilder()
    x, p = part.feed("x"), part.feed("p", dtypes.bool_)
    part.node("Switch", "switch", ["x", "p"], T=dtypes.float32)
    part.node("Neg", "no", ["switch:0"], T=dtypes.float32)
    part.node("Square", "yes", ["switch:1"], T=dtypes.float32)
    part.send("no", dtypes.float32, f"{PS}/device:CPU:0", "no")
    part.fetch("yes")
    execution = traced(part, {x: np.float32([2]), p: np.array(True)})
    execution.advance()

    names = {stats.node_name for device in execution.step_stats.dev_stats for stats in device.node_stats}
    assert "yes" in names
    assert not names & {"no", "send_no"}


def test_a_node_that_waits_is_recorded_once_from_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter(range(1000, 100_000, 1000))
    monkeypatch.setattr(tracing, "time", SimpleNamespace(time_ns=lambda: next(now)))
    part = PartBuilder()
    part.recv("r", dtypes.float32, f"{PS}/device:CPU:0", 5)
    part.fetch("r")
    execution = traced(part, {})
    execution.advance()
    assert not execution.step_stats.dev_stats
    (wanted,) = execution.take_wanted()
    execution.arrived(wanted.token, np.float32([1]), False)
    execution.advance()

    first, _ = execution.step_stats.dev_stats[0].node_stats
    assert (first.node_name, first.all_start_nanos, first.all_end_rel_nanos) == ("r", 1000, 2000)
    assert not execution._begun


def test_a_loop_without_end_is_not_recorded_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_RECORDED", 2)
    part, x, y = squares()
    execution = traced(part, {x: np.float32([2])})
    execution.advance()

    assert execution.fetched()[y].tolist() == [4.0]
    assert len(execution.step_stats.dev_stats[0].node_stats) == 2


def test_a_step_that_was_taken_is_forgotten_oldest_first_when_there_are_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracing, "_LOGGED_STEPS", 2)
    log = TransferLog()
    assert not log.enabled
    for step in (1, 2, 1, 3):
        log.note(step, key(), 0, np.zeros(1))
    assert list(log._steps) == [2, 3]
