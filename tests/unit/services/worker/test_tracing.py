"""The log of tensors that came from other tasks: by step and device, bounded, given away once."""

from __future__ import annotations

import time

import numpy as np
import pytest

from tenfold_core.rendezvous_key import make_key
from tenfold_services.worker import tracing
from tenfold_services.worker.tracing import TransferLog

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
