"""A session's counterparts at the workers: opened at all of them or not at all, closed within a bound."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tenfold_compiler.graph.device_set import DeviceSet
from tenfold_core import errors
from tenfold_protos.device_attributes_pb2 import DeviceAttributes
from tenfold_services.master.worker_sessions import WorkerSessions
from tenfold_services.owned_tasks import OwnedTasks

PS, WORKER = "/job:ps/replica:0/task:0", "/job:worker/replica:0/task:0"


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
    workers: dict[str, FakeWorker], finished: Any = None, server_def: Any = None
) -> tuple[WorkerSessions, OwnedTasks]:
    devices = [
        DeviceAttributes(name=f"{task}/device:CPU:0", device_type="CPU", incarnation=(1 << 64) - number)
        for number, task in enumerate(workers, 1)
    ]
    found = SimpleNamespace(worker=workers.__getitem__)
    env = SimpleNamespace(task=WORKER, workers=found, server_def=server_def, finished=finished)
    tasks = OwnedTasks("session s")
    made = WorkerSessions("s", cast("Any", env), DeviceSet(devices, f"{WORKER}/device:CPU:0"), tasks)
    return made, tasks


async def test_each_task_is_told_of_the_session_and_its_master() -> None:
    workers = {PS: FakeWorker(), WORKER: FakeWorker()}
    sessions, _ = opened(workers, server_def=lambda task: f"server of {task}")

    await sessions.create(isolate=True, seconds=30)

    assert {task: worker.asked for task, worker in workers.items()} == {
        task: [("s", f"server of {task}", True, WORKER, -2)] for task in workers
    }


async def test_the_first_error_ends_the_creation() -> None:
    down = errors.UnavailableError(None, None, "down")
    sessions, tasks = opened({PS: FakeWorker(down), WORKER: FakeWorker(hangs=True)})

    with pytest.raises(errors.UnavailableError, match="down"):
        await sessions.create(isolate=False, seconds=30)

    await tasks.cancel_all(30)
    assert len(tasks) == 0


async def test_tasks_that_do_not_answer_are_named() -> None:
    sessions, _ = opened({PS: FakeWorker(hangs=True), WORKER: FakeWorker()})

    with pytest.raises(errors.DeadlineExceededError, match=f"within 0.01 s from {PS}") as caught:
        await sessions.create(isolate=False, seconds=0.01)
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
