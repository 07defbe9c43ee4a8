"""`/v2`: the Open Inference Protocol's own paths: health, metadata, and inference by a model."""

from importlib.metadata import version
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request, Response

from tenfold_control_api.asgi import acting
from tenfold_control_api.control import Control
from tenfold_control_api.openapi import problems, schema_of
from tenfold_control_api.routes.common import ControlDep, content_type, unsupported
from tenfold_control_api.routes.models import LOADING, ModelName
from tenfold_control_api.routes.probes import require_ready
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

Version = Annotated[str, Path(max_length=100, description="The version that is served; any other is not found.")]
Signature = Annotated[str | None, Query(max_length=200, description="Default: `serving_default`.")]
#: What a request for one version can answer, besides loading's.
_VERSIONED = (*LOADING, "no-such-version")


@router.get("", summary="The server")
async def server_metadata() -> ServerMetadata:
    return ServerMetadata(version=version("tenfold"))


@router.get("/health/live", summary="Is the server there?")
async def server_live() -> ServerLive:
    return ServerLive(live=True)


@router.get(
    "/health/ready",
    summary="Is the server working?",
    openapi_extra=problems("database-unavailable", "disk-unavailable", "not-ready"),
)
async def server_ready(control: ControlDep) -> ServerReady:
    await require_ready(control)
    return ServerReady(ready=True)


@router.get("/models/{model:name}", summary="A model's tensors", openapi_extra=problems(*LOADING, "no-such-signature"))
async def model_metadata(model: ModelName, control: ControlDep, signature: Signature = None) -> ModelMetadata:
    """Loads the model if it is not loaded."""
    return await control.models.metadata(model, None, signature)


@router.get(
    "/models/{model}/versions/{version}",
    summary="The tensors of a version of a model",
    openapi_extra=problems(*_VERSIONED, "no-such-signature"),
)
async def version_metadata(
    model: ModelName, version: Version, control: ControlDep, signature: Signature = None
) -> ModelMetadata:
    return await control.models.metadata(model, version, signature)


@router.get("/models/{model}/ready", summary="Can a model answer?", openapi_extra=problems(*LOADING))
async def model_ready(model: ModelName, control: ControlDep) -> ModelReady:
    """Loads the model if it is not loaded; a problem says why it cannot be."""
    await control.models.ready(model, None)
    return ModelReady(name=model, ready=True)


@router.get(
    "/models/{model}/versions/{version}/ready",
    summary="Can a version of a model answer?",
    openapi_extra=problems(*_VERSIONED),
)
async def version_ready(model: ModelName, version: Version, control: ControlDep) -> ModelReady:
    await control.models.ready(model, version)
    return ModelReady(name=model, ready=True)


#: How a request to infer and its answer look, in OpenAPI.
_INFER: dict[str, Any] = {
    "response_class": Response,
    "responses": {200: {"content": {JSON: {"schema": schema_of(ModelInferenceResponse)}, BINARY: raw_tensors()}}},
}


def _infer_extra(*kinds: str) -> dict[str, Any]:
    return {
        "parameters": [HEADER_PARAMETER],
        "requestBody": {
            "required": True,
            "content": {JSON: {"schema": schema_of(ModelInferenceRequest)}, BINARY: raw_tensors()},
        },
        **problems(
            *kinds,
            "no-such-signature",
            "invalid-step",
            "invalid-tensor",
            "invalid-timeout",
            "no-datatype",
            "malformed-message",
        ),
    }


@router.post("/models/{model}/infer", summary="Query a model", openapi_extra=_infer_extra(*_VERSIONED), **_INFER)
async def infer(model: ModelName, request: Request, control: ControlDep) -> Response:
    """Tensors by the names of a signature, `parameters.signature` (default: serving_default), in JSON or binary. One
    request is one step: nothing is batched."""
    return await _infer(model, None, request, control)


@router.post(
    "/models/{model}/versions/{version}/infer",
    summary="Query a version of a model",
    openapi_extra=_infer_extra(*_VERSIONED),
    **_INFER,
)
async def infer_version(model: ModelName, version: Version, request: Request, control: ControlDep) -> Response:
    return await _infer(model, version, request, control)


async def _infer(model: str, version: str | None, request: Request, control: Control) -> Response:
    """A request that names no content type, as Triton's clients send it, is binary where it has the header for that,
    else JSON."""
    header_length = request.headers.get(HEADER_LENGTH)
    kind = content_type(request)
    if kind not in ("", JSON) and not (kind == BINARY and header_length is not None):
        raise unsupported(request, JSON, f"{BINARY} with {HEADER_LENGTH}")
    step, signature, version = model_step.parse(await request.body(), header_length, model, version)
    answer = await control.models.infer(model, version, step, signature, acting(request.scope))
    return Response(answer.body, 200, dict(answer.headers), answer.media_type)
