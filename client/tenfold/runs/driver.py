"""Runs a plan: starts its tasks as child processes and does what machine.py decides, until nothing runs any more.

Used by `tenfold run` and by supervise.py. One thread drives; `stop` may be called on any. What an observer gets is a
report in the form that the control service takes.
"""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from tenfold.runs.error_file import ERROR_FILE, read_error
from tenfold.runs.machine import Action, Do, RunMachine, RunTask, TaskKey, Verdict
from tenfold_core.blas_env import thread_share
from tenfold_core.exit_codes import described
from tenfold_core.run_states import SERVERS, RunState, RunTaskState, error_line, standing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from tenfold.cli.children import Children
    from tenfold.runs.plan import RunPlan

#: Stages of the children: parameter servers are stopped after the workers.
_SERVER_STAGE, _WORKER_STAGE = 0, 1
#: Last lines of a task that failed, as the report has them.
LAST_LINES = 50
#: Characters of one of them.
_CHARACTERS = 2000

Report = dict[str, Any]


class RunDriver:
    """One run of `plan`, with processes among `children`. `run` drives it to its end."""

    def __init__(
        self,
        plan: RunPlan,
        children: Children,
        *,
        say: Callable[[str], None],
        observe: Callable[[Report], None] | None = None,
        errors: Path | None = None,
        environment: Mapping[str, str] | None = None,
        clear: Callable[[], object] | None = None,
    ) -> None:
        """`say` shows a line to who watches. `observe` is called with each new report, and must not block. `errors`: a
        folder in which failing programs leave what failed. `environment` goes to every task besides the plan's.
        `clear` ends what the tasks have left, where none runs any more: before all start again, and before the end of
        the run is reported. It may block for some seconds."""
        self._plan, self._children, self._say, self._observe = plan, children, say, observe
        self._errors = errors
        self._environment, self._clear = dict(environment or {}), clear
        self._machine = RunMachine(plan)
        self._cluster: dict[str, list[str]] = {}
        self._attempt = 0
        self._share = thread_share(len(plan.tasks))
        self._host = socket.gethostname()
        #: What a report says of a task besides what the machine knows.
        self._notes: dict[TaskKey, Report] = {key: {} for key in plan.tasks}
        #: Why the run is to stop, and the exit code of that, until it is taken up.
        self._asked: tuple[str, int] | None = None
        self._stopped = False

    def stop(self, reason: str, exit_code: int = 0) -> None:
        """Asks the run to end now, with that exit code for a shell. Never blocks; from any thread. The first one
        counts."""
        self._asked = self._asked or (reason, exit_code)
        self._children.wake()

    def run(self) -> Verdict:
        """Drives until the run is over. Blocks."""
        self._do(self._machine.start(time.monotonic()))
        while not self._machine.over:
            self._next()
        verdict = self._machine.verdict
        assert verdict is not None
        return verdict

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
        ended = self._children.wait_for_exit(list(running), left, unless=self._to_stop)
        if ended is not None:
            name, code = ended
            key = running[name]
            self._notes[key].update(ended=time.time(), **self._failure(name, key, code))
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
                    self._say(f"Error: {task.name} {described(task.exit_code)}{self._error(task.key)}")
                case Do.START if task is not None:
                    self._start(task)
                case Do.TERMINATE if task is not None:
                    self._children.terminate(task.name)
                case Do.KILL if task is not None:
                    self._children.kill(task.name)
        if self._machine.over and self._clear is not None:
            self._clear()
        if self._observe is not None:
            self._observe(self.report())

    def _start(self, task: RunTask) -> None:
        if self._machine.attempt != self._attempt:
            if self._attempt and self._clear is not None:
                self._clear()
            self._attempt, self._cluster = self._machine.attempt, free_cluster(self._plan.cluster)
        job, index = task.key
        if task.starts > 1:
            self._children.forget(task.name)
        environment = {
            **self._share,
            "TENFOLD_LINK_PORT": "",  # it is one task's, and all of these are on this machine
            **self._environment,
            **self._plan.variables(job, index, self._cluster),
            "TENFOLD_ATTEMPT": str(self._attempt),
        }
        if self._errors is not None:
            self._error_file(task.key).unlink(missing_ok=True)
            environment[ERROR_FILE] = str(self._error_file(task.key))
        self._children.start(
            task.name,
            self._plan.arguments(job, index, self._cluster),
            stage=_SERVER_STAGE if job == SERVERS else _WORKER_STAGE,
            env=environment,
            interpreter=self._plan.interpreter,
        )
        self._notes[task.key] = {"started": time.time(), "pid": self._children.pid(task.name)}

    def _failure(self, name: str, key: TaskKey, code: int) -> Report:
        """What the report says of a task that failed: the error that it left, and its last lines."""
        if code == 0:
            return {}
        lines = [line[:_CHARACTERS] for line in self._children.last_lines(name, LAST_LINES)]
        return {"last_lines": lines, "error": None if self._errors is None else read_error(self._error_file(key))}

    def _error_file(self, key: TaskKey) -> Path:
        assert self._errors is not None
        return self._errors / f"{key[0]}-{key[1]}.json"

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
            "host": self._host if task.starts else None,
            **self._notes[task.key],
        }


def free_cluster(jobs: Mapping[str, int]) -> dict[str, list[str]]:
    """Job → addresses on free ports of loopback."""
    with ExitStack() as held:
        # all sockets stay open until the end, so that the ports differ
        def address() -> str:
            port = held.enter_context(socket.create_server(("127.0.0.1", 0))).getsockname()[1]
            return f"localhost:{port}"

        return {job: [address() for _ in range(size)] for job, size in jobs.items() if size}
