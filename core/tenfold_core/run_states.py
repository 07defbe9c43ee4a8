"""The states of a run and of its tasks: what a supervisor reports and the control service keeps and shows."""

from __future__ import annotations

from enum import StrEnum


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


class RunTaskState(StrEnum):
    WAITING = "waiting"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    #: It ended after it was told to, whatever its exit code.
    STOPPED = "stopped"
