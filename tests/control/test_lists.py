"""Lists in pages with filters, and deleting a cluster."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from support.hand_clock import HandClock
from tenfold.control import ControlClient, problem_of
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings
from tenfold_core import errors

from .conftest import Gate, Masters, declare, register, running_app

if TYPE_CHECKING:
    import httpx

    from .conftest import Service

TARGET = "grpc://127.0.0.1:2222"


async def names(api: httpx.AsyncClient, path: str, member: str, **params: object) -> list[list[str]]:
    """The names on each page."""
    pages: list[list[str]] = []
    after = None
    while True:
        answer = (await api.get(path, params={"limit": 2, **params, **({"after": after} if after else {})})).json()
        pages.append([each["name"] for each in answer[member]])
        after = answer["next"]
        if after is None:
            return pages


async def test_clusters_come_in_pages_and_by_state(api: httpx.AsyncClient) -> None:
    for name in "edbac":
        await api.put(f"/v1/clusters/{name}", json={"jobs": {"worker": 1}})
    await api.put("/v1/clusters/b/tasks/worker/0", json={"address": "h:1", "incarnation": "a"})

    assert await names(api, "/v1/clusters", "clusters") == [["a", "b"], ["c", "d"], ["e"]]
    assert await names(api, "/v1/clusters", "clusters", state=["ready", "stopped"]) == [["b"]]
    assert (await api.get("/v1/clusters?state=gone")).status_code == 400
    assert (await api.get("/v1/clusters?after=here")).json()["type"] == "urn:tenfold:problem:invalid-cursor"
    assert (await api.get("/v1/clusters?limit=0")).status_code == 400


async def test_sessions_come_in_pages_newest_first_and_by_cluster_and_state(database: str, masters: Masters) -> None:
    wall = HandClock()
    app = create_app(Settings(database=database), masters, wall_clock=wall)
    async with running_app(app) as api:
        await declare(api, worker=2)
        await register(api, "worker", 0)
        await register(api, "worker", 1, "127.0.0.1:3333")
        opened = []
        for index in (0, 1, 0):
            wall.now += 1
            made = await api.post("/v1/sessions", json={"cluster": "default", "job": "worker", "index": index})
            opened.append(made.json()["name"])
        await api.delete("/v1/clusters/default/tasks/worker/1")

        assert await names(api, "/v1/sessions", "sessions") == [[opened[2], opened[1]], [opened[0]]]
        assert await names(api, "/v1/sessions", "sessions", state="lost") == [[opened[1]]]
        assert await names(api, "/v1/sessions", "sessions", cluster="default", state="ready") == [
            [opened[2], opened[0]]
        ]
        assert await names(api, "/v1/sessions", "sessions", cluster="other") == [[]]
        assert await names(api, "/v1/sessions", "sessions", job="ps") == [[]]
        assert len(await names(api, "/v1/sessions", "sessions", job="worker")) == 2


async def test_jobs_by_whether_a_task_is_missing(api: httpx.AsyncClient) -> None:
    await declare(api, worker=2, ps=1)
    await register(api, "ps", 0)
    await register(api, "worker", 0)

    async def jobs(**params: Any) -> list[str]:
        answer = await api.get("/v1/clusters/default/jobs", params=params)
        return [job["name"] for job in answer.json()["jobs"]]

    assert sorted(await jobs()) == ["ps", "worker"]
    assert await jobs(complete=True) == ["ps"]
    assert await jobs(complete=False) == ["worker"]


async def test_a_cluster_in_use_is_deleted_by_force_only(api: httpx.AsyncClient, masters: Masters) -> None:
    await declare(api, worker=1)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
    begin = (await api.get("/v1/events")).json()["next"]

    in_use = await api.delete("/v1/clusters/default")
    await api.delete(f"/v1/sessions/{session}")
    alive = await api.delete("/v1/clusters/default")
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
    forced = await api.delete("/v1/clusters/default?force=true")
    events: list[dict[str, str]] = []
    while not events or events[-1]["action"] != "deleted":
        page = (await api.get(f"/v1/events?after={begin}&wait=10s")).json()
        assert page["next"] > begin, events
        begin = page["next"]
        events += [event for event in page["events"] if event["action"] in ("lost", "deleted")]

    assert (in_use.status_code, in_use.json()["type"]) == (400, "urn:tenfold:problem:sessions-open")
    assert (alive.status_code, alive.json()["type"]) == (400, "urn:tenfold:problem:tasks-alive")
    assert alive.json()["task"] == "/job:worker/replica:0/task:0"
    assert (forced.status_code, forced.json()["counts"]["ready"]) == (200, 1)
    assert len(masters(TARGET).closed) == 2, "the master was told that its sessions are over"
    for path in ("/v1/clusters/default", f"/v1/sessions/{session}", f"/v1/leases/{lease}"):
        assert (await api.get(path)).status_code == 404, path
    assert (await api.post(f"/v1/leases/{lease}:renew")).status_code == 404
    assert [(event["kind"], event["action"], event["object"]) for event in events] == [
        ("task", "lost", "/job:worker/replica:0/task:0"),
        ("cluster", "deleted", "default"),
    ]


async def test_a_deleted_cluster_can_be_declared_again_and_stays_deleted_after_a_restart(
    database: str, masters: Masters
) -> None:
    async with running_app(create_app(Settings(database=database), masters)) as api:
        await declare(api, worker=1)
        old = (await api.get("/v1/clusters/default")).json()["uid"]
        assert (await api.delete("/v1/clusters/default")).status_code == 200
        await declare(api, ps=1)
        await register(api, "ps", 0)
        await api.put("/v1/clusters/other", json={"jobs": {"ps": 1}})
        assert (await api.delete("/v1/clusters/other")).status_code == 200
    async with running_app(create_app(Settings(database=database), masters)) as api:
        there = (await api.get("/v1/clusters")).json()["clusters"]

    assert [(cluster["name"], cluster["jobs"]) for cluster in there] == [("default", {"ps": 1})]
    assert there[0]["uid"] != old


async def test_who_waits_for_a_cluster_hears_that_it_was_deleted(api: httpx.AsyncClient) -> None:
    await declare(api, worker=1)
    app = api._transport.app  # type: ignore[attr-defined]
    waiting = asyncio.create_task(api.get("/v1/clusters/default/spec?after=1&wait=60s"))
    for _ in range(10_000):
        if app.state.control.registry.watchers():
            break
        await asyncio.sleep(0)

    await api.delete("/v1/clusters/default")

    assert (await waiting).json()["type"] == "urn:tenfold:problem:no-such-cluster"


async def test_a_step_in_flight_ends_with_its_cluster(api: httpx.AsyncClient, masters: Masters) -> None:
    await declare(api, worker=1)
    await register(api, "worker", 0)
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
    masters(TARGET).step = gate = Gate()
    step = asyncio.create_task(api.post(f"/v1/sessions/{session}/steps", json={"outputs": ["y"]}))
    await gate.wait_entered()

    deleted = await api.delete("/v1/clusters/default?force=true")
    answer = await step
    gate.leave.set()

    assert (deleted.status_code, answer.status_code, answer.json()["outcome"]) == (200, 503, "unknown")


def test_the_client_reads_all_pages_and_deletes(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tenfold.control.request._PAGE", 2)
    with ControlClient(service.url) as client:
        for name in "abcde":
            client.declare_cluster(name, {"worker": 1})
        client.register_task("a", "worker", 0, "127.0.0.1:2222", incarnation="x")
        client.create_session("a", job="worker")

        assert [cluster.name for cluster in client.clusters()] == list("abcde")
        assert [cluster.name for cluster in client.clusters(states=["ready"])] == ["a"]
        assert [session.cluster for session in client.sessions(cluster="a", state="ready")] == ["a"]
        with pytest.raises(errors.FailedPreconditionError) as refused:
            client.delete_cluster("a")
        assert client.delete_cluster("a", force=True).name == "a"
        assert client.sessions() == []

    problem = problem_of(refused.value)
    assert problem is not None
    assert problem.kind == "sessions-open"
