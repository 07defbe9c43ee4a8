"""All routes of the control service, in the order in which they are tried. Used by app.py.

FastAPI reads a router's functions when the first request comes, which takes 0.1 s of the processor for all of these:
the apps of a process share what it read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import APIRouter, Depends
from fastapi.routing import APIRoute

from tenfold_control_api.routes import (
    artifacts,
    clusters,
    comparison,
    dashboard,
    events,
    inference,
    leases,
    models,
    packages,
    placement,
    probes,
    reference,
    runs,
    service,
    sessions,
    sweeps,
    traces,
    why,
)
from tenfold_control_api.routes.common import only_known_parameters

if TYPE_CHECKING:
    from starlette.routing import BaseRoute

# steps come most often
_SERVING = (
    *(sessions, why, inference, placement, leases, clusters, models),
    *(comparison, runs, sweeps, artifacts, traces, packages, events, service),
)
_PAGES = (probes, dashboard, reference)


def _included() -> list[BaseRoute]:
    router = APIRouter(generate_unique_id_function=lambda route: route.name)
    for module in _SERVING:
        router.include_router(module.router, dependencies=[Depends(only_known_parameters)])
    for module in _PAGES:
        router.include_router(module.router)
    return router.routes


#: What FastAPI takes as its `routes`.
ROUTES = _included()

_OFFERED = [
    (route.path_regex, route.path_format, route.methods or set())
    for module in (*_SERVING, *_PAGES)
    for route in module.router.routes
    if isinstance(route, APIRoute)
]


def methods_at(path: str) -> list[str]:
    """What is offered at a request's path by all routes that have it; `x:renew` is a verb, not an object."""
    there = [(name, methods) for pattern, name, methods in _OFFERED if pattern.fullmatch(path)]
    verbs = [each for each in there if ":" in each[0]]
    found = {method for _, methods in verbs or there for method in methods}
    return sorted(found | ({"HEAD"} if "GET" in found else set()))
