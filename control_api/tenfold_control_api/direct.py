"""Innermost layer of app.py: the requests that come all the time, straight to their functions.

A heartbeat costs a third so. FastAPI still has these routes: for OpenAPI, and for what is not plain here (its functions
say so by `Fallback`), so that every refusal comes from one place. What they raise is answered by handlers.py, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from starlette.requests import Request
from starlette.routing import compile_path

from tenfold_control_api import handlers

if TYPE_CHECKING:
    import re
    from collections.abc import Awaitable, Callable, Sequence

    from fastapi import Response
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from tenfold_control_api.control import Control


class FallbackError(Exception):
    """This request is not plain: FastAPI's route does it."""


class DirectRoute(NamedTuple):
    """`answer(request, control, name)` gets the path's one variable."""

    method: str
    #: As FastAPI's, `/v1/leases/{lease}:renew`; under which the request is counted.
    path: str
    answer: Callable[[Request, Control, str], Awaitable[Response]]


class DirectRoutes:
    """ASGI middleware; requests of other routes pass through untouched."""

    def __init__(self, app: ASGIApp, routes: Sequence[DirectRoute]) -> None:
        self._app = app
        self._routes: list[tuple[str, re.Pattern[str], DirectRoute]] = [
            (route.method, compile_path(route.path)[0], route) for route in routes
        ]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # FastAPI's routes know which query parameters there are
        if scope["type"] == "http" and not scope["query_string"]:
            for method, pattern, route in self._routes:
                if scope["method"] == method and (match := pattern.match(scope["path"])) is not None:
                    await self._direct(route, match[1], scope, receive, send)
                    return
        await self._app(scope, receive, send)

    async def _direct(self, route: DirectRoute, name: str, scope: Scope, receive: Receive, send: Send) -> None:
        taken: list[Message] = []

        async def noted() -> Message:
            message = await receive()
            taken.append(message)
            return message

        request = Request(scope, noted)
        try:
            answer = await route.answer(request, scope["app"].state.control, name)
        except FallbackError:
            messages = iter(taken)

            async def again() -> Message:
                return next(messages, None) or await receive()

            await self._app(scope, again, send)
            return
        except Exception as error:
            problem = await handlers.answer_of(request, error)
            if problem is None:
                raise
            answer = problem
        scope["route"] = route
        await answer(scope, receive, send)
