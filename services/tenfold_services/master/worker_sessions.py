"""A session's counterparts at the workers: opened with it, deleted when it closes, lost where a task restarts.

`WorkerSessions` is used by master_session.py, `LeftSessions`, of tasks that were out of reach then, by master.py.
Follows CreateWorkerSessions and DeleteWorkerSessions of TensorFlow's master_session.cc.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING

from tenfold_compiler.graph.send_recv import signed
from tenfold_core import errors
from tenfold_services.owned_tasks import OwnedTasks, in_time

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_services.cluster import ClusterWorkers
    from tenfold_services.interfaces import TaskName
    from tenfold_services.master.env import MasterEnv, SessionEnv
    from tenfold_services.master.limits import MasterLimits

_log = logging.getLogger("tenfold.master")
#: How a call to a task fails that is out of reach, or left the cluster. If it has restarted, nothing is left there.
_LOST = (errors.UnavailableError, errors.AbortedError, errors.DeadlineExceededError, errors.NotFoundError)
#: Codes that a restart can show itself as.
_SUSPICIOUS = frozenset((errors.ABORTED, errors.UNAVAILABLE))


class WorkerSessions:
    """One for each task of the session's devices."""

    def __init__(self, env: SessionEnv, tasks: OwnedTasks) -> None:
        self._env, self._master, self._devices, self._tasks = env, env.master, env.devices, tasks

    async def create(self, seconds: float) -> None:
        """Raises the first worker's error, or DeadlineExceededError naming the tasks that did not answer.

        The state of a session that brings its own cluster is isolated, as in TensorFlow: names are its affair. It may
        share that of the tasks instead, which workers of one training have in common.
        """
        config, about = self._env.config, self._master.server_def
        isolate = config.isolate_session_state
        if about is not None:
            isolate = not config.experimental.share_session_state_in_clusterspec_propagation
        own = signed(self._devices.incarnation(self._devices.client_device))

        async def one(task: TaskName) -> None:
            server_def = None if about is None else about(task)
            worker = self._master.workers.worker(task)
            await worker.create_worker_session(self._env.handle, server_def, isolate, (self._master.task, own))

        calls = {task: one(task) for task in self._devices.tasks}
        late = await self._tasks.all_of(calls, "create_worker_session", seconds)
        if late:
            raise errors.deadline_exceeded(
                f"No answer to CreateWorkerSession within {seconds:g} s from {', '.join(late)}."
            )

    async def delete(self, seconds: float) -> list[TaskName]:
        """Bounded; failures are logged. Returns the tasks that were out of reach, and may still have the session."""
        lost: list[TaskName] = []
        finished = self._master.finished

        async def one(task: TaskName) -> None:
            if not await _forgets(self._master.workers, task, self._env.handle):
                lost.append(task)

        # on those that have finished nothing is left
        calls = {task: one(task) for task in self._devices.tasks if finished is None or task not in finished}
        late = await self._tasks.all_of(calls, "delete_worker_session", seconds)
        if late:
            _log.debug("Session %s: no answer to DeleteWorkerSession from %s", self._env.handle, ", ".join(late))
        return [*lost, *late]

    async def explained(self, tasks: Sequence[TaskName], error: errors.OpError) -> errors.OpError:
        """The error of a step itself, or an AbortedError naming those of its `tasks` that have restarted.

        A restarted task has lost the session's graphs and variables; what the step saw of that is some other error,
        e.g. an unknown graph handle or a refused connection. Bounded: asks each of the other tasks for its devices, and
        only where the error may come from a restart.
        """
        remote = [task for task in tasks if task != self._master.task]
        if error.code not in _SUSPICIOUS:
            return error
        restarted = [text for text in await asyncio.gather(*map(self._restarted, remote)) if text]
        if not restarted:
            return error
        return errors.AbortedError(
            error.node_def,
            error.op,
            f"{'; '.join(restarted)}. Its graphs and variables are gone: open a new session.\n{error.message}",
        )

    async def _restarted(self, task: TaskName) -> str:
        """What tells that the task is not the one that the session was created with, or ""."""
        seconds = self._env.limits.diagnose_seconds
        ask = partial(self._master.workers.devices, task, refresh=True, timeout=seconds)
        found: list[DeviceAttributes] = await in_time(seconds, ask, [])
        for device in found:
            if device.name in self._devices and device.incarnation != self._devices.incarnation(device.name):
                return (
                    f"{task} has restarted since this session was created (incarnation "
                    f"{self._devices.incarnation(device.name):016x}, now {device.incarnation:016x})"
                )
        return ""


class LeftSessions:
    """Sessions that a task still has because it was out of reach when they closed: it is asked again to forget them.

    Of one master, which says of each session that closed so. For each such task there is one loop, which asks less and
    less often; a task that has restarted has nothing of them and says so at once. Without it a network that was broken
    for a minute would leave a session's graphs and isolated variables on a parameter server for as long as both live.

    On the event loop's thread only; `close` ends it.
    """

    def __init__(self, env: MasterEnv, limits: MasterLimits) -> None:
        self._env, self._limits = env, limits
        #: Task → handles that it is to forget, oldest first. At most `limits.sessions` of each.
        self._left: dict[TaskName, dict[str, None]] = {}
        #: A loop for each task of `_left`.
        self._loops = OwnedTasks(f"The master of {env.task}")
        self._closed = False

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
        workers, finished = self._env.workers, self._env.finished or ()
        try:
            while left and loop.time() < until and task in workers.tasks() and task not in finished:
                await asyncio.sleep(pause)
                pause = min(pause * 2, self._limits.cleanup_seconds)
                # `add` may take the oldest away meanwhile
                while left:
                    forget = partial(_forgets, workers, task, oldest := next(iter(left)))
                    if not await in_time(self._limits.cleanup_seconds, forget, False):
                        break
                    left.pop(oldest, None)
        finally:
            del self._left[task]
        if left:
            _log.info("%s may still have %d sessions that were closed", task, len(left))


async def _forgets(workers: ClusterWorkers, task: TaskName, handle: str) -> bool:
    """Has a task forget a session; False where it is out of reach. Other failures are logged.

    A lost task is no warning: a client that ran a step on it has that step's own error.
    """
    try:
        await workers.worker(task).delete_worker_session(handle)
    except errors.OpError as error:
        lost = isinstance(error, _LOST)
        level = logging.DEBUG if lost else logging.WARNING
        _log.log(level, "Session %s: DeleteWorkerSession on %s failed: %s", handle, task, error.message)
        return not lost
    return True
