"""What a run starts, and when it counts as a success: values, read from JSON and checked."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, get_args

from tenfold.launchers.interface import LaunchRequest, Resources
from tenfold.runs.entrypoint import Entrypoint, read_entrypoint
from tenfold_core.run_states import EVALUATOR, SERVERS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Who has to end with exit code 0: the chief (`chief`, `master`, else worker 0), every worker, or any one of them.
Success = Literal["chief", "all", "any"]


@dataclass(frozen=True, slots=True)
class RunPolicy:
    """When a run is over, and how. Times are seconds."""

    success: Success = "all"
    #: How many times failed tasks are started again, all together.
    restarts: int = 0
    #: Whether a failure starts every task again, and not just the one that failed.
    gang: bool = False
    #: Pause before the first restart; each further one waits twice as long, `longest_backoff` at most.
    backoff: float = 0.0
    longest_backoff: float = 60.0
    #: The whole run, restarts included, fails after this time.
    deadline: float | None = None
    #: What the others get to end by themselves once a task has failed for good.
    grace: float = 30.0
    #: What a task gets between SIGTERM and SIGKILL.
    stop_grace: float = 10.0
    #: What parameter servers get to notice that the workers are done, and end by themselves.
    servers_grace: float = 5.0

    def __post_init__(self) -> None:
        if self.success not in get_args(Success):
            raise ValueError(f"success is {self.success!r}; it is one of {', '.join(get_args(Success))}")
        for name in ("restarts", "backoff", "longest_backoff", "grace", "stop_grace", "servers_grace"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} is {getattr(self, name)}; it cannot be negative")
        if self.deadline is not None and self.deadline <= 0:
            raise ValueError(f"deadline is {self.deadline} s; it must be more than 0")

    def pause(self, restart: int) -> float:
        """Seconds before restart number `restart`, which counts from 1."""
        # 2 ** 63 is beyond every pause, and bounds the number
        return float(min(self.backoff * 2 ** min(restart - 1, 63), self.longest_backoff))


@dataclass(frozen=True, slots=True)
class RunPlan:
    """Tasks, their program, and how it learns who it is."""

    #: Job → number of tasks, parameter servers first.
    jobs: Mapping[str, int]
    #: A file and its arguments, `-m`, a module and its arguments, or with `command` any command.
    program: tuple[str, ...]
    #: Whether the program is a command of its own, and not Python's.
    command: bool = False
    #: Options of Python itself.
    interpreter: tuple[str, ...] = ()
    #: Whether --ps_hosts, --worker_hosts, --job_name and --task_index are added, as in TensorFlow's guide.
    guide_flags: bool = False
    as_tensorflow: bool = False
    #: Added to the environment of every task.
    environment: Mapping[str, str] = field(default_factory=dict)
    policy: RunPolicy = RunPolicy()
    #: By job, for launchers that give tasks what they ask for.
    resources: Mapping[str, Resources] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not any(job != SERVERS for job in self.jobs):
            raise ValueError("there is nobody to end the run: it needs a worker or a chief besides parameter servers")

    @property
    def entrypoint(self) -> list[str]:
        """The program as a user would type it."""
        return Entrypoint(self.program, self.command, self.interpreter).whole

    @property
    def tasks(self) -> list[tuple[str, int]]:
        """Every (job, index), parameter servers first."""
        return [(job, index) for job, size in self.jobs.items() for index in range(size)]

    @property
    def cluster(self) -> dict[str, int]:
        """The jobs whose tasks know each other."""
        return {job: size for job, size in self.jobs.items() if job != EVALUATOR}

    @property
    def chief(self) -> tuple[str, int]:
        """The task that leads: the only one of `chief` or `master`, else worker 0, else the first that is no server."""
        leaders = [(job, 0) for job in ("chief", "master", "worker") if job in self.jobs]
        return next(iter(leaders or (task for task in self.tasks if task[0] != SERVERS)))

    def request(self, run: str, working_dir: str, options: Mapping[str, str], page: str = "") -> LaunchRequest:
        """What a launcher is asked for. `page`: where people watch the run."""
        file = Entrypoint(self.program, self.command).file
        files = [] if file is None else [file]
        return LaunchRequest(run, self.jobs, working_dir, files, self.resources, options, page)

    def arguments(self, job: str, index: int, cluster: Mapping[str, list[str]]) -> list[str]:
        """The task's program and arguments, as children.py takes them."""
        wrapped = ["-m", "tenfold.cli.run_as_tensorflow"] if self.as_tensorflow else []
        if self.command:
            wrapped = ["-m", "tenfold.cli.run_command"]
        flags: list[str] = []
        if self.guide_flags:
            flags = [f"--{each}_hosts={','.join(tasks)}" for each, tasks in cluster.items()]
            flags += [f"--job_name={job}", f"--task_index={index}"]
        return [*wrapped, *self.program, *flags]

    def variables(self, job: str, index: int, cluster: Mapping[str, list[str]]) -> dict[str, str]:
        """The task's environment: TF_CONFIG, which task it is, and that parameter servers end with the workers."""
        config = {"cluster": dict(cluster), "task": {"type": job, "index": index}}
        return {
            **self.environment,
            "TF_CONFIG": json.dumps(config),
            "TENFOLD_TASK": f"{job}/{index}",
            "TENFOLD_STOP_WITH_WORKERS": "1",
        }


def plan_of(submission: Mapping[str, Any]) -> RunPlan:
    """The plan of a submission as the control service keeps it (`POST /v1/runs`).

    Raises ValueError for one that cannot be run.
    """
    restarts = submission.get("restarts") or {}
    policy = RunPolicy(
        success=submission.get("success", "all"),
        restarts=restarts.get("limit", 0),
        gang=restarts.get("gang", True),
        backoff=restarts.get("backoff", 1.0),
        longest_backoff=restarts.get("longest_backoff", 60.0),
        deadline=submission.get("deadline"),
        grace=submission.get("grace", 30.0),
        stop_grace=submission.get("stop_grace", 10.0),
    )
    entrypoint = read_entrypoint(submission["entrypoint"])
    jobs = submission["jobs"]
    ordered = {job: jobs[job] for job in sorted(jobs, key=lambda job: job != SERVERS)}
    return RunPlan(
        ordered,
        entrypoint.program,
        entrypoint.command,
        interpreter=entrypoint.interpreter,
        guide_flags=bool(submission.get("guide_flags")),
        as_tensorflow=bool(submission.get("as_tensorflow")),
        environment=submission.get("environment") or {},
        policy=policy,
        resources={job: Resources(**needed) for job, needed in (submission.get("resources") or {}).items()},
    )
