"""A task's figures: which variables, queues and peers are told of, and what the whole looks like."""

from __future__ import annotations

import numpy as np

from tenfold_core import dtypes
from tenfold_core.tensor_shape import TensorShape
from tenfold_kernels.resources.queue_stores import FifoStore
from tenfold_kernels.resources.queues import Queue
from tenfold_kernels.resources.state import ResourceManager, Variable
from tenfold_services import figures
from tenfold_services.figures import peer_figures, queue_figures, variable_figures


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


def test_variables_of_all_containers_count_once_they_have_a_value() -> None:
    first, second = ResourceManager(), ResourceManager()
    variable(first, "w", np.zeros((10, 10), np.float32))
    variable(first, "w", np.zeros(5, np.float32), container="experiment")
    variable(first, "not yet", None)
    variable(second, "w", np.zeros(1, np.float32))

    assert variable_figures([first, second]) == {"variables": 3, "variable_bytes": 400 + 20 + 4}


def test_a_queue_is_as_full_as_it_is() -> None:
    resources = ResourceManager()
    queue(resources, "tokens", 3, 2)
    queue(resources, "names", -1, 1)

    assert queue_figures([resources]) == [
        {"name": "names", "size": 1, "capacity": None},
        {"name": "tokens", "size": 2, "capacity": 3},
    ]


def test_of_many_queues_the_fullest_are_told_of() -> None:
    resources = ResourceManager()
    for index in range(figures.MOST_QUEUES + 5):
        queue(resources, f"q{index:02}", 100, index)

    found = queue_figures([resources])

    assert [each["name"] for each in found] == [f"q{index:02}" for index in range(5, figures.MOST_QUEUES + 5)]


def test_of_many_peers_the_busiest_are_told_of() -> None:
    traffic = [(f"/job:ps/replica:0/task:{index}", index, 1) for index in range(figures.MOST_PEERS + 3)]

    found = peer_figures([*traffic, ("/job:ps/replica:0/task:999", 0, 0)], "/job:ps/replica:0/task:66")

    assert len(found) == figures.MOST_PEERS
    assert {"task": "/job:ps/replica:0/task:5", "bytes_sent": 5, "bytes_received": 1} in found
    assert not {f"/job:ps/replica:0/task:{index}" for index in (0, 1, 66, 999)} & {each["task"] for each in found}
