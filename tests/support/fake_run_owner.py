"""What a run needs of its task, without one: a pool that runs when the test says, and another task's answer."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from tenfold_services.limits import DEFAULT_LIMITS
from tenfold_services.worker.arrivals import Arrivals
from tenfold_services.worker.step_pool import Job

if TYPE_CHECKING:
    from collections.abc import Callable

TASK, PS = "/job:worker/replica:0/task:0", "/job:ps/replica:0/task:0"


class Pool:
    """Runs what it is given when the test says."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.let_go_of: list[Job] = []

    def submit(self, owner: str, work: Callable[[], Any]) -> Job:
        self.jobs.append(Job(owner, work))
        return self.jobs[-1]

    def let_go(self, job: Job) -> None:
        self.let_go_of.append(job)

    def run(self) -> None:
        job = self.jobs[-1]
        try:
            job.future.set_result(job.work())
        except Exception as error:
            job.future.set_exception(error)


class Task:
    """What a run needs of its task."""

    limits = DEFAULT_LIMITS

    def __init__(self) -> None:
        self.task, self.pool, self.arrivals = TASK, Pool(), Arrivals()
        self.running = 0
        self.forgotten: list[int] = []
        self.steps = SimpleNamespace(forget=self.forgotten.append)
        self.asked: list[tuple[str, int, str]] = []
        self.answer: asyncio.Future[tuple[Any, bool]] = asyncio.get_running_loop().create_future()

    async def recv_remote(self, task: str, step_id: int, key: str) -> tuple[Any, bool]:
        self.asked.append((task, step_id, key))
        return await self.answer

    def over(self) -> None:
        self.running -= 1
