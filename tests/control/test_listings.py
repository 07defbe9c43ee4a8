"""Lists of tasks: written without the models that describe them, equal to them, in pages; what passes FastAPI by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tenfold_control_api import views
from tenfold_control_api.app import create_app
from tenfold_control_api.models import JobList, JobView, LeaseView, SpecView, TaskList
from tenfold_control_api.service_settings import Settings

from .conftest import Masters, declare, register, running_app
from .test_figures import FIGURES, renew

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx
    from fastapi import FastAPI

    from tenfold_control_api.control import Control

#: More than are written in one turn.
WORKERS = 230


@pytest.fixture
def app(database: str) -> FastAPI:
    # time stands still: an age is the same in both forms
    return create_app(Settings(database=database), Masters(), clock=lambda: 100.0)


@pytest.fixture
async def api(app: FastAPI) -> AsyncIterator[httpx.AsyncClient]:
    """A cluster with tasks in every state, one with figures, one with odd texts."""
    async with running_app(app) as client:
        await declare(client, worker=WORKERS, ps=2)
        leases = [(await register(client, "worker", index))["lease"]["id"] for index in range(4)]
        await renew(client, leases[0], FIGURES)
        await client.post(f"/v1/leases/{leases[1]}:release", json={"state": "lost", "reason": 'a "quoted"\n€ reason'})
        await client.post(f"/v1/leases/{leases[2]}:release", json={"state": "finished"})
        device = {"name": "/job:ps/replica:0/task:0/device:CPU:0", "memory_limit": 5}
        body = {"address": "127.0.0.1:1", "incarnation": "b", "devices": [device]}
        assert (await client.put("/v1/clusters/default/tasks/ps/0", json=body)).is_success
        yield client


async def pages(api: httpx.AsyncClient, **params: Any) -> list[dict[str, Any]]:
    """All tasks of all pages."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        params = {**params, **({} if after is None else {"after": after})}
        answer = await api.get("/v1/clusters/default/tasks", params=params)
        assert answer.is_success, answer.text
        page = TaskList.model_validate_json(answer.content)
        assert len(page.tasks) <= int(params.get("limit", 100))
        found += answer.json()["tasks"]
        after = page.next
        if after is None:
            return found


async def test_what_is_written_is_what_the_models_say(app: FastAPI, api: httpx.AsyncClient) -> None:
    for _ in range(2):  # made, and found again
        jobs = (await api.get("/v1/clusters/default/jobs")).content
        one = (await api.get("/v1/clusters/default/jobs/ps")).content
        spec = (await api.get("/v1/clusters/default/spec?after=1")).content

        control: Control = app.state.control
        cluster, leases = await control.registry.cluster("default"), control.registry.leases
        models = [views.job_view(cluster, job, leases) for job in cluster.jobs]
        tables = await views.tables_of(cluster, cluster.jobs, leases)
        whole = JobList(cluster="default", version=cluster.version, jobs=models, tables=tables)
        assert (JobList.model_validate_json(jobs), tables is None) == (whole, False)
        assert JobView.model_validate_json(one) == models[1]
        assert SpecView.model_validate_json(spec) == views.spec_view(cluster, after=1)
    assert b"quoted" in jobs
    assert models[0].tasks[0].figures is not None


async def test_a_change_shows_at_once(api: httpx.AsyncClient) -> None:
    before = (await api.get("/v1/clusters/default/jobs/worker")).json()
    await register(api, "worker", 5)
    after = (await api.get("/v1/clusters/default/jobs/worker")).json()

    assert [job["tasks"][5]["state"] for job in (before, after)] == ["missing", "ready"]
    assert {task["version"] for task in after["tasks"]} == {before["version"] + 1}


async def test_tasks_come_in_pages(api: httpx.AsyncClient) -> None:
    everything = await pages(api, limit=50)

    assert [(task["job"], task["index"]) for task in everything] == [
        *(("ps", index) for index in range(2)),
        *(("worker", index) for index in range(WORKERS)),
    ]
    assert everything[2]["figures"]["steps"] == 12
    assert [task["index"] for task in await pages(api, job="ps", limit=1)] == [0, 1]
    assert [task["index"] for task in await pages(api, state=["lost", "finished"], limit=1)] == [1, 2]
    assert len(await pages(api, limit=1000)) == WORKERS + 2


@pytest.mark.parametrize(
    ("query", "status", "kind"),
    [
        ("after=bm90IG9uZQ==", 400, "invalid-cursor"),
        ("job=chief", 404, "no-such-job"),
        ("limit=0", 400, "invalid-request"),
        ("state=lazy", 400, "invalid-request"),
    ],
)
async def test_what_no_page_ended_with(api: httpx.AsyncClient, query: str, status: int, kind: str) -> None:
    answer = await api.get(f"/v1/clusters/default/tasks?{query}")

    assert (answer.status_code, answer.json()["type"]) == (status, f"urn:tenfold:problem:{kind}")


# -- heartbeats go past FastAPI, unless something is odd


@pytest.mark.parametrize("content", [b"", b"{}", b'{"figures": null}', b'{"figures": {"steps": 3}}'])
async def test_a_heartbeat_is_answered_the_same_both_ways(api: httpx.AsyncClient, content: bytes) -> None:
    lease = (await register(api, "worker", 7))["lease"]["id"]
    headers = {"Content-Type": "application/json"} if content else {}

    direct = await api.post(f"/v1/leases/{lease}:renew", content=content, headers=headers)
    head = {**headers, "Idempotency-Key": "one"}
    stored = await api.post(f"/v1/leases/{lease}:renew", content=content, headers=head)
    again = await api.post(f"/v1/leases/{lease}:renew", content=content, headers=head)

    assert direct.headers["content-type"] == "application/json"
    assert LeaseView.model_validate_json(direct.content).state == "live"
    assert direct.json() == stored.json() == again.json()
    assert again.headers["Idempotency-Replayed"] == "true"


async def test_what_is_wrong_with_a_heartbeat_is_told_as_everywhere(api: httpx.AsyncClient) -> None:
    lease = (await register(api, "worker", 7))["lease"]["id"]
    path, json = f"/v1/leases/{lease}:renew", {"Content-Type": "application/json"}

    broken = await api.post(path, content=b'{"figures": ', headers=json)
    unknown = await api.post(path, json={"figure": {}})
    plain = await api.post(path, content=b"{}", headers={"Content-Type": "text/plain"})
    gone = await api.post("/v1/leases/none:renew")
    wrong_method = await api.put(path)

    assert (broken.status_code, broken.json()["type"]) == (400, "urn:tenfold:problem:malformed-json")
    assert (unknown.status_code, unknown.json()["errors"][0]["pointer"]) == (400, "#/figure")
    assert plain.status_code == 415
    assert (gone.status_code, gone.json()["type"]) == (404, "urn:tenfold:problem:no-such-lease")
    assert (wrong_method.status_code, wrong_method.headers["Allow"]) == (405, "POST")


async def test_heartbeats_are_counted_under_their_route(api: httpx.AsyncClient) -> None:
    scrape = (await api.get("/metrics")).text

    assert 'tenfold_control_requests_total{method="POST",route="/v1/leases/{lease}:renew",status="200"} 1.0' in scrape


@pytest.mark.parametrize(
    ("path", "parameter", "says"),
    [
        ("/v1/runs?staet=FAILED", "staet", "it has after, filter, limit, sort, state. Did you mean 'state'?"),
        ("/v1/clusters?state=ready&colour=red", "colour", "no query parameter 'colour'"),
        ("/v1/clusters/default/spec?wiat=1s", "wiat", "it has after, complete, format, index, job, wait. Did you mean"),
        ("/v1/service?x=1", "x", "it has none"),
    ],
)
async def test_a_query_parameter_that_is_not_there_is_refused(
    api: httpx.AsyncClient, path: str, parameter: str, says: str
) -> None:
    answer = await api.get(path)

    assert (answer.status_code, answer.json()["type"]) == (400, "urn:tenfold:problem:invalid-request")
    assert [(each["in"], each["parameter"]) for each in answer.json()["errors"]] == [("query", parameter)]
    assert says in answer.json()["detail"]


async def test_where_a_body_does_not_fit_is_a_json_pointer(api: httpx.AsyncClient) -> None:
    answer = await api.put("/v1/clusters/default", json={"jobs": {"a/b~c d": 0}})
    query = await api.get("/v1/clusters", params={"limit": "many"})

    assert [each["pointer"] for each in answer.json()["errors"]] == ["#/jobs/a~1b~0c%20d"]
    assert [(each["in"], each["parameter"]) for each in query.json()["errors"]] == [("query", "limit")]


def members_of(part: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every member of every object that a part of the document describes, however deep: (place, its schema)."""
    if isinstance(part, dict):
        described = part.get("properties")
        # a member may be called `properties`, too
        if part.get("type") == "object" and isinstance(described, dict):
            yield from ((f"{place}/{name}", member) for name, member in described.items())
        for name, inner in part.items():
            if name not in ("example", "examples", "default"):
                yield from members_of(inner, f"{place}/{name}")
    elif isinstance(part, list):
        for i, inner in enumerate(part):
            yield from members_of(inner, f"{place}/{i}")


async def test_every_member_and_parameter_has_a_description(api: httpx.AsyncClient) -> None:
    document = (await api.get("/openapi.json")).json()

    schemas = document["components"]["schemas"]
    members = list(members_of(document, "#"))
    assert len(members) > 300
    silent = [place for place, member in members if not member.get("description")]
    silent += [
        f"{method} {path} {parameter['name']}"
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
        for parameter in operation.get("parameters", [])
        if not parameter.get("description")
    ]
    assert silent == []
    assert schemas["ClusterView"]["properties"]["created"]["format"] == "date-time"
    assert {"type": "string", "format": "date-time"} in schemas["RunView"]["properties"]["ended"]["anyOf"]
    assert "format" not in schemas["ProgressPoint"]["properties"]["time"]
    assert document["paths"]["/healthz"]["get"]["security"] == []
    assert {} in document["security"]
    assert document["components"]["securitySchemes"].keys() == {"token", "certificate"}
    assert [server["url"] for server in document["servers"]] == ["/", "{scheme}://{host}:{port}"]
