"""Which tasks a graph needs, from its devices, and what is said of those that are not there."""

from __future__ import annotations

import pytest

from tenfold_control_api.cluster import Cluster, Newcomer, TaskState
from tenfold_control_api.needed_tasks import absent, places, reason_text
from tenfold_protos import graph_pb2


def graph(*devices: str) -> graph_pb2.GraphDef:
    return graph_pb2.GraphDef(node=[{"name": f"n{i}", "device": device} for i, device in enumerate(devices)])


@pytest.fixture
def cluster() -> Cluster:
    """ps 0 is ready, ps 1 never came; worker 0 is lost, worker 1 ready."""
    made = Cluster.new("default", "u" * 32, {"ps": 2, "worker": 2}, 0.0)
    for job, index in [("ps", 0), ("worker", 0), ("worker", 1)]:
        made = made.register(job, index, Newcomer("h:1", "a", f"{job}{index}"), 1.0).cluster
    return made.end("worker", 0, TaskState.LOST, "ended by SIGKILL", 10.0)


@pytest.mark.parametrize(
    ("devices", "missing"),
    [
        ((), []),
        (("", "/cpu:0", "/device:GPU:0"), []),
        (("/job:ps/task:0", "/job:worker/replica:0/task:1/device:CPU:0"), []),
        (("/job:worker", "/job:ps"), []),  # one of each is ready
        (("/job:ps/task:1",), ["/job:ps/replica:0/task:1"]),
        (
            ("/job:worker/task:0", "/job:ps/task:1"),
            ["/job:ps/replica:0/task:1", "/job:worker/replica:0/task:0"],
        ),
        (("/job:evaluator", "/job:ps/task:7", "no device"), []),  # the placer says what is wrong with them
    ],
)
def test_tasks_that_a_graph_needs(cluster: Cluster, devices: tuple[str, ...], missing: list[str]) -> None:
    assert [task.name for task in absent(cluster, places(graph(*devices)))] == missing


def test_a_job_of_which_no_task_is_ready_is_needed_as_a_whole(cluster: Cluster) -> None:
    gone = cluster.end("worker", 1, TaskState.STOPPED, "reason_text to stop", 11.0)

    assert [task.index for task in absent(gone, places(graph("/job:worker")))] == [0, 1]


def test_devices_of_functions_count(cluster: Cluster) -> None:
    made = graph()
    made.library.function.add().node_def.add(name="n", device="/job:ps/task:1")

    assert [task.name for task in absent(cluster, places(made))] == ["/job:ps/replica:0/task:1"]


def test_what_is_said_of_them(cluster: Cluster) -> None:
    assert reason_text(cluster.task("ps", 1), 22.0) == "/job:ps/replica:0/task:1 has never registered"
    lost = reason_text(cluster.task("worker", 0), 22.0)
    assert lost == "/job:worker/replica:0/task:0 is lost: ended by SIGKILL, 12 s ago"
