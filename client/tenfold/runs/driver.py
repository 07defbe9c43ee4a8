"""Runs a plan: has its tasks started by a launcher and does what machine.py decides, until nothing runs any more.

Used by `tenfold run` and by supervise.py. One thread drives; `stop` may be called on any. What an observer gets is a
report in the form that the control service takes.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tenfold.launchers.interface import LaunchRefusedError
from tenfold.runs.machine import Action, Do, RunMachine, RunTask, TaskKey, Verdict
from tenfold_core.run_states import SERVERS, RunState, RunTaskState, error_line, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tenfold.launchers.interface import TaskProcesses
    from tenfold.runs.plan import RunPlan

#: Stages of the children: parameter servers are stopped after the workers.
_SERVER_STAGE, _WORKER_STAGE = 0, 1
#: Last lines of a task that failed, as the report has them.
LAST_LINES = 50
#: Characters of one of them.
_CHARACTERS = 2000

Report = dict[str, Any]


class RunDriver:
    """One run of `plan`, as the tasks of `processes`. `run` drives it to its end."""

    def __init__(
        self,
        plan: RunPlan,
        processes: TaskProcesses,
        *,
        say: Callable[[str], None],
        observe: Callable[[Report], None] | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """`say` shows a line to who watches. `observe` is called with each new report, and must not block.
        `environment` goes to every task besides the plan's."""
        self._plan, self._processes, self._say, self._observe = plan, processes, say, observe
        self._environment = dict(environment or {})
        self._machine = RunMachine(plan)
        self._cluster: dict[str, list[str]] = {}
        self._attempt = 0
        #: What a report says of a task besides what the machine knows.
        self._notes: dict[TaskKey, Report] = {key: {} for key in plan.tasks}
        #: Why the run is to stop, and the exit code of that, until it is taken up.
        self._asked: tuple[str, int] | None = None
        self._stopped = False

    def stop(self, reason: str, exit_code: int = 0) -> None:
        """Asks the run to end now, with that exit code for a shell. Never blocks; from any thread. The first one
        counts."""
        self._asked = self._asked or (reason, exit_code)
        self._processes.wake()

    def run(self) -> Verdict:
        """Drives until the run is over. Blocks. Raises LaunchRefusedError where not a task could be started; a refusal
        at a restart ends the run as failed."""
        self._do(self._machine.start(time.monotonic()))
        while not self._machine.over:
            self._next()
        verdict = self._machine.verdict
        assert verdict is not None
        return verdict

    def not_started(self, why: str) -> Report:
        """Ends a run that the engine does not take, as `why` says; the last report, which names the tasks."""
        if self._machine.verdict is None:
            self._machine.not_started(why, time.monotonic())
        return self.report()

    def report(self) -> Report:
        """The run as it is now, in the form of `POST /v1/runs/{run}:report`."""
        machine = self._machine
        tasks = [self._task(task) for task in machine.tasks.values()]
        state = RunState.RUNNING
        if machine.verdict is not None:
            reason = self._reason(machine.verdict)
            state = machine.verdict.state if machine.over else RunState.RUNNING
        else:
            grace = f"the others have {self._plan.policy.grace:g} s to end by themselves"
            reason = standing(tasks, *([grace] if machine.patient else []))[:_CHARACTERS]
        return {
            "state": str(state),
            "reason": reason,
            "attempt": machine.attempt,
            "restarts": machine.restarts_used,
            "tasks": tasks,
        }

    @property
    def all_finished(self) -> bool:
        """Whether every task but the parameter servers has ended with exit code 0."""
        return all(task.exit_code == 0 for task in self._machine.tasks.values() if task.key[0] != SERVERS)

    # -- inside

    def _next(self) -> None:
        """Waits for what comes first: the end of a task, a wish to stop, the machine's next time."""
        machine = self._machine
        if self._to_stop():
            assert self._asked is not None
            reason, exit_code = self._asked
            self._stopped = True
            self._do(machine.stop(reason, time.monotonic(), exit_code))
            return
        running = {task.name: task.key for task in machine.tasks.values() if task.state is RunTaskState.RUNNING}
        wake = machine.wake
        left = None if wake is None else max(0.0, wake - time.monotonic())
        ended = self._processes.wait_for_exit(list(running), left, unless=self._to_stop)
        if ended is not None:
            name, code = ended
            key = running[name]
            self._notes[key].update(ended=time.time(), **self._processes.place(name), **self._failure(name, code))
            self._do(machine.ended(key, code, time.monotonic()))
        elif wake is not None and time.monotonic() >= wake:
            self._do(machine.tick(time.monotonic()))

    def _to_stop(self) -> bool:
        return self._asked is not None and not self._stopped

    def _do(self, actions: list[Action]) -> None:
        for action in actions:
            task = self._machine.tasks[action.task] if action.task is not None else None
            match action.do:
                case Do.SAY:
                    self._say(action.text)
                case Do.REPORT if task is not None:
                    # what the task wrote has been shown
                    self._say(f"Error: {task.name} {action.text}{self._error(task.key)}")
                case Do.START if task is not None:
                    try:
                        self._start(task)
                    except LaunchRefusedError as error:
                        if self._machine.attempt == 1:
                            raise
                        # the first task of an attempt asks for all: none of them has started
                        self._do(self._machine.not_started(str(error), time.monotonic()))
                        return
                case Do.TERMINATE if task is not None:
                    self._processes.terminate(task.name)
                case Do.KILL if task is not None:
                    self._processes.kill(task.name)
        if self._machine.over:
            self._processes.clear()
        if self._observe is not None:
            self._observe(self.report())

    def _start(self, task: RunTask) -> None:
        if self._machine.attempt != self._attempt:
            if self._attempt:
                self._processes.clear()
            self._attempt, self._cluster = self._machine.attempt, self._processes.addresses(self._plan.cluster)
        job, index = task.key
        self._processes.start(
            task.name,
            self._plan.arguments(job, index, self._cluster),
            stage=_SERVER_STAGE if job == SERVERS else _WORKER_STAGE,
            env={
                **self._environment,
                **self._plan.variables(job, index, self._cluster),
                "TENFOLD_ATTEMPT": str(self._attempt),
            },
            interpreter=self._plan.interpreter,
        )
        self._notes[task.key] = {"started": time.time(), **self._processes.place(task.name)}

    def _failure(self, name: str, code: int) -> Report:
        """What the report says of a task that failed: the error that it left, and its last lines."""
        if code == 0:
            return {}
        lines = [line[:_CHARACTERS] for line in self._processes.last_lines(name, LAST_LINES)]
        return {"last_lines": lines, "error": self._processes.error(name)}

    def _reason(self, verdict: Verdict) -> str:
        """Why the run ended so, with the error of the task whose failure it is."""
        return verdict.reason + ("" if verdict.task is None else self._error(verdict.task))

    def _error(self, key: TaskKey) -> str:
        """ ": InvalidArgumentError, node x, task /job:ps/replica:0/task:0: why"; empty where the task left none."""
        return error_line(self._notes[key].get("error"))[:_CHARACTERS]

    def _task(self, task: RunTask) -> Report:
        job, index = task.key
        return {
            "job": job,
            "index": index,
            "state": str(task.state),
            "starts": task.starts,
            "exit_code": task.exit_code,
            "host": None,
            **self._notes[task.key],
        }
