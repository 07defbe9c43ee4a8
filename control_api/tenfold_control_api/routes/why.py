"""`GET /v1/runs/{run}:why`, `/v1/clusters/{cluster}:why`, `/v1/sessions/{session}:why`: who keeps others waiting."""

import time

from fastapi import APIRouter, Request, Response

from tenfold_control_api.entry import owned_by
from tenfold_control_api.openapi import problems
from tenfold_control_api.routes.common import ControlDep
from tenfold_control_api.routes.program_messages import received, taking
from tenfold_control_api.routes.sessions import owned_session
from tenfold_control_api.why import views
from tenfold_control_api.why.conclude import conclude
from tenfold_control_api.why.models import WhyView
from tenfold_protos.why_pb2 import TaskAnswer

router = APIRouter()


@router.get(
    "/v1/runs/{run}:why",
    tags=["runs"],
    summary="Why a run is stuck",
    openapi_extra=problems("no-such-run", "run-ended", "too-many-questions"),
)
async def why_run(run: str, control: ControlDep) -> WhyView:
    """Asks its programs and follows their waits to a suspect. The answer comes within two seconds and names the
    programs that did not respond. Nothing is collected between requests."""
    began = time.monotonic()
    record = await control.runs.get(run)
    record.require_active()
    places = views.of_run(await control.why.of_run(record), record.submitter)
    return views.why_view("run", record.id, places, conclude(places), time.monotonic() - began)


@router.get(
    "/v1/clusters/{cluster}:why",
    tags=["clusters"],
    summary="Why a cluster is stuck",
    openapi_extra=problems("no-such-cluster"),
)
async def why_cluster(cluster: str, request: Request, control: ControlDep) -> WhyView:
    """Asks its tasks. For sessions of other callers, a caller without the role `admin` sees only that they wait for
    something or hold it, and no stacks."""
    began = time.monotonic()
    known = await control.registry.cluster(cluster)
    places = await control.why.of_cluster(known)
    me = owned_by(request.scope)
    if me is not None:
        records = await control.store.load_sessions()
        mine = frozenset(each.handle for each in records if each.owner == me)
        places = views.hidden(places, views.handles_of(places, lambda owner: owner == me, mine))
    return views.why_view("cluster", known.name, places, conclude(places), time.monotonic() - began)


@router.get(
    "/v1/sessions/{session}:why",
    tags=["sessions"],
    summary="Why a session is stuck",
    openapi_extra=problems("no-such-session", "owned-by-another", "no-such-cluster"),
)
async def why_session(session: str, request: Request, control: ControlDep) -> WhyView:
    """Asks the tasks of its cluster what its steps wait for. For other sessions, the answer shows only that they hold
    something."""
    began = time.monotonic()
    record = await owned_session(session, request, control)
    places = await control.why.of_cluster(await control.registry.cluster(record.cluster))
    if owned_by(request.scope) is not None:
        places = views.hidden(places, frozenset((record.handle,)))
    shown = views.only(places, record.handle)
    return views.why_view("session", record.id, shown, conclude(shown), time.monotonic() - began)


@router.put(
    "/v1/runs/{run}/why/{asked}/tasks/{job}/{index}",
    tags=["runs"],
    summary="What a program waits for, reported by the program",
    status_code=204,
    openapi_extra=taking("A TaskAnswer.", "no-such-question"),
)
async def put_answer(run: str, asked: str, job: str, index: int, request: Request, control: ControlDep) -> Response:
    """404 once no request waits for it."""
    control.why.add(run, asked, job, index, await received(request, TaskAnswer))
    return Response(status_code=204)
