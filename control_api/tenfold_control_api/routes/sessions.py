"""`/v1/sessions`: a session on a task's master, its graph, its steps."""

import time
from functools import partial
from typing import Annotated, Any, Literal, TypeVar

from fastapi import APIRouter, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ValidationError

from tenfold_control_api import views
from tenfold_control_api.asgi import acting
from tenfold_control_api.control import Control
from tenfold_control_api.direct import DirectRoute
from tenfold_control_api.entry import caller_of, lesser_role, owned_by, require_owner
from tenfold_control_api.models import GraphExtension, SessionCreation, SessionList, SessionView
from tenfold_control_api.openapi import MASTER_CALL, problems, schema_of
from tenfold_control_api.problems import PLACE_MEMBERS, ApiError, pointing
from tenfold_control_api.routes.common import ControlDep, content_type, seconds, unsupported
from tenfold_control_api.routes.pages import LIMIT, After, Limit, page_of, place
from tenfold_control_api.session_record import SessionRecord
from tenfold_control_api.step_models import InferenceRequest, InferenceResponse
from tenfold_control_api.steps import (
    BINARY,
    HEADER_LENGTH,
    JSON,
    PROTOBUF,
    InferenceStep,
    ProtobufStep,
    graph_from,
    graph_message,
    message_from,
    parse_json,
    read_apart,
)
from tenfold_protos import config_pb2, graph_pb2, master_pb2

B = TypeVar("B", bound=BaseModel)

router = APIRouter(prefix="/v1/sessions", tags=["sessions"])


def _body(model: type[BaseModel], message: str, *kinds: str, more: dict[str, Any] | None = None) -> dict[str, Any]:
    """OpenAPI's description of a body that is JSON of `model`, or a protobuf `message`, and of the problems."""
    content = {JSON: {"schema": schema_of(model)}, **(more or {}), PROTOBUF: _raw(f"A {message}.")}
    return {"requestBody": {"required": True, "content": content}, **problems(*kinds, "malformed-message")}


def _raw(what: str) -> dict[str, Any]:
    return {"schema": {"type": "string", "format": "binary", "description": what}}


_TENSORS = (
    f"With the header `{HEADER_LENGTH}`: that many bytes of JSON, then the bytes of each tensor whose parameters have "
    "`binary_data_size`, little-endian and in order."
)


#: OpenAPI's description of the header of a binary body.
HEADER_PARAMETER: dict[str, Any] = {
    "name": HEADER_LENGTH,
    "in": "header",
    "required": False,
    "description": "The length of the JSON part of a binary body.",
    "schema": {"type": "integer", "minimum": 0},
}


def raw_tensors() -> dict[str, Any]:
    """OpenAPI's description of a binary body."""
    return _raw(_TENSORS)


#: OpenAPI's description of a step.
STEP_BODY: dict[str, Any] = {
    "parameters": [HEADER_PARAMETER],
    **_body(
        InferenceRequest,
        "RunStepRequest",
        "no-such-session",
        "owned-by-another",
        "invalid-step",
        "invalid-tensor",
        "invalid-timeout",
        "no-datatype",
        "partial-run",
        *MASTER_CALL,
        more={BINARY: _raw(_TENSORS)},
    ),
}


@router.post(
    "",
    summary="Create a session",
    status_code=201,
    response_model=SessionView,
    responses={201: {"content": {PROTOBUF: _raw("A CreateSessionResponse.")}}},
    openapi_extra=_body(
        SessionCreation,
        "CreateSessionRequest",
        "missing-parameter",
        "no-such-cluster",
        "no-such-job",
        "no-such-task",
        "no-master",
        "tasks-missing",
        "invalid-duration",
        "too-many-watchers",
        "stopping",
        "too-many-sessions",
        *MASTER_CALL,
    ),
)
async def create_session(
    request: Request,
    control: ControlDep,
    cluster: Annotated[str | None, Query(description="Only with a protobuf body.")] = None,
    job: Annotated[str | None, Query(description="Only with a protobuf body.")] = None,
    index: Annotated[int | None, Query(ge=0, description="Only with a protobuf body.")] = None,
    wait: Annotated[
        str, Query(description="How long to wait for a master, and for tasks that the graph needs: 30s, 1m.")
    ] = "0s",
) -> Any:
    """Refused immediately if tasks that the graph needs are known to be lost or missing, unless the request sets
    `wait`.

    A CreateSessionRequest as body (with `?cluster=…`) is answered with a CreateSessionResponse."""
    limit = seconds(wait, control.settings.max_wait)
    body, nodes = await request.body(), control.settings.max_graph_nodes
    match content_type(request):
        case "application/json":

            def read() -> tuple[SessionCreation, graph_pb2.GraphDef, config_pb2.ConfigProto]:
                asked = _parse(SessionCreation, body)
                return (
                    asked,
                    graph_from(asked.graph_def, nodes),
                    message_from(config_pb2.ConfigProto, asked.config, "config"),
                )

            asked, graph_def, config = await read_apart(read, len(body))
            cluster, job, index = asked.cluster, asked.job, asked.index
        case "application/x-protobuf":
            if cluster is None:
                raise ApiError(
                    "missing-parameter",
                    "a protobuf body needs ?cluster=NAME (and, to choose the master, &job=…&index=…).",
                )
            whole = partial(graph_message, master_pb2.CreateSessionRequest, body, nodes)
            message = await read_apart(whole, len(body))
            graph_def, config = message.graph_def, message.config
        case _:
            raise unsupported(request, JSON, PROTOBUF)
    began = acting(request.scope)
    with pointing(PLACE_MEMBERS):
        record = await control.sessions.create(
            cluster,
            job,
            index,
            graph_def,
            config,
            began,
            limit,
            lesser_role(request.scope),
            caller_of(request.scope).principal,
        )
    began.undo = lambda: control.sessions.undo(record.id)
    location = {"Location": f"/v1/sessions/{record.id}"}
    if content_type(request) == PROTOBUF:
        answer = master_pb2.CreateSessionResponse(session_handle=record.id, graph_version=record.graph_version)
        return Response(answer.SerializeToString(), 201, location, PROTOBUF)
    return JSONResponse(_view(control, record).model_dump(), 201, location)


@router.get("", summary="Open sessions, newest first, in pages", openapi_extra=problems("invalid-cursor"))
async def list_sessions(
    request: Request,
    control: ControlDep,
    cluster: Annotated[str | None, Query(max_length=63, description="Only of this cluster.")] = None,
    job: Annotated[str | None, Query(max_length=63, description="Only with a master of this job.")] = None,
    state: Annotated[Literal["ready", "lost"] | None, Query(description="Only in this state.")] = None,
    limit: Limit = LIMIT,
    after: After = None,
) -> SessionList:
    """The caller's own sessions; with the role admin, all sessions."""
    begin, mine = place(after, float, str), owned_by(request.scope)
    wanted = [
        record
        for record in control.sessions.table
        if mine in (None, record.owner)
        and cluster in (None, record.cluster)
        and job in (None, record.job)
        and state in (None, record.standing(control.sessions.cluster_of(record))[0])
    ]
    page, more = page_of(wanted, lambda record: (record.created, record.id), begin, limit, newest_first=True)
    return SessionList(sessions=[_view(control, record) for record in page], next=more)


@router.get("/{session:name}", summary="One session", openapi_extra=problems("no-such-session", "owned-by-another"))
async def get_session(session: str, request: Request, control: ControlDep) -> SessionView:
    return _view(control, await owned_session(session, request, control))


@router.delete(
    "/{session:name}",
    summary="Close a session",
    openapi_extra=problems("no-such-session", "owned-by-another", *MASTER_CALL),
)
async def delete_session(session: str, request: Request, control: ControlDep) -> SessionView:
    """The session's active steps are cancelled. Variables remain in their tasks."""
    view = _view(control, await owned_session(session, request, control))
    await control.sessions.close_for(session, lesser_role(request.scope))
    return view.model_copy(update={"state": "closed", "conditions": []})


@router.post(
    "/{session}/graph:extend",
    summary="Add nodes to the graph",
    response_model=SessionView,
    responses={200: {"content": {PROTOBUF: _raw("An ExtendSessionResponse.")}}},
    openapi_extra=_body(
        GraphExtension, "ExtendSessionRequest", "no-such-session", "owned-by-another", "graph-version", *MASTER_CALL
    ),
)
async def extend_graph(session: str, request: Request, control: ControlDep) -> Any:
    """An ExtendSessionRequest as body is answered with an ExtendSessionResponse."""
    body, nodes = await request.body(), control.settings.max_graph_nodes
    match content_type(request):
        case "application/json":

            def read() -> tuple[GraphExtension, graph_pb2.GraphDef]:
                asked = _parse(GraphExtension, body)
                return asked, graph_from(asked.graph_def, nodes)

            asked, graph_def = await read_apart(read, len(body))
            version = asked.current_graph_version
        case "application/x-protobuf":
            whole = partial(graph_message, master_pb2.ExtendSessionRequest, body, nodes)
            message = await read_apart(whole, len(body))
            graph_def, version = message.graph_def, message.current_graph_version
        case _:
            raise unsupported(request, JSON, PROTOBUF)
    await owned_session(session, request, control)
    record = await control.sessions.extend(
        session, graph_def, version, acting(request.scope), lesser_role(request.scope)
    )
    if content_type(request) == PROTOBUF:
        answer = master_pb2.ExtendSessionResponse(new_graph_version=record.graph_version)
        return Response(answer.SerializeToString(), 200, media_type=PROTOBUF)
    return _view(control, record)


@router.post(
    "/{session}/steps",
    summary="Run a step",
    response_class=Response,
    openapi_extra=STEP_BODY,
    responses={
        200: {
            "content": {
                JSON: {"schema": schema_of(InferenceResponse)},
                BINARY: _raw(_TENSORS),
                PROTOBUF: _raw("A RunStepResponse."),
            }
        }
    },
)
async def run_step(session: str, request: Request, control: ControlDep) -> Response:
    """Open Inference Protocol tensors in JSON or binary, or a RunStepRequest. With an `Idempotency-Key` it runs at
    most once."""
    body = await request.body()
    step = await read_apart(partial(step_of, request, body), len(body))
    began, code = time.perf_counter(), "OK"
    try:
        await owned_session(session, request, control)
        answer = await control.sessions.run_step(
            session, step.run, step.timeout, acting(request.scope), lesser_role(request.scope)
        )
    except ApiError as error:
        code = error.code
        raise
    finally:
        control.metrics.step_seconds.labels(code).observe(time.perf_counter() - began)
    return Response(answer.body, 200, dict(answer.headers), answer.media_type)


def step_of(request: Request, body: bytes) -> InferenceStep | ProtobufStep:
    """The step that a request asks for. Raises ApiError saying what is wrong with it."""
    header_length = request.headers.get(HEADER_LENGTH)
    match content_type(request):
        case "application/json":
            return InferenceStep.parse(body, header_length)
        case "application/octet-stream" if header_length is not None:
            return InferenceStep.parse(body, header_length)
        case "application/x-protobuf":
            return ProtobufStep.parse(body)
        case _:
            raise unsupported(request, JSON, PROTOBUF, f"{BINARY} with {HEADER_LENGTH}")


STEP = DirectRoute(
    "POST", "/v1/sessions/{session}/steps", lambda request, control, session: run_step(session, request, control)
)


async def owned_session(session: str, request: Request, control: Control) -> SessionRecord:
    """The session, if it is the caller's. Raises NOT_FOUND, PERMISSION_DENIED."""
    record = await control.sessions.get(session)
    require_owner(request.scope, record.owner, f"session {record.id}")
    return record


def _view(control: Control, record: SessionRecord) -> SessionView:
    return views.session_view(record, control.sessions.cluster_of(record), control.sessions.table)


def _parse(model: type[B], body: bytes) -> B:
    """Strict JSON, then the model. Raises `malformed-json`; validation errors are raised as FastAPI's own."""
    data = parse_json(body)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        found = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise RequestValidationError(found) from None
