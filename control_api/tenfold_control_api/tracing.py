"""REST requests as spans (OpenTelemetry). Plain ASGI; app.py puts it outermost. While nobody listens, requests go
straight on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tenfold_control_api.asgi import header
from tenfold_core import telemetry

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

#: Routes that are asked again and again while nothing happens.
_FREQUENT = (":renew", ":report", "/spec", "/events", "/healthz", "/readyz", "/metrics")
_PARENT = (telemetry.TRACEPARENT, "tracestate", "baggage")


class TracingMiddleware:
    """A span for each request, below that of its caller where the request tells of one."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if telemetry.tracer is None or scope["type"] != "http" or scope["path"].endswith(_FREQUENT):
            await self._app(scope, receive, send)
            return
        carrier = {name: value for name in _PARENT if (value := header(scope, name)) is not None}
        method = scope["method"]
        with (
            telemetry.below(carrier),
            telemetry.span(
                f"service {method}", "server", http__request__method=method, url__path=scope["path"]
            ) as opened,
        ):

            async def watched(message: Message) -> None:
                if message["type"] == "http.response.start":
                    opened.set_attribute("http.response.status_code", message["status"])
                await send(message)

            try:
                await self._app(scope, receive, watched)
            finally:
                route = getattr(scope.get("route"), "path", None)
                if route is not None:
                    # the name that all requests of a kind share is known once the request was routed
                    opened.update_name(f"service {method} {route}")
                    opened.set_attribute("http.route", route)
