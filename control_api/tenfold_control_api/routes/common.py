"""What the routes share: the service behind them, query parameters, content types, durations."""

import re
from difflib import get_close_matches
from typing import Annotated

from fastapi import Depends, Request
from fastapi.routing import APIRoute
from starlette.convertors import StringConvertor, register_url_convertor

from tenfold_control_api.control import Control
from tenfold_control_api.problems import ApiError

_DURATION = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)(ms|s|m)?")


class _NameConvertor(StringConvertor):
    """A part of a path that names an object: `x:renew` is a verb, so that another method there is 405."""

    regex = "[^/:]+"


register_url_convertor("name", _NameConvertor())

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, None: 1.0}


async def _control(request: Request) -> Control:
    # async though it never waits: FastAPI runs any other function in a thread, which costs as much as the step
    control: Control = request.app.state.control
    return control


ControlDep = Annotated[Control, Depends(_control)]


async def only_known_parameters(request: Request) -> None:
    """Refuses query parameters that the route does not have: a misspelt one must not pass in silence."""
    if not request.scope["query_string"]:
        return
    known = _query_of(request.scope["route"])
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if unknown:
        near = get_close_matches(unknown[0], known, 1)
        meant = f" Did you mean {near[0]!r}?" if near else ""
        there = f"it has {', '.join(sorted(known)) or 'none'}"
        text = f"{request.method} {request.url.path} has no query parameter {unknown[0]!r}; {there}.{meant}"
        errors = [{"parameter": name, "in": "query", "detail": there} for name in unknown[:50]]
        raise ApiError("invalid-request", text, extra={"errors": errors})


def _query_of(route: APIRoute) -> tuple[str, ...]:
    """Names of the query parameters of the route, its dependencies' among them."""
    names: list[str] = []
    waiting = [route.dependant]
    while waiting:
        each = waiting.pop()
        names += [field.alias for field in each.query_params]
        waiting += each.dependencies
    return tuple(names)


def content_type(request: Request) -> str:
    """The media type of the body, without parameters; empty when the request names none."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def unsupported(request: Request, *accepted: str) -> ApiError:
    return ApiError(
        "unsupported-media-type",
        f"content type {content_type(request) or 'none'!r} is not accepted here; send {' or '.join(accepted)}.",
    )


async def require_json(request: Request) -> None:
    """Requires the content type of JSON: a web page of another origin cannot send that without CORS permission."""
    has_body = request.headers.get("content-length", "0") != "0" or "transfer-encoding" in request.headers
    if has_body and content_type(request) != "application/json":
        raise unsupported(request, "application/json")


JsonBody = Depends(require_json)


def seconds(text: str, limit: float) -> float:
    """`30`, `30s`, `500ms`, `1m` → seconds, at most `limit`. Raises INVALID_ARGUMENT."""
    match = _DURATION.fullmatch(text)
    if match is None:
        raise ApiError("invalid-duration", f"wait={text!r} is not a duration; write 30s, 500ms or 1m.")
    return min(float(match[1]) * _UNITS[match[2]], limit)
