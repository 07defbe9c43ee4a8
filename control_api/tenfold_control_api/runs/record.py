"""A run as a value, and what may happen to it. Pure, no I/O.

Every verb returns a new `RunRecord` with the next version, or the old one where nothing changes, so service.py can
persist first and publish afterwards. A run's supervisor (tenfold.runs) decides how the run goes; the service decides
only what the supervisor cannot: that the run is to stop, and that its supervisor is gone.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from tenfold_control_api.problems import ApiError
from tenfold_control_api.runs import details as run_details
from tenfold_core.run_states import RunState

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Who started the processes: this service on its own machine, or somebody else who only tells of them.
LOCAL, EXTERNAL = "local", "external"


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run. Times are wall-clock seconds, for people."""

    id: str
    #: Chosen by who submitted it: the same one again is the same run.
    submission_id: str
    #: Of the submission: another one under the same submission id is refused.
    fingerprint: str
    launcher: str
    submission: Mapping[str, Any]
    created: float
    state: RunState = RunState.PENDING
    reason: str = "its supervisor has not reported yet"
    version: int = 1
    started: float | None = None
    ended: float | None = None
    attempt: int = 0
    restarts: int = 0
    #: The tasks as the supervisor reported them.
    tasks: tuple[Mapping[str, Any], ...] = ()
    #: {"host", "pid"} of the process that runs it.
    supervisor: Mapping[str, Any] | None = None
    #: Why the run is to stop; None while it is not.
    stop: str | None = None
    #: The service that starts it, as long as no supervisor has reported.
    owner: str | None = None
    #: The principal that submitted it; None where that was not kept.
    submitter: str | None = None
    #: What it is called, and what was recorded of it (details.py).
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_supervised(self) -> bool:
        """Whether a supervisor of ours runs it, wherever its launcher starts the tasks."""
        return self.launcher != EXTERNAL

    @property
    def joined(self) -> bool:
        """Whether nobody started it: its programs joined it by themselves (joined.py)."""
        return ":" in self.submission_id

    def require_active(self) -> None:
        """Raises FAILED_PRECONDITION, 410, for a run that has ended."""
        if self.state.final:
            raise ApiError("run-ended", f"run {self.id} has ended: it is {self.state} ({self.reason}).")

    def claim(self, owner: str, instead_of: str | None) -> RunRecord:
        """`owner` starts it from now on, if `instead_of` was to and nobody has."""
        if self.state.final or self.supervisor is not None or self.owner != instead_of:
            return self
        return replace(self, version=self.version + 1, owner=owner)

    def report(self, report: Mapping[str, Any], now: float) -> RunRecord:
        """What the supervisor says. The end, once reported, stays; the same again is no error.

        Raises FAILED_PRECONDITION for news of a run that has ended.
        """
        state = RunState(report["state"])
        if self.state.final:
            if state is self.state:
                return self
            self.require_active()
        if self.supervisor is not None and report["supervisor"] != self.supervisor:
            raise ApiError(
                "run-taken",
                f"run {self.id} has another supervisor: process {self.supervisor['pid']} on {self.supervisor['host']}.",
            )
        told = replace(
            self,
            state=state,
            # who asked said why; its supervisor may have been told by a signal
            reason=self.stop if state is RunState.STOPPED and self.stop is not None else report["reason"],
            attempt=report["attempt"],
            restarts=report["restarts"],
            tasks=tuple(report["tasks"]),
            supervisor=report["supervisor"],
        )
        if told == self:
            return self
        return replace(
            told,
            version=self.version + 1,
            started=now if self.started is None and state is not RunState.PENDING else self.started,
            ended=now if state.final else None,
        )

    def ask_to_stop(self, reason: str, now: float) -> RunRecord:
        """The run is to stop. One that nobody runs yet has stopped; one that has ended stays as it is."""
        if self.state.final or self.stop is not None:
            return self
        asked = replace(self, version=self.version + 1, stop=reason)
        if self.state is RunState.PENDING and self.supervisor is None:
            return replace(asked, state=RunState.STOPPED, reason=reason, ended=now)
        return asked

    def edit(self, edit: Mapping[str, Any]) -> RunRecord:
        """The run is to be called otherwise, whether it has ended or not."""
        return self._with(run_details.edited(self.details, edit))

    def record(self, job: str, index: int, told: Mapping[str, Any]) -> RunRecord:
        """What the program of a task recorded of itself."""
        return self._with(run_details.recorded(self.details, job, index, told)[0])

    def _with(self, details: Mapping[str, Any]) -> RunRecord:
        return self if details is self.details else replace(self, version=self.version + 1, details=details)

    def fail(self, reason: str, now: float) -> RunRecord:
        """Nobody runs it any more, and nobody said how it ended."""
        if self.state.final:
            return self
        tasks = tuple(
            {**task, "state": "failed"} if task["state"] in ("running", "waiting") else task for task in self.tasks
        )
        return replace(self, version=self.version + 1, state=RunState.FAILED, reason=reason, ended=now, tasks=tasks)
