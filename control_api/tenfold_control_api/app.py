"""`create_app`: the FastAPI application of one control service, its layers and its routes.

Called by main.py and by tests. The layers, outermost first: measure and catch errors → HEAD is GET → check host and
token → tag what is read → bound the body → idempotency → heartbeats and steps directly → routes.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from fastapi import FastAPI

from tenfold_control_api import handlers
from tenfold_control_api.control import Control
from tenfold_control_api.direct import DirectRoutes
from tenfold_control_api.entry import Entry
from tenfold_control_api.etags import ETagMiddleware
from tenfold_control_api.idempotency import IdempotencyMiddleware
from tenfold_control_api.masters import link_masters
from tenfold_control_api.metrics import Metrics
from tenfold_control_api.middleware import BodyLimitMiddleware, EdgeMiddleware, GateMiddleware, HeadMiddleware
from tenfold_control_api.openapi import described
from tenfold_control_api.route_table import ROUTES, methods_at
from tenfold_control_api.routes import leases, sessions
from tenfold_control_api.runs.supervisors import SupervisorsFactory, local_supervisors
from tenfold_control_api.service_tokens import ServiceTokens
from tenfold_control_api.tracing import TracingMiddleware

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from tenfold_control_api.leases import Clock
    from tenfold_control_api.masters import MasterFactory
    from tenfold_control_api.service_settings import Settings

_DESCRIPTION = """
The control service of a Tenfold cluster: tasks register here and hold leases; the cluster spec is versioned and
distributed by long-poll; REST provides sessions and steps. Errors are RFC 9457 problem details with TensorFlow's
canonical code. Every POST accepts an `Idempotency-Key`.
"""


def create_app(
    settings: Settings,
    master_factory: MasterFactory | None = None,
    *,
    supervisors: SupervisorsFactory | None = None,
    clock: Clock = time.monotonic,
    wall_clock: Clock = time.time,
) -> FastAPI:
    """An app whose lifespan opens the database and starts the sweepers. `master_factory` makes the `MasterInterface`
    for a `grpc://host:port` target (default: one that shows this service's credentials), `supervisors` what makes
    that which starts runs; `clock` is the monotonic clock of leases and sessions."""
    metrics = Metrics()
    access = settings.access()
    tokens = ServiceTokens(access.tokens())
    guarded = settings.has_tokens or settings.tls_cert is not None
    entry = Entry(tokens, open_to_all=settings.lets_everybody_in, guarded=guarded)
    masters = master_factory or link_masters(access, tokens.current)
    starts = supervisors or local_supervisors(tokens)

    @contextlib.asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        control = Control(settings, masters, supervisors=starts, metrics=metrics, clock=clock, wall_clock=wall_clock)
        async with control:
            app.state.control = control
            yield

    app = FastAPI(
        title="Tenfold control service",
        version="1",
        description=_DESCRIPTION,
        routes=ROUTES,
        lifespan=lifespan,
        docs_url=None,  # routes/reference.py: FastAPI's page loads scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    app.state.entry = entry  # main.py has it asked of each connection
    app.state.methods_at = methods_at  # handlers.py names them where a method is not offered
    handlers.install(app)
    # Starlette makes the middleware added last the outermost one.
    app.add_middleware(DirectRoutes, routes=[leases.RENEWAL, sessions.STEP])
    app.add_middleware(IdempotencyMiddleware, settings=settings)
    app.add_middleware(BodyLimitMiddleware, settings=settings)
    app.add_middleware(ETagMiddleware)
    app.add_middleware(GateMiddleware, settings=settings, entry=entry)
    app.add_middleware(HeadMiddleware)
    app.add_middleware(EdgeMiddleware, metrics=metrics)
    app.add_middleware(TracingMiddleware)
    app.openapi = lambda: described(app, settings)  # type: ignore[method-assign]
    return app
