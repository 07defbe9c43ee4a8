"""What happens next in a run: the decisions of driver.py, as a pure state machine. No process, no clock of its own.

A task *waits* for its start, *runs*, or has *ended*. Each verb takes the time and returns what to do now; `wake` is
when `tick` is due. Once the verdict is known the other tasks are *drained*: they may end by themselves for a while,
then are told to stop (SIGTERM, servers after the others), then are killed. `over` says that nothing runs any more.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from tenfold_core.exit_codes import described
from tenfold_core.run_states import SERVERS, RunState, RunTaskState

if TYPE_CHECKING:
    from tenfold.runs.plan import RunPlan

TaskKey = tuple[str, int]


class Do(StrEnum):
    START = "start"
    TERMINATE = "terminate"
    KILL = "kill"
    #: Show how it failed, which `text` says.
    REPORT = "report"
    SAY = "say"


@dataclass(frozen=True, slots=True)
class Action:
    """One thing that the driver does. `task` is None for SAY alone; `text` is what SAY and REPORT say."""

    do: Do
    task: TaskKey | None = None
    text: str = ""


@dataclass(slots=True)
class RunTask:
    """One task as it is now. Times are those that the verbs were given."""

    key: TaskKey
    state: RunTaskState = RunTaskState.WAITING
    #: How often it was started.
    starts: int = 0
    #: When a waiting task starts.
    due: float = 0.0
    exit_code: int | None = None
    told: bool = False

    @property
    def name(self) -> str:
        return f"{self.key[0]}/{self.key[1]}"


@dataclass(frozen=True, slots=True)
class Verdict:
    state: RunState
    reason: str
    #: For a shell.
    exit_code: int
    #: The task whose failure it is.
    task: TaskKey | None = None


class RunMachine:
    """One run of `plan` from `start` on. Not thread-safe."""

    def __init__(self, plan: RunPlan) -> None:
        self._plan, self._policy = plan, plan.policy
        self.tasks = {key: RunTask(key) for key in plan.tasks}
        #: Counts from 1; a gang restart begins the next one.
        self.attempt = 0
        self.restarts_used = 0
        self.verdict: Verdict | None = None
        self._deadline: float | None = None
        #: The first failure for good, and until when the others may end by themselves.
        self._failure: Verdict | None = None
        self._patience: float | None = None
        #: Until when the tasks that were told to stop have.
        self._kill_at: float | None = None
        #: When all tasks start again, while they end for that.
        self._again_at: float | None = None

    @property
    def over(self) -> bool:
        return self.verdict is not None and not self._running()

    @property
    def patient(self) -> bool:
        """Whether a task has failed for good, and the others may still end by themselves, for the plan's grace."""
        return self.verdict is None and self._patience is not None

    @property
    def wake(self) -> float | None:
        """When `tick` has something to do; None if only an end of a task can change anything."""
        times = [each for each in (self._deadline, self._patience, self._kill_at) if each is not None]
        if self.verdict is None:
            times += [task.due for task in self.tasks.values() if task.state is RunTaskState.WAITING]
        return min(times, default=None)

    # -- what happens

    def start(self, now: float) -> list[Action]:
        self.attempt = 1
        if self._policy.deadline is not None:
            self._deadline = now + self._policy.deadline
        return self._start_due(now)

    def ended(self, key: TaskKey, code: int, now: float) -> list[Action]:
        """A task has ended; `code` is negative where a signal ended it."""
        task = self.tasks[key]
        task.exit_code = code
        if code == 0 and not task.told:
            task.state = RunTaskState.SUCCEEDED
        else:
            task.state = RunTaskState.STOPPED if task.told else RunTaskState.FAILED
        if self.verdict is not None:
            return self._after_verdict(now)
        if self._again_at is not None:
            return self._gather(now)
        if task.state is RunTaskState.FAILED:
            return [Action(Do.REPORT, key, described(code)), *self._failed(task, now)]
        return self._judge(now)

    def not_started(self, why: str, now: float) -> list[Action]:
        """The engine does not take the tasks that were to start now, as `why` says, and so the run has failed."""
        tasks = [task for task in self.tasks.values() if task.state in (RunTaskState.RUNNING, RunTaskState.WAITING)]
        for task in tasks:
            task.starts -= task.state is RunTaskState.RUNNING
            task.state = RunTaskState.FAILED
        names = ", ".join(task.name for task in tasks[:20]) + (", …" if len(tasks) > 20 else "")
        reason = f"{names} cannot start{' again' if self.attempt > 1 else ''}: {why}"
        return [Action(Do.SAY, text=reason), *self._decide(RunState.FAILED, reason, 1, now)]

    def stop(self, reason: str, now: float, exit_code: int = 0) -> list[Action]:
        """Somebody wants the run to end now."""
        if self.verdict is None:
            self.verdict = Verdict(RunState.STOPPED, reason, exit_code)
        return self._terminate(now)

    def tick(self, now: float) -> list[Action]:
        """What is due by now."""
        if self._kill_at is not None and now >= self._kill_at:
            self._kill_at = None
            return [Action(Do.KILL, task.key) for task in self._running()]
        if self.verdict is not None:
            if self._patience is not None and now >= self._patience:
                return self._terminate(now)
            return []
        if self._deadline is not None and now >= self._deadline:
            text = f"the run's deadline of {self._policy.deadline:g} s has passed"
            return [Action(Do.SAY, text=f"{text}: stopping all tasks."), *self._decide(RunState.FAILED, text, 1, now)]
        if self._patience is not None and now >= self._patience:
            assert self._failure is not None
            left = ", ".join(task.name for task in self._running() if task.key[0] != SERVERS)
            said = Action(Do.SAY, text=f"{self._policy.grace:g} s after the first failure: stopping {left}.")
            self.verdict, self._patience = self._failure, None
            return [said, *self._terminate(now)]
        return self._start_due(now)

    # -- deciding

    def _failed(self, task: RunTask, now: float) -> list[Action]:
        reason = f"{task.name} {described(task.exit_code)}"
        code = task.exit_code or 0
        verdict = Verdict(RunState.FAILED, reason, code if code > 0 else 128 - code, task.key)
        if self._counts(task):
            if self.restarts_used < self._policy.restarts:
                return self._restart(task, now)
            self._failure = self._failure or verdict
            if task.key[0] == SERVERS:
                self.verdict = self._failure
                return [Action(Do.SAY, text="A parameter server is gone: stopping the others."), *self._terminate(now)]
            if self._policy.success != "any":
                self._patience = self._patience or now + self._policy.grace
        return self._judge(now)

    def _counts(self, task: RunTask) -> bool:
        """Whether the task's failure matters: not where it is not among those whose success counts."""
        return self._policy.success != "chief" or task.key[0] == SERVERS or task.key == self._plan.chief

    def _restart(self, task: RunTask, now: float) -> list[Action]:
        self.restarts_used += 1
        left = self._policy.restarts - self.restarts_used
        pause = self._policy.pause(self.restarts_used)
        who = "all tasks" if self._policy.gang else task.name
        when = f" in {pause:g} s" if pause else ""
        said = Action(Do.SAY, text=f"Starting {who} again{when}; {left} more restarts allowed.")
        if not self._policy.gang:
            task.state, task.due = RunTaskState.WAITING, now + pause
            return [said, *self._start_due(now)]
        self._again_at = now + pause
        return [said, *self._terminate(now), *self._gather(now)]

    def _gather(self, now: float) -> list[Action]:
        """Starts the next attempt once no task of the last one runs any more."""
        if self._running():
            return self._terminate_servers(now)
        assert self._again_at is not None
        due, self._again_at, self._kill_at, self._failure, self._patience = self._again_at, None, None, None, None
        self.attempt += 1
        for task in self.tasks.values():
            task.state, task.due, task.exit_code, task.told = RunTaskState.WAITING, due, None, False
        return self._start_due(now)

    def _judge(self, now: float) -> list[Action]:
        """The verdict, if the ends so far allow one."""
        able = [task for task in self.tasks.values() if task.key[0] != SERVERS]
        done = [task for task in able if task.state is RunTaskState.SUCCEEDED]
        left = [task for task in able if task.state in (RunTaskState.RUNNING, RunTaskState.WAITING)]
        if self._policy.success == "any" and done:
            return self._decide(RunState.SUCCEEDED, f"{done[0].name} has finished", 0, now)
        if self._policy.success == "chief" and self.tasks[self._plan.chief] in done:
            return self._decide(RunState.SUCCEEDED, "the chief has finished", 0, now)
        if left:
            return []
        if self._failure is not None:
            self.verdict = self._failure
        else:
            self.verdict = Verdict(RunState.SUCCEEDED, "every worker has finished", 0)
        self._patience, self._deadline = now + self._policy.servers_grace, None
        return self._after_verdict(now)

    def _decide(self, state: RunState, reason: str, exit_code: int, now: float) -> list[Action]:
        self.verdict = Verdict(state, reason, exit_code)
        return self._terminate(now)

    # -- starting and ending

    def _start_due(self, now: float) -> list[Action]:
        actions = []
        for task in self.tasks.values():
            if task.state is RunTaskState.WAITING and task.due <= now:
                task.state, task.exit_code = RunTaskState.RUNNING, None
                task.starts += 1
                actions.append(Action(Do.START, task.key))
        return actions

    def _after_verdict(self, now: float) -> list[Action]:
        if not self._running():
            self._patience = self._kill_at = None
            return []
        return self._terminate_servers(now) if self._kill_at is not None else []

    def _terminate(self, now: float) -> list[Action]:
        """SIGTERM to all that run; parameter servers get it when nobody else runs any more."""
        self._patience = None
        if self.verdict is not None:
            self._deadline = None
            for task in self.tasks.values():
                if task.state is RunTaskState.WAITING:
                    task.state = RunTaskState.STOPPED
        if self._kill_at is None:
            self._kill_at = now + self._policy.stop_grace
        told = [task for task in self._running() if task.key[0] != SERVERS and not task.told]
        for task in told:
            task.told = True
        return [*(Action(Do.TERMINATE, task.key) for task in told), *self._terminate_servers(now)]

    def _terminate_servers(self, now: float) -> list[Action]:
        running = self._running()
        if any(task.key[0] != SERVERS for task in running):
            return []
        told = [task for task in running if not task.told]
        for task in told:
            task.told = True
        return [Action(Do.TERMINATE, task.key) for task in told]

    def _running(self) -> list[RunTask]:
        return [task for task in self.tasks.values() if task.state is RunTaskState.RUNNING]
