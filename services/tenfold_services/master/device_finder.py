"""Asks every task of a new session for its devices, again and again until it answers or the time is up.

Called by master.py at CreateSession, with the time that it may take (limits.py). When it gives up it says for
each missing task where it was looked for and what came back. Follows DeviceFinder in TensorFlow's master.cc, which
waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from tenfold_compiler.graph.device_set import LOCAL_JOBS, DeviceSet
from tenfold_core import errors
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.interfaces import TaskName
    from tenfold_services.master.env import MasterEnv
    from tenfold_services.master.limits import MasterLimits, SetUpBudget

_log = logging.getLogger("tenfold.master")

#: Tasks that are asked together which tasks have finished.
_ASKED_AT_ONCE = 8

#: Asking again changes nothing.
_FINAL_CODES = frozenset((errors.UNAUTHENTICATED, errors.PERMISSION_DENIED, errors.UNIMPLEMENTED))


def split_by_filters(
    tasks: Sequence[TaskName], filters: Sequence[str], own_task: TaskName
) -> tuple[list[TaskName], list[TaskName]]:
    """(tasks that pass, tasks that do not). The master's own passes always; without filters all do.

    Raises InvalidArgumentError naming a filter that is no device name.
    """
    specs = []
    for text in filters:
        try:
            specs.append(DeviceSpec.from_string(text))
        except ValueError as e:
            raise errors.invalid_argument(f"device_filters: {e}") from None
    kept: dict[TaskName, None] = {}
    for task in tasks:
        full = DeviceSpec.from_string(task)
        if not specs or task == own_task or any(_passes(spec, full) for spec in specs):
            kept[task] = None
    return list(kept), [task for task in tasks if task not in kept]


def _passes(spec: DeviceSpec, task: DeviceSpec) -> bool:
    """What a filter says of job, replica and task; the device part does not exclude a task."""
    job_fits = spec.job in (None, task.job) or (spec.job in LOCAL_JOBS and task.job in LOCAL_JOBS)
    return job_fits and spec.replica in (None, task.replica) and spec.task in (None, task.task)


def tasks_named(graph_def: GraphDef, tasks: Sequence[TaskName]) -> set[TaskName]:
    """Those of `tasks` that the graph names with job and index. A device that is malformed is the placer's matter."""
    texts = {node.device for node in graph_def.node} - {""}
    #: By what both have; a replica may still tell them apart.
    there: dict[tuple[str | None, int | None], list[tuple[TaskName, DeviceSpec]]] = {}
    for task in tasks if texts else ():
        full = DeviceSpec.from_string(task)
        there.setdefault(_place(full), []).append((task, full))
    named: set[TaskName] = set()
    for text in texts:
        try:
            spec = DeviceSpec.from_string(text)
        except ValueError:
            continue
        named.update(task for task, full in there.get(_place(spec), ()) if _passes(spec, full))
    return named


def _place(spec: DeviceSpec) -> tuple[str | None, int | None]:
    """Job and task, the local job under whichever of its names."""
    return LOCAL_JOBS[0] if spec.job in LOCAL_JOBS else spec.job, spec.task


async def find_devices(
    env: MasterEnv, filters: Sequence[str], budget: SetUpBudget, limits: MasterLimits, needed: Collection[TaskName]
) -> DeviceSet:
    """The devices of every task that passes the filters. Waits for them all, but not for a task that has finished or is
    known to be lost, unless it is `needed`.

    Raises DeadlineExceededError naming each task that did not answer and why; at once, without waiting, what a task
    answers that refuses us.
    """
    kept, excluded = split_by_filters(env.workers.tasks(), filters, env.task)
    search = _Search(env, budget, limits, [task for task in kept if task != env.task])
    learner = asyncio.create_task(search.learn(needed), name=f"ask_finished:{env.task}")
    try:
        devices = list(await env.workers.worker(env.task).get_status())
        answers = await search.answers()
    finally:
        tasks = [learner, *search.calls.values()]
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    #: Where feeds enter and fetches leave.
    client_device = next((each.name for each in devices if each.device_type == "CPU"), None)
    if client_device is None:
        raise errors.internal(f"{env.task} reports no CPU device of its own")
    mistaken: dict[TaskName, str] = {}
    without: list[TaskName] = []
    for task in search.calls:
        found = answers.get(task)
        if found is None:
            without.append(task)
        elif found and (other := found[0].name.partition("/device:")[0]) != task:
            mistaken[task] = f"is not at its address {env.workers.address(task)}: {other} answers there"
            _log.warning("%s %s", task, mistaken[task])
        else:
            if found and env.finished is not None:
                env.finished.answered(task, found[0].incarnation)
                if env.finished.known.get(task) == found[0].incarnation and task not in needed:
                    # it answers a last time while it stops, and takes no session any more
                    without.append(task)
                    continue
            devices.extend(found)
    lost = [task for task in without if env.finished is not None and task not in env.finished]
    for task in lost:
        _log.warning(
            "This session goes without %s (%s), which the control service calls lost: %s", task, *search.about(task)
        )
    finished = [task for task in without if task not in lost]
    return DeviceSet(devices, client_device, excluded, finished, lost, mistaken)


class _Search:
    """A call for each of the other tasks, which asks it for its devices until it answers."""

    def __init__(self, env: MasterEnv, budget: SetUpBudget, limits: MasterLimits, others: Sequence[TaskName]) -> None:
        self._env, self._budget, self._limits = env, budget, limits
        #: The last failure of each call.
        self._reasons: dict[TaskName, str] = {}
        self.calls = {task: asyncio.create_task(self._ask(task), name=f"get_status:{task}") for task in others}

    def about(self, task: TaskName) -> tuple[str, str]:
        """Where the task was looked for, and what came back."""
        return self._env.workers.address(task) or "no address", self._reasons.get(task, "no answer")

    async def learn(self, needed: Collection[TaskName]) -> None:
        """Ends the waiting for tasks that have finished or are lost, unless they are `needed`; asks those that answered
        which have finished. Ends by being cancelled.

        A task that ended and was started again answers by itself, so one attempt to reach it must have failed.
        """
        finished, ask_finished, calls = self._env.finished, self._env.ask_finished, self.calls
        if finished is None or ask_finished is None:
            return
        asked: set[TaskName] = set()
        pause = self._limits.first_retry_seconds
        while any(not call.done() for call in calls.values()):
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, self._limits.last_retry_seconds)
            for task, call in calls.items():
                if call.done() and not call.cancelled() and call.exception() is None:
                    finished.answered(task, call.result()[0].incarnation if call.result() else 0)
            answered = [task for task, call in calls.items() if call.done() and not call.cancelled()]
            # a few at a time: any of them may have been told
            fresh = [task for task in answered if task not in asked][:_ASKED_AT_ONCE]
            asked = asked.union(fresh) if fresh else set()
            await asyncio.gather(*map(ask_finished, fresh), return_exceptions=True)
            for task, call in calls.items():
                ended = task in finished or task in finished.lost
                if ended and task in self._reasons and task not in needed and not call.done():
                    call.cancel()

    async def answers(self) -> dict[TaskName, list[DeviceAttributes]]:
        """The answers of all tasks but those whose calls were cancelled. Raises as `find_devices`."""
        waiting = set(self.calls.values())
        while waiting:
            seconds = min(self._budget.left(), self._limits.log_wait_seconds)
            done, waiting = await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
            for call in done:
                if not call.cancelled():
                    call.result()
            missing = [task for task, call in self.calls.items() if call in waiting]
            if missing and self._budget.is_over():
                lines = "".join("\n  {} ({}): {}".format(task, *self.about(task)) for task in missing)
                raise errors.deadline_exceeded(
                    f"CreateSession waited {self._budget.seconds:g} s for {len(missing)} of {len(self.calls) + 1} "
                    f"tasks:{lines}\nStart these tasks, or leave them out with ConfigProto.device_filters."
                )
            for task in missing:
                _log.warning("CreateSession still waiting for response from worker: %s (%s)", task, self.about(task)[1])
        return {task: call.result() for task, call in self.calls.items() if not call.cancelled()}

    async def _ask(self, task: TaskName) -> list[DeviceAttributes]:
        """One task's devices; asks until it answers. Ends by being cancelled."""
        pause = self._limits.first_retry_seconds
        while True:
            left = min(self._limits.status_call_seconds, self._budget.left())
            try:
                async with asyncio.timeout(left + 1.0):
                    # Always asked afresh: a task that restarted has new incarnations.
                    return await self._env.workers.devices(task, refresh=True, timeout=left)
            except errors.OpError as e:
                if e.code in _FINAL_CODES:
                    raise
                self._reasons[task] = e.message
            except TimeoutError:
                self._reasons[task] = f"no answer within {left:.1f} s"
            await asyncio.sleep(pause)
            pause = min(pause * 1.5, self._limits.last_retry_seconds)
