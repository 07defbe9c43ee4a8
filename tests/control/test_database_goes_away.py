"""A PostgreSQL server that stops, hangs and comes back under a running control service: every route answers 503 and may
be asked again, /readyz says so, and all goes on by itself. The server is a real one, of these tests alone."""

from __future__ import annotations

import asyncio
import os
import signal
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from support.postgres import PostgresServer, why_not
from tenfold_control_api import database
from tenfold_control_api.app import create_app
from tenfold_control_api.service_settings import Settings

from .conftest import PATIENCE, declare, register, running_app

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    import httpx

    from .conftest import Masters

pytestmark = pytest.mark.skipif(bool(why_not()), reason=why_not() or "there is one")
LEASE = "0123456789abcdef" * 2
#: Bodies of the requests that need one.
BODIES: dict[str, Any] = {
    "/v1/clusters/{cluster}": {"jobs": {"worker": 3}},
    "/v1/clusters/{cluster}/tasks/{job}/{index}": {"address": "127.0.0.1:2223"},
    "/v1/clusters/{cluster}/tasks/{job}:claim": {"address": "127.0.0.1:2224"},
    "/v1/clusters/{cluster}/tasks/{job}/{index}:end": {"state": "lost"},
    "/v1/runs": {"entrypoint": ["python", "t.py"], "jobs": {"worker": 1}, "launcher": "external"},
    "/v1/runs:join": {
        "key": "k",
        "job": "worker",
        "index": 0,
        "process": {"host": "h", "pid": 1},
        "entrypoint": ["t"],
        "working_dir": "/",
        "jobs": {"worker": 1},
        "create": True,
    },
    "/v1/sessions": {"cluster": "default", "graph_def": {}},
    "/v1/sessions/{session}/steps": {"outputs": ["y:0"]},
    "/v1/sessions/{session}/graph:extend": {"graph_def": {}},
    "/v1/sessions/{session}:trace": {"outputs": ["y:0"]},
    "/v1/runs/{run}:report": {
        "state": "RUNNING",
        "reason": "it runs",
        "attempt": 1,
        "supervisor": {"host": "here", "pid": 4711},
        "restarts": 0,
        "tasks": [],
    },
}
#: Routes that answer without the database: what they tell is this process's own, or a file's.
WITHOUT = {
    ("GET", "/healthz"),
    ("GET", "/metrics"),
    ("GET", "/v1/service"),
    ("GET", "/v1/events"),
    ("GET", "/v1/packages/{name}"),
    ("PUT", "/v1/packages/{name}"),
    ("GET", "/v2"),
    ("GET", "/v2/health/live"),
    ("PUT", "/v1/runs/{run}/traces/{trace}/tasks/{job}/{index}"),
    ("PUT", "/v1/runs/{run}/why/{asked}/tasks/{job}/{index}"),
    ("GET", "/v1/sessions"),
    ("GET", "/v1/sessions/{session}"),
}


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture
async def api(
    server: PostgresServer, masters: Masters, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[httpx.AsyncClient]:
    monkeypatch.setattr(database, "STATEMENT_S", 1.0)
    monkeypatch.setattr(database, "_CONNECT_S", 1.0)
    with server.database() as url:
        settings = Settings(database=url, heartbeat=0.2, lease_ttl=60.0, max_wait=1.0, grace=1.0)
        async with running_app(create_app(settings, masters)) as client:
            yield client


async def objects(api: httpx.AsyncClient) -> dict[str, str]:
    """One of each kind: what the paths name."""
    await declare(api, worker=3)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    session = (await api.post("/v1/sessions", json=BODIES["/v1/sessions"])).json()["name"]
    run = (await api.post("/v1/runs", json=BODIES["/v1/runs"])).json()["name"]
    known = {"cluster": "default", "job": "worker", "index": "0", "lease": lease, "session": session, "run": run}
    return {**known, "name": "0" * 64, "model": "m", "trace": "t", "asked": "w", "path": "p", "sweep": "s"}


async def ready(api: httpx.AsyncClient) -> None:
    """Returns once /readyz says 200."""
    async with asyncio.timeout(PATIENCE):
        while (await api.get("/readyz")).status_code != 200:
            pass


async def test_every_route_says_that_it_is_away_and_all_goes_on_by_itself(
    api: httpx.AsyncClient, server: PostgresServer
) -> None:
    known = await objects(api)
    paths = (await api.get("/openapi.json")).json()["paths"]

    async def ask(method: str, path: str) -> httpx.Response:
        where = path.format(**known)
        if method in ("GET", "DELETE"):
            return await api.request(method, where)
        if "/traces/" in path or "/packages/" in path:
            return await api.request(method, where, content=b"", headers={"Content-Type": "application/zip"})
        return await api.request(method, where, json=BODIES.get(path, {}))

    server.stop()
    try:
        found = {
            (method.upper(), path): await ask(method.upper(), path)
            for path, methods in paths.items()
            if not path.startswith(("/docs", "/openapi", "/v1/models", "/v2/models"))  # none are served here
            for method in methods
        }
    finally:
        server.start()
    wrong = {
        asked: (answer.status_code, answer.text[:200])
        for asked, answer in found.items()
        if asked not in WITHOUT and answer.status_code not in (503, 400)
    }
    failed = {asked: answer.text for asked, answer in found.items() if answer.status_code == 500}
    away = {asked: answer.json() for asked, answer in found.items() if answer.status_code == 503}

    assert not failed
    assert not wrong
    assert ("GET", "/readyz") in away
    for asked, problem in away.items():
        assert (problem["type"], problem["retryable"]) == ("urn:tenfold:problem:database-unavailable", True), asked
    assert len(away) > 30

    await ready(api)
    cluster = (await api.get("/v1/clusters/default/jobs/worker/tasks/0")).json()
    assert cluster["state"] == "ready"
    assert (await api.post(f"/v1/leases/{known['lease']}:renew")).status_code == 200
    # its master had closed it before the database did not forget it: it can be closed again
    assert (await api.delete(f"/v1/sessions/{known['session']}")).status_code == 200
    assert (await api.post("/v1/sessions", json=BODIES["/v1/sessions"])).status_code == 201
    assert (await api.get(f"/v1/runs/{known['run']}")).status_code == 200


async def test_a_keyed_request_that_meets_it_frees_its_key(api: httpx.AsyncClient, server: PostgresServer) -> None:
    known = await objects(api)
    steps, key = f"/v1/sessions/{known['session']}/steps", {"Idempotency-Key": "k"}
    server.stop()
    try:
        refused = await api.post(steps, json={"outputs": ["y:0"]}, headers=key)
    finally:
        server.start()
    await ready(api)
    after = await api.post(steps, json={"outputs": ["y:0"]}, headers=key)

    assert (refused.status_code, refused.json()["outcome"], refused.json()["retryable"]) == (503, "not-run", True)
    assert after.status_code == 200


async def test_a_server_that_hangs_is_away_too(api: httpx.AsyncClient, server: PostgresServer) -> None:
    known = await objects(api)
    processes = [psutil.Process(server._server.pid)]
    processes += processes[0].children()
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(2 * PATIENCE):
            probe = await api.get("/readyz")
            answer = await api.get("/v1/clusters/default")
            renewal = await api.post(f"/v1/leases/{known['lease']}:renew")
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)
    await ready(api)

    assert [each.status_code for each in (probe, answer, renewal)] == [503] * 3
    assert {each.json()["type"] for each in (probe, answer, renewal)} == {"urn:tenfold:problem:database-unavailable"}
    assert (await api.get("/v1/clusters/default")).status_code == 200


async def test_connections_that_are_ended_under_a_request(api: httpx.AsyncClient, server: PostgresServer) -> None:
    """As a failover does: the next request has a new one, and none fails otherwise than by 503."""
    await objects(api)
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tenfold-control'"
    statuses = set()
    for number in range(5):
        writing = [
            asyncio.create_task(api.put(f"/v1/clusters/c{number}-{each}", json={"jobs": {"worker": 1}}))
            for each in range(4)
        ]
        await asyncio.to_thread(server.sql, end)
        statuses |= {(await each).status_code for each in writing}

    assert statuses <= {200, 201, 503}
    await ready(api)
