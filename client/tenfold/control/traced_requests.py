"""Requests to the control service as spans of the client's, for processes that write traces (OpenTelemetry).

transport.py passes its httpx client through `traced`; while traces are off it comes back as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from tenfold_core import telemetry

if TYPE_CHECKING:
    H = TypeVar("H", httpx.Client, httpx.AsyncClient)

#: Ends of paths that a process asks again and again while nothing happens.
_FREQUENT = (":renew", ":report", "/spec", "/events")


def traced(http: H) -> H:
    """`http`, whose requests are spans and tell the service of them, if traces are on."""
    if not telemetry.is_on():
        return http
    send: Any = http.send

    def told(request: httpx.Request) -> None:
        request.headers.update(telemetry.headers())

    def send_in_span(request: httpx.Request, **options: Any) -> Any:
        if request.url.path.endswith(_FREQUENT):
            return send(request, **options)
        with _span(request) as opened:
            told(request)
            response = send(request, **options)
            opened.set_attribute("http.response.status_code", response.status_code)
            return response

    async def send_in_span_async(request: httpx.Request, **options: Any) -> Any:
        if request.url.path.endswith(_FREQUENT):
            return await send(request, **options)
        with _span(request) as opened:
            told(request)
            response = await send(request, **options)
            opened.set_attribute("http.response.status_code", response.status_code)
            return response

    # on this one object: its class is httpx's
    setattr(http, "send", send_in_span_async if isinstance(http, httpx.AsyncClient) else send_in_span)  # noqa: B010
    return http


def _span(request: httpx.Request) -> Any:
    return telemetry.span(
        f"client {request.method}",
        "client",
        http__request__method=request.method,
        url__path=request.url.path,
        server__address=request.url.host,
    )
