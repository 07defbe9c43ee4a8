"""The states of a run and of its tasks: what a supervisor reports and the control service keeps and shows."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

#: The job that serves and does not work: a run has ended when the others have.
SERVERS = "ps"
#: The job of tf.estimator's evaluator, which is beside the cluster: nobody has its address, and it has no server.
EVALUATOR = "evaluator"
#: Why a run stops that ends with its control service.
WITH_SERVICE = "the control service ended"


class RunState(StrEnum):
    """The last three are final."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"

    @property
    def final(self) -> bool:
        return self not in (RunState.PENDING, RunState.RUNNING)


def is_final(state: str) -> bool:
    """Whether something in this state has ended; of a state that only a newer service knows, that is not said."""
    return state in tuple(RunState) and RunState(state).final


class RunTaskState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: It ended after it was told to, whatever its exit code.
    STOPPED = "stopped"


def error_line(error: Mapping[str, Any] | None) -> str:
    """What a failed task's error adds to the reason of its run: ": type, node …, task …: why"."""
    if error is None:
        return ""
    where = "".join(f", {each} {error[each]}" for each in ("node", "task") if error.get(each))
    # the first line that says more than the task does
    lines = (line for line in (error.get("message") or "").splitlines() if not line.startswith("From /job:"))
    first = next(lines, "")
    return f": {error['type']}{where}: {first}" if error.get("type") else f": {first}"


def standing(tasks: Iterable[Mapping[str, Any]], others: str = "the others go on") -> str:
    """Why a run that goes on is as it is: "its tasks run", unless one of them has failed or is to start again."""
    known = list(tasks)
    failed = [task for task in known if task["state"] == RunTaskState.FAILED]
    if failed:
        first = min(failed, key=lambda task: task.get("ended") or 0.0)
        return f"{first['job']}/{first['index']} failed{error_line(first.get('error'))}; {others}"
    waiting = [task for task in known if task["state"] == RunTaskState.WAITING and task["starts"]]
    again = ", ".join(f"{task['job']}/{task['index']}" for task in waiting)
    return f"to start again: {again}" if again else "its tasks run"
