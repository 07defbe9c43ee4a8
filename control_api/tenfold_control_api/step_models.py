"""A step's JSON as OpenAPI shows it: the Open Inference Protocol's tensors, with our additions. No behaviour.

steps.py reads and writes these shapes by hand, because a model for each tensor costs more than a small step; a test
compares the two. models.py has the shapes of everything else.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tenfold_core.open_inference import DATATYPES, MAX_RANK

Name = Annotated[str, StringConstraints(min_length=1)]
Datatype = Annotated[str, Field(json_schema_extra={"enum": list(DATATYPES)})]
Shape = Annotated[list[Annotated[int, Field(ge=0)]], Field(max_length=MAX_RANK)]
#: A number, true or false, a text (BYTES, "NaN", "Infinity", "-Infinity"), or a list where data nests as its shape.
Value = bool | int | float | str | list[Any]


class TensorParameters(BaseModel):
    """How a tensor's data is given."""

    model_config = ConfigDict(extra="allow")
    binary_data_size: int = Field(
        default=0, ge=0, description="In place of `data`: the number of bytes of its data in the binary part."
    )
    encoding: Literal["utf-8", "base64"] = Field(default="utf-8", description="How strings encode BYTES.")


class InferenceTensor(BaseModel):
    """A tensor of the Open Inference Protocol v2: `data` flat in row-major order, or nested exactly as the shape."""

    name: Name = Field(description="As in `x:0`; without `:` it is output 0.")
    datatype: Datatype
    shape: Shape
    data: list[Value] = Field(
        default=[], description="Omitted if `parameters` has `binary_data_size`. COMPLEX64: re, im, re, im, …"
    )
    parameters: TensorParameters = TensorParameters()


class OutputParameters(BaseModel):
    model_config = ConfigDict(extra="allow")
    binary_data: bool = Field(default=False, description="Answer this output in binary.")


class RequestedOutput(BaseModel):
    """A tensor to fetch."""

    model_config = ConfigDict(extra="allow")
    name: Name
    parameters: OutputParameters = OutputParameters()


class RequestParameters(BaseModel):
    model_config = ConfigDict(extra="allow")
    binary_data_output: bool = Field(default=False, description="Answer all outputs in binary.")


class InferenceRequest(BaseModel):
    """A step: what to feed, what to fetch, what to run."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {
                    "inputs": [{"name": "x:0", "datatype": "FP32", "shape": [2], "data": [1.0, 2.0]}],
                    "outputs": [{"name": "y:0"}],
                    "targets": [],
                    "options": {"timeout_in_ms": 10000},
                }
            ]
        },
    )
    id: str | None = Field(default=None, description="Comes back in the answer.")
    inputs: list[InferenceTensor] = []
    outputs: list[RequestedOutput | Name] = []
    targets: list[Name] = Field(default=[], description="Operations to run without fetching.")
    options: dict[str, Any] = Field(default={}, description="The protobuf JSON of RunOptions.")
    parameters: RequestParameters = RequestParameters()


class InferenceResponse(BaseModel):
    """The values that a step fetched, in the order of the request."""

    outputs: list[InferenceTensor]
    id: str | None = None
    metadata: dict[str, Any] = Field(default={}, description="The protobuf JSON of RunMetadata, if there is any.")
