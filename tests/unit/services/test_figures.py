"""A task's figures: which peers are told of, and what the whole looks like. What resources hold: test_figures.py of the
kernels."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queue_stores import FifoStore
from tenfold_kernels.resources.queues import Queue
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_services import figures
from tenfold_services.figures import peer_figures, task_figures

if TYPE_CHECKING:
    import pytest


def variable(resources: ResourceManager, name: str, value: np.ndarray | None, container: str = "") -> None:
    made = Variable(name, dtypes.float32, TensorShape(None))
    if value is not None:
        made.assign(value, validate_shape=False)
    resources.lookup_or_create(container, name, Variable, lambda: made)


def queue(resources: ResourceManager, name: str, capacity: int, elements: int) -> None:
    made = Queue("FIFOQueue", name, [dtypes.float32], None, capacity, FifoStore())
    for _ in range(elements):
        made.enqueue((np.zeros((), np.float32),))
    resources.lookup_or_create("", name, Queue, lambda: made)


def test_of_many_peers_the_busiest_are_told_of() -> None:
    traffic = [(f"/job:ps/replica:0/task:{index}", index, 1) for index in range(figures.MOST_PEERS + 3)]

    found = peer_figures([*traffic, ("/job:ps/replica:0/task:999", 0, 0)], "/job:ps/replica:0/task:66")

    assert len(found) == figures.MOST_PEERS
    assert {"task": "/job:ps/replica:0/task:5", "bytes_sent": 5, "bytes_received": 1} in found
    assert not {f"/job:ps/replica:0/task:{index}" for index in (0, 1, 66, 999)} & {each["task"] for each in found}


def test_a_tasks_figures_are_read_where_they_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    resources, asked = ResourceManager(), []
    variable(resources, "w", np.zeros(5, np.float32))
    queue(resources, "tokens", 3, 2)
    monkeypatch.setattr(figures, "process_figures", lambda: {"rss": 1.0})
    monkeypatch.setattr(figures, "total_traffic", lambda: (7, 8))
    peers = [("/job:ps/replica:0/task:0", 1, 2), ("/job:ps/replica:0/task:1", 3, 4)]
    monkeypatch.setattr(figures, "traffic_by_task", lambda: peers)
    worker = SimpleNamespace(
        every_resources=lambda: [resources, resources],
        step_count=SimpleNamespace(steps=4),
        pool=SimpleNamespace(long=2),
    )
    master = SimpleNamespace(
        open_sessions=["a", "b"], session_statuses=lambda most: (asked.append(most), ["statuses"])[1]
    )
    server: Any = SimpleNamespace(
        worker=worker, master=master, caller_steps=SimpleNamespace(steps=5), task="/job:ps/replica:0/task:0"
    )

    assert task_figures(server) == {
        "rss": 1.0,
        "variables": 1,
        "variable_bytes": 20,
        "table_rows": 0,
        "table_bytes": 0,
        "tables": [],
        "tables_left_out": 0,
        "steps": 9,
        "sessions": 2,
        "open_sessions": ["statuses"],
        "bytes_sent": 7,
        "bytes_received": 8,
        "long_kernels": 2,
        "peers": [{"task": "/job:ps/replica:0/task:1", "bytes_sent": 3, "bytes_received": 4}],
        "queues": [{"name": "tokens", "size": 2, "capacity": 3}],
    }
    assert asked == [32]


def test_so_many_are_told_of() -> None:
    assert (figures.MOST_PEERS, figures.MOST_SESSIONS) == (64, 32)


def test_a_peer_that_sent_or_received_counts() -> None:
    traffic = [("a", 0, 1), ("b", 1, 0), ("c", 0, 0), ("d", 5, 5), ("me", 5, 5)]
    assert [each["task"] for each in peer_figures(traffic, "me")] == ["a", "b", "d"]
