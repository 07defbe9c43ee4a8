"""What a route can raise → problem+json: ApiError, OpError, and errors of validation, HTTP and the database.

Installed by app.py. EdgeMiddleware catches every other exception.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from sqlalchemy.exc import SQLAlchemyError
from starlette.exceptions import HTTPException

from tenfold_control_api.asgi import logged_path, problem_body, problem_type
from tenfold_control_api.database import shown
from tenfold_control_api.problems import ApiError, from_database_error, from_op_error, pointer
from tenfold_core import errors

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from fastapi import FastAPI, Request

log = logging.getLogger(__name__)


def install(app: FastAPI) -> None:
    """Adds the handlers to an app."""
    for kind, handler in _handlers().items():
        app.add_exception_handler(kind, handler)


async def answer_of(request: Request, error: Exception) -> JSONResponse | None:
    """What the app answers when a route raises `error`; None for what no handler knows."""
    for kind, handler in _handlers().items():
        if isinstance(error, kind):
            return await handler(request, error)
    return None


def _handlers() -> dict[type[Exception], Callable[[Request, Exception], Awaitable[JSONResponse]]]:
    return {
        ApiError: _api_error,
        errors.OpError: _op_error,
        RequestValidationError: _validation,
        HTTPException: _http,
        SQLAlchemyError: _database,
    }


def respond(request: Request, error: ApiError) -> JSONResponse:
    body = problem_body(request.scope, error)
    media_type = problem_type(request.scope["path"])
    return JSONResponse(body, error.http_status, headers=dict(error.headers), media_type=media_type)


async def _api_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, ApiError)
    return respond(request, error)


async def _op_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, errors.OpError)
    return respond(request, from_op_error(error))


async def _validation(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    found = error.errors()
    no_json = any(each["type"] == "json_invalid" for each in found)
    listed = [{**_part(e["loc"]), "detail": _text(e)} for e in found[:50]]
    said = [(".".join(map(str, e["loc"])) if len(e["loc"]) > 1 else "", _text(e)) for e in found[:5]]
    first = "; ".join(f"{where}: {what}" if where and not no_json else what for where, what in said)
    more = f" (and {len(found) - 5} more)" if len(found) > 5 else ""
    problem = ApiError("malformed-json" if no_json else "invalid-request", f"{first}{more}.", extra={"errors": listed})
    return respond(request, problem)


def _part(location: Sequence[int | str]) -> dict[str, str]:
    """Which part of the request that is: of the body by a JSON Pointer, as in RFC 9457; of the rest by its name."""
    where, *inside = location
    if where != "body":
        return {"parameter": ".".join(map(str, inside)), "in": str(where)}
    if len(inside) == 1 and isinstance(inside[0], int):
        return {"pointer": "#"}  # a position in text that is not JSON
    return {"pointer": pointer(inside)}


def _text(error: dict[str, Any]) -> str:
    if error["type"] == "json_invalid":
        return f"the body is not JSON: {error.get('ctx', {}).get('error', '')} (at character {error['loc'][-1]})"
    if error["type"] == "missing" and tuple(error["loc"]) == ("body",):
        return "a JSON body is required"
    if error["type"] in ("model_type", "model_attributes_type", "dict_type"):
        return "a JSON object is expected"
    return str(error["msg"])


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    match error.status_code:
        case 404:
            detail, kind = (
                f"there is nothing at {request.url.path}. /openapi.json lists what there is.",
                "no-such-route",
            )
        case 405:
            allowed = ", ".join(request.app.state.methods_at(request.url.path))
            headers = {"Allow": allowed}
            detail, kind = f"{request.method} is not offered at {request.url.path}; {allowed} is.", "method-not-allowed"
        case _:
            detail, kind = str(error.detail), "malformed-body"  # FastAPI's, over a body that is not text
    return respond(request, ApiError(kind, detail, headers=headers))


async def _database(request: Request, error: Exception) -> JSONResponse:
    database = shown(request.app.state.control.settings.database)
    path = logged_path(request.scope)
    log.error("the database %s failed over %s %s: %s", database, request.method, path, error)
    return respond(request, from_database_error(error))
