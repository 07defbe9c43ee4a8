"""The JSON of sweeps. Requests forbid members that they do not know."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tenfold_control_api.models import Condition
from tenfold_control_api.runs.detail_models import ParameterName, ParameterValue
from tenfold_control_api.runs.models import Name, Number, RunSubmission
from tenfold_core.run_states import RunState

#: Leaves room for a trial's number in the submission id of its run.
SweepName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,49}$")]
_Bound = int | Annotated[float, Field(allow_inf_nan=False)]


class _Request(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class SweepParameter(_Request):
    """The possible values of a parameter: `values`, or the numbers from `low` to `high` that are `step` apart (whole
    numbers: 1). Without a step, a random sweep draws any number of the interval."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"values": [0.1, 0.01]}, {"low": 1e-4, "high": 0.1, "log": True}]}
    )
    values: Annotated[list[ParameterValue], Field(min_length=1, max_length=10_000)] | None = None
    low: _Bound | None = None
    high: _Bound | None = None
    step: _Bound | None = None
    log: bool = Field(default=False, description="Draw uniformly in the logarithm.")


class RandomSettings(_Request):
    """Settings drawn at random."""

    count: Annotated[int, Field(ge=1, le=10_000)] = Field(description="How many settings.")
    seed: Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)] = Field(
        default=0, description="The same seed draws the same settings."
    )


class StopEarly(_Request):
    """The median rule: a run is stopped if its best value up to its newest step is worse than the median of the other
    runs' mean values up to that step."""

    grace_steps: Annotated[int, Field(ge=0)] = Field(default=0, description="Steps that every run may make.")
    min_others: Annotated[int, Field(ge=1)] = Field(default=2, description="Other runs that must have come as far.")


class SweepDefinition(_Request):
    """A program to run with many settings of its parameters, a few at a time."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "name": "first",
                    "parameters": {"lr": {"values": [0.1, 0.01]}, "layers": {"low": 2, "high": 4}},
                    "program": {
                        "entrypoint": ["python", "trainer.py"],
                        "working_dir": "/home/me/mnist",
                        "jobs": {"worker": 1},
                    },
                    "parallel": 2,
                    "metric": "loss",
                }
            ]
        }
    )
    name: SweepName | None = Field(
        default=None,
        description="The tag of its runs. The same name with the same definition is the same sweep.",
    )
    parameters: Annotated[dict[ParameterName, SweepParameter], Field(min_length=1, max_length=100)] = Field(
        description="By name. A parameter becomes an argument --NAME=VALUE, or replaces {NAME} in an argument."
    )
    program: RunSubmission = Field(
        description="What each run is, with any launcher except `external`, and without a submission_id."
    )
    random: RandomSettings | None = Field(default=None, description="By default, the sweep runs every combination.")
    parallel: Annotated[int, Field(ge=1, le=10_000)] = Field(default=1, description="The most runs at once.")
    total_cores: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None,
        description="Processor cores that the runs share; with the launcher `local`, by default the machine's.",
    )
    total_memory: Annotated[int, Field(ge=1, le=1 << 60)] | None = Field(
        default=None, description="Bytes of memory that the runs share; likewise."
    )
    metric: Name | None = Field(default=None, description="The scalar by which the runs are compared, such as loss.")
    goal: Literal["min", "max"] = Field(default="min", description="Which value of it is best.")
    stop_early: StopEarly | None = Field(default=None, description="By default, no run is stopped early.")


class SweepCancel(_Request):
    reason: Annotated[str, StringConstraints(max_length=500, pattern=r"^[^\x00]*$")] = "stopped by request"


# -- answers

TrialState = Literal["WAITING", "RUNNING", "SUCCEEDED", "FAILED", "STOPPED", "REFUSED"]


class TrialView(BaseModel):
    """One setting and its run. REFUSED: it was not started."""

    index: int
    state: TrialState
    parameters: dict[str, ParameterValue]
    run: str | None = Field(description="The name of its run, null before that is started.")
    stopped_early: bool
    reason: str | None = Field(description="Why it did not succeed, or was not started.")
    best: Number | None = Field(description="The best value of the sweep's metric.")


class SweepSummary(BaseModel):
    """One sweep without its trials."""

    name: str
    uid: str
    version: int
    state: Literal[RunState.RUNNING, RunState.SUCCEEDED, RunState.FAILED, RunState.STOPPED]
    conditions: list[Condition]
    reason: str
    stop: str | None = Field(description="Why it is to stop, otherwise null.")
    created: str
    ended: str | None
    launcher: str
    entrypoint: list[str]
    metric: str | None
    goal: Literal["min", "max"]
    parallel: int
    settings: int = Field(description="The number of its trials.")
    counts: dict[TrialState, int] = Field(description="Trials by state.")


class SweepView(SweepSummary):
    """One sweep with all its trials, in the order in which they are started."""

    trials: list[TrialView]
    best: TrialView | None = Field(description="The trial with the best value of the metric, as far as one is known.")


class SweepList(BaseModel):
    sweeps: list[SweepSummary]
    next: str | None = Field(description="`after` of the next page; null on the last one.")
