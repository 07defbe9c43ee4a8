"""Finding the master that a session goes to: asks for the spec until a task is ready, and says whom it waits for.

Of both clients; calls.py says how they become methods. targets.py uses it for sessions on tenfold:// targets.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from tenfold.control.calls import call
from tenfold.control.cluster_calls import ClusterCalls
from tenfold_core import errors
from tenfold_core.device import task_name
from tenfold_core.master_jobs import master_order

if TYPE_CHECKING:
    from tenfold.control.cluster_answers import Jobs
    from tenfold.control.request import Requests
    from tenfold.control.spec import Spec

log = logging.getLogger(__name__)

#: Who waits for longer than this is told for whom.
SILENT_S = 5.0
#: At most so many tasks are named.
_NAMED = 10


class MasterCalls:
    """The part of the clients that finds masters."""

    @call
    def wait_for_master(
        self, cluster: str, job: str | None = None, index: int | None = None, *, timeout: float = 60.0
    ) -> Requests[str]:
        """Waits until a task is ready to be the master of a session, and returns its target, "grpc://host:port". The
        task is that of `job` and `index`, otherwise the first ready one of chief, master, worker, any.

        Logs a warning after five seconds, naming who is missing and why. Raises NotFoundError for a cluster or task
        that is not declared, DeadlineExceededError after `timeout` seconds.
        """
        begin, told, version = time.monotonic(), False, None
        while True:
            waited = time.monotonic() - begin
            wait = (timeout if told else min(timeout, SILENT_S)) - waited
            spec = yield from ClusterCalls.poll_spec.of(self, cluster, after=version, wait=wait)
            candidates = _candidates(spec, job, index)
            for name, address in candidates.items():
                if address is not None and spec.states.get(name) == "ready":
                    return f"grpc://{address}"
            version = spec.version
            waited = time.monotonic() - begin
            if waited < timeout and (told or waited < SILENT_S):
                continue
            why = _why(candidates, (yield from ClusterCalls.jobs.of(self, cluster)))
            if waited >= timeout:
                text = f"no task of cluster {cluster!r} could be the session's master within {timeout:g} s: {why}."
                raise errors.DeadlineExceededError(None, None, text)
            log.warning("waiting for a master of cluster %r: %s", cluster, why)
            told = True


def _candidates(spec: Spec, job: str | None, index: int | None) -> dict[str, str | None]:
    """The tasks that would do, the preferred ones first: name → last known address."""
    declared = sorted(
        ((name, i) for name, size in spec.jobs.items() for i in range(size)), key=lambda task: master_order(*task)
    )
    wanted = [task for task in declared if job in (None, task[0]) and index in (None, task[1])]
    if not wanted:
        asked = f"/job:{job}" + ("" if index is None else f"/task:{index}")
        sizes = ", ".join(f"{size} of {name}" for name, size in sorted(spec.jobs.items()))
        raise errors.NotFoundError(None, None, f"cluster {spec.cluster!r} has no {asked}: it is declared with {sizes}.")
    return {task_name(name, i): spec.addresses.get(name, {}).get(i) for name, i in wanted}


def _why(candidates: dict[str, str | None], jobs: Jobs) -> str:
    tasks = [task for job in jobs.jobs for task in job.tasks if task.name in candidates]
    told = [f"/job:{task.job}/task:{task.index} is {task.state} ({task.reason})" for task in tasks[:_NAMED]]
    return "; ".join(told) + (f"; and {len(tasks) - _NAMED} more" if len(tasks) > _NAMED else "")
