"""Blocking calls to masters from the event loop: a bounded pool of threads, one connection per target,
loss of a task noticed at once.

Called by session_service.py. A `MasterInterface` blocks, and each call has its deadline; the pool bounds how many run,
the backlog how many wait. When a task is lost while a call to it runs, the caller gets the error at once, and the
thread ends by its deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeVar

from tenfold_control_api.problems import ApiError, from_op_error
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from tenfold.session.master_interface import MasterInterface

    MasterFactory = Callable[[str], MasterInterface]

T = TypeVar("T")

#: Unused connections are kept up to this many.
_KEPT = 64


def link_master(target: str) -> MasterInterface:
    """The master at `grpc://host:port`. Connects on the first call; steps go over a link where there can be one."""
    from tenfold.session.link_master import LinkMaster

    return LinkMaster(target)


class Masters:
    """The connections and the threads. Used from one event loop."""

    def __init__(self, factory: MasterFactory, *, threads: int, backlog: int) -> None:
        self._factory = factory
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="control-master-call")
        self._threads = threads
        self._limit = threads + backlog
        self._open: dict[str, MasterInterface] = {}
        #: Calls in the pool by target, including those whose caller already got the error of a lost task.
        self._busy: Counter[str] = Counter()
        self._calls: set[asyncio.Future[Any]] = set()

    @property
    def running(self) -> int:
        return self._busy.total()

    async def call(
        self,
        target: str,
        work: Callable[[MasterInterface, float], T],
        *,
        limit: float,
        task: str,
        lost: asyncio.Future[str] | None = None,
    ) -> T:
        """Runs `work(master, seconds left)` in a thread.

        Raises the ApiError of the OpError that it raised; UNAVAILABLE as soon as `lost` is set; RESOURCE_EXHAUSTED
        without having run anything when too many calls wait.
        """
        if self.running >= self._limit:
            raise ApiError(
                "RESOURCE_EXHAUSTED",
                f"{self.running} calls to masters are running or waiting: the limit is {self._limit}. Send the "
                f"request later.",
                kind="too-many-calls",
                extra={"outcome": "not-run"},
                headers={"Retry-After": "1"},
            )
        deadline = time.monotonic() + limit
        master = self._master(target)
        self._busy[target] += 1

        def run() -> T:
            left = deadline - time.monotonic()
            if left <= 0:
                raise ApiError(
                    "DEADLINE_EXCEEDED",
                    f"the call to {task} waited {limit:g} s for one of {self._threads} threads and was not started.",
                    task=task,
                    extra={"outcome": "not-run"},
                )
            return work(master, left)

        future = asyncio.get_running_loop().run_in_executor(self._pool, run)
        self._calls.add(future)
        future.add_done_callback(lambda done: self._finished(target, done))
        waiting: set[asyncio.Future[Any]] = {future} if lost is None else {future, lost}
        await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        if lost is not None and lost.done() and not future.done():
            self.forget(target)  # frees the thread, which would wait for the lost task until its deadline
            raise ApiError(
                "UNAVAILABLE",
                f"{lost.result()} while a call to its master was running.",
                kind="task-lost",
                task=task,
                missing_tasks=[task],
            )
        try:
            return future.result()
        except errors.OpError as error:
            raise from_op_error(error, task=task) from error

    def _master(self, target: str) -> MasterInterface:
        if target not in self._open:
            for idle in [t for t in self._open if not self._busy[t]][: max(0, len(self._open) - _KEPT + 1)]:
                self._open.pop(idle).close()
            self._open[target] = self._factory(target)
        return self._open[target]

    def _finished(self, target: str, done: asyncio.Future[T]) -> None:
        self._calls.discard(done)
        self._busy[target] -= 1
        if not self._busy[target]:
            del self._busy[target]
        if not done.cancelled():
            done.exception()  # read, so that asyncio does not log the exception of a call whose caller has gone

    def forget(self, target: str) -> None:
        """Closes the connection to a task that is gone; its calls end with CancelledError."""
        if (master := self._open.pop(target, None)) is not None:
            master.close()

    async def close(self, grace: float) -> None:
        """1 closes every connection, which ends the calls · 2 waits at most `grace` for their threads."""
        for target in list(self._open):
            self.forget(target)
        if self._calls:
            await asyncio.wait(self._calls, timeout=grace)
        self._pool.shutdown(wait=False, cancel_futures=True)
