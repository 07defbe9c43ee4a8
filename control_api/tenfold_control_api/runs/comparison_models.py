"""The JSON of `GET /v1/runs:compare`. A list of values has one for each run, in the order of the runs."""

from __future__ import annotations

from pydantic import BaseModel, Field

from tenfold_control_api.runs.detail_models import ParameterValue  # noqa: TC001 - Pydantic reads the annotations
from tenfold_control_api.runs.models import CurveView, Number, RunView  # noqa: TC001


class ComparedValue(BaseModel):
    """One parameter, or one fact, of each run."""

    name: str
    differs: bool = Field(description="Whether it differs between the runs.")
    values: list[ParameterValue | None] = Field(description="By run; null if a run does not have it.")


class ComparedScalar(BaseModel):
    """One scalar of each run."""

    name: str
    newest: list[Number | None] = Field(description="By run, the newest value; null if a run does not have it.")
    lowest: list[float | None] = Field(description="By run, the lowest value on its curve.")
    highest: list[float | None] = Field(description="By run, the highest value on its curve.")
    curves: list[CurveView | None] = Field(description="By run; null if a run does not have it.")


class ComparisonView(BaseModel):
    """Several runs side by side."""

    runs: list[RunView] = Field(description="The runs, in the order of the request.")
    parameters: list[ComparedValue] = Field(description="The parameters, with those that differ first.")
    facts: list[ComparedValue] = Field(
        description="Other facts that may distinguish the runs, with those that differ first."
    )
    scalars: list[ComparedScalar] = Field(description="The scalars that any of the runs has, by name.")
