"""A session's counterparts at the workers: opened at all of them or not at all, closed within a bound."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_core import errors
from tenfold_protos.config_pb2 import ConfigProto
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_services.master.env import SessionEnv
from tenfold_services.master.limits import DEFAULT_MASTER_LIMITS, MasterLimits
from tenfold_services.master.worker_sessions import LeftSessions, WorkerSessions
from tenfold_services.owned_tasks import OwnedTasks

OWN = "/job:worker/replica:0/task:1"
PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


def about(master: Any, devices: list[DeviceAttributes], **config: Any) -> SessionEnv:
    found, limits = DeviceSet(devices, f"{WORKER}/device:CPU:0"), MasterLimits(diagnose_seconds=0.01)
    return SessionEnv("s", master, ConfigProto(**config), found, cast("Any", None), limits)


class FakeWorker:
    """Answers, fails with `error`, or never answers; notes what it was asked."""

    def __init__(self, error: Exception | None = None, *, hangs: bool = False) -> None:
        self.error, self.hangs = error, hangs
        self.asked: list[tuple[Any, ...]] = []

    async def _answer(self, *asked: Any) -> None:
        self.asked.append(asked)
        if self.hangs:
            await asyncio.Event().wait()
        if self.error is not None:
            raise self.error

    create_worker_session = delete_worker_session = _answer


def opened(
    workers: dict[str, FakeWorker], finished: Any = None, server_def: Any = None, isolate: bool = False
) -> tuple[WorkerSessions, OwnedTasks]:
    devices = [
        DeviceAttributes(name=f"{task}/device:CPU:0", device_type="CPU", incarnation=(1 << 64) - number)
        for number, task in enumerate(workers, 1)
    ]
    found = SimpleNamespace(worker=workers.__getitem__)
    env = SimpleNamespace(task=WORKER, workers=found, server_def=server_def, finished=finished)
    tasks = OwnedTasks("session s")
    return WorkerSessions(about(env, devices, isolate_session_state=isolate), tasks), tasks


async def test_each_task_is_told_of_the_session_and_its_master() -> None:
    workers = {PS: FakeWorker(), WORKER: FakeWorker()}
    sessions, _ = opened(workers, isolate=False, server_def=lambda task: f"server of {task}")

    await sessions.create(30)

    assert {task: worker.asked for task, worker in workers.items()} == {
        task: [("s", f"server of {task}", True, (WORKER, -2))] for task in workers
    }


async def test_the_first_error_ends_the_creation() -> None:
    down = errors.UnavailableError(None, None, "down")
    sessions, tasks = opened({PS: FakeWorker(down), WORKER: FakeWorker(hangs=True)})

    with pytest.raises(errors.UnavailableError, match="down"):
        await sessions.create(30)

    await tasks.cancel_all(30)
    assert len(tasks) == 0


async def test_tasks_that_do_not_answer_are_named() -> None:
    sessions, _ = opened({PS: FakeWorker(hangs=True), WORKER: FakeWorker()})

    with pytest.raises(errors.DeadlineExceededError, match=f"within 0.01 s from {PS}") as caught:
        await sessions.create(0.01)
    assert WORKER not in caught.value.message


@pytest.mark.parametrize(
    ("error", "level"),
    [
        (errors.UnavailableError(None, None, "gone"), logging.DEBUG),
        (errors.AbortedError(None, None, "another life"), logging.DEBUG),
        (errors.InternalError(None, None, "a bug"), logging.WARNING),
    ],
)
async def test_a_failed_deletion_is_logged_and_raises_nothing(
    error: errors.OpError, level: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "tenfold.master")
    workers = {PS: FakeWorker(error), WORKER: FakeWorker()}
    sessions, _ = opened(workers)

    await sessions.delete(30)

    assert [record.levelno for record in caplog.records] == [level]
    assert PS in caplog.text
    assert workers[WORKER].asked == [("s",)]


async def test_a_finished_task_is_not_asked_and_a_silent_one_not_waited_for() -> None:
    workers = {PS: FakeWorker(), WORKER: FakeWorker(hangs=True)}
    sessions, tasks = opened(workers, finished={PS})

    await sessions.delete(0.01)

    assert workers[PS].asked == []
    await tasks.cancel_all(30)
    assert len(tasks) == 0


@pytest.mark.parametrize("isolate", [True, False])
async def test_the_state_is_isolated_where_the_session_says_so(isolate: bool) -> None:
    workers = {PS: FakeWorker(), WORKER: FakeWorker()}
    sessions, _ = opened(workers, isolate=isolate)
    await sessions.create(30)
    assert workers[PS].asked == [("s", None, isolate, (WORKER, -2))]


@pytest.mark.parametrize("share", [True, False])
async def test_in_a_cluster_of_its_own_it_is_isolated_unless_it_is_to_be_shared(share: bool) -> None:
    workers = {WORKER: FakeWorker()}
    sessions, _ = opened(workers, server_def=lambda task: f"server of {task}")
    sessions._env.config.experimental.share_session_state_in_clusterspec_propagation = share
    await sessions.create(30)
    assert workers[WORKER].asked == [("s", f"server of {WORKER}", not share, (WORKER, -1))]


@pytest.mark.parametrize(
    ("error", "left"),
    [
        (errors.UnavailableError(None, None, "gone"), [PS]),
        (errors.AbortedError(None, None, "another life"), [PS]),
        (errors.DeadlineExceededError(None, None, "late"), [PS]),
        (errors.NotFoundError(None, None, "no such task"), [PS]),
        (errors.InternalError(None, None, "a bug"), []),
        (None, []),
    ],
)
async def test_tasks_that_were_out_of_reach_are_returned(error: errors.OpError | None, left: list[str]) -> None:
    sessions, _ = opened({PS: FakeWorker(error), WORKER: FakeWorker()})
    assert await sessions.delete(30) == left


async def test_a_task_that_is_silent_is_returned_too(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "tenfold.master")
    sessions, tasks = opened({PS: FakeWorker(hangs=True), WORKER: FakeWorker(errors.unavailable("gone"))})
    assert await sessions.delete(0.01) == [WORKER, PS]
    assert f"Session s: no answer to DeleteWorkerSession from {PS}" in caplog.messages
    assert f"Session s: DeleteWorkerSession on {WORKER} failed: gone" in caplog.messages
    await tasks.cancel_all(30)


# -- which failures of a step are explained by a task that has restarted -----------------------------------------------


def device(task: str, incarnation: int) -> DeviceAttributes:
    return DeviceAttributes(name=f"{task}/device:CPU:0", device_type="CPU", incarnation=incarnation)


class FakeWorkers:
    """Tasks by what they answer when they are asked for their devices: an incarnation, an error, or nothing (None)."""

    def __init__(self, answers: dict[str, int | errors.OpError | None]) -> None:
        self.answers, self.asked = answers, 0

    async def devices(self, task: str, *, refresh: bool, timeout: float) -> list[DeviceAttributes]:  # noqa: ASYNC109 - as the real one has it
        assert refresh
        self.asked += 1
        answer = self.answers[task]
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, errors.OpError):
            raise answer
        return [device(task, cast("int", answer))]


async def explain(error: errors.OpError, answers: dict[str, Any]) -> tuple[errors.OpError, FakeWorkers]:
    workers = FakeWorkers(answers)
    master = SimpleNamespace(task=OWN, workers=workers)
    sessions = WorkerSessions(about(master, [device(PS, 1), device(WORKER, 2)]), OwnedTasks("session s"))
    return await sessions.explained(list(answers), error), workers


@pytest.mark.parametrize("kind", [errors.AbortedError, errors.UnavailableError])
async def test_a_restarted_task_is_named_and_the_first_error_kept(kind: type[errors.OpError]) -> None:
    found, _ = await explain(kind(None, None, "no such graph"), {PS: 77, WORKER: 2})

    assert isinstance(found, errors.AbortedError)
    assert f"{PS} has restarted" in found.message
    assert WORKER not in found.message
    assert "open a new session" in found.message
    assert found.message.endswith("no such graph")


async def test_a_restart_is_told_with_both_lives() -> None:
    found, workers = await explain(errors.UnavailableError(None, None, "lost"), {PS: 0x77, WORKER: 0x88})
    assert found.message == (
        f"{PS} has restarted since this session was created (incarnation 0000000000000001, now 0000000000000077); "
        f"{WORKER} has restarted since this session was created (incarnation 0000000000000002, now 0000000000000088)."
        " Its graphs and variables are gone: open a new session.\nlost"
    )
    assert workers.asked == 2


async def test_our_own_task_is_not_asked() -> None:
    error = errors.UnavailableError(None, None, "lost")
    found, workers = await explain(error, {OWN: 77})
    assert found is error
    assert workers.asked == 0


async def test_devices_that_the_session_does_not_know_tell_nothing() -> None:
    error = errors.UnavailableError(None, None, "lost")
    assert (await explain(error, {"/job:new/replica:0/task:0": 77}))[0] is error


async def test_other_errors_ask_no_task() -> None:
    error = errors.InvalidArgumentError(None, None, "wrong")
    found, workers = await explain(error, {PS: 77})

    assert found is error
    assert workers.asked == 0


@pytest.mark.parametrize(
    "answers",
    [
        pytest.param({}, id="no tasks"),
        pytest.param({PS: 1, WORKER: 2}, id="the same lives"),
        pytest.param({PS: errors.UnavailableError(None, None, "down")}, id="down"),
        pytest.param({PS: None}, id="no answer in time"),
    ],
)
async def test_without_another_life_the_error_stays(answers: dict[str, Any]) -> None:
    error = errors.UnavailableError(None, None, "lost")

    assert (await explain(error, answers))[0] is error


# -- tasks that were out of reach when sessions closed -----------------------------------------------------------------

LIMITS = replace(DEFAULT_MASTER_LIMITS, last_retry_seconds=0.001, cleanup_seconds=0.002, sessions=3)


class Ps:
    """Cannot be reached until so many calls were made; has sessions to forget."""

    def __init__(self, unreachable: int, error: errors.OpError | None = None) -> None:
        self.calls, self._unreachable, self._error = 0, unreachable, error
        self.forgotten: list[str] = []
        self.asked = asyncio.Event()

    async def delete_worker_session(self, handle: str) -> None:
        self.calls += 1
        self.asked.set()
        if self.calls <= self._unreachable:
            raise errors.unavailable(f"{PS} cannot be reached.")
        if self._error is not None:
            raise self._error
        self.forgotten.append(handle)


def left_sessions(ps: Ps, tasks: list[str] | None = None, finished: Any = None, **limits: Any) -> LeftSessions:
    workers = SimpleNamespace(worker={PS: ps}.__getitem__, tasks=lambda: [PS, WORKER] if tasks is None else tasks)
    env = SimpleNamespace(task=WORKER, workers=workers, finished=finished)
    return LeftSessions(cast("Any", env), replace(LIMITS, **limits))


async def settled(left: LeftSessions) -> None:
    async with asyncio.timeout(30):
        await left._loops.settled()
    assert not left._left


async def test_sessions_are_forgotten_once_the_task_can_be_reached() -> None:
    ps = Ps(unreachable=3)
    left = left_sessions(ps)

    left.add("a", [PS])
    left.add("b", [PS])
    assert len(left._left) == 1
    await settled(left)

    assert ps.forgotten == ["a", "b"]


async def test_no_more_are_kept_than_a_master_may_have() -> None:
    ps = Ps(unreachable=0)
    left = left_sessions(ps)

    for handle in "abcdef":
        left.add(handle, [PS])
    await settled(left)

    assert ps.forgotten == ["d", "e", "f"]


@pytest.mark.parametrize("how", ["it left the cluster", "it has finished", "it is away for too long"])
async def test_a_task_that_does_not_come_back_is_given_up(how: str) -> None:
    ps = Ps(unreachable=10**9)
    left = left_sessions(
        ps,
        tasks=[WORKER] if "left" in how else None,
        finished={PS} if "finished" in how else None,
        forget_seconds=0.01 if "away" in how else 3600.0,
    )

    left.add("a", [PS])
    await settled(left)

    assert not ps.forgotten
    assert bool(ps.calls) is ("away" in how)


async def test_an_answer_is_an_answer(caplog: pytest.LogCaptureFixture) -> None:
    ps = Ps(unreachable=0, error=errors.internal("a bug"))
    left = left_sessions(ps)

    left.add("a", [PS])
    await settled(left)

    assert ps.calls == 1
    assert "a bug" in caplog.text


async def test_closing_ends_the_asking() -> None:
    ps = Ps(unreachable=10**9)
    left = left_sessions(ps)
    left.add("a", [PS])
    async with asyncio.timeout(30):
        await ps.asked.wait()

    await left.close()

    assert not left._left
    left.add("b", [PS])
    assert not left._left


async def test_a_session_that_comes_while_the_oldest_is_asked_for_is_asked_for_itself() -> None:
    entered, gate = asyncio.Event(), asyncio.Event()

    class Slow(Ps):
        async def delete_worker_session(self, handle: str) -> None:
            if handle == "a":
                entered.set()
                await gate.wait()
            await super().delete_worker_session(handle)

    ps = Slow(unreachable=0)
    left = left_sessions(ps, cleanup_seconds=30.0)
    for handle in "abc":
        left.add(handle, [PS])
    async with asyncio.timeout(30):
        await entered.wait()
    left.add("d", [PS])  # in the place of "a", which is being asked for
    gate.set()
    await settled(left)

    assert ps.forgotten == ["a", "b", "c", "d"]


async def test_a_task_that_does_not_answer_in_time_is_asked_again() -> None:
    class Silent(Ps):
        async def delete_worker_session(self, handle: str) -> None:
            if not self.calls:
                self.calls += 1
                await asyncio.Event().wait()
            await super().delete_worker_session(handle)

    ps = Silent(unreachable=0)
    left = left_sessions(ps)
    left.add("a", [PS])
    await settled(left)
    assert ps.forgotten == ["a"]
    assert ps.calls == 2
