"""Asks every task of a new session for its devices, again and again until it answers or the time is up.

Called by master.py at CreateSession, with the time that it may take (set_up_budget.py). When it gives up it says for
each missing task where it was looked for and what came back. Follows DeviceFinder in TensorFlow's master.cc, which
waits for ever.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tenfold_compiler.graph.device_set import LOCAL_JOBS
from tenfold_core import errors
from tenfold_core.device import DeviceSpec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from tenfold_protos.device_attributes_pb2 import DeviceAttributes
    from tenfold_protos.graph_pb2 import GraphDef
    from tenfold_services.interfaces import TaskName
    from tenfold_services.master.env import MasterEnv
    from tenfold_services.master.limits import MasterLimits
    from tenfold_services.master.set_up_budget import SetUpBudget

_log = logging.getLogger("tenfold.master")

#: Tasks that are asked together which tasks have finished.
_ASKED_AT_ONCE = 8

#: Asking again changes nothing.
_FINAL_CODES = frozenset((errors.UNAUTHENTICATED, errors.PERMISSION_DENIED, errors.UNIMPLEMENTED))


@dataclass(frozen=True, slots=True)
class FoundDevices:
    """The devices of all tasks that the session may use, the master's own first, and the tasks that it may not."""

    devices: list[DeviceAttributes]
    excluded_tasks: list[TaskName]
    #: Tasks that ended in order and are not there any more.
    finished_tasks: list[TaskName]
    #: Tasks that a control service calls lost and that nothing in the graph names.
    lost_tasks: list[TaskName]
    #: Tasks at whose address another one answers → what is wrong, for an error about the first of them.
    mistaken_tasks: dict[TaskName, str]


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
    kept: list[TaskName] = []
    excluded: list[TaskName] = []
    for task in tasks:
        full = DeviceSpec.from_string(task)
        passes = not specs or task == own_task or any(_passes(spec, full) for spec in specs)
        (kept if passes else excluded).append(task)
    return kept, excluded


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
        if spec.job is not None and spec.task is not None:
            named.update(task for task, full in there.get(_place(spec), ()) if _passes(spec, full))
    return named


def _place(spec: DeviceSpec) -> tuple[str | None, int | None]:
    """Job and task, the local job under whichever of its names."""
    return LOCAL_JOBS[0] if spec.job in LOCAL_JOBS else spec.job, spec.task


async def find_devices(
    env: MasterEnv,
    filters: Sequence[str],
    budget: SetUpBudget,
    limits: MasterLimits,
    needed: Collection[TaskName] = (),
) -> FoundDevices:
    """Waits for every task that passes the filters, but not for one that has finished or is known to be lost, unless it
    is `needed`.

    Raises DeadlineExceededError naming each task that did not answer and why; at once, without waiting, what a task
    answers that refuses us.
    """
    kept, excluded = split_by_filters(env.workers.tasks(), filters, env.task)
    remote = [task for task in kept if task != env.task]
    reasons: dict[TaskName, str] = {}
    calls = {
        task: asyncio.create_task(_ask(env, task, budget, limits, reasons), name=f"get_status:{task}")
        for task in remote
    }
    learner = asyncio.create_task(_learn(env, calls, needed, limits, reasons), name=f"ask_finished:{env.task}")
    try:
        devices = list(await env.local_worker.get_status())
        answers = await _wait(calls, budget, limits, reasons, env)
    finally:
        learner.cancel()
        for call in calls.values():
            call.cancel()
        await asyncio.gather(learner, *calls.values(), return_exceptions=True)
    mistaken: dict[TaskName, str] = {}
    for task in remote:
        found = answers.get(task)
        other = found[0].name.partition("/device:")[0] if found else task
        if other != task:
            mistaken[task] = f"is not at its address {env.workers.address(task)}: {other} answers there"
            _log.warning("%s %s", task, mistaken[task])
            continue
        if found and env.finished is not None:
            env.finished.answered(task, found[0].incarnation)
        devices.extend(found or ())
    without = [task for task in remote if task not in answers]
    lost = [task for task in without if env.finished is not None and task not in env.finished]
    for task in lost:
        _log.warning(
            "This session goes without %s (%s), which the control service calls lost: %s",
            task,
            env.workers.address(task) or "no address",
            reasons.get(task, "no answer"),
        )
    return FoundDevices(devices, excluded, [task for task in without if task not in lost], lost, mistaken)


async def _learn(
    env: MasterEnv,
    calls: Mapping[TaskName, asyncio.Task[list[DeviceAttributes]]],
    needed: Collection[TaskName],
    limits: MasterLimits,
    reasons: Mapping[TaskName, str],
) -> None:
    """Ends the waiting for tasks that have finished or are lost; asks those that answered which have finished. Ends by
    being cancelled.

    A task that ended and was started again answers by itself, so one attempt to reach it must have failed.
    """
    finished = env.finished
    if finished is None or env.ask_finished is None:
        return
    asked: set[TaskName] = set()
    pause = limits.first_retry_seconds
    while any(not call.done() for call in calls.values()):
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, limits.last_retry_seconds)
        for task, call in calls.items():
            if call.done() and not call.cancelled() and call.exception() is None:
                finished.answered(task, call.result()[0].incarnation if call.result() else 0)
        answered = [task for task, call in calls.items() if call.done() and not call.cancelled()]
        # a few at a time: any of them may have been told
        fresh = [task for task in answered if task not in asked][:_ASKED_AT_ONCE]
        asked = asked.union(fresh) if fresh else set()
        await asyncio.gather(*(env.ask_finished(task) for task in fresh), return_exceptions=True)
        for task, call in calls.items():
            ended = task in finished or task in finished.lost
            if ended and task in reasons and task not in needed and not call.done():
                call.cancel()


async def _wait(
    calls: dict[TaskName, asyncio.Task[list[DeviceAttributes]]],
    budget: SetUpBudget,
    limits: MasterLimits,
    reasons: dict[TaskName, str],
    env: MasterEnv,
) -> dict[TaskName, list[DeviceAttributes]]:
    waiting = set(calls.values())
    while waiting:
        done, waiting = await asyncio.wait(
            waiting, timeout=min(budget.left(), limits.log_wait_seconds), return_when=asyncio.FIRST_EXCEPTION
        )
        for call in done:
            if not call.cancelled():
                call.result()
        missing = [task for task, call in calls.items() if call in waiting]
        if missing and budget.is_over():
            lines = "".join(
                f"\n  {task} ({env.workers.address(task) or 'no address'}): {reasons.get(task, 'no answer')}"
                for task in missing
            )
            raise errors.deadline_exceeded(
                f"CreateSession waited {budget.seconds:g} s for {len(missing)} of {len(calls) + 1} tasks:{lines}\n"
                "Start these tasks, or leave them out with ConfigProto.device_filters."
            )
        for task in missing:
            _log.warning(
                "CreateSession still waiting for response from worker: %s (%s)", task, reasons.get(task, "no answer")
            )
    return {task: call.result() for task, call in calls.items() if not call.cancelled()}


async def _ask(
    env: MasterEnv, task: TaskName, budget: SetUpBudget, limits: MasterLimits, reasons: dict[TaskName, str]
) -> list[DeviceAttributes]:
    """One task's devices; asks until it answers. Ends by being cancelled. Notes the last failure in `reasons`."""
    pause = limits.first_retry_seconds
    while True:
        left = min(limits.status_call_seconds, budget.left())
        try:
            async with asyncio.timeout(left + 1.0):
                # Always asked afresh: a task that restarted has new incarnations.
                return await env.workers.devices(task, refresh=True, timeout=left)
        except errors.OpError as e:
            if e.code in _FINAL_CODES:
                raise
            reasons[task] = e.message
        except TimeoutError:
            reasons[task] = f"no answer within {left:.1f} s"
        await asyncio.sleep(pause)
        pause = min(pause * 1.5, limits.last_retry_seconds)
