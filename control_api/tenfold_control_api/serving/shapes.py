"""The JSON shapes of models, as OpenAPI shows them. No behaviour; routes/models.py and routes/inference.py answer them.

The tensors of an inference are step_models.py's.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tenfold_control_api.step_models import (
    InferenceTensor,
    Name,
    RequestedOutput,
    RequestParameters,
)

Tag = Annotated[str, StringConstraints(min_length=1, max_length=100)]


class ModelRegistration(BaseModel):
    """A model's folder, and the task that runs it."""

    model_config = ConfigDict(
        extra="forbid", strict=True, json_schema_extra={"examples": [{"cluster": "default", "path": "mnist"}]}
    )
    path: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = Field(
        default=None,
        description=(
            "The model's folder, within the service's models folder; default: the model's name. It contains "
            "a SavedModel, or folders with numbers as names that do; the highest is served."
        ),
    )
    cluster: Annotated[str, StringConstraints(min_length=1, max_length=63)] = "default"
    job: Annotated[str, StringConstraints(min_length=1, max_length=63)] | None = Field(
        default=None, description="The task that runs it; without it the cluster's first master."
    )
    index: Annotated[int, Field(ge=0)] | None = None
    tags: Annotated[list[Tag], Field(min_length=1, max_length=20)] = Field(
        default=["serve"], description="The tags of the SavedModel's graph."
    )
    follows: Annotated[str, StringConstraints(min_length=1, max_length=500)] | None = Field(
        default=None,
        description=(
            "A training's folder of checkpoints, within the service's folder of trainings: the model's variables are "
            "those that it has saved, and its increments are taken in as they appear."
        ),
    )


class FollowingView(BaseModel):
    """What a model serves of the training that it follows."""

    folder: str = Field(description="The training's folder of checkpoints.")
    checkpoint: str = Field(description="The whole checkpoint that the served state's chain begins with.")
    increment: str | None = Field(description="The newest increment that is served; null: the checkpoint itself.")
    global_step: int | None = Field(description="The global step of the served state.")
    saved_at: float = Field(description="When the served state was saved, in seconds since 1970.")
    behind_seconds: float = Field(
        description="Since when there is a newer state that is not served, in seconds; 0 where the newest is."
    )
    rows: int = Field(description="The rows of all embedding variables.")
    increments: int = Field(description="How many increments were taken in since the model was loaded.")
    trouble: str = Field(description="Why what comes next cannot be read, as a broken link of the chain.")
    trouble_since: float | None = Field(description="Since when, in seconds since 1970.")


class ModelView(BaseModel):
    """A model as it is now."""

    name: str
    path: str
    cluster: str
    tags: list[str]
    state: Literal["ready", "unloaded"] = Field(description="An unloaded one is loaded by the next request for it.")
    version: str | None = Field(default=None, description="The signature of the loaded version.")
    master: str | None = Field(default=None, description="The task that runs it.")
    session: str | None = Field(default=None, description="The session in which it runs.")
    signatures: list[str] = []
    trouble: str = Field(default="", description="Why a newer version was not loaded.")
    follows: str | None = Field(default=None, description="The training's folder that it is registered to follow.")
    following: FollowingView | None = Field(default=None, description="What a loaded one serves of that training.")


class ModelList(BaseModel):
    models: list[ModelView]


class TensorMetadata(BaseModel):
    """A model's input or output; -1 stands for a variable size."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """The Open Inference Protocol's description of a model, by its signature."""

    name: str
    versions: list[str]
    platform: str = "tensorflow_savedmodel"
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    parameters: dict[str, Any] = Field(
        default={}, description="The signature of this answer as `signature`, and all as `signatures`."
    )


class ServerMetadata(BaseModel):
    """The Open Inference Protocol's description of this server."""

    name: str = "tenfold"
    version: str
    extensions: list[str] = ["binary_tensor_data"]


class ServerLive(BaseModel):
    live: bool


class ServerReady(BaseModel):
    ready: bool


class ModelReady(BaseModel):
    name: str
    ready: bool


class ModelParameters(RequestParameters):
    signature: str = Field(default="serving_default", description="The name of the signature.")


class ModelInferenceRequest(BaseModel):
    """Tensors by the names of a signature."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [{"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 2], "data": [1.0, 2.0]}]}]
        },
    )
    id: str | None = Field(default=None, description="Comes back in the answer.")
    inputs: list[InferenceTensor] = []
    outputs: list[RequestedOutput | Name] = Field(default=[], description="Without any, all of the signature.")
    parameters: ModelParameters = ModelParameters()
    model_name: str | None = Field(default=None, description="As in the path; KServe's clients send it.")
    model_version: str | None = Field(
        default=None, description="As in the path; if the path has none, the version to query."
    )


class AnswerParameters(BaseModel):
    """Of a model that follows a training."""

    global_step: int = Field(description="The global step of the state that the whole answer is of.")


class ModelInferenceResponse(BaseModel):
    """The model's outputs."""

    model_name: str
    model_version: str
    outputs: list[InferenceTensor]
    id: str | None = None
    parameters: AnswerParameters | None = None
