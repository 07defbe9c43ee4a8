"""The JSON of runs. Requests forbid members that they do not know."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from tenfold_control_api.models import Condition, Size
from tenfold_core.run_states import RunState, RunTaskState

_NO_NULL = r"^[^\x00]*$"
Text = Annotated[str, StringConstraints(max_length=4000, pattern=_NO_NULL)]
SubmissionId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
#: Wall-clock seconds.
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Restarts(_Request):
    """How failed tasks are started again: `limit` times in all, after a pause that doubles."""

    limit: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] = 0
    gang: bool = Field(default=True, description="Whether a failure starts every task again, and not just that one.")
    backoff: Seconds = 1.0
    longest_backoff: Seconds = 60.0


class RunSubmission(_Request):
    """A program to run as every task of a cluster on the service's machine."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "submission_id": "mnist-1",
                    "entrypoint": ["python", "trainer.py", "--steps", "2000"],
                    "working_dir": "/home/me/mnist",
                    "jobs": {"ps": 1, "worker": 2},
                }
            ]
        },
    )
    submission_id: SubmissionId | None = Field(
        default=None, description="The same one with the same submission is the same run; without one it gets its own."
    )
    entrypoint: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    working_dir: Text | None = Field(default=None, description="An absolute path on the service's machine.")
    environment: Annotated[dict[Text, Text], Field(max_length=1000)] = {}
    jobs: Annotated[dict[str, Size], Field(min_length=1, max_length=100)] = {"ps": 1, "worker": 2}
    success: Literal["chief", "all", "any"] = Field(
        default="all", description="Who has to end with exit code 0: the chief, every worker, or any one."
    )
    restarts: Restarts = Restarts()
    deadline: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="Seconds after which the run fails, restarts included."
    )
    grace: Seconds = Field(default=30.0, description="Seconds that the others get once a task has failed for good.")
    stop_grace: Seconds = Field(default=10.0, description="Seconds between SIGTERM and SIGKILL.")
    guide_flags: bool = Field(default=False, description="Add --ps_hosts, --job_name, … to the arguments.")
    as_tensorflow: bool = Field(default=False, description="Let `import tensorflow` give Tenfold.")

    @field_validator("environment")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name or "=" in name:
                raise ValueError(f"{name!r} is no name of a variable")
        return value


class RunStop(_Request):
    reason: Annotated[str, StringConstraints(max_length=500, pattern=_NO_NULL)] = "stopped by request"


class TaskError(BaseModel):
    """What a failing program raised; `node` and `task` for an error of the runtime that names them."""

    model_config = ConfigDict(extra="forbid")
    type: Text | None = None
    message: Text | None = None
    node: Text | None = None
    task: Text | None = None


class RunTaskReport(BaseModel):
    """One task as its supervisor sees it. `exit_code` is negative where a signal ended it."""

    model_config = ConfigDict(extra="forbid")
    job: Annotated[str, StringConstraints(max_length=63, pattern=_NO_NULL)]
    index: Annotated[int, Field(ge=0)]
    state: RunTaskState
    starts: Annotated[int, Field(ge=0)] = 0
    host: Annotated[str, StringConstraints(max_length=300, pattern=_NO_NULL)] | None = None
    pid: int | None = None
    exit_code: Annotated[int, Field(ge=-255, le=255)] | None = None
    started: Moment | None = None
    ended: Moment | None = None
    error: TaskError | None = None
    last_lines: Annotated[list[Text], Field(max_length=200)] = []


class Supervisor(BaseModel):
    model_config = ConfigDict(extra="forbid")
    host: Annotated[str, StringConstraints(max_length=300, pattern=_NO_NULL)]
    pid: int


class RunReport(_Request):
    """How a run goes, from its supervisor."""

    state: RunState
    reason: Text
    attempt: Annotated[int, Field(ge=0)] = 0
    restarts: Annotated[int, Field(ge=0)] = 0
    tasks: Annotated[list[RunTaskReport], Field(max_length=10_000)] = []
    supervisor: Supervisor


# -- answers


class ReportView(BaseModel):
    """`stop` is the reason why the run is to stop, null while it is not; the next report is due in `heartbeat` s."""

    state: RunState
    stop: str | None
    heartbeat: float


class RunTaskView(BaseModel):
    name: str
    job: str
    index: int
    state: RunTaskState
    starts: int
    host: str | None
    pid: int | None
    exit_code: int | None
    signal: str | None = Field(description="The signal that ended it, e.g. SIGKILL.")
    started: str | None
    ended: str | None
    error: TaskError | None
    last_lines: list[str] = Field(description="What it wrote last; of a task that failed.")


class RunView(BaseModel):
    """One run. Of the environment it shows the names alone."""

    name: str
    uid: str
    version: int
    state: RunState
    conditions: list[Condition]
    submission_id: str
    launcher: str
    entrypoint: list[str]
    working_dir: str | None
    environment: list[str]
    jobs: dict[str, int]
    success: str
    restarts: Restarts
    deadline: float | None
    reason: str
    stop: str | None
    attempt: int
    restarts_used: int
    created: str
    started: str | None
    ended: str | None
    tasks: list[RunTaskView]


class RunList(BaseModel):
    runs: list[RunView]
    next: str | None = Field(description="`after` of the next page; null on the last one.")


class LogLine(BaseModel):
    time: str
    level: str
    task: str
    text: str


class LogPage(BaseModel):
    run: str
    lines: list[LogLine]


def dumped(submission: RunSubmission) -> dict[str, Any]:
    """As it is kept: all members, none chosen by the service."""
    return submission.model_dump(mode="json", exclude={"submission_id"})
