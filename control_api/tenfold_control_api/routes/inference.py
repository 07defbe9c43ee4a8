"""`/v2`: the Open Inference Protocol's own paths: health, metadata, and inference by a model."""

from importlib.metadata import version
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from tenfold_control_api.asgi import acting
from tenfold_control_api.openapi import problems, schema_of
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import ControlDep, content_type, unsupported
from tenfold_control_api.routes.models import LOADING, ModelName
from tenfold_control_api.routes.sessions import HEADER_PARAMETER, raw_tensors
from tenfold_control_api.serving import model_step
from tenfold_control_api.serving.shapes import (
    ModelInferenceRequest,
    ModelInferenceResponse,
    ModelMetadata,
    ModelReady,
    ServerLive,
    ServerMetadata,
    ServerReady,
)
from tenfold_control_api.steps import BINARY, HEADER_LENGTH, JSON

router = APIRouter(prefix="/v2", tags=["models"])


@router.get("", summary="The server")
async def server_metadata() -> ServerMetadata:
    return ServerMetadata(version=version("tenfold"))


@router.get("/health/live", summary="Is the server there?")
async def server_live() -> ServerLive:
    return ServerLive(live=True)


@router.get("/health/ready", summary="Does the server do its work?", openapi_extra=problems("not-ready"))
async def server_ready(control: ControlDep) -> ServerReady:
    if trouble := control.trouble():
        raise ApiError("not-ready", f"{trouble}.")
    return ServerReady(ready=True)


@router.get("/models/{model:name}", summary="A model's tensors", openapi_extra=problems(*LOADING, "no-such-signature"))
async def model_metadata(
    model: ModelName,
    control: ControlDep,
    signature: Annotated[str | None, Query(max_length=200, description="`serving_default` without it.")] = None,
) -> ModelMetadata:
    """Loads the model if it is not loaded."""
    return await control.models.metadata(model, signature)


@router.get("/models/{model}/ready", summary="Can a model answer?", openapi_extra=problems(*LOADING))
async def model_ready(model: ModelName, control: ControlDep) -> ModelReady:
    """Loads the model if it is not loaded; a problem says why it cannot be."""
    await control.models.ready(model)
    return ModelReady(name=model, ready=True)


@router.post(
    "/models/{model}/infer",
    summary="Ask a model",
    response_class=Response,
    responses={
        200: {"content": {JSON: {"schema": schema_of(ModelInferenceResponse)}, BINARY: raw_tensors()}},
    },
    openapi_extra={
        "parameters": [HEADER_PARAMETER],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": schema_of(ModelInferenceRequest)}, BINARY: raw_tensors()},
        },
        **problems(
            *LOADING,
            "no-such-signature",
            "invalid-step",
            "invalid-tensor",
            "invalid-timeout",
            "no-datatype",
            "malformed-message",
        ),
    },
)
async def infer(model: ModelName, request: Request, control: ControlDep) -> Response:
    """Tensors by the names of a signature, `parameters.signature` (default: serving_default), in JSON or binary. One
    request is one step: nothing is batched."""
    header_length = request.headers.get(HEADER_LENGTH)
    kind = content_type(request)
    if kind != JSON and not (kind == BINARY and header_length is not None):
        raise unsupported(request, JSON, f"{BINARY} with {HEADER_LENGTH}")
    step, signature = model_step.parse(await request.body(), header_length)
    answer = await control.models.infer(model, step, signature, acting(request.scope))
    return Response(answer.body, 200, dict(answer.headers), answer.media_type)
