"""A session's counterparts at the workers: opened when it is created, deleted when it closes.

Used by master_session.py. Follows CreateWorkerSessions and DeleteWorkerSessions of TensorFlow's master_session.cc.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tenfold_compiler.graph.send_recv import signed
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_services.interfaces import TaskName
    from tenfold_services.master.env import MasterEnv
    from tenfold_services.owned_tasks import OwnedTasks

_log = logging.getLogger("tenfold.master")
#: How a call to a task fails that is out of reach. If it has restarted, nothing of the session is left there.
LOST = (errors.UnavailableError, errors.AbortedError, errors.DeadlineExceededError)


class WorkerSessions:
    """One for each task of the session's devices."""

    def __init__(self, handle: str, env: MasterEnv, devices: DeviceSet, tasks: OwnedTasks) -> None:
        self._handle = handle
        self._env = env
        self._devices = devices
        self._tasks = tasks

    async def create(self, isolate: bool, seconds: float, *, share: bool = False) -> None:
        """Raises the first worker's error, or DeadlineExceededError naming the tasks that did not answer.

        The state of a session that brings its own cluster is isolated, as in TensorFlow: names are its affair. With
        `share` it is that of the tasks instead, which workers of one training have in common.
        """
        own = signed(self._devices.incarnation(self._devices.client_device))

        async def one(task: TaskName) -> None:
            worker = self._env.workers.worker(task)
            about = self._env.server_def
            if about is None:
                await worker.create_worker_session(self._handle, None, isolate, self._env.task, own)
            else:
                await worker.create_worker_session(self._handle, about(task), not share, self._env.task, own)

        late = await self._each(one, "create_worker_session", seconds)
        if late:
            raise errors.deadline_exceeded(
                f"No answer to CreateWorkerSession within {seconds:g} s from {', '.join(late)}."
            )

    async def delete(self, seconds: float) -> list[TaskName]:
        """Bounded; failures are logged. Returns the tasks that were out of reach, and may still have the session.

        A lost task is no warning: a client that ran a step on it has that step's own error.
        """
        lost: list[TaskName] = []

        async def one(task: TaskName) -> None:
            if self._env.finished is not None and task in self._env.finished:
                # nothing is left there
                return
            try:
                await self._env.workers.worker(task).delete_worker_session(self._handle)
            except errors.OpError as e:
                level = logging.WARNING
                if isinstance(e, LOST):
                    level = logging.DEBUG
                    lost.append(task)
                _log.log(level, "Session %s: DeleteWorkerSession on %s failed: %s", self._handle, task, e.message)

        late = await self._each(one, "delete_worker_session", seconds)
        if late:
            _log.debug("Session %s: no answer to DeleteWorkerSession from %s", self._handle, ", ".join(late))
        return [*lost, *late]

    async def _each(
        self, call: Callable[[TaskName], Coroutine[object, object, None]], name: str, seconds: float
    ) -> list[TaskName]:
        """Calls for every task at once; raises the first error. Returns the tasks that did not answer in time."""
        calls = {task: self._tasks.spawn(call(task), f"{name}:{task};{self._handle}") for task in self._devices.tasks}
        try:
            _, waiting = await asyncio.wait(calls.values(), timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for running in calls.values():
                if running.done():
                    running.result()
            return [task for task, running in calls.items() if running in waiting]
        finally:
            for running in calls.values():
                running.cancel()
