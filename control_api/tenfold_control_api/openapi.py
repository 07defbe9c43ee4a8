"""The service's description of itself: FastAPI's document with this service's differences.

A route names the problems of its own by `problems(…)`; those that every request can meet are added here, each by its
status. Bodies that are parsed by hand have their schemas from models too. `docs/openapi.json` is the document without
a token; `make openapi` writes it, a test compares it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.openapi.utils import get_openapi
from pydantic.json_schema import models_json_schema

from tenfold_control_api.asgi import problem_type
from tenfold_control_api.etags import PREFIXES
from tenfold_control_api.models import GraphExtension, Problem, SessionCreation
from tenfold_control_api.problem_types import CODES, PROBLEM_TYPES
from tenfold_control_api.problems import URN
from tenfold_control_api.route_roles import SAFE_METHODS, needed
from tenfold_control_api.schema_words import explain
from tenfold_control_api.serving.shapes import ModelInferenceRequest, ModelInferenceResponse
from tenfold_control_api.step_models import InferenceRequest, InferenceResponse
from tenfold_core.access.roles import Role
from tenfold_core.help_links import runtime_kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from fastapi import FastAPI
    from pydantic import BaseModel

    from tenfold_control_api.service_settings import Settings

JSON = "application/json"
#: The member of an operation that lists its problem types.
TYPES = "x-problem-types"
#: What a call to a master can answer, besides what the service itself says.
MASTER_CALL = (
    *(runtime_kind(code) for code in CODES),
    "too-many-calls",
    "call-not-started",
    "call-unanswered",
    "task-lost",
    "session-lost",
    "session-gone",
)
#: Models whose schemas no route of FastAPI's uses.
_BY_HAND: tuple[type[BaseModel], ...] = (
    SessionCreation,
    GraphExtension,
    InferenceRequest,
    InferenceResponse,
    ModelInferenceRequest,
    ModelInferenceResponse,
    Problem,
)
#: How a caller shows who it is.
_SECURITY = {
    "token": {"type": "http", "scheme": "bearer", "description": "A token of the service, if it uses tokens."},
    "certificate": {"type": "mutualTLS", "description": "A client certificate of the service's authority, over HTTPS."},
}
#: Where the paths are: relative to this document where a service serves it, else where a service listens by default.
_SERVERS = [
    {"url": "/", "description": "The control service that serves this document."},
    {
        "url": "{scheme}://{host}:{port}",
        "description": "A control service elsewhere.",
        "variables": {
            "scheme": {"enum": ["http", "https"], "default": "http", "description": "https with `--tls-cert`."},
            "host": {"default": "127.0.0.1", "description": "As `tenfold control --host`."},
            "port": {"default": "8080", "description": "As `tenfold control --port`."},
        },
    },
]
_REF = "#/components/schemas/{model}"


def problems(*kinds: str) -> dict[str, Any]:
    """The `openapi_extra` of a route that can answer with these problems. Raises KeyError for one without a row."""
    return {TYPES: [PROBLEM_TYPES[kind].name for kind in kinds]}


def schema_of(model: type[BaseModel]) -> dict[str, str]:
    """A reference to the schema of one of the models that are described by hand."""
    assert model in _BY_HAND
    return {"$ref": _REF.format(model=model.__name__)}


def described(app: FastAPI, settings: Settings) -> dict[str, Any]:
    """FastAPI's document with this service's differences: validation errors are 400 problems, POSTs take an
    Idempotency-Key."""
    if app.openapi_schema is not None:
        return app.openapi_schema
    schema = get_openapi(title=app.title, version=app.version, description=app.description, routes=app.routes)
    for path, methods in schema["paths"].items():
        for method, operation in methods.items():
            if method == "post":
                operation.setdefault("parameters", []).append(
                    {
                        "name": "Idempotency-Key",
                        "in": "header",
                        "required": False,
                        "description": "The same key with the same request gets the stored answer.",
                        "schema": {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[ -~]+$"},
                    }
                )
            if method == "get":
                _tagged(path, operation)
            operation["responses"].pop("422", None)
            if needed(method.upper(), path).role is Role.NONE:
                operation["security"] = []
            own = operation.get(TYPES, [])
            operation[TYPES] = list(dict.fromkeys([*own, *_common(path, method, operation)]))
            operation["responses"].update(_responses(operation[TYPES], problem_type(path)))
    schemas = schema.setdefault("components", {}).setdefault("schemas", {})
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    _, by_hand = models_json_schema([(model, "validation") for model in _BY_HAND], ref_template=_REF)
    schemas.update(by_hand["$defs"])
    schemas["Problem"]["properties"]["type"][TYPES] = [URN + name for name in PROBLEM_TYPES]
    schema["components"]["schemas"] = dict(sorted(schemas.items()))
    explain(schema)
    schema["servers"] = _SERVERS
    schema["components"]["securitySchemes"] = _SECURITY
    # without tokens the user who runs the service needs nothing
    schema["security"] = [{name: []} for name in _SECURITY] + ([] if settings.has_tokens else [{}])
    app.openapi_schema = schema
    return schema


def _tagged(path: str, operation: dict[str, Any]) -> None:
    """What etags.py does with the answers of this GET."""
    found = operation["responses"]["200"]
    if not path.startswith(PREFIXES) or JSON not in found.get("content", {}):
        return
    operation.setdefault("parameters", []).append(
        {
            "name": "If-None-Match",
            "in": "header",
            "required": False,
            "description": "The `ETag` of an earlier answer: while nothing has changed, the answer is 304.",
            "schema": {"type": "string"},
        }
    )
    tag = {"ETag": {"description": "The tag of this answer, for `If-None-Match`.", "schema": {"type": "string"}}}
    found.setdefault("headers", {}).update(tag)
    operation["responses"]["304"] = {"description": "The answer is still the one that `If-None-Match` names."}


def _common(path: str, method: str, operation: dict[str, Any]) -> Iterable[str]:
    """What the layers around every route answer."""
    yield from ("host-not-allowed", "internal-error", "request-too-slow", "too-many-connections")
    yield "protocol-not-spoken"
    yield from ("malformed-head", "head-too-large")
    if method.upper() not in SAFE_METHODS:
        yield "foreign-origin"
    if needed(method.upper(), path).role is not Role.NONE:
        yield from ("token-needed", "token-unknown", "token-expired", "another-user", "role-too-small")
    ours = path.startswith(("/v1/", "/v2/")) or path == "/v2"
    if ours or operation.get("parameters") or "requestBody" in operation:
        yield "invalid-request"
    if ours:
        yield "database-unavailable"
    if method in ("post", "put", "patch"):
        yield from ("malformed-json", "malformed-body", "unsupported-media-type", "body-too-large")
    if method == "post":
        yield from ("invalid-idempotency-key", "idempotency-key-reused", "in-progress", "answer-not-kept")
        yield from ("outcome-unknown", "too-many-keys")


def _responses(kinds: list[str], media_type: str) -> dict[str, Any]:
    by_status: dict[int, list[str]] = {}
    for kind in kinds:
        by_status.setdefault(PROBLEM_TYPES[kind].status, []).append(kind)
    return {
        str(status): {
            "description": " · ".join(f"`{kind}`: {PROBLEM_TYPES[kind].meaning}" for kind in found),
            "content": {media_type: {"schema": schema_of(Problem)}},
        }
        for status, found in sorted(by_status.items())
    }
