"""The JSON of runs. Requests forbid members that they do not know."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator

from tenfold_control_api.figures import TableFigures, Tables
from tenfold_control_api.models import Condition, Size, TablesView
from tenfold_control_api.runs.detail_models import (
    DisplayName,
    Notes,
    Parameters,
    ParameterValue,
    Recorded,
    Source,
    SourceView,
    Tags,
)
from tenfold_control_api.runs.details import GIVEN
from tenfold_control_api.why.models import WhyOrder
from tenfold_core.run_states import RunState, RunTaskState

_NO_NULL = r"^[^\x00]*$"
Text = Annotated[str, StringConstraints(max_length=4000, pattern=_NO_NULL)]
SubmissionId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$")]
Job = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.\-]{1,63}$")]
Seconds = Annotated[float, Field(ge=0, le=1e9, allow_inf_nan=False)]
#: Wall-clock seconds.
Moment = Annotated[float, Field(ge=0, le=1e11, allow_inf_nan=False)]


class _Part(BaseModel):
    """Of a request: JSON's types as they are, so that neither true nor "1" passes for a number."""

    model_config = ConfigDict(strict=True)


class _Request(_Part):
    model_config = ConfigDict(extra="forbid")


class Process(_Part):
    model_config = ConfigDict(extra="forbid")
    host: Annotated[str, StringConstraints(max_length=300, pattern=_NO_NULL)]
    pid: int


class Restarts(_Request):
    """How failed tasks restart: `limit` times in total, after a pause that doubles."""

    limit: Annotated[int, Field(strict=True, ge=0, le=1_000_000)] = 0
    gang: bool = Field(
        strict=True, default=True, description="Whether a failure restarts every task, instead of only the failed one."
    )
    backoff: Seconds = 1.0
    longest_backoff: Seconds = 60.0


class TaskResources(_Request):
    """What each task of a job needs."""

    cores: Annotated[int, Field(strict=True, ge=1, le=100_000)] | None = Field(
        default=None, description="Processor cores; default: the engine's own choice."
    )
    memory: Annotated[int, Field(strict=True, ge=1, le=1 << 50)] | None = Field(
        default=None, description="Bytes; default: the engine's own choice."
    )
    gpus: Annotated[int, Field(strict=True, ge=0, le=1000)] = Field(default=0, description="How many GPUs.")


class RunSubmission(_Request):
    """A program to run as every task of a cluster: on the service's machine or, with `external`, where the caller runs
    it."""

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
    launcher: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,15}$")] = Field(
        default="local",
        description=(
            "What starts its tasks: `local`, this service on its machine; `ssh`, `slurm` or another of "
            "`tenfold launchers`, through a supervisor on its machine; `external`, the caller, who reports "
            "with `:report`."
        ),
    )
    launcher_options: Annotated[dict[Text, Text], Field(max_length=100)] = Field(
        default={}, description="Options of the launcher, as `tenfold launchers NAME` lists them."
    )
    resources: Annotated[dict[Job, TaskResources], Field(max_length=100)] = Field(
        default={}, description="By job, for a launcher that reserves resources."
    )
    submission_id: SubmissionId | None = Field(
        default=None,
        description="The same id with the same submission is the same run; without an id the run gets its own.",
    )
    entrypoint: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    working_dir: Text | None = Field(default=None, description="An absolute path on the service's machine.")
    package: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None, description="Instead of working_dir: the sha256 of a zip file, uploaded to /v1/packages."
    )
    environment: Annotated[dict[Text, Text], Field(max_length=1000)] = {}
    jobs: Annotated[dict[str, Size], Field(min_length=1, max_length=100)] = {"ps": 1, "worker": 2}
    success: Literal["chief", "all", "any"] = Field(
        default="all", description="Which tasks must end with exit code 0: the chief, every worker, or any worker."
    )
    restarts: Restarts = Restarts()
    deadline: Annotated[float, Field(gt=0, le=1e9, allow_inf_nan=False)] | None = Field(
        default=None, description="Seconds after which the run fails, restarts included."
    )
    grace: Seconds = Field(
        default=30.0, description="Seconds that the other tasks have to end once a task has failed for good."
    )
    stop_grace: Seconds = Field(default=10.0, description="Seconds between SIGTERM and SIGKILL.")
    guide_flags: bool = Field(default=False, description="Add --ps_hosts, --job_name, … to the arguments.")
    as_tensorflow: bool = Field(default=False, description="Make `import tensorflow` import Tenfold.")
    display_name: DisplayName | None = Field(default=None, description="The run's display name.")
    tags: Tags = []
    notes: Notes = ""
    parameters: Parameters = Field(default={}, description="Parameters that the program does not record by itself.")
    source: Source | None = Field(default=None, description="The commit of the working directory, if it is known.")

    @field_validator("environment")
    @classmethod
    def _names(cls, value: dict[str, str]) -> dict[str, str]:
        for name in value:
            if not name or "=" in name:
                raise ValueError(f"{name!r} is not a name of a variable")
        return value


class RunJoin(_Request):
    """A running program to be listed as a task of its cluster's run, or of its program's run."""

    key: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{16,32}$")] = Field(
        description="The same for all programs that belong together, as a hash of the cluster spec."
    )
    job: Job
    index: Annotated[int, Field(strict=True, ge=0, lt=1_000_000)] | None = Field(
        default=None, description="Default: the next free one."
    )
    jobs: Annotated[dict[Job, Size], Field(max_length=100)] = Field(
        default={}, description="The known tasks of the cluster."
    )
    entrypoint: Annotated[list[Text], Field(min_length=1, max_length=1000)]
    working_dir: Text | None = None
    process: Process
    create: bool = Field(
        strict=True,
        default=True,
        description="Whether to start a run if there is no active one; otherwise that is 404.",
    )


class RunStop(_Request):
    reason: Annotated[str, StringConstraints(max_length=500, pattern=_NO_NULL)] = "stopped by request"


class TaskError(_Part):
    """The error of a failing program, with `node` and `task` if it is an error of the runtime that names them."""

    model_config = ConfigDict(extra="forbid")
    type: Text | None = None
    message: Text | None = None
    node: Text | None = None
    task: Text | None = None


class RunTaskReport(_Part):
    """One task as its supervisor sees it. `exit_code` is negative if a signal ended it."""

    model_config = ConfigDict(extra="forbid")
    job: Annotated[str, StringConstraints(max_length=63, pattern=_NO_NULL)]
    index: Annotated[int, Field(ge=0)]
    state: Annotated[RunTaskState, Field(strict=False)]
    starts: Annotated[int, Field(ge=0)] = 0
    host: Annotated[str, StringConstraints(max_length=300, pattern=_NO_NULL)] | None = None
    pid: int | None = None
    page: Annotated[str, StringConstraints(max_length=1000, pattern=r"^https?://[^\s\x00]+$")] | None = Field(
        default=None, description="The engine's page for it, such as a page of Ray's dashboard."
    )
    exit_code: Annotated[int, Field(ge=-255, le=255)] | None = None
    started: Moment | None = None
    ended: Moment | None = None
    error: TaskError | None = None
    last_lines: Annotated[list[Text], Field(max_length=200)] = []


class RunReport(_Request):
    """Report a run's state, from its supervisor."""

    state: Annotated[RunState, Field(strict=False)]
    reason: Text
    attempt: Annotated[int, Field(ge=0)] = 0
    restarts: Annotated[int, Field(ge=0)] = 0
    tasks: Annotated[list[RunTaskReport], Field(max_length=10_000)] = []
    supervisor: Process


Number = Annotated[float, Field(allow_inf_nan=False)] | Literal["NaN", "Infinity", "-Infinity"]
Name = Annotated[str, StringConstraints(min_length=1, max_length=300, pattern=_NO_NULL)]


class Distribution(_Part):
    """The values of a tensor in a histogram: percentiles, and the square root of the sum of their squares."""

    model_config = ConfigDict(extra="forbid")
    lowest: Number
    p5: Number
    median: Number
    p95: Number
    highest: Number
    norm: Number


class ProgressPoint(_Part):
    """Scalars and histograms at a time (wall-clock seconds) and, if it is known, a global step."""

    model_config = ConfigDict(extra="forbid")
    time: Moment
    step: int | None = None
    values: Annotated[dict[Name, Number], Field(max_length=100)] = {}
    distributions: Annotated[dict[Name, Distribution], Field(max_length=100)] = {}


class CheckpointReport(_Part):
    model_config = ConfigDict(extra="forbid")
    time: Moment
    path: Text


Rate = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class ProgramEnding(BaseModel):
    """How a program has ended; without an exit code if it reported none."""

    model_config = ConfigDict(extra="forbid")
    state: Literal[RunTaskState.SUCCEEDED, RunTaskState.FAILED, RunTaskState.STOPPED]
    exit_code: Annotated[int, Field(ge=-255, le=255)] | None = None
    error: TaskError | None = None


class ProgramReport(_Request):
    """Report a program's progress, from inside it. `steps` counts what its sessions have run."""

    steps: Annotated[int, Field(ge=0)] = 0
    global_step: int | None = None
    last_step: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="The global step at which its training stops, where it knows."
    )
    steps_per_second: Rate | None = None
    examples_per_second: Rate | None = Field(
        default=None, description="Computed from the batches that it feeds, or reported by its hooks."
    )
    process: Process | None = Field(default=None, description="The process that reports, if it joined its run.")
    ending: ProgramEnding | None = Field(
        default=None, description="The last report of a program that joined its run: how it has ended."
    )
    points: Annotated[list[ProgressPoint], Field(max_length=2000)] = []
    checkpoints: Annotated[list[CheckpointReport], Field(max_length=2000)] = []
    logdirs: Annotated[list[Text], Field(max_length=100, description="Folders with event files for TensorBoard.")] = []
    recorded: Recorded | None = Field(default=None, description="The program's recorded facts, if they are new.")
    figures: Annotated[dict[Name, Annotated[float, Field(allow_inf_nan=False)]], Field(max_length=100)] = {}
    tables: Tables = Field(default=[], description="The largest tables of the program's servers.")


# -- answers


class TraceOrder(BaseModel):
    """A trace of the program's next `steps` steps, as far as they run within `seconds`."""

    id: str
    steps: int
    seconds: float
    max_bytes: int = Field(description="The maximum size of the upload.")


class ProgramReportView(BaseModel):
    """The next report is due in `heartbeat` s, here or at one of `services`, which share the database. `stop` is the
    reason why a program that joined its run is to end."""

    heartbeat: float
    stop: str | None = None
    trace: TraceOrder | None = Field(default=None, description="A trace that the program is to record and upload.")
    why: WhyOrder | None = Field(default=None, description="A question that the program is to answer immediately.")
    services: list[str] = []


class RunPlaceView(BaseModel):
    """The run and the task that the program has joined. The next report is due in `heartbeat` s."""

    run: str
    job: str
    index: int
    heartbeat: float


class RunTrace(_Request):
    """The steps of a run to trace."""

    steps: Annotated[int, Field(ge=1, le=100)] = Field(
        default=1, description="The number of next steps of each program."
    )
    tasks: Annotated[list[Text], Field(max_length=1000)] = Field(
        default=[], description='Only these tasks, as "worker/0"; default: all except the parameter servers.'
    )


class ProgressView(BaseModel):
    """A run's progress: the newest values that its programs reported, preferring the chief's."""

    global_step: int | None
    steps_per_second: float | None
    examples_per_second: float | None = Field(default=None, description="Of all its programs together, if it is known.")
    last_step: int | None = Field(
        default=None, description="The global step at which the training stops; null where it does not say."
    )
    percent: float | None = Field(default=None, description="`global_step` of `last_step`, from 0 to 100.")
    seconds_left: float | None = Field(
        default=None,
        description="Until `last_step`, at the pace of the last five minutes; null where no end or no pace is known, "
        "and for a run that has ended.",
    )
    values: dict[str, Number]
    checkpoint: str | None = Field(description="The newest checkpoint.")
    updated: str


class CurveView(BaseModel):
    """A scalar over time; a long one is thinned out evenly."""

    times: list[float] = Field(description="Wall-clock seconds.")
    steps: list[int | None]
    values: list[Number]


class DistributionView(BaseModel):
    """A histogram over time; a long one is thinned out evenly."""

    times: list[float] = Field(description="Wall-clock seconds.")
    steps: list[int | None]
    lowest: list[Number]
    p5: list[Number] = Field(description="5% of the values are below it.")
    median: list[Number]
    p95: list[Number]
    highest: list[Number]
    norm: list[Number] = Field(description="The Euclidean norm of all values.")


class TaskProgressView(BaseModel):
    job: str
    index: int
    updated: str
    steps: int
    global_step: int | None
    last_step: int | None = Field(
        default=None, description="The global step at which its training stops; null where it does not say."
    )
    steps_per_second: float | None
    examples_per_second: float | None = None
    curves: dict[str, CurveView]
    global_steps: CurveView = Field(description="The global steps that it reported.")
    speed: CurveView = Field(description="Steps per second.")
    used: dict[str, CurveView] = Field(
        default={},
        description="What its process uses: bytes of memory, of variables and of tables, rows of tables, processor "
        "cores, and bytes sent and received per second.",
    )
    distributions: dict[str, DistributionView] = Field(
        default={}, description="The histograms that it writes as summaries, such as those of its variables."
    )
    checkpoints: list[CheckpointReport]
    logdirs: list[str] = Field(description="Folders, on its host, with event files for TensorBoard.")
    figures: dict[str, float] = Field(description="What the program uses: bytes of memory, seconds of processor …")
    tables: list[TableFigures] = Field(default=[], description="The largest tables of its servers.")


class RunProgressView(BaseModel):
    run: str
    progress: ProgressView | None
    tasks: list[TaskProgressView]
    tables: TablesView | None = Field(default=None, description="Tables of all its tasks; null if none reports one.")


class ReportView(BaseModel):
    """`stop` is the reason why the run is to stop, otherwise null; the next report is due in `heartbeat` s, here
    or at one of `services`, which share the database."""

    state: RunState
    stop: str | None
    heartbeat: float
    services: list[str] = []


class RunTaskView(BaseModel):
    name: str
    job: str
    index: int
    state: RunTaskState
    starts: int
    host: str | None
    pid: int | None
    page: str | None = Field(default=None, description="The engine's page for it, such as a page of Ray's dashboard.")
    exit_code: int | None
    signal: str | None = Field(description="The signal that ended it, e.g. SIGKILL.")
    started: str | None
    ended: str | None
    error: TaskError | None
    last_lines: list[str] = Field(description="Its last output, if the task failed.")


class RunView(BaseModel):
    """One run, with only the names of its environment variables."""

    name: str
    uid: str
    version: int
    state: RunState
    conditions: list[Condition]
    submission_id: str
    launcher: str
    entrypoint: list[str]
    working_dir: str | None
    package: str | None
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
    progress: ProgressView | None = Field(description="Null until a program has reported a step.")
    tasks: list[RunTaskView]
    display_name: str | None = None
    tags: list[str] = []
    notes: str = ""
    parameters: dict[str, ParameterValue] = {}
    versions: dict[str, str] = {}
    seed: int | None = None
    source: SourceView | None = None


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
    left_out = {"submission_id", "launcher", *GIVEN}
    # as submissions were before there were these: the same one is still the same
    left_out |= {name for name in ("launcher_options", "resources") if not getattr(submission, name)}
    return submission.model_dump(mode="json", exclude=left_out)


def given_details(submission: RunSubmission) -> dict[str, Any]:
    """What the submitter calls the run: the same submission under another name is still the same."""
    return submission.model_dump(mode="json", include=set(GIVEN))
