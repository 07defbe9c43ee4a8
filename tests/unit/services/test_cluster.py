"""The cluster as a task sees it: forms of a spec, what is malformed, which worker a task has, and moves."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from tenfold_core import errors
from tenfold_core.address import split_named_address
from tenfold_core.cluster_spec import ClusterSpec, addresses_of
from tenfold_core.device import task_name
from tenfold_protos.cluster_pb2 import ClusterDef
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_services.cluster import ClusterWorkers
from tenfold_services.limits import Limits
from tenfold_services.rpc.grpc_worker import GrpcWorker

ME, PS, OTHER = (task_name(job, index) for job, index in (("worker", 0), ("ps", 0), ("worker", 1)))
ADDRESSES = {"ps": {0: "a:1"}, "worker": {0: "b:2", 1: "c:3"}}


class FakeWorker:
    """A worker that notes what became of it."""

    def __init__(self, task: str, address: str) -> None:
        self.task, self.address = task, address
        self.closed = False
        self.asked = 0

    async def get_status(self, timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - as the real one has it
        self.asked += 1
        return [DeviceAttributes(name=f"{self.task}/device:CPU:0", incarnation=self.asked)]

    async def close(self) -> None:
        self.closed = True


def workers(addresses: dict[str, dict[int, str]] | None = None) -> ClusterWorkers:
    return ClusterWorkers(ME, cast("Any", "local"), addresses or ADDRESSES, connect=cast("Any", FakeWorker))


def cluster_def() -> ClusterDef:
    made = ClusterDef()
    made.job.add(name="ps").tasks[0] = "a:1"
    worker = made.job.add(name="worker")
    worker.tasks[0], worker.tasks[1] = "b:2", "c:3"
    return made


@pytest.mark.parametrize(
    "cluster",
    [
        pytest.param(ADDRESSES, id="indexed"),
        pytest.param({"ps": ["a:1"], "worker": ["b:2", "c:3"]}, id="lists"),
        pytest.param(ClusterSpec({"ps": ["a:1"], "worker": ["b:2", "c:3"]}), id="ClusterSpec"),
        pytest.param(cluster_def(), id="ClusterDef"),
    ],
)
def test_every_form_of_a_cluster_gives_the_same_addresses(cluster: Any) -> None:
    assert addresses_of(cluster) == ADDRESSES


def test_no_cluster_has_no_addresses_and_a_task_may_lack_one() -> None:
    assert addresses_of(None) == {}
    assert addresses_of({"ps": {3: ""}}) == {"ps": {3: ""}}


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ({"ps": {-1: "a:1"}}, "/job:ps has the task -1"),
        ({"ps": {"0": "a:1"}}, "/job:ps has the task '0'"),
        ({"ps": [1]}, "/job:ps has the task 0: 1"),
        ({"ps": ["a"]}, "'a' of /job:ps/task:0"),
    ],
)
def test_a_malformed_cluster_names_job_and_index(cluster: Any, text: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match=text):
        addresses_of(cluster)


@pytest.mark.parametrize(("address", "parts"), [("host:80", ("host", 80)), ("[::1]:0", ("[::1]", 0))])
def test_an_address_has_a_host_and_a_port(address: str, parts: tuple[str, int]) -> None:
    assert split_named_address(address, "it") == parts


@pytest.mark.parametrize("address", ["host", ":80", "host:", "host:65536", "host:-1", "grpc://host:1", "host:1x"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(errors.InvalidArgumentError, match="of the listener is not"):
        split_named_address(address, "the listener")


def test_tasks_are_listed_by_job_and_index() -> None:
    assert workers({"worker": {10: "x:1", 2: "y:1"}, "ps": {0: ""}}).tasks() == [
        "/job:ps/replica:0/task:0",
        "/job:worker/replica:0/task:2",
        "/job:worker/replica:0/task:10",
    ]


@pytest.mark.parametrize(
    ("task", "error", "text"),
    [
        ("/job:chief/replica:0/task:0", errors.NotFoundError, "the cluster has the jobs ps, worker"),
        ("/job:worker/replica:0/task:7", errors.NotFoundError, "/job:worker has the tasks 0, 1"),
        ("worker", errors.InvalidArgumentError, "is no task name"),
        ("/job:worker/task:x", errors.InvalidArgumentError, "is no task name"),
        (
            "/job:worker",
            errors.InvalidArgumentError,
            "'/job:worker' is no task name such as '/job:ps/replica:0/task:0'",
        ),
        ("/replica:0/task:0", errors.InvalidArgumentError, "is no task name"),
    ],
)
def test_an_unknown_task_is_told_with_what_there_is(task: str, error: type[errors.OpError], text: str) -> None:
    with pytest.raises(error, match=text):
        workers().worker(task)


def test_the_own_task_is_local_and_another_is_connected_once() -> None:
    cluster = workers()
    assert cluster.worker(ME) == "local"
    assert cluster.worker(PS) is cluster.worker(PS)
    assert cast("FakeWorker", cluster.worker(PS)).address == "a:1"


def test_a_job_without_tasks_has_none() -> None:
    with pytest.raises(errors.NotFoundError, match="/job:ps has the tasks none"):
        workers({"ps": {}, "worker": {0: "b:2"}}).address(PS)


async def test_a_task_is_reached_over_grpc_where_nothing_else_connects() -> None:
    limits = Limits()
    cluster = ClusterWorkers(ME, cast("Any", "local"), ADDRESSES, limits)
    found = cluster.worker(PS)
    assert isinstance(found, GrpcWorker)
    assert found.address == "a:1"
    assert cluster.worker(PS) is found
    assert cluster.addresses is ADDRESSES
    await cluster.close()


async def test_a_task_without_an_address_says_so_at_every_call() -> None:
    cluster = workers({"ps": {0: ""}})
    missing = cluster.worker(PS)
    for call in (missing.get_status(), missing.recv_tensor(1, "key"), missing.cleanup_graph(1)):
        with pytest.raises(errors.UnavailableError, match=r"/job:ps/replica:0/task:0 .* has not registered"):
            await call
    await cluster.close()


async def test_a_task_that_moved_or_left_is_closed_and_others_stay() -> None:
    cluster = workers()
    moved, stays = cast("FakeWorker", cluster.worker(PS)), cast("FakeWorker", cluster.worker(OTHER))

    cluster.update({"ps": {0: "elsewhere:9"}, "worker": {0: "b:2", 1: "c:3"}})
    await asyncio.sleep(0)

    assert moved.closed
    assert cluster.worker(OTHER) is stays
    assert not stays.closed
    assert cast("FakeWorker", cluster.worker(PS)).address == "elsewhere:9"

    cluster.update({"worker": {0: "b:2"}})
    await cluster.close()
    assert stays.closed


async def test_devices_are_remembered_until_a_refresh_or_a_move() -> None:
    cluster = workers()
    assert (await cluster.devices(PS))[0].incarnation == 1
    assert (await cluster.devices(PS))[0].incarnation == 1
    assert (await cluster.devices(PS, refresh=True))[0].incarnation == 2
    cluster.update({"ps": {0: "elsewhere:9"}})
    assert (await cluster.devices(PS))[0].incarnation == 1
    await cluster.close()
    await cluster.close()


async def test_devices_of_a_task_that_does_not_answer_a_refresh_are_forgotten() -> None:
    cluster = workers()
    await cluster.devices(PS)
    worker = cast("FakeWorker", cluster.worker(PS))
    asked: list[float | None] = []

    async def lost(timeout: float | None = None) -> list[DeviceAttributes]:  # noqa: ASYNC109 - as the real one has it
        asked.append(timeout)
        raise errors.UnavailableError(None, None, "gone")

    worker.get_status = lost  # type: ignore[method-assign]
    with pytest.raises(errors.UnavailableError):
        await cluster.devices(PS, refresh=True, timeout=5)
    with pytest.raises(errors.UnavailableError):
        await cluster.devices(PS, timeout=7)
    assert asked == [5, 7]
    del worker.get_status  # type: ignore[method-assign]
    assert (await cluster.devices(PS))[0].incarnation == 2
    await cluster.close()


async def test_close_waits_until_connections_are_closed_each_once() -> None:
    cluster = workers()
    found = [cast("FakeWorker", cluster.worker(task)) for task in (PS, OTHER)]
    begun: list[str] = []

    def closing(worker: FakeWorker) -> Any:
        async def close() -> None:
            begun.append(worker.task)
            for _ in range(3):
                await asyncio.sleep(0)
            worker.closed = True

        return close

    for worker in found:
        worker.close = closing(worker)  # type: ignore[method-assign]
    await cluster.close()
    assert [worker.closed for worker in found] == [True, True]
    await cluster.close()
    assert sorted(begun) == sorted((PS, OTHER))


async def test_a_new_cluster_keeps_what_it_knows_of_tasks_that_stay() -> None:
    cluster = workers()
    stays = cast("FakeWorker", cluster.worker(PS))
    await cluster.devices(PS)
    changed = {"ps": {0: "a:1", 1: "new:1"}, "worker": {0: "b:2"}}
    cluster.update(changed)
    assert cluster.addresses is changed
    assert cluster.worker(PS) is stays
    assert (await cluster.devices(PS))[0].incarnation == 1
    assert cluster.address("/job:ps/replica:0/task:1") == "new:1"
    with pytest.raises(errors.NotFoundError, match="/job:worker has the tasks 0"):
        cluster.worker(OTHER)
    await cluster.close()
