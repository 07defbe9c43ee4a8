"""Requests to the control service as spans of the client's (OpenTelemetry).

transport.py sends its requests through here; while nobody listens they go straight to httpx.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tenfold_core import telemetry

if TYPE_CHECKING:
    import httpx

#: Ends of paths that a process asks again and again while nothing happens.
_FREQUENT = (":renew", ":report", "/spec", "/events")


def send(http: httpx.Client, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
    """As `http.send`; the service is told of the span."""
    if telemetry.tracer is None or request.url.path.endswith(_FREQUENT):
        return http.send(request, stream=stream)
    with _span(request) as opened:
        request.headers.update(telemetry.headers())
        response = http.send(request, stream=stream)
        opened.set_attribute("http.response.status_code", response.status_code)
        return response


async def send_async(http: httpx.AsyncClient, request: httpx.Request, *, stream: bool = False) -> httpx.Response:
    """The same for one event loop."""
    if telemetry.tracer is None or request.url.path.endswith(_FREQUENT):
        return await http.send(request, stream=stream)
    with _span(request) as opened:
        request.headers.update(telemetry.headers())
        response = await http.send(request, stream=stream)
        opened.set_attribute("http.response.status_code", response.status_code)
        return response


def _span(request: httpx.Request) -> Any:
    return telemetry.span(
        f"client {request.method}",
        "client",
        http__request__method=request.method,
        url__path=request.url.path,
        server__address=request.url.host,
    )
