"""Runs, their progress and logs as the control service tells them. Times are ISO 8601 in UTC, in curves seconds.

Of answers.py's kind; made by run_calls.py.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from tenfold.control.answers import Answer, answer
from tenfold.control.cluster_answers import Condition, TableFigures, Tables
from tenfold.control.ending import Ending


@answer
class TaskError(Answer):
    """What a failing program raised; `node` and `task` for an error of the runtime that names them."""

    type: str | None = None
    message: str | None = None
    node: str | None = None
    task: str | None = None


@answer
class Restarts(Answer):
    """How failed tasks are started again: `limit` times in all, after a pause that doubles."""

    limit: int = 0
    #: Whether a failure starts every task again, and not just that one.
    gang: bool = True
    backoff: float = 1.0
    longest_backoff: float = 60.0


@answer
class Progress(Answer):
    """A run's progress: the newest values that its programs reported, preferring the chief's."""

    global_step: int | None
    steps_per_second: float | None
    #: Of all its programs together, where it is known.
    examples_per_second: float | None = None
    #: The global step at which the training stops, how much of that is done, from 0 to 100, and how many seconds are
    #: left at the pace of the last minutes; each None where it is not known.
    last_step: int | None = None
    percent: float | None = None
    seconds_left: float | None = None
    #: Scalars by name, e.g. the loss; "NaN", "Infinity" and "-Infinity" are texts.
    values: Mapping[str, float | str]
    #: The newest checkpoint.
    checkpoint: str | None
    updated: str


@answer
class RunTask(Answer):
    """A task of a run."""

    name: str
    job: str
    index: int
    #: waiting | running | succeeded | failed | stopped
    state: str
    starts: int
    host: str | None
    pid: int | None
    exit_code: int | None
    #: The signal that ended it, e.g. SIGKILL.
    signal: str | None
    started: str | None
    ended: str | None
    error: TaskError | None
    #: What it wrote last; of a task that failed.
    last_lines: tuple[str, ...]
    #: Where its engine shows it, an http or https URL.
    page: str | None = None


@answer
class Source(Answer):
    """The commit of a run's working directory."""

    commit: str
    #: None where no branch is checked out.
    branch: str | None = None
    #: Whether files differed from the commit.
    dirty: bool
    #: Bytes of what `run_diff` gives.
    diff_bytes: int
    #: Whether the end of that is missing.
    diff_truncated: bool


@answer
class Run(Ending):
    """One run: a program as every task of a cluster."""

    name: str
    uid: str
    #: Grows with every change.
    version: int
    #: PENDING | RUNNING | SUCCEEDED | FAILED | STOPPED
    state: str
    conditions: tuple[Condition, ...]
    submission_id: str
    launcher: str
    entrypoint: tuple[str, ...]
    working_dir: str | None
    package: str | None
    #: The names of its variables.
    environment: tuple[str, ...]
    jobs: Mapping[str, int]
    #: Who has to end with exit code 0: all | chief | any.
    success: str
    restarts: Restarts
    deadline: float | None
    #: Why it is in its state.
    reason: str
    #: Why it was told to stop.
    stop: str | None
    attempt: int
    restarts_used: int
    created: str
    started: str | None
    ended: str | None
    #: None until a program has reported a step.
    progress: Progress | None
    tasks: tuple[RunTask, ...]
    #: What people call it.
    display_name: str | None = None
    tags: tuple[str, ...] = ()
    notes: str = ""
    #: What the program recorded and what people gave, which counts first.
    parameters: Mapping[str, bool | int | float | str] = dataclasses.field(default_factory=dict)
    #: Of Python, Tenfold and NumPy.
    versions: Mapping[str, str] = dataclasses.field(default_factory=dict)
    #: The graph-level random seed.
    seed: int | None = None
    source: Source | None = None

    def _repr_html_(self) -> str:
        """For notebooks."""
        from tenfold.control.run_text import run_html

        return run_html(self)


@answer
class Curve(Answer):
    """A scalar over time; a long one is thinned out evenly."""

    #: Wall-clock seconds.
    times: tuple[float, ...]
    steps: tuple[int | None, ...]
    values: tuple[float | str, ...]


@answer
class Checkpoint(Answer):
    """A checkpoint that a program wrote."""

    time: float
    path: str


@answer
class DistributionCurve(Answer):
    """A histogram over time; a long one is thinned out evenly."""

    #: Wall-clock seconds.
    times: tuple[float, ...]
    steps: tuple[int | None, ...]
    lowest: tuple[float | str, ...]
    #: 5 % of the values are below it.
    p5: tuple[float | str, ...]
    median: tuple[float | str, ...]
    p95: tuple[float | str, ...]
    highest: tuple[float | str, ...]
    #: The square root of the sum of the squares of all values.
    norm: tuple[float | str, ...]


@answer
class TaskProgress(Answer):
    """How far one program is."""

    job: str
    index: int
    updated: str
    #: Calls of `Session.run` that it made.
    steps: int
    global_step: int | None
    #: Where its training stops.
    last_step: int | None = None
    steps_per_second: float | None
    examples_per_second: float | None = None
    curves: Mapping[str, Curve]
    #: The global steps that it saw, and how many a second.
    global_steps: Curve
    speed: Curve
    #: What its process uses: memory, variables and tables (bytes), rows (of tables), processor (cores), sent and
    #: received (bytes a second).
    used: Mapping[str, Curve] = dataclasses.field(default_factory=dict)
    #: The histograms that it writes as summaries.
    distributions: Mapping[str, DistributionCurve] = dataclasses.field(default_factory=dict)
    checkpoints: tuple[Checkpoint, ...]
    #: Folders, on its host, with event files for TensorBoard.
    logdirs: tuple[str, ...]
    #: What it uses: bytes of memory, seconds of processor time, …
    figures: Mapping[str, float]
    #: The largest tables of its servers.
    tables: tuple[TableFigures, ...] = ()


@answer
class RunProgress(Answer):
    """How far a run and each of its programs is."""

    run: str
    progress: Progress | None
    tasks: tuple[TaskProgress, ...]
    #: None where no task tells of one.
    tables: Tables | None = None


@answer
class ComparedValue(Answer):
    """One parameter, or one fact, of each run that is compared."""

    name: str
    #: Whether the runs differ in it.
    differs: bool
    #: By run; None where a run does not have it.
    values: tuple[bool | int | float | str | None, ...]


@answer
class ComparedScalar(Answer):
    """One scalar of each run that is compared; each member is by run, None where a run does not have it."""

    name: str
    newest: tuple[float | str | None, ...]
    #: On the curve.
    lowest: tuple[float | None, ...]
    highest: tuple[float | None, ...]
    curves: tuple[Curve | None, ...]


@answer
class Comparison(Answer):
    """Several runs side by side, in the order in which they were asked for."""

    runs: tuple[Run, ...]
    #: First those in which the runs differ.
    parameters: tuple[ComparedValue, ...]
    #: What else may tell the runs apart.
    facts: tuple[ComparedValue, ...]
    scalars: tuple[ComparedScalar, ...]


@answer
class Artifact(Answer):
    """A file in a run's output folder."""

    #: In the output folder, with slashes.
    path: str
    size: int
    modified: str


@answer
class LogLine(Answer):
    """A line that a task wrote."""

    time: str
    level: str
    #: worker/0
    task: str
    text: str


@answer
class SupervisorOrders(Answer):
    """The answer to a supervisor's report: `stop` is the reason why the run is to stop, None while it is not; the next
    report is due in `heartbeat` seconds."""

    state: str
    stop: str | None
    heartbeat: float
    #: Others that may be told as well.
    services: tuple[str, ...] = ()


@answer
class TraceOrder(Answer):
    """A trace that a program is to make: of its next `steps` steps, as far as they run within `seconds`."""

    id: str
    steps: int
    seconds: float
    #: What an upload may have.
    max_bytes: int


@answer
class WhyOrder(Answer):
    """A question that a program is to answer at once: why nothing goes on there."""

    id: str


@answer
class ProgramOrders(Answer):
    """The answer to a program's report: the next one is due in `heartbeat` seconds; `stop` is the reason why a program
    that joined its run is to end."""

    heartbeat: float
    stop: str | None = None
    trace: TraceOrder | None = None
    why: WhyOrder | None = None
    #: Others that may be told as well.
    services: tuple[str, ...] = ()


@answer
class RunPlace(Answer):
    """Which task of which run a program is that joined; its next report is due in `heartbeat` seconds."""

    run: str
    job: str
    index: int
    heartbeat: float


@answer
class Package(Answer):
    """A working directory that the service has."""

    name: str
