"""`/v1/clusters`: declaring, registering, the versioned spec by long-poll, job and task status."""

import uuid
from itertools import islice
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from tenfold_control_api import views
from tenfold_control_api.cluster import Cluster, Drain, Newcomer, Registration, TaskState
from tenfold_control_api.control import Control
from tenfold_control_api.entry import registrar
from tenfold_control_api.models import (
    ClusterDeclaration,
    ClusterList,
    ClusterView,
    JobList,
    JobView,
    RegistrationView,
    SpecView,
    TaskDrain,
    TaskEnd,
    TaskList,
    TaskRegistration,
    TaskView,
)
from tenfold_control_api.openapi import problems
from tenfold_control_api.problems import ApiError
from tenfold_control_api.routes.common import ControlDep, JsonBody, seconds
from tenfold_control_api.routes.pages import LIMIT, After, Limit, following, page_of, place

ClusterState = Literal["waiting", "ready", "degraded", "stopped", "finished"]

router = APIRouter(prefix="/v1/clusters", tags=["clusters"])


@router.get("", summary="Clusters by name, in pages", openapi_extra=problems("invalid-cursor"))
async def list_clusters(
    control: ControlDep,
    state: Annotated[list[ClusterState] | None, Query(description="Only clusters in one of these states.")] = None,
    limit: Limit = LIMIT,
    after: After = None,
) -> ClusterList:
    begin = place(after, str)
    wanted = [
        cluster
        for cluster in await control.registry.refreshed()
        if not state or views.summary(list(cluster.tasks.values())) in state
    ]
    page, more = page_of(wanted, lambda cluster: (cluster.name,), begin, limit)
    return ClusterList(clusters=[views.cluster_view(cluster) for cluster in page], next=more)


@router.put(
    "/{cluster}",
    summary="Declare jobs and sizes",
    openapi_extra=problems(
        "invalid-cluster-name",
        "invalid-jobs",
        "cluster-too-large",
        "too-many-clusters",
        "tasks-alive",
        "too-many-changes",
    ),
    dependencies=[JsonBody],
    responses={201: {"model": ClusterView, "description": "The cluster is new."}},
)
async def declare_cluster(
    cluster: str, body: ClusterDeclaration, response: Response, control: ControlDep
) -> ClusterView:
    """Repeating a declaration changes nothing; a different one increases the version."""
    declared, created = await control.registry.declare(cluster, body.jobs, stop_with_workers=body.stop_with_workers)
    response.status_code = 201 if created else 200
    return views.cluster_view(declared)


@router.get("/{cluster}", summary="One cluster", openapi_extra=problems("no-such-cluster"))
async def get_cluster(cluster: str, control: ControlDep) -> ClusterView:
    return views.cluster_view(await control.registry.cluster(cluster))


@router.delete(
    "/{cluster}",
    summary="Delete a cluster",
    openapi_extra=problems("no-such-cluster", "tasks-alive", "sessions-open", "too-many-changes"),
)
async def delete_cluster(
    cluster: str,
    control: ControlDep,
    force: Annotated[bool, Query(description="End the leases of its tasks, and close its sessions.")] = False,
) -> ClusterView:
    """Refused while tasks hold leases or sessions are open, unless forced. Processes continue: each task is notified
    by its next heartbeat. Runs are not affected. Returns the deleted cluster."""
    if not force:
        await control.sessions.require_none_open(cluster)
    else:
        await control.registry.cluster(cluster)
        await control.sessions.close_all(cluster, f"cluster {cluster!r} was deleted")
    gone = await control.registry.delete(cluster, force=force)
    return views.cluster_view(gone)


@router.put(
    "/{cluster}/tasks/{job}/{index:name}",
    summary="Register a task on an index",
    openapi_extra=problems(
        *("no-such-cluster", "no-such-job", "no-such-task", "invalid-address", "task-taken", "lease-ended"),
        "too-many-changes",
    ),
    dependencies=[JsonBody],
    responses={201: {"model": RegistrationView, "description": "A new lease."}},
)
async def register_task(
    cluster: str,
    job: str,
    index: int,
    body: TaskRegistration,
    request: Request,
    response: Response,
    control: ControlDep,
) -> RegistrationView:
    """A process that holds the index and sends its `lease` gets it again (200) and can change the address. All others
    are refused (409) while the lease is live. A process that did not choose its own lease can repeat its
    registration."""
    outcome = await control.registry.register(cluster, job, index, _newcomer(body, request))
    response.status_code = 201 if outcome.fresh else 200
    return _registration(control, outcome)


@router.post(
    "/{cluster}/tasks/{job}:claim",
    summary="Register a task on the next free index",
    openapi_extra=problems(
        *("no-such-cluster", "no-such-job", "invalid-address", "no-free-index", "task-taken", "lease-ended"),
        "too-many-changes",
    ),
    dependencies=[JsonBody],
    responses={201: {"model": RegistrationView, "description": "A new lease."}},
)
async def claim_task(
    cluster: str, job: str, body: TaskRegistration, request: Request, response: Response, control: ControlDep
) -> RegistrationView:
    """Indices that were never held come first, then those of lost tasks; a task that comes back to its address gets its
    old index."""
    outcome = await control.registry.claim(cluster, job, _newcomer(body, request))
    response.status_code = 201 if outcome.fresh else 200
    return _registration(control, outcome)


@router.get(
    "/{cluster}/tasks/{job}/{index:name}",
    summary="One task",
    openapi_extra=problems("no-such-cluster", "no-such-job", "no-such-task"),
)
@router.get(
    "/{cluster}/jobs/{job}/tasks/{index}",
    summary="One task of a job",
    operation_id="get_job_task",
    openapi_extra=problems("no-such-cluster", "no-such-job", "no-such-task"),
)
async def get_task(cluster: str, job: str, index: int, control: ControlDep) -> TaskView:
    found = await control.registry.cluster(cluster)
    return views.task_view(found, found.task(job, index), control.registry.leases)


@router.delete(
    "/{cluster}/tasks/{job}/{index:name}",
    summary="Remove a task from its index",
    openapi_extra=problems("no-such-cluster", "no-such-job", "no-such-task", "too-many-changes"),
)
async def delete_task(
    cluster: str,
    job: str,
    index: int,
    control: ControlDep,
    reason: Annotated[str, Query(max_length=500, pattern=r"^[^\x00]*$")] = "deregistered by request",
) -> TaskView:
    """Its lease ends immediately; the index is missing until another task registers."""
    task = await control.registry.deregister(cluster, job, index, reason)
    return views.task_view(await control.registry.cluster(cluster), task, control.registry.leases)


@router.post(
    "/{cluster}/tasks/{job}/{index}:end",
    summary="Report how a task ended",
    dependencies=[JsonBody],
    openapi_extra=problems(
        "no-such-cluster", "no-such-job", "no-such-task", "failed-is-not-finished", "too-many-changes"
    ),
)
async def end_task(cluster: str, job: str, index: int, body: TaskEnd, control: ControlDep) -> TaskView:
    """For an observer of the process, so that nobody waits until its lease expires. A task without a live lease is not
    changed."""
    exit_code = body.exit_code or 0 if body.state == "finished" else body.exit_code
    task = await control.registry.end_task(cluster, job, index, TaskState(body.state), body.reason, exit_code)
    return views.task_view(await control.registry.cluster(cluster), task, control.registry.leases)


@router.post(
    "/{cluster}/tasks/{job}/{index}:drain",
    summary="Drain a task: no new work, running steps get a grace period",
    dependencies=[JsonBody],
    openapi_extra=problems("no-such-cluster", "no-such-job", "no-such-task", "nothing-to-drain", "too-many-changes"),
)
async def drain_task(
    cluster: str, job: str, index: int, control: ControlDep, body: TaskDrain | None = None
) -> TaskView:
    """The task is notified with its next heartbeat, ends its sessions, and releases its lease as stopped, with a
    reason that begins with `drained`. Until then no session is opened on its master."""
    wish = body or TaskDrain()
    task = await control.registry.drain(cluster, job, index, Drain(wish.grace, wish.reason))
    return views.task_view(await control.registry.cluster(cluster), task, control.registry.leases)


@router.get(
    "/{cluster}/tasks",
    summary="Tasks by job and index, in pages",
    response_model=TaskList,
    openapi_extra=problems("no-such-cluster", "no-such-job", "invalid-cursor"),
)
async def list_tasks(
    cluster: str,
    control: ControlDep,
    job: Annotated[str | None, Query(description="Only tasks of this job.")] = None,
    state: Annotated[list[TaskState] | None, Query(description="Only tasks in one of these states.")] = None,
    limit: Limit = LIMIT,
    after: After = None,
) -> Any:
    """A page costs only as much as it shows: listing ten thousand tasks does not delay other requests."""
    begin = place(after, str, int)
    found = await control.registry.cluster(cluster)
    tasks = found.in_order(job, None if begin is None else (str(begin[0]), int(begin[1])))
    wanted = tasks if not state else (task for task in tasks if task.state in state)
    page, more = following(list(islice(wanted, limit + 1)), limit, lambda task: (task.job, task.index))
    head = TaskList(cluster=found.name, version=found.version, tasks=[], next=more)
    return _with_list(head, "tasks", await views.tasks_json(found, page, control.registry.leases))


@router.get(
    "/{cluster}/jobs",
    summary="All jobs: which tasks are present or missing, since when and why",
    response_model=JobList,
    openapi_extra=problems("no-such-cluster"),
)
async def list_jobs(
    cluster: str,
    control: ControlDep,
    complete: Annotated[
        bool | None, Query(description="true: only jobs without missing tasks; false: only jobs with missing tasks.")
    ] = None,
) -> Any:
    found = await control.registry.cluster(cluster)
    wanted = list(found.jobs)
    if complete is not None:
        lacking = {task.job for task in found.tasks.values() if task.absent}
        wanted = [job for job in wanted if complete is (job not in lacking)]
    jobs = await views.jobs_json(found, wanted, control.registry.leases)
    tables = await views.tables_of(found, wanted, control.registry.leases)
    head = JobList(cluster=found.name, version=found.version, jobs=[], tables=tables)
    return _with_list(head, "jobs", b",".join(jobs))


@router.get(
    "/{cluster}/jobs/{job}",
    summary="One job",
    response_model=JobView,
    openapi_extra=problems("no-such-cluster", "no-such-job"),
)
async def get_job(cluster: str, job: str, control: ControlDep) -> Any:
    found = await control.registry.cluster(cluster)
    return _json(*await views.jobs_json(found, [job], control.registry.leases))


@router.get(
    "/{cluster}/spec",
    summary="The versioned cluster spec, by long-poll",
    response_model=SpecView,
    openapi_extra=problems(
        "no-such-cluster",
        "no-such-job",
        "no-such-task",
        "missing-parameter",
        "invalid-duration",
        "version-gone",
        "cluster-incomplete",
        "too-many-watchers",
        "stopping",
    ),
)
async def get_spec(
    cluster: str,
    control: ControlDep,
    after: Annotated[int | None, Query(ge=0, description="Answer when the version is above this one.")] = None,
    wait: Annotated[str, Query(description="How long to wait for that: 30s, 500ms, 1m.")] = "0s",
    complete: Annotated[bool, Query(description="Also wait until no task is missing, lost or stopped.")] = False,
    format: Annotated[Literal["json", "tf_config"], Query()] = "json",
    job: Annotated[str | None, Query(description="For tf_config: the task that it is for.")] = None,
    index: Annotated[int | None, Query(ge=0)] = None,
) -> Any:
    """When the wait expires, the answer is the current spec; `changed` says whether it is above `after`."""
    found = await control.registry.cluster(cluster)
    if format == "tf_config":
        if job is None or index is None:
            raise ApiError(
                "missing-parameter", "format=tf_config needs job and index: TF_CONFIG says which task it is for."
            )
        found.task(job, index)
    if after is not None and after > found.version:
        raise ApiError(
            "version-gone",
            f"cluster {cluster!r} is at version {found.version}; after={after} is from another history. Start "
            f"over with after=0.",
        )

    def satisfied(now: Cluster) -> bool:
        if after is not None and now.version <= after:
            return False
        if format == "tf_config":
            return all(task.address is not None for task in now.tasks.values())
        return now.complete or not complete

    limit = seconds(wait, control.settings.max_wait)
    if limit > 0:
        found, _ = await control.registry.wait(cluster, satisfied, limit)
    if format == "tf_config":
        assert job is not None
        assert index is not None
        return JSONResponse(views.tf_config(found, job, index))
    return _json(views.spec_json(found, after=after))


def _json(text: bytes) -> Response:
    """An answer that is not checked again: the text is that of the route's model, which a test compares."""
    return Response(text, media_type="application/json")


def _with_list(head: BaseModel, member: str, elements: bytes) -> Response:
    """The JSON of `head` with the elements of one of its lists."""
    return _json(b'%b,"%b":[%b]}' % (head.model_dump_json(exclude={member})[:-1].encode(), member.encode(), elements))


def _newcomer(body: TaskRegistration, request: Request) -> Newcomer:
    incarnation = str(body.incarnation) if body.incarnation is not None else uuid.uuid4().hex[:16]
    devices = tuple(device.model_dump() for device in body.devices)
    newcomer = Newcomer(
        body.address,
        incarnation,
        body.lease or uuid.uuid4().hex,
        devices,
        body.insecure,
        registrar(request.scope),
        body.lease,
    )
    if request.client is not None:
        # a proxy on this machine, a test and a Unix socket are local callers, too
        newcomer.require_reachable(request.client.host, str((request.scope.get("server") or ("",))[0]))
    return newcomer


def _registration(control: Control, outcome: Registration) -> RegistrationView:
    settings, leases = control.settings, control.registry.leases
    return RegistrationView(
        lease=views.lease_view(outcome.cluster, outcome.task, leases, settings.heartbeat, settings.lease_ttl),
        task=views.task_view(outcome.cluster, outcome.task, leases),
        spec_version=outcome.cluster.version,
    )
