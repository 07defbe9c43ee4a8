"""Every POST whose request or answer is lost, or that comes twice at once: with its Idempotency-Key it is done once.

Requests and answers are lost by an httpx transport before the app; once, on a real connection, by a client that hangs
up.
"""

from __future__ import annotations

import asyncio
import http.client
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from tenfold_control_api.app import create_app
from tenfold_control_api.idempotency import IdempotencyMiddleware
from tenfold_control_api.service_settings import Settings

from .conftest import PATIENCE, Gate, Masters, Service, declare, register

KEY = {"Idempotency-Key": "the-same"}
PROCESS = {"host": "here", "pid": 4711}
RUN = {"entrypoint": ["python"], "launcher": "external", "jobs": {"worker": 2}}
REPORT = {"state": "RUNNING", "reason": "its tasks run", "attempt": 1, "supervisor": PROCESS}

JOIN = {"key": "0123456789abcdef", "job": "worker", "jobs": {"worker": 2}, "entrypoint": ["python"], "process": PROCESS}

#: The body of each POST, by its path; `names` makes what is in braces there.
BODIES: dict[str, Any] = {
    "/v1/sessions": {"cluster": "default"},
    "/v1/sessions/{session}/graph:extend": {"graph_def": {}},
    "/v1/sessions/{session}/steps": {"outputs": ["y:0"]},
    "/v1/sessions/{session}:trace": {"outputs": ["y:0"]},
    "/v1/leases/{lease}:renew": {},
    "/v1/leases/{lease}:release": {},
    "/v1/clusters/{cluster}/tasks/{job}:claim": {"address": "h:1", "incarnation": "b"},
    "/v1/clusters/{cluster}/tasks/{job}/{index}:end": {"state": "lost"},
    "/v1/clusters/{cluster}/tasks/{job}/{index}:drain": {},
    "/v1/runs": RUN,
    "/v1/runs:join": JOIN,
    "/v1/runs/{run}:stop": {"reason": "enough"},
    "/v1/runs/{run}:report": REPORT,
    "/v1/runs/{run}/tasks/{job}/{index}:report": {"steps": 1, "process": PROCESS},
    "/v1/runs/{run}:trace": {},
    "/v1/sweeps": {"program": RUN, "parameters": {"lr": {"values": [0.1]}}},
    "/v1/sweeps/{sweep}:cancel": {},
    "/v1/sweeps/{sweep}:resume": {},
}
#: Refused here, as no program of the run answers and this service starts none for a sweep: a refusal frees the key, and
#: the same request asks again.
REFUSED = {"/v1/runs/{run}:trace", *(path for path in BODIES if path.startswith("/v1/sweeps"))}


@dataclass
class Losing(httpx.AsyncBaseTransport):
    """Loses the next request, or the next answer, where it is told to."""

    inner: httpx.AsyncBaseTransport
    loses: str = ""
    lost: list[httpx.Response] = field(default_factory=list)

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        loses, self.loses = self.loses, ""
        if loses == "request":
            raise httpx.WriteError("the connection broke", request=request)
        answer = await self.inner.handle_async_request(request)
        if loses == "answer":
            await answer.aread()
            self.lost.append(answer)
            raise httpx.ReadError("the connection broke", request=request)
        return answer


@pytest.fixture
def worked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The paths of requests with a key that were worked on, not answered from what is stored."""
    found: list[str] = []
    work: Any = IdempotencyMiddleware._work

    async def counted(self: IdempotencyMiddleware, scope: Any, *more: Any) -> None:
        found.append(scope["path"])
        await work(self, scope, *more)

    monkeypatch.setattr(IdempotencyMiddleware, "_work", counted)
    return found


async def names(api: httpx.AsyncClient) -> dict[str, Any]:
    """A cluster with a task, a session, a lease and a run."""
    await declare(api, worker=3)
    lease = (await register(api, "worker", 0))["lease"]["id"]
    session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
    run = (await api.post("/v1/runs", json=RUN)).json()["name"]
    assert (await api.post(f"/v1/runs/{run}:report", json=REPORT)).is_success
    made = {"lease": lease, "session": session, "run": run}
    return {"cluster": "default", "job": "worker", "index": 0, "sweep": "s", **made}


def test_every_post_is_tried() -> None:
    paths = create_app(Settings(database="unused.db")).openapi()["paths"]

    # an answer of a model changes nothing: it may be asked for again
    computes = {"/v2/models/{model}/infer", "/v2/models/{model}/versions/{version}/infer"}
    assert {path for path, operations in paths.items() if "post" in operations} == set(BODIES) | computes


@pytest.mark.parametrize("lost", ["request", "answer", "nothing"])
@pytest.mark.parametrize("path", BODIES)
async def test_a_post_is_done_once(sqlite: str, worked: list[str], path: str, lost: str) -> None:
    app = create_app(Settings(database=sqlite), Masters())
    async with app.router.lifespan_context(app):
        transport = Losing(httpx.ASGITransport(app))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as api:
            where = path.format(**await names(api))
            params = {"wait": "50ms"} if path == "/v1/runs/{run}:trace" else {}

            async def post() -> httpx.Response:
                return await api.post(where, json=BODIES[path], headers=KEY, params=params)

            if lost == "nothing":
                answers = list(await asyncio.gather(post(), post()))
            else:
                transport.loses = lost
                with pytest.raises(httpx.TransportError):
                    await post()
                answers = [*transport.lost, await post()]

    assert len({answer.status_code for answer in answers}) == 1
    if path not in REFUSED:
        assert answers[0].is_success, answers[0].text
        assert len({answer.content for answer in answers}) == 1
        assert worked == [where]
        assert sum(answer.headers.get("Idempotency-Replayed") == "true" for answer in answers) == len(answers) - 1


async def test_a_client_that_hangs_up_while_its_step_runs(service: Service, masters: Masters) -> None:
    async with httpx.AsyncClient(base_url=service.url, timeout=PATIENCE) as api:
        await declare(api, worker=1)
        await register(api, "worker", 0)
        session = (await api.post("/v1/sessions", json={"cluster": "default"})).json()["name"]
        path, body = f"/v1/sessions/{session}/steps", '{"outputs": ["y:0"]}'
        master, gate = masters("grpc://127.0.0.1:2222"), Gate()
        master.step = gate
        headers = {**KEY, "Content-Type": "application/json"}

        gone = http.client.HTTPConnection(service.url.removeprefix("http://"), timeout=PATIENCE)
        await asyncio.to_thread(gone.request, "POST", path, body, headers)
        await gate.wait_entered()
        gone.close()
        again = asyncio.ensure_future(api.post(path, content=body, headers=headers))
        gate.leave.set()
        answer = await again

    assert answer.is_success or answer.json()["outcome"] == "unknown", answer.text
    assert len(master.steps) == 1
