"""Which tasks a session waits for, which it leaves out, and what is said of each that does not answer."""

from __future__ import annotations

import asyncio
import dataclasses
import logging
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from support.fake_cluster import FakeCluster, Gate, fake_device
from support.moments import PATIENCE
from tenfold_core import errors
from tenfold_protos import config_pb2
from tenfold_services.master import device_finder
from tenfold_services.master.device_finder import find_devices, split_by_filters
from tenfold_services.master.env import MasterEnv
from tenfold_services.master.limits import MasterLimits, SetUpBudget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.graph.device_set import DeviceSet

MASTER, PS, OTHER = (f"/job:{job}/replica:0/task:0" for job in ("worker", "ps", "other"))
LIMITS = MasterLimits(first_retry_seconds=0.001, last_retry_seconds=0.002, log_wait_seconds=30.0)
DOWN = errors.unavailable("connection refused")


class Finished:
    """In place of FinishedTasks."""

    def __init__(self, *ended: str, lost: Sequence[str] = ()) -> None:
        self.ended, self.lost = set(ended), frozenset(lost)
        self.known: dict[str, int] = {}
        self.answers: dict[str, int] = {}

    def __contains__(self, task: str) -> bool:
        return task in self.ended

    def answered(self, task: str, incarnation: int) -> None:
        self.answers[task] = incarnation


def cluster_of(*tasks: str) -> FakeCluster:
    return FakeCluster(*(task.replace("/replica:0", "") for task in tasks))


def env_of(cluster: FakeCluster, **more: Any) -> MasterEnv:
    return MasterEnv(cluster.own, cluster, config_pb2.ConfigProto(), **more)


async def find(
    cluster: FakeCluster,
    filters: Sequence[str] = (),
    seconds: float = PATIENCE,
    limits: MasterLimits = LIMITS,
    needed: Sequence[str] = (),
    **more: Any,
) -> DeviceSet:
    return await find_devices(env_of(cluster, **more), filters, SetUpBudget(seconds), limits, needed)


def names(found: DeviceSet) -> list[str]:
    return [device.name.partition("/device:")[0] for device in found.attributes]


def absent(found: DeviceSet) -> dict[str, str]:
    """Tasks that may not be used, and why."""
    return dict(found._absent)


# -- who is asked ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        ([], ["/job:a/replica:0/task:0", "/job:a/replica:0/task:1", "/job:b/replica:1/task:0"]),
        (["/job:c"], ["/job:a/replica:0/task:0"]),
        (["/job:b"], ["/job:a/replica:0/task:0", "/job:b/replica:1/task:0"]),
        (["/job:b/replica:0"], ["/job:a/replica:0/task:0"]),
        (["/job:b/replica:1/device:GPU:7"], ["/job:a/replica:0/task:0", "/job:b/replica:1/task:0"]),
        (["/job:a/task:1"], ["/job:a/replica:0/task:0", "/job:a/replica:0/task:1"]),
        (["/job:c", "/task:1"], ["/job:a/replica:0/task:0", "/job:a/replica:0/task:1"]),
    ],
)
def test_a_task_passes_any_filter_that_says_nothing_else(filters: list[str], kept: list[str]) -> None:
    tasks = ["/job:a/replica:0/task:0", "/job:a/replica:0/task:1", "/job:b/replica:1/task:0"]

    assert split_by_filters(tasks, filters, tasks[0]) == (kept, [task for task in tasks if task not in kept])


@pytest.mark.parametrize("job", ["localhost", "local"])
def test_the_local_job_has_two_names(job: str) -> None:
    tasks = ["/job:a/replica:0/task:0", "/job:localhost/replica:0/task:0", "/job:local/replica:0/task:1"]

    assert split_by_filters(tasks, [f"/job:{job}"], tasks[0]) == (tasks, [])
    assert split_by_filters(tasks, [f"/job:{job}/task:1"], tasks[0])[0] == [tasks[0], tasks[2]]


async def test_the_master_s_own_devices_come_first_and_filters_exclude() -> None:
    cluster = cluster_of(MASTER, PS, OTHER)
    cluster.by_task[MASTER].devices.insert(0, fake_device(MASTER, "GPU"))

    found = await find(cluster, ["/job:ps"])

    assert found.client_device == f"{MASTER}/device:CPU:0"
    assert sorted(names(found)) == sorted([MASTER, MASTER, PS])
    assert absent(found) == {OTHER: "is excluded by the session's device_filters"}
    assert not cluster.by_task[OTHER].calls


async def test_a_master_without_a_processor_is_a_defect() -> None:
    cluster = cluster_of(MASTER, PS)
    cluster.by_task[MASTER].devices = [fake_device(MASTER, "GPU")]

    with pytest.raises(errors.InternalError, match=f"{MASTER} reports no CPU device of its own"):
        await find(cluster)


# -- answers -----------------------------------------------------------------------------------------------------------


async def test_a_task_is_asked_until_it_answers_with_its_incarnation() -> None:
    cluster, finished = cluster_of(MASTER, PS, OTHER), Finished()
    cluster.by_task[PS].reply("get_status", DOWN, TimeoutError())
    cluster.by_task[OTHER].reply("get_status", [])

    found = await find(cluster, finished=finished)

    assert names(found) == [MASTER, PS]
    assert len(cluster.by_task[PS].called("get_status")) == 3
    assert finished.answers == {PS: 2}, "nothing is known of one without devices"


async def test_another_task_at_the_address_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    cluster, finished = cluster_of(MASTER, PS, OTHER), Finished()
    cluster.by_task[PS].reply("get_status", [fake_device("/job:b/task:3")])

    found = await find(cluster, finished=finished)

    text = "is not at its address host-of-job:ps-replica:0-task:0:2222: /job:b/replica:0/task:3 answers there"
    assert absent(found) == {PS: text}
    assert names(found) == [MASTER, OTHER]
    assert finished.answers == {OTHER: 3}
    assert f"{PS} {text}" in caplog.text


@pytest.mark.parametrize("kind", [errors.UnauthenticatedError, errors.PermissionDeniedError, errors.UnimplementedError])
async def test_who_refuses_us_ends_the_search_at_once(kind: type[errors.OpError]) -> None:
    cluster = cluster_of(MASTER, PS, OTHER)
    cluster.by_task[PS].reply("get_status", kind(None, None, "not you"))
    gate = Gate()
    cluster.by_task[OTHER].reply("get_status", gate)

    with pytest.raises(errors.OpError, match="not you"):
        await find(cluster)

    assert len(cluster.by_task[PS].called("get_status")) == 1
    assert not gate.entered.is_set() or gate.cancelled.is_set()
    assert len(asyncio.all_tasks()) == 1, "what it has begun has ended"


class Slow(FakeCluster):
    """Its parameter server never answers; notes what is asked of the cache."""

    def __init__(self, *tasks: str) -> None:
        super().__init__(*tasks)
        self.asked: list[tuple[str, bool, float]] = []
        self.was_asked = asyncio.Event()

    async def devices(self, task: str, *, refresh: bool = False, timeout: float | None = None) -> Any:  # noqa: ASYNC109 - the interface
        assert timeout is not None
        self.asked.append((task, refresh, timeout))
        self.was_asked.set()
        await asyncio.Event().wait()


class Budget:
    """Has always the same time left, and none once the task was asked twice."""

    seconds = 3.0

    def __init__(self, cluster: Slow) -> None:
        self._cluster = cluster

    def left(self) -> float:
        return 0.02

    def is_over(self) -> bool:
        return len(self._cluster.asked) > 1


async def test_one_attempt_has_its_own_time(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Slow("/job:worker/task:0", "/job:ps/task:0")
    given: list[float] = []
    real = asyncio.timeout

    def hurried(seconds: float) -> Any:
        given.append(seconds)
        return real(0.001)

    monkeypatch.setattr(device_finder.asyncio, "timeout", hurried)
    with pytest.raises(errors.DeadlineExceededError, match=r"waited 3 s(.|\n)*no answer within 0\.0 s"):
        await find_devices(env_of(cluster), (), cast("Any", Budget(cluster)), LIMITS, ())

    assert cluster.asked[:2] == [(PS, True, 0.02)] * 2
    assert given[:2] == [1.02] * 2


async def test_one_attempt_is_shorter_than_the_whole_wait() -> None:
    cluster = Slow("/job:worker/task:0", "/job:ps/task:0")
    search = asyncio.create_task(find(cluster, limits=dataclasses.replace(LIMITS, status_call_seconds=5.0)))
    async with asyncio.timeout(PATIENCE):
        await cluster.was_asked.wait()
    search.cancel()
    with pytest.raises(asyncio.CancelledError):
        await search
    assert cluster.asked == [(PS, True, 5.0)]


async def test_when_time_is_up_each_task_that_is_missing_is_named() -> None:
    cluster = cluster_of(MASTER, PS, OTHER)
    cluster.by_task[PS].reply("get_status", *[DOWN] * 100_000)
    cluster.by_task[OTHER].reply("get_status", Gate())
    cluster.address = lambda task: "" if task == OTHER else "far:1"  # type: ignore[method-assign]

    with pytest.raises(errors.DeadlineExceededError) as caught:
        await find(cluster, seconds=0.05)

    assert caught.value.message == (
        "CreateSession waited 0.05 s for 2 of 3 tasks:\n"
        f"  {OTHER} (no address): no answer\n"
        f"  {PS} (far:1): connection refused\n"
        "Start these tasks, or leave them out with ConfigProto.device_filters."
    )
    assert len(asyncio.all_tasks()) == 1


async def test_who_is_waited_for_is_said_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, gate = cluster_of(MASTER, PS, OTHER), Gate()
    cluster.by_task[PS].reply("get_status", DOWN, gate)
    said: list[tuple[Any, ...]] = []

    def warning(*about: Any) -> None:
        said.append(about)
        if gate.entered.is_set() and len(said) > 1:
            gate.release()

    monkeypatch.setattr(device_finder, "_log", SimpleNamespace(warning=warning))
    assert names(await find(cluster, limits=dataclasses.replace(LIMITS, log_wait_seconds=0.001))) == [MASTER, OTHER, PS]

    assert {task for _, task, _ in said} <= {PS, OTHER}
    assert said[-1] == ("CreateSession still waiting for response from worker: %s (%s)", PS, "connection refused")


async def test_nothing_is_said_while_all_answer_in_time(caplog: pytest.LogCaptureFixture) -> None:
    assert names(await find(cluster_of(MASTER, PS, OTHER), finished=Finished())) == [MASTER, OTHER, PS]
    assert caplog.records == []


# -- tasks that have finished or are lost ------------------------------------------------------------------------------


async def nobody(task: str) -> None:
    """Knows nothing of others."""


@pytest.mark.parametrize("lost", [False, True])
async def test_a_task_that_has_ended_is_not_waited_for(lost: bool, caplog: pytest.LogCaptureFixture) -> None:
    cluster = cluster_of(MASTER, PS, OTHER)
    cluster.by_task[PS].reply("get_status", *[DOWN] * 100_000)
    finished = Finished(lost=[PS]) if lost else Finished(PS)

    found = await find(cluster, finished=finished, ask_finished=nobody)

    assert names(found) == [MASTER, OTHER]
    reason = "was lost when this session was created: open a new session once the task is back"
    assert absent(found) == {PS: reason if lost else "has finished"}
    said = (
        f"This session goes without {PS} (host-of-job:ps-replica:0-task:0:2222), which the control service calls lost: "
        "connection refused"
    )
    assert [said] * lost == [record.message for record in caplog.records if record.levelno == logging.WARNING]


async def test_a_task_that_is_needed_is_waited_for_although_it_has_ended() -> None:
    cluster = cluster_of(MASTER, PS, OTHER)
    cluster.by_task[PS].reply("get_status", *[DOWN] * 1000)

    with pytest.raises(errors.DeadlineExceededError, match=PS):
        await find(cluster, seconds=0.05, needed=[PS], finished=Finished(PS), ask_finished=nobody)


async def test_one_that_has_ended_and_answers_is_back() -> None:
    cluster, finished = cluster_of(MASTER, PS, OTHER), Finished(PS)
    gate = Gate()
    cluster.by_task[PS].reply("get_status", gate)
    asked = asyncio.Event()

    async def ask(task: str) -> None:
        asked.set()

    search = asyncio.create_task(find(cluster, finished=finished, ask_finished=ask))
    async with asyncio.timeout(PATIENCE):
        await asked.wait()
    gate.release()

    assert names(await search) == [MASTER, OTHER, PS], "no attempt to reach it had failed"
    assert finished.answers == {OTHER: 3, PS: 2}


@pytest.mark.parametrize(("life", "needed"), [(2, False), (2, True), (3, False)])
async def test_one_that_answers_while_it_stops_is_left_out(life: int, needed: bool) -> None:
    cluster, finished = cluster_of(MASTER, PS), Finished(PS)
    finished.known[PS] = life  # 2 is who answers; of another life it is told, and this one is back

    found = await find(cluster, needed=[PS] if needed else [], finished=finished, ask_finished=nobody)

    out = life == 2 and not needed
    assert names(found) == ([MASTER] if out else [MASTER, PS])
    assert absent(found) == ({PS: "has finished"} if out else {})


async def test_those_that_answered_are_asked_who_has_finished_a_few_at_a_time() -> None:
    others = [f"/job:other/replica:0/task:{index}" for index in range(10)]
    cluster, finished = cluster_of(MASTER, PS, *others), Finished()
    cluster.by_task[PS].reply("get_status", *[DOWN] * 100_000)
    asked: list[str] = []

    async def ask(task: str) -> None:
        asked.append(task)
        if len(asked) == 18:
            finished.ended.add(PS)
        raise errors.unavailable("gone itself")

    found = await find(cluster, finished=finished, ask_finished=ask)

    assert absent(found) == {PS: "has finished"}
    first, second, third = asked[:8], asked[8:10], asked[10:18]
    assert set(first + second) == set(others)
    assert third == first, "once all were asked, it begins anew"
    assert finished.answers[others[3]] == 6


@pytest.mark.parametrize("more", [{"finished": Finished(PS)}, {"ask_finished": nobody}, {}])
async def test_without_somebody_to_ask_everybody_is_waited_for(more: dict[str, Any]) -> None:
    cluster = cluster_of(MASTER, PS)
    cluster.by_task[PS].reply("get_status", *[DOWN] * 1000)

    with pytest.raises(errors.DeadlineExceededError, match="for 1 of 2 tasks"):
        await find(cluster, seconds=0.03, **more)


async def test_the_pauses_grow_to_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster, finished = cluster_of(MASTER, PS), Finished()
    cluster.by_task[PS].reply("get_status", *[DOWN] * 100_000)
    pauses: dict[str, list[float]] = {"get_status": [], "ask_finished": []}
    real = asyncio.sleep

    async def sleep(seconds: float) -> None:
        name = cast("asyncio.Task[Any]", asyncio.current_task()).get_name().partition(":")[0]
        pauses[name].append(seconds)
        if len(pauses["ask_finished"]) == 4 and len(pauses["get_status"]) > 3:
            finished.ended.add(PS)
        await real(0)

    monkeypatch.setattr(device_finder.asyncio, "sleep", sleep)
    limits = dataclasses.replace(LIMITS, first_retry_seconds=4.0, last_retry_seconds=8.0)
    await find(cluster, limits=limits, finished=finished, ask_finished=nobody)

    assert pauses["get_status"][:4] == [4.0, 6.0, 8.0, 8.0]
    assert pauses["ask_finished"][:4] == [4.0, 6.0, 8.0, 8.0]
