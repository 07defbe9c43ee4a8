"""A session with a cluster of its own: which task a target means, and a worker under another name."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from tenfold_core import errors
from tenfold_core.device import task_name
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.session_cluster import own_task, renamed, server_def
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Iterator

HOME, GUEST, OTHER = task_name("ps", 0), task_name("other", 3), task_name("other", 4)


def cluster() -> ClusterDef:
    made = ClusterDef()
    tasks = made.job.add(name="other").tasks
    tasks[3], tasks[4] = "a:1", "b:2"
    return made


@pytest.mark.parametrize("target", ["grpc://b:2", "b:2"])
def test_a_target_means_the_task_at_its_address(target: str) -> None:
    assert own_task(cluster(), target) == OTHER


def test_a_target_that_the_cluster_has_not_is_refused() -> None:
    text = "must have the address of the session's target, 'c:3', as one of its tasks"
    with pytest.raises(errors.InvalidArgumentError, match=text):
        own_task(cluster(), "grpc://c:3")


@pytest.mark.parametrize("more", [0, 1])
def test_a_cluster_has_so_many_tasks(more: int) -> None:
    made = ClusterDef()
    for job, count in (("a", 5000), ("b", 5000 + more)):
        tasks = made.job.add(name=job).tasks
        for index in range(count):
            tasks[index] = f"{job}:{index}"
    if more:
        with pytest.raises(errors.InvalidArgumentError, match="more than 10000 tasks"):
            own_task(made, "grpc://a:0")
    else:
        assert own_task(made, "grpc://b:4999") == task_name("b", 4999)


def test_devices_are_called_as_those_of_a_task() -> None:
    devices = [DeviceAttributes(name=f"{HOME}/device:{kind}:1", incarnation=5) for kind in ("CPU", "GPU")]
    found = renamed(devices, GUEST)
    assert [device.name for device in found] == [f"{GUEST}/device:CPU:1", f"{GUEST}/device:GPU:1"]
    assert [device.incarnation for device in found] == [5, 5]
    assert devices[0].name == f"{HOME}/device:CPU:1"


def test_another_server_is_told_its_name_in_the_cluster() -> None:
    made = server_def(cluster(), OTHER)
    assert (made.cluster, made.job_name, made.task_index, made.protocol) == (cluster(), "other", 4, "grpc")


@pytest.fixture
def home() -> Iterator[Worker]:
    made = Worker(HOME)
    yield made
    made.close()


async def test_a_worker_joins_and_leaves_another_cluster(home: Worker) -> None:
    guest, tasks = home.join(cluster(), GUEST)

    assert guest.task == GUEST
    assert [device.name for device in guest.devices] == [device.name.replace(HOME, GUEST) for device in home.devices]
    assert home.guests == [guest]
    assert guest.workers is tasks
    assert tasks.worker(GUEST) is guest
    assert tasks.addresses == {"other": {3: "a:1", 4: "b:2"}}
    assert tasks._limits is DEFAULT_LIMITS

    closed: list[str] = []

    async def close() -> None:
        closed.append("tasks")

    cast("Any", tasks).close = close
    for _ in range(2):
        await home.leave(guest, tasks)
    assert home.guests == []
    assert closed == ["tasks", "tasks"]


async def test_devices_of_its_tasks_have_their_names_there(home: Worker) -> None:
    _, tasks = home.join(cluster(), GUEST)
    asked: list[Any] = []

    async def get_status(timeout: float | None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - as the real one has it
        asked.append(timeout)
        return [DeviceAttributes(name=f"{HOME}/device:CPU:0")]

    cast("Any", tasks)._workers[OTHER] = SimpleNamespace(get_status=get_status, address="b:2")
    for _ in range(2):
        assert [device.name for device in await tasks.devices(OTHER, timeout=2.5)] == [f"{OTHER}/device:CPU:0"]
    assert asked == [2.5]
