"""Sessions that a task still has because it was out of reach when they closed: it is asked again to forget them.

Made by master.py, told by it of each session that closed so. For each such task there is one loop, which asks less and
less often; a task that has restarted has nothing of them and says so at once. Without it a network that was broken for
a minute would leave a session's graphs and isolated variables on a parameter server for as long as both live.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tenfold_core import errors
from tenfold_services.master.worker_sessions import LOST
from tenfold_services.owned_tasks import OwnedTasks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tenfold_services.interfaces import TaskName
    from tenfold_services.master.env import MasterEnv
    from tenfold_services.master.limits import MasterLimits

_log = logging.getLogger("tenfold.master")


class LeftSessions:
    """Of one master. On the event loop's thread only; `close` ends it."""

    def __init__(self, env: MasterEnv, limits: MasterLimits) -> None:
        self._env, self._limits = env, limits
        #: Task → handles that it is to forget, oldest first. At most `limits.sessions` of each.
        self._left: dict[TaskName, dict[str, None]] = {}
        #: A loop for each task of `_left`.
        self._loops = OwnedTasks(f"The master of {env.task}")
        self._closed = False

    def __len__(self) -> int:
        """How many tasks have something to forget."""
        return len(self._left)

    def add(self, handle: str, tasks: Iterable[TaskName]) -> None:
        """These tasks may still have the session. Never blocks."""
        for task in () if self._closed else tasks:
            left = self._left.get(task)
            if left is None:
                left = self._left[task] = {}
                self._loops.spawn(self._see_to(task, left), f"forget_sessions:{task}")
            left[handle] = None
            if len(left) > self._limits.sessions:
                left.pop(next(iter(left)))

    async def close(self) -> None:
        """Asks no more: a master that comes after this one is known by its incarnation. Bounded; idempotent."""
        self._closed = True
        await self._loops.cancel_all(self._limits.abort_seconds)

    async def _see_to(self, task: TaskName, left: dict[str, None]) -> None:
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + self._limits.forget_seconds, self._limits.last_retry_seconds
        try:
            while left and loop.time() < until and self._is_expected(task):
                await asyncio.sleep(pause)
                pause = min(pause * 2, self._limits.cleanup_seconds)
                while left and await self._forgets(task, next(iter(left))):
                    left.pop(next(iter(left)))
        finally:
            del self._left[task]
        if left:
            _log.info("%s may still have %d sessions that were closed", task, len(left))

    def _is_expected(self, task: TaskName) -> bool:
        finished = self._env.finished
        return task in self._env.workers.tasks() and (finished is None or task not in finished)

    async def _forgets(self, task: TaskName, handle: str) -> bool:
        """Whether the task has forgotten the session; False while it is out of reach."""
        try:
            async with asyncio.timeout(self._limits.cleanup_seconds):
                await self._env.workers.worker(task).delete_worker_session(handle)
        except (*LOST, errors.NotFoundError, TimeoutError):
            return False
        except errors.OpError as error:
            _log.warning("Session %s: DeleteWorkerSession on %s failed: %s", handle, task, error.message)
        return True
