"""Finds out, after a step failed, whether a task has restarted since its session was created.

A restarted task has lost the session's graphs and variables; what the step saw of that is some other error, e.g. an
unknown graph handle or a refused connection. Used by master_session.py.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tenfold_compiler.graph.device_set import DeviceSet
    from tenfold_services.cluster import ClusterWorkers
    from tenfold_services.interfaces import TaskName

#: Codes that a restart can show itself as.
_SUSPICIOUS = frozenset((errors.ABORTED, errors.UNAVAILABLE))


async def explain_restart(
    error: errors.OpError, tasks: Sequence[TaskName], devices: DeviceSet, workers: ClusterWorkers, seconds: float
) -> errors.OpError:
    """The error itself, or an AbortedError naming the tasks that have restarted.

    Asks each of `tasks` for its devices, at most `seconds`, and only where the error may come from a restart.
    """
    if error.code not in _SUSPICIOUS or not tasks:
        return error
    found = await asyncio.gather(*(_restarted(task, devices, workers, seconds) for task in tasks))
    restarted = [text for text in found if text]
    if not restarted:
        return error
    return errors.AbortedError(
        error.node_def,
        error.op,
        f"{'; '.join(restarted)}. Its graphs and variables are gone: open a new session.\n{error.message}",
    )


async def _restarted(task: TaskName, devices: DeviceSet, workers: ClusterWorkers, seconds: float) -> str:
    """What tells that the task is not the one that the session was created with, or ""."""
    try:
        async with asyncio.timeout(seconds):
            now = await workers.devices(task, refresh=True, timeout=seconds)
    except (errors.OpError, TimeoutError):
        return ""
    for device in now:
        if device.name in devices and device.incarnation != devices.incarnation(device.name):
            return (
                f"{task} has restarted since this session was created (incarnation "
                f"{devices.incarnation(device.name):016x}, now {device.incarnation:016x})"
            )
    return ""
