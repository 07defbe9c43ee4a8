"""A task's pools: those that it is given are used for all its work, also under other names."""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING

from tenfold_services.worker.file_pool import FilePool
from tenfold_services.worker.pools import Pools, pools_of
from tenfold_services.worker.step_pool import GraphPool, StepPool
from tenfold_services.worker.worker import Worker

if TYPE_CHECKING:
    from tenfold_services.limits import Limits

TASK = "/job:ps/replica:0/task:0"


class AtOnce(StepPool):
    """Runs what it is given where it is given, as a pool without threads may."""

    def _provide(self) -> None:
        while (job := self._take()) is not None:
            with contextlib.ExitStack() as unlocked:
                self._lock.release()
                unlocked.callback(self._lock.acquire)
                self._do(job)


class GraphsAtOnce(AtOnce, GraphPool):
    """The same for graphs."""


class FilesAtOnce(AtOnce, FilePool):
    """… and for files."""


def at_once(task: str, limits: Limits) -> Pools:
    return Pools(AtOnce(task, limits), GraphsAtOnce(task, limits), FilesAtOnce(task, limits))


def test_a_worker_has_threads_unless_told_otherwise() -> None:
    worker = Worker(TASK)

    assert [type(pool) for pool in worker.pools] == [type(pool) for pool in pools_of(TASK, worker.limits)]
    worker.close()


async def test_a_worker_takes_the_pools_that_it_is_given() -> None:
    ran_on: list[int] = []
    worker = Worker(TASK, pools=at_once)

    for pool in worker.pools:
        await pool.run("s", lambda: ran_on.append(threading.get_ident()))

    assert ran_on == [threading.get_ident()] * 3
    guest = worker.guest("/job:ps/replica:0/task:1", worker.devices)
    assert guest.pools is worker.pools
    worker.close()
