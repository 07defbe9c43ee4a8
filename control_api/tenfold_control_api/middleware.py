"""The outer layers of every request, outermost first: errors and times, HEAD, host and token, the size of the body.

Put together by app.py; idempotency.py is the layer inside these. Each is a plain ASGI callable. None of them touches
clusters or sessions.
"""

from __future__ import annotations

import ipaddress
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING

from tenfold_control_api.asgi import acting, header, logged_path, send_problem
from tenfold_control_api.entry import CALLER, CONNECTION, text_of
from tenfold_control_api.problems import ApiError
from tenfold_control_api.route_roles import SAFE_METHODS, needed
from tenfold_core import errors, protocol
from tenfold_core.access import audit
from tenfold_core.access.gate import NOBODY
from tenfold_core.access.roles import Role
from tenfold_core.log_setup import request_id

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tenfold_control_api.entry import Entry
    from tenfold_control_api.metrics import Metrics
    from tenfold_control_api.route_roles import RouteRole
    from tenfold_control_api.service_settings import Settings
    from tenfold_core.access.gate import Caller

log = logging.getLogger(__name__)
#: One line for each request that was answered.
access = logging.getLogger("tenfold_control_api.access")

#: A name that a caller may give a request: it goes into logs and headers as it is.
_SANE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")
#: What a body is whose request does not say.
_JSON = "application/json"
_PROTOCOL = protocol.HEADER.encode("ascii")
#: What an answer says it is: a browser is not to guess that a log or a trace is a page.
_NOSNIFF = (b"x-content-type-options", b"nosniff")
#: Where a program of a run sends what it traced.
_TRACE = re.compile(r"/v1/runs/[^/]+/traces/[^/]+/tasks/[^/]+/[^/]+")
#: Routes that are asked again and again while nothing happens; logged as INFO only where they fail.
_FREQUENT = (
    "/v1/runs/{run}:report",
    "/v1/runs/{run}/tasks/{job}/{index}:report",
    *("/healthz", "/readyz", "/metrics", "/v1/leases/{lease}:renew"),
)


class EdgeMiddleware:
    """Names, counts, times and logs requests; an exception that the inner layers let through becomes problem+json."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics
        self._speaks = protocol.rest().text().encode("ascii")

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        acting(scope)  # made here, so that every layer, and copies of the scope, have the same one
        status = 0
        name = _request_id(scope)
        token = request_id.set(name)

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                ours = [(b"x-request-id", name.encode("ascii")), (_PROTOCOL, self._speaks)]
                if not any(key == _NOSNIFF[0] for key, _ in message["headers"]):
                    ours.append(_NOSNIFF)
                message = {**message, "headers": [*message["headers"], *ours]}
            await send(message)

        try:
            self._check_version(scope)
            await self._app(scope, receive, watched)
        except ApiError as error:
            if status:
                raise
            await send_problem(scope, watched, error)
        except Exception as error:
            if status:
                raise
            log.exception("request %s %s failed (%s)", scope["method"], logged_path(scope), name)
            detail = f"the control service failed over this request ({type(error).__name__}); its log has more: {name}."
            await send_problem(scope, watched, ApiError("internal-error", detail))
        finally:
            route = getattr(scope.get("route"), "path", "unmatched")
            self._metrics.requests.labels(scope["method"], route, str(status or 499)).inc()
            seconds = time.perf_counter() - began
            self._metrics.request_seconds.labels(route).observe(seconds)
            level = logging.DEBUG if route in _FREQUENT and status < 400 else logging.INFO
            if access.isEnabledFor(level):
                _log_access(level, scope, status or 499, seconds)
            request_id.reset(token)

    def _check_version(self, scope: Scope) -> None:
        """Raises ApiError for a caller that says what it speaks, and speaks no version that this service does."""
        told = header(scope, protocol.HEADER)
        if told is None or told.encode("latin-1") == self._speaks:
            return
        try:
            protocol.agree_on_rest(protocol.parse(told), "the caller")
        except errors.InvalidArgumentError as error:
            raise ApiError("invalid-request", error.message) from None
        except protocol.VersionError as error:
            raise ApiError("protocol-not-spoken", error.message) from None


def _request_id(scope: Scope) -> str:
    """The caller's name of the request where it is a sane one, else a new name."""
    given = header(scope, "x-request-id") or ""
    return given if _SANE_ID.fullmatch(given) else secrets.token_hex(8)


def _log_access(level: int, scope: Scope, status: int, seconds: float) -> None:
    client = (scope.get("client") or ("unknown",))[0]
    shown = logged_path(scope)
    what = {"method": scope["method"], "path": shown, "status": status, "seconds": round(seconds, 6)}
    text = "%s %s %d in %.1f ms, from %s"
    fields = {"fields": {**what, "client": client}}
    # a path may hold anything but is one line of the log
    path = shown.encode("unicode_escape").decode("ascii")
    access.log(level, text, scope["method"], path, status, 1000 * seconds, client, extra=fields)


class _AnsweredError(Exception):
    """Ends the layers below once a HEAD request has its answer."""


class HeadMiddleware:
    """Answers HEAD as GET, without the body; a stream is not begun."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def head(message: Message) -> None:
            if message["type"] == "http.response.start":
                await send(message)
                await send({"type": "http.response.body", "body": b""})
                raise _AnsweredError

        # where the answer is a stream, the error comes out of a group of tasks
        try:
            await self._app({**scope, "method": "GET"}, receive, head)
        except* _AnsweredError:
            pass


class GateMiddleware:
    """Refuses requests for another `Host`, changes that a web page of another origin asks for, and callers without
    the role for what they ask; notes in the audit log who did what."""

    def __init__(self, app: ASGIApp, settings: Settings, entry: Entry) -> None:
        self._app = app
        self._settings, self._entry = settings, entry

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._check_host(scope)
        if scope["method"] not in SAFE_METHODS:
            self._check_origin(scope)
        needs = needed(scope["method"], scope["path"])
        if needs.role is Role.NONE:
            await self._app(scope, receive, send)
            return
        caller = scope[CALLER] = self._let_in(scope, needs)
        if needs.audited is None:
            await self._app(scope, receive, send)
            return
        status = 0

        async def watched(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, watched)
        finally:
            outcome = "done" if 200 <= status < 300 else "failed"
            audit.done(caller, needs.audited, outcome, status=status or 499, **text_of(scope))

    def _let_in(self, scope: Scope, needs: RouteRole) -> Caller:
        """Who it is. Raises ApiError for somebody who may not do this."""
        what = f"{scope['method']} {logged_path(scope)}"
        caller = NOBODY
        try:
            caller = self._entry.caller(scope, header(scope, "authorization"))
            if (error := self._entry.refusal(caller, needs.role, what)) is not None:
                raise error
        except ApiError as error:
            audit.refusals.note(caller, needs.audited or what, error.kind, **text_of(scope))
            raise
        if (connection := scope.get(CONNECTION)) is not None:
            connection.let_in()
        return caller

    def _check_host(self, scope: Scope) -> None:
        if sum(key == b"host" for key, _ in scope["headers"]) > 1:
            raise ApiError("host-not-allowed", "a request names one host, in one `Host` header; this one has more.")
        allowed = self._settings.allowed_hosts
        if allowed is None or self._entry.guarded:
            return
        name = _name_of(header(scope, "host") or "")
        if name not in allowed and not (self._settings.answer_addresses and _is_address(name)):
            raise ApiError(
                "host-not-allowed",
                f"host {name!r} is not answered: without a token this control service answers the names that it knows, "
                f"{', '.join(allowed)}. Use one of them, add yours to TENFOLD_CONTROL_ALLOWED_HOSTS, or start it with "
                "a token.",
            )

    def _check_origin(self, scope: Scope) -> None:
        """A browser says which site's page asks. Programs say nothing, and are let through: they are no confused
        deputies."""
        site = header(scope, "sec-fetch-site")
        origin = header(scope, "origin")
        if site in ("same-origin", "none") or (site is None and origin is None):
            return
        if site is None and origin is not None:
            # the port counts: another one is another program's, and so is its page
            host = origin.partition("://")[2]
            if host and host.lower() == (header(scope, "host") or "").lower():
                return
        raise ApiError(
            "foreign-origin",
            f"a page of {origin or 'another site'} may change nothing here; the dashboard of this service may.",
        )


class BodyLimitMiddleware:
    """Refuses bodies that are too large, by their announced length or once they have become so, and compressed ones,
    whose size nobody knows beforehand."""

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        coding = (header(scope, "content-encoding") or "identity").strip().lower()
        if coding not in ("", "identity"):
            text = f"the body's Content-Encoding {coding!r} is not accepted here: send it without compression."
            raise ApiError("unsupported-media-type", text, headers={"Accept-Encoding": "identity"})
        limit = self._limit(scope)
        announced = header(scope, "content-length")
        if announced is not None and announced.isdigit() and int(announced) > limit:
            raise _too_large(limit)
        seen, over, answered = 0, False, False

        async def counted() -> Message:
            nonlocal seen, over
            message = await receive()
            seen += len(message.get("body", b""))
            if seen > limit:
                over = True
                return {"type": "http.disconnect"}
            return message

        async def guarded(message: Message) -> None:
            nonlocal answered
            if not over:
                await send(message)
            elif not answered:
                # The route may report something else about the truncated body; this is the cause.
                answered = True
                await send_problem(scope, send, _too_large(limit))

        try:
            await self._app(scope, counted, guarded)
        except Exception:
            if not over or answered:
                raise
        if over and not answered:
            await send_problem(scope, send, _too_large(limit))

    def _limit(self, scope: Scope) -> int:
        if scope["path"].startswith("/v1/packages/"):
            return self._settings.max_body
        if scope["method"] == "PUT" and _TRACE.fullmatch(scope["path"]):
            return self._settings.max_program_trace
        if not scope["path"].startswith(("/v1/sessions", "/v2/models/")):
            return self._settings.max_small_body
        text = (header(scope, "content-type") or _JSON).startswith(_JSON)
        binary = header(scope, "inference-header-content-length") is not None
        return self._settings.max_json_body if text and not binary else self._settings.max_body


def _too_large(limit: int) -> ApiError:
    return ApiError(
        "body-too-large",
        f"the body is larger than the {limit} bytes that are accepted here. "
        "Large tensors and graphs travel in the binary forms (see docs/rest.md).",
    )


def _name_of(host: str) -> str:
    """The name of a `Host` header, in lower case, without the port."""
    name = host[: host.index("]") + 1] if host.startswith("[") and "]" in host else host.partition(":")[0]
    return name.lower()


def _is_address(name: str) -> bool:
    """Whether it is an address. Unlike a name, it cannot be made to lead elsewhere by who owns it."""
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
