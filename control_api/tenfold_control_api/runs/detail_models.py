"""The JSON of what a run is called and what is recorded of it. Requests forbid members that they do not know."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

_NO_NULL = r"^[^\x00]*$"
#: Characters of a diff: with every one of them escaped it still fits into a request.
MAX_DIFF = 150_000

DisplayName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f\x7f]*$")]
Tag = Annotated[str, StringConstraints(pattern=r"^[^\s,=\x00\"'()]{1,100}$")]
Tags = Annotated[list[Tag], Field(max_length=50)]
Notes = Annotated[str, StringConstraints(max_length=20_000, pattern=_NO_NULL)]
ParameterName = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=_NO_NULL)]
ParameterText = Annotated[str, StringConstraints(max_length=1000, pattern=_NO_NULL)]
ParameterValue = bool | int | Annotated[float, Field(allow_inf_nan=False)] | ParameterText
Parameters = Annotated[dict[ParameterName, ParameterValue], Field(max_length=500)]
_Word = Annotated[str, StringConstraints(max_length=300, pattern=_NO_NULL)]


class _Part(BaseModel):
    """Of a request: JSON's types as they are, so that neither true nor "1" passes for a number."""

    model_config = ConfigDict(strict=True, extra="forbid")


class Source(_Part):
    """The commit of a working directory, and how its files differ from that."""

    commit: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{4,64}$")]
    branch: _Word | None = Field(default=None, description="Null if no branch is checked out.")
    dirty: bool = Field(default=False, description="Whether files differ from the commit.")
    diff: Annotated[str, StringConstraints(max_length=MAX_DIFF, pattern=_NO_NULL)] = Field(
        default="", description="The output of `git diff HEAD`, cut to its first part if it is long."
    )
    diff_truncated: bool = Field(default=False, description="Whether the end of the diff is missing.")


class Recorded(_Part):
    """What a program recorded about itself."""

    parameters: Parameters = Field(default={}, description="Its flags and hyperparameters.")
    versions: Annotated[dict[_Word, _Word], Field(max_length=50)] = Field(
        default={}, description="Versions of Python, Tenfold and NumPy."
    )
    seed: int | None = Field(default=None, description="The graph-level random seed.")
    source: Source | None = Field(default=None, description="The commit of its working directory.")


class RunEdit(_Part):
    """The new name, tags, notes and parameters of a run. A member that is omitted or null changes nothing."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"display_name": "wide, slow", "add_tags": ["baseline"], "notes": "diverged"}]}
    )
    display_name: DisplayName | None = None
    tags: Tags | None = Field(default=None, description="These tags replace all others.")
    add_tags: Tags | None = Field(default=None, description="Tags that are added.")
    remove_tags: Tags | None = Field(default=None, description="Tags that are removed.")
    notes: Notes | None = None
    parameters: Annotated[dict[ParameterName, ParameterValue | None], Field(max_length=500)] | None = Field(
        default=None, description="Parameters that are added or replaced; null removes one that was set."
    )


# -- answers


class SourceView(BaseModel):
    """The commit of the run's working directory, and whether its files differed from it."""

    commit: str
    branch: str | None = None
    dirty: bool
    diff_bytes: int = Field(description="Bytes of the diff that GET /v1/runs/{run}/diff returns.")
    diff_truncated: bool
